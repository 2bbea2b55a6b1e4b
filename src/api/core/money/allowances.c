/*
 * Who may use what of models: see allowances.h.
 */
#include "allowances.h"

#include <errno.h>
#include <stdlib.h>

#include "index.h"
#include "boxes.h"
#include "clock.h"
#include "core_base.h"
#include "keys.h"
#include "log.h"
#include "prices.h"
#include "who.h"
#include "poison.h"

#define DOC_BYTES (512u * 1024)

struct tenant_allowance {
	struct map_node by_tenant;
	struct allowance_doc *doc; /* NULL: nothing was said */
};

/* ---- documents ---- */

static void doc_free(struct allowance_doc *d)
{
	if (!d)
		return;
	arena_done(&d->arena);
	free(d);
}

static struct allowance_doc *doc_new(struct view text, struct err *e)
{
	struct allowance_doc *d = calloc(1, sizeof(*d));
	struct json *j;

	if (!d) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "limits");
		return NULL;
	}
	arena_init(&d->arena, DOC_BYTES);
	d->text = arena_view(&d->arena, text);
	if (!d->text.p || json_parse(&d->arena, d->text, &j, e) < 0 ||
	    allowance_read(&d->arena, j, &d->said, e) < 0) {
		if (!d->text.p)
			err_sys(e, ERR_INTERNAL, ENOMEM, "limits");
		doc_free(d);
		return NULL;
	}
	return d;
}

/* The one form of what is said, which changes what was said before. Only what is new is judged: what the
 * ceilings have lost since does not keep the rest from being changed. */
static int wish(const struct allowance *was, const struct json *doc, const struct allowance_ceiling *ceilings,
		size_t n, struct buf *out, struct err *e)
{
	struct arena tmp = ARENA_INIT(DOC_BYTES);
	struct allowance a = was ? *was : (struct allowance){ 0 }, more = { 0 };
	struct json_out o;
	int r = allowance_read(&tmp, doc, &more, e) < 0 || allowance_within(&more, ceilings, n, e) < 0 ||
				allowance_read(&tmp, doc, &a, e) < 0
			? -1
			: 0;

	json_out_init(&o, out);
	if (r >= 0)
		allowance_put(&o, &a);
	arena_done(&tmp);
	return r >= 0 && out->bad
		       ? err_set(e, ERR_TOO_LARGE, "the limits are larger than %u bytes", ALLOWANCE_TEXT_MAX)
		       : r;
}

static bool says_nothing(struct view text)
{
	return view_is(text, "{}");
}

/* ---- what holds ---- */

static const struct tenant_allowance *of_tenant(const struct core *c, const struct tenant *t)
{
	struct map_node *n = map_get(&c->allowances->by_tenant, view_of(t->id));
	return n ? CONTAINER(n, struct tenant_allowance, by_tenant) : NULL;
}

const struct allowance *allowances_said_tenant(const struct core *c, const struct tenant *t)
{
	const struct tenant_allowance *ta = of_tenant(c, t);
	return ta && ta->doc ? &ta->doc->said : NULL;
}

const struct allowance *allowances_said(const struct box *b)
{
	return b->in->ai ? &b->in->ai->said : NULL;
}

void allowances_of_tenant(const struct core *c, const struct tenant *t, struct allowance_force *ret)
{
	allowance_in_force("tenant", allowances_said_tenant(c, t), c->allowances->tenant, NULL, 0, ret);
}

#define CEILINGS(c, of)                                                                                      \
	{                                                                                                    \
		{ "configuration", (c)->allowances->max },                                                   \
		{                                                                                            \
			"tenant", (of)->parts                                                                \
		}                                                                                            \
	}

void allowances_of(const struct box *b, struct allowance_force *ret)
{
	struct allowance_force tenant;

	allowances_of_tenant(b->in->core, b->tenant, &tenant);
	const struct allowance_ceiling ceilings[] = CEILINGS(b->in->core, &tenant);
	allowance_in_force("sandbox", allowances_said(b), b->in->core->allowances->box, ceilings,
			   ELEMS(ceilings), ret);
}

bool allowances_allow(const struct box *b, enum allowance_list l, struct view text)
{
	const struct allowance *box = allowances_said(b),
			       *tenant = allowances_said_tenant(b->in->core, b->tenant);

	return (!box || allowance_allows(box, l, text)) && (!tenant || allowance_allows(tenant, l, text));
}

/* ---- boxes ---- */

static int wish_of_box(struct core *c, const struct tenant *t, const struct allowance *was,
		       const struct json *doc, struct buf *out, struct err *e)
{
	struct allowance_force tenant;

	allowances_of_tenant(c, t, &tenant);
	const struct allowance_ceiling ceilings[] = CEILINGS(c, &tenant);
	return wish(was, doc, ceilings, ELEMS(ceilings), out, e);
}

int allowances_wish(struct core *c, const struct tenant *t, const struct json *doc, struct arena *arena,
		    struct view *ret, struct err *e)
{
	struct buf text = BUF_INIT(ALLOWANCE_TEXT_MAX);
	int r = wish_of_box(c, t, NULL, doc, &text, e);
	struct view kept =
		r < 0 || says_nothing(buf_view(&text)) ? VIEW("") : arena_view(arena, buf_view(&text));

	buf_done(&text);
	if (r >= 0 && !kept.p)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "limits");
	*ret = r < 0 ? *ret : kept;
	return r;
}

static int take(struct box *b, struct err *e)
{
	struct allowance_doc *d = NULL;

	if (b->spec.ai.n && !(d = doc_new(b->spec.ai, e)))
		return err_wrap(e, "ai");
	doc_free(b->in->ai);
	b->in->ai = d;
	b->spec.ai = d ? d->text : VIEW_NONE;
	return 0;
}

static void forget(struct box *b, const struct err *why)
{
	doc_free(TAKE_PTR(b->in->ai));
	b->spec.ai = VIEW_NONE;
}

const struct box_part allowances_part = { .take = take, .forget = forget };

struct change {
	struct job job;
	struct core *core;
	const void *what; /* the box or the tenant */
};

static void on_stored(void *arg, const struct err *e)
{
	struct change *ch = arg;

	core_store_result(ch->core, e);
	job_finish(&ch->job, ch->what, e);
	free(ch);
}

static struct change *change_new(struct core *c, const void *what, job_done *done, void *arg, struct err *e)
{
	struct change *ch = calloc(1, sizeof(*ch));

	if (ch)
		*ch = (struct change){ { .done = done, .arg = arg }, c, what };
	else
		err_sys(e, ERR_INTERNAL, ENOMEM, "limits");
	return ch;
}

static struct job *store_box(struct box *b, struct change *ch, struct err *e)
{
	if (boxes_store_change(b, on_stored, ch, e) >= 0) /* its row goes after this write */
		return &ch->job;
	free(ch);
	return NULL;
}

static struct box *find(struct core *c, const struct actor *a, struct view ref, struct err *e)
{
	struct box *b = boxes_find(c, a, ACT_BOX_CHANGE, ref, e);

	if (b && (b->state.status == BOX_CREATING || b->state.status == BOX_DELETING)) {
		err_set(e, ERR_STATE, "the sandbox is being made or removed");
		return NULL;
	}
	return b;
}

struct job *allowances_put(struct core *c, const struct actor *a, struct view ref, const struct json *doc,
			   bool whole, job_done *done, void *arg, struct err *e)
{
	struct box *b = find(c, a, ref, e);
	struct buf text = BUF_INIT(ALLOWANCE_TEXT_MAX);
	struct allowance_doc *d = NULL;
	struct change *ch = NULL;

	if (b && wish_of_box(c, b->tenant, whole ? NULL : allowances_said(b), doc, &text, e) >= 0 &&
	    (d = doc_new(buf_view(&text), e)))
		ch = change_new(c, b, done, arg, e);
	buf_done(&text);
	if (!ch) {
		doc_free(d);
		return NULL;
	}
	if (says_nothing(d->text))
		doc_free(TAKE_PTR(d));
	doc_free(b->in->ai);
	b->in->ai = d;
	b->spec.ai = d ? d->text : VIEW_NONE;
	log_info("sandbox %s: what it may use of models was changed by %s", b->id, a->key);
	return store_box(b, ch, e);
}

struct job *allowances_rotate(struct core *c, const struct actor *a, struct view ref, uint64_t ttl_seconds,
			      job_done *done, void *arg, struct err *e)
{
	struct box *b = find(c, a, ref, e);
	struct change *ch = b ? change_new(c, b, done, arg, e) : NULL;

	if (!ch)
		return NULL;
	b->spec.ai_token++;
	b->spec.ai_token_ends_ms = ttl_seconds ? clock_wall_ms() + (int64_t)ttl_seconds * 1000 : 0;
	log_info("sandbox %s: its token for models was changed by %s", b->id, a->key);
	return store_box(b, ch, e);
}

/* ---- tenants ---- */

/* `d` is taken, NULL: nothing is said. */
static int set_tenant(struct core *c, const struct tenant *t, struct allowance_doc *d)
{
	struct map_node *n = map_get(&c->allowances->by_tenant, view_of(t->id));
	struct tenant_allowance *ta =
		n ? CONTAINER(n, struct tenant_allowance, by_tenant) : calloc(1, sizeof(*ta));

	if (!ta || (!n && map_put(&c->allowances->by_tenant, &ta->by_tenant, view_of(t->id)) < 0)) {
		free(ta);
		doc_free(d);
		return -ENOMEM;
	}
	doc_free(ta->doc);
	ta->doc = d;
	return 0;
}

struct job *allowances_tenant_put(struct core *c, const struct actor *a, struct view ref,
				  const struct json *doc, bool whole, job_done *done, void *arg,
				  struct err *e)
{
	const struct tenant *t = keys_find_tenant(c, a, ref, e);
	struct buf text = BUF_INIT(ALLOWANCE_TEXT_MAX);
	struct allowance_doc *d = NULL;
	struct change *ch = NULL;

	if (t && wish(whole ? NULL : allowances_said_tenant(c, t), doc, NULL, 0, &text, e) >= 0 &&
	    (d = doc_new(buf_view(&text), e)))
		ch = change_new(c, t, done, arg, e);
	if (!ch) {
		doc_free(d);
		buf_done(&text);
		return NULL;
	}
	bool nothing = says_nothing(d->text);
	if (nothing)
		doc_free(TAKE_PTR(d));
	if (set_tenant(c, t, d) < 0) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "limits");
		free(ch);
		buf_done(&text);
		return NULL;
	}
	log_info("what tenant %s may use of models was changed by %s", log_quoted(view_of(t->name)), a->key);
	if (nothing)
		store_ai_limits_delete(c->store, view_of(t->id), on_stored, ch);
	else
		store_ai_limits_put(c->store, &(struct store_ai_limits){ view_of(t->id), buf_view(&text) },
				    on_stored, ch);
	buf_done(&text);
	return &ch->job;
}

/* ---- life ---- */

static void read_config(const struct config_ai_limits *l, uint64_t ret[ALLOWANCE_PARTS])
{
	ret[ALLOWANCE_REQUESTS] = l->requests_per_minute;
	ret[ALLOWANCE_TOKENS] = l->tokens_per_minute;
	ret[ALLOWANCE_PARALLEL] = l->parallel;
	ret[ALLOWANCE_DAY] = (uint64_t)prices_dollars(l->day);
	ret[ALLOWANCE_WEEK] = (uint64_t)prices_dollars(l->week);
	ret[ALLOWANCE_MONTH] = (uint64_t)prices_dollars(l->month);
	ret[ALLOWANCE_WARN] = (uint64_t)(l->warn * 1e6 + 0.5);
	ret[ALLOWANCE_BODIES] = l->log_bodies ? ALLOWANCE_BODIES_KEPT : ALLOWANCE_BODIES_UNSAID;
}

void allowances_init(struct core *c)
{
	map_init(&c->allowances->by_tenant);
	read_config(&c->config->ai.box, c->allowances->box);
	read_config(&c->config->ai.tenant, c->allowances->tenant);
	read_config(&c->config->ai.max, c->allowances->max);
	c->allowances->max[ALLOWANCE_BODIES] =
		c->config->ai.max.log_bodies ? ALLOWANCE_BODIES_UNSAID : ALLOWANCE_BODIES_NOT;
}

int allowances_load(struct core *c, const struct store_ai_limits *row)
{
	const struct tenant *t = keys_tenant(c, row->tenant);
	struct allowance_doc *d = t ? doc_new(row->limits, NULL) : NULL;

	if (!d)
		return t ? -EINVAL : -ENOENT;
	return set_tenant(c, t, d);
}

void allowances_done(struct core *c)
{
	for (struct map_node *n; (n = map_first(&c->allowances->by_tenant));) {
		struct tenant_allowance *ta = CONTAINER(n, struct tenant_allowance, by_tenant);
		map_del(&c->allowances->by_tenant, n);
		doc_free(ta->doc);
		free(ta);
	}
	map_done(&c->allowances->by_tenant);
}
