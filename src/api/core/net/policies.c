/*
 * Which policy holds for a box: see policies.h.
 */
#include "policies.h"

#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "core_base.h"
#include "image.h"
#include "images.h"
#include "keys.h"
#include "log.h"
#include "mounts.h"
#include "snapshots.h"
#include "vault.h"
#include "who.h"
#include "poison.h"

#define POLICY_BYTES (1024u * 1024)

struct policy_image {
	struct view name;
	struct policy *policy;
};

struct tenant_policy {
	struct map_node by_tenant;
	const struct tenant *tenant;
	struct policy *policy; /* NULL: none any more */
};

static const char *const source_names[] = {
	[POLICY_NONE] = "none",     [POLICY_BOX] = "sandbox",    [POLICY_IMAGE] = "image",
	[POLICY_TENANT] = "tenant", [POLICY_CONFIG] = "default",
};

const char *policies_source_name(enum policy_source s)
{
	return source_names[s];
}

static const struct egress_policy nothing = { .otherwise = EGRESS_DENY };

static const struct config_sets *sets_for(const struct core *c, struct view snapshot, struct view image)
{
	const struct config_sets *of = c->policies->sets_of(c, snapshot);
	const struct image *i = images_find(c, image);

	return of ? of : i && i->sets.sets ? &i->sets : &c->images->standard;
}

const struct config_sets *policies_sets(const struct box *b)
{
	return sets_for(b->in->core, b->spec.origin.n ? b->spec.origin : b->spec.snapshot, b->spec.digest);
}

const struct config_sets *policies_sets_tenants(const struct core *c)
{
	return &c->images->standard;
}

/* Files of a snapshot say nothing by themselves: what was in the box wrote them. Its image does. */
const struct config_sets *policies_sets_wish(struct core *c, const struct actor *a, const struct box_wish *w)
{
	const struct snapshot *s =
		w->snapshot.n ? snapshots_find(c, a, ACT_SNAPSHOT_READ, w->snapshot, NULL) : NULL;

	if (s)
		return sets_for(c, view_of(s->id), view_of(s->digest));
	return sets_for(c, VIEW_NONE, w->image.n ? w->image : c->config->defaults.image);
}

/* ---- policies in memory ---- */

static void policy_free(struct policy *p)
{
	if (!p)
		return;
	arena_done(&p->arena);
	free(p);
}

/* Rows have it as text, of which there is a most. */
static int check_size(const struct egress_policy *p, struct err *e)
{
	struct buf text = BUF_INIT(EGRESS_TEXT_MAX);
	int r = egress_write(p, &text);

	buf_done(&text);
	return r < 0 ? err_set(e, ERR_TOO_LARGE, "the policy is larger than %u bytes", EGRESS_TEXT_MAX) : 0;
}

static struct policy *policy_alloc(struct err *e)
{
	struct policy *p = calloc(1, sizeof(*p));

	if (!p)
		err_sys(e, ERR_INTERNAL, ENOMEM, "policy");
	else
		arena_init(&p->arena, POLICY_BYTES);
	return p;
}

static struct policy *policy_new(const struct egress_policy *from, struct err *e)
{
	struct policy *p = policy_alloc(e);

	if (p && egress_copy(&p->arena, from, &p->egress) < 0) {
		policy_free(p);
		err_set(e, ERR_TOO_LARGE, "the policy takes more memory than is allowed");
		return NULL;
	}
	return p;
}

/* Of the configuration. */
static struct policy *policy_read(const struct json *doc, const struct json *sets, struct err *e)
{
	struct policy *p = policy_alloc(e);

	if (p && (egress_read(&p->arena, doc, sets, &p->egress, e) < 0 || check_size(&p->egress, e) < 0)) {
		policy_free(p);
		return NULL;
	}
	return p;
}

/* Of the store: what was judged before is not refused for a set that is gone since. */
static struct policy *policy_parse(struct view text, struct err *e)
{
	struct policy *p = policy_alloc(e);

	if (p && egress_parse(&p->arena, text, &egress_any_set, &p->egress, e) < 0) {
		policy_free(p);
		return NULL;
	}
	return p;
}

/* ---- wishes ---- */

/* Networks that are not public belong to whoever runs the machine; a sum of sets must fit. */
static int check_wish(struct core *c, const struct actor *a, const struct egress_policy *p,
		      const struct json *sets, struct err *e)
{
	bool anyone = view_is(c->config->egress.non_public, "anyone") || a->role == STORE_ROLE_ADMIN;
	struct arena tmp = ARENA_INIT(POLICY_BYTES);
	struct egress_policy flat;
	int r = egress_flatten(&tmp, p, sets, &flat, e);

	arena_done(&tmp);
	for (size_t i = 0; r >= 0 && !anyone && i < p->n_rules; i++)
		if (p->rules[i].verdict == EGRESS_ALLOW && egress_rule_is_private(&p->rules[i]))
			return err_set(
				e, ERR_FORBIDDEN,
				"rules[%zu]: an admin key is needed to allow addresses that are not public",
				i);
	return r;
}

static struct policy *wish(struct core *c, const struct actor *a, const struct egress_policy *p,
			   const struct json *sets, struct err *e)
{
	return check_size(p, e) >= 0 && check_wish(c, a, p, sets, e) >= 0 ? policy_new(p, e) : NULL;
}

int policies_wish(struct core *c, const struct actor *a, struct box_wish *w, const struct egress_policy *p,
		  struct err *e)
{
	if (check_size(p, e) < 0 || check_wish(c, a, p, policies_sets_wish(c, a, w)->sets, e) < 0)
		return -1;
	w->egress = p;
	return 0;
}

/* ---- boxes ---- */

static int take(struct box *b, struct err *e)
{
	struct policy *p = NULL;

	if (b->spec.egress && !(p = policy_new(b->spec.egress, e)))
		return err_wrap(e, "egress");
	policy_free(b->in->egress->own);
	b->in->egress->own = p;
	b->spec.egress = p ? &p->egress : NULL;
	return 0;
}

static void forget(struct box *b, const struct err *why)
{
	list_del(&b->in->egress->unsent);
	policies_log_forget(b);
	policy_free(TAKE_PTR(b->in->egress->own));
	b->spec.egress = NULL;
}

static void init(struct box *b)
{
	b->in->egress->box = b;
	list_init(&b->in->egress->unsent);
}

const struct box_part policies_part = {
	.slot = offsetof(struct box_inside, egress),
	.size = sizeof(struct box_egress),
	.init = init,
	.take = take,
	.forget = forget,
};

static const struct policy *inherited(const struct box *b, enum policy_source *ret)
{
	const struct policies *ps = b->in->core->policies;
	struct map_node *n = map_get(&ps->by_tenant, view_of(b->tenant->id));
	const struct tenant_policy *t = n ? CONTAINER(n, struct tenant_policy, by_tenant) : NULL;

	*ret = POLICY_IMAGE;
	for (size_t i = 0; i < ps->n_images; i++)
		if (view_eq(ps->images[i].name, b->spec.image))
			return ps->images[i].policy;
	*ret = POLICY_TENANT;
	if (t && t->policy)
		return t->policy;
	*ret = ps->standard ? POLICY_CONFIG : POLICY_NONE;
	return ps->standard;
}

const struct egress_policy *policies_of(const struct box *b, enum policy_source *ret)
{
	enum policy_source from = POLICY_BOX;
	const struct policy *p = b->in->egress->own ? b->in->egress->own : inherited(b, &from);

	if (ret)
		*ret = from;
	return p ? &p->egress : &nothing;
}

/* ---- changes of a box ---- */

/* First the gate, then memory and store: what the gate refuses changes nothing. */
struct change {
	struct job job;
	struct box *box;
	char id[BOX_ID + 1]; /* it may be gone when the gate has answered */
	struct core *core;
	struct policy *policy; /* NULL: that of image, tenant, … */
	struct loop_task task;
	struct err unsure; /* the gate has not said that it has it */
};

static void change_end(struct change *ch, const struct box *b, const struct err *e)
{
	job_finish(&ch->job, b, e);
	policy_free(ch->policy);
	free(ch);
}

static void on_stored(void *arg, const struct err *e)
{
	struct change *ch = arg;

	core_store_result(ch->core, e);
	if (!e && ch->unsure.code)
		e = &ch->unsure;
	change_end(ch, ch->box, e);
}

static void settle(struct change *ch, const struct err *refused)
{
	struct box *b = boxes_by_id(ch->core, view_of(ch->id));
	struct err e = { 0 };

	if (refused && refused->code == ERR_INVALID) {
		if (b)
			vault_box_changed(b);
		change_end(ch, NULL, refused);
		return;
	}
	/* A gate that is gone gets it when it comes; one that does not answer may go by the old one. */
	if (refused && refused->code == ERR_TIMEOUT)
		err_set(&ch->unsure, ERR_UNAVAILABLE,
			"the policy is kept, but the gate has not confirmed it yet");
	if (!b || ch->core->stopping || b->state.status == BOX_DELETING) {
		err_set(&e, ERR_STATE, "the sandbox is being removed, or the daemon goes down");
		change_end(ch, NULL, &e);
		return;
	}
	policy_free(b->in->egress->own);
	b->in->egress->own = TAKE_PTR(ch->policy);
	b->spec.egress = b->in->egress->own ? &b->in->egress->own->egress : NULL;
	ch->box = b; /* its row goes after this write */
	if (boxes_store_change(b, on_stored, ch, &e) < 0)
		change_end(ch, NULL, &e);
}

static void on_trusted(void *arg, const struct err *e)
{
	if (e)
		log_warn("sandbox %s: it does not trust the installation's authority: %s",
			 ((struct change *)arg)->id, e->msg);
	settle(arg, NULL);
}

/* What is started after the answer must trust what the gate shows it. */
static void on_sent(void *arg, const struct err *e)
{
	struct change *ch = arg;
	struct box *b = boxes_by_id(ch->core, view_of(ch->id));

	if (e || !b || !ch->policy || !egress_opens(&ch->policy->egress) || ch->core->stopping ||
	    !mounts_trust(b, on_trusted, ch))
		settle(ch, e);
}

static void run_settle(struct loop_task *t)
{
	settle(CONTAINER(t, struct change, task), NULL);
}

static bool runs(const struct box *b)
{
	return b->state.status == BOX_RUNNING || b->state.status == BOX_PAUSED;
}

/* `p` is taken. */
static struct job *change(struct box *b, struct policy *p, bool recheck, job_done *done, void *arg,
			  struct err *e)
{
	struct change *ch = calloc(1, sizeof(*ch));
	enum policy_source from;

	if (!ch) {
		policy_free(p);
		err_sys(e, ERR_INTERNAL, ENOMEM, "policy");
		return NULL;
	}
	*ch = (struct change){ .job = { .done = done, .arg = arg }, .core = b->in->core, .policy = p };
	memcpy(ch->id, b->id, sizeof(ch->id));
	const struct policy *in_force = p ? p : inherited(b, &from);
	if (!runs(b) || policies_push(b, in_force ? &in_force->egress : &nothing, recheck, on_sent, ch) <= 0)
		loop_defer(b->in->core->loop, &ch->task, run_settle);
	return &ch->job;
}

struct job *policies_put(struct core *c, const struct actor *a, struct view ref,
			 const struct egress_policy *said, bool recheck, job_done *done, void *arg,
			 struct err *e)
{
	struct box *b = boxes_find_made(c, a, ref, e);
	struct policy *p = b && said ? wish(c, a, said, policies_sets(b)->sets, e) : NULL;

	return b && (p || !said) ? change(b, p, recheck, done, arg, e) : NULL;
}

/* What is said twice is said by the newer. */
static bool replaced(const struct egress_policy *p, size_t n_new, const struct egress_rule *old)
{
	for (size_t i = 0; i < n_new; i++)
		if (egress_rule_eq(&p->rules[i], old))
			return true;
	return false;
}

static int add_rules(const struct json *sets, const struct egress_policy *was,
		     const struct policies_more *more, struct arena *a, struct egress_policy *ret,
		     size_t *ret_new, struct err *e)
{
	struct egress_policy p = { .otherwise = was->otherwise,
				   .limits = was->limits,
				   .refuse_ech = was->refuse_ech };

	p.rules = arena_array(a, was->n_rules + more->targets.n, sizeof(*p.rules));
	if (!p.rules)
		return err_set(e, ERR_TOO_LARGE, "the policy takes more memory than is allowed");
	for (size_t i = 0; i < more->targets.n; i++) {
		struct egress_rule *r = &p.rules[p.n_rules];

		if (egress_target(a, more->targets.items[i], sets, r, e) < 0)
			return err_wrap(e, "targets[%zu]", i);
		r->verdict = more->verdict;
		if (egress_read_inject(a, more->inject, r, e) < 0)
			return err_wrap(e, "targets[%zu]", i);
		p.n_rules += !replaced(&p, p.n_rules, r);
	}
	size_t n_new = p.n_rules;
	for (size_t i = 0; i < was->n_rules; i++)
		if (!replaced(&p, n_new, &was->rules[i]))
			p.rules[p.n_rules++] = was->rules[i];
	if (p.n_rules > EGRESS_RULES_MAX)
		return err_set(e, ERR_INVALID, "targets: the policy would have more than %d rules",
			       EGRESS_RULES_MAX);
	*ret = p;
	*ret_new = n_new;
	return 0;
}

/* Only what is new is judged: what is there may have been allowed by somebody with other rights. */
static int check_more(struct core *c, const struct actor *a, const struct egress_policy *p, size_t n_new,
		      const struct json *sets, struct err *e)
{
	const struct egress_policy part = { .otherwise = p->otherwise, .rules = p->rules, .n_rules = n_new };
	struct arena tmp = ARENA_INIT(POLICY_BYTES);
	struct egress_policy flat;
	int r = check_wish(c, a, &part, sets, e);

	if (r >= 0)
		r = egress_flatten(&tmp, p, sets, &flat, e);
	arena_done(&tmp);
	return r;
}

struct job *policies_add(struct core *c, const struct actor *a, struct view ref,
			 const struct policies_more *more, bool recheck, job_done *done, void *arg,
			 struct err *e)
{
	struct box *b = boxes_find_made(c, a, ref, e);
	const struct json *sets = b ? policies_sets(b)->sets : NULL;
	struct arena tmp = ARENA_INIT(POLICY_BYTES);
	struct egress_policy grown;
	struct policy *p = NULL;
	size_t n_new = 0;

	if (b && add_rules(sets, policies_of(b, NULL), more, &tmp, &grown, &n_new, e) >= 0 &&
	    check_more(c, a, &grown, n_new, sets, e) >= 0 && check_size(&grown, e) >= 0)
		p = policy_new(&grown, e);
	arena_done(&tmp);
	return p ? change(b, p, recheck, done, arg, e) : NULL;
}

/* ---- tenants ---- */

static struct tenant_policy *tenant_policy(struct core *c, const struct tenant *t)
{
	struct map_node *n = map_get(&c->policies->by_tenant, view_of(t->id));
	if (n)
		return CONTAINER(n, struct tenant_policy, by_tenant);
	struct tenant_policy *tp = calloc(1, sizeof(*tp));
	if (!tp)
		return NULL;
	tp->tenant = t;
	if (map_put(&c->policies->by_tenant, &tp->by_tenant, view_of(t->id)) < 0) {
		free(tp);
		return NULL;
	}
	return tp;
}

int policies_tenant(struct core *c, const struct actor *a, struct view ref, const struct tenant **ret,
		    const struct egress_policy **ret_policy, struct err *e)
{
	const struct tenant *t = keys_find_tenant(c, a, ref, e);
	struct map_node *n = t ? map_get(&c->policies->by_tenant, view_of(t->id)) : NULL;
	const struct tenant_policy *tp = n ? CONTAINER(n, struct tenant_policy, by_tenant) : NULL;

	if (!t)
		return -1;
	*ret = t;
	*ret_policy = tp && tp->policy ? &tp->policy->egress : NULL;
	return 0;
}

struct tenant_change {
	struct job job;
	struct core *core;
	const struct tenant *tenant;
};

static void on_tenant_stored(void *arg, const struct err *e)
{
	struct tenant_change *ch = arg;

	core_store_result(ch->core, e);
	job_finish(&ch->job, ch->tenant, e);
	free(ch);
}

static bool inherits_from(const struct box *b, const void *tenant)
{
	enum policy_source from;

	policies_of(b, &from);
	return b->tenant == tenant && from != POLICY_BOX && from != POLICY_IMAGE;
}

struct job *policies_tenant_put(struct core *c, const struct actor *a, struct view ref,
				const struct egress_policy *said, job_done *done, void *arg, struct err *e)
{
	const struct tenant *t = keys_find_tenant(c, a, ref, e);
	struct policy *p = t && said ? wish(c, a, said, c->images->standard.sets, e) : NULL;
	struct buf text = BUF_INIT(EGRESS_TEXT_MAX);
	bool ok = t && (p ? egress_write(&p->egress, &text) >= 0 : !said);
	struct tenant_policy *tp = ok ? tenant_policy(c, t) : NULL;
	struct tenant_change *ch = tp ? calloc(1, sizeof(*ch)) : NULL;

	if (!ch) {
		policy_free(p);
		buf_done(&text);
		if (t && !e->code)
			err_sys(e, ERR_INTERNAL, ENOMEM, "policy");
		return NULL;
	}
	*ch = (struct tenant_change){ { .done = done, .arg = arg }, c, t };
	policy_free(tp->policy);
	tp->policy = p;
	log_info("the egress policy of tenant %s was changed by %s", log_quoted(view_of(t->name)), a->key);
	if (p)
		store_egress_put(c->store, &(struct store_egress){ view_of(t->id), buf_view(&text) },
				 on_tenant_stored, ch);
	else
		store_egress_delete(c->store, view_of(t->id), on_tenant_stored, ch);
	buf_done(&text);
	policies_push_all(c, inherits_from, t);
	return &ch->job;
}

/* ---- life ---- */

int policies_load(struct core *c, const struct store_egress *row)
{
	const struct tenant *t = keys_tenant(c, row->tenant);
	struct tenant_policy *tp = t ? tenant_policy(c, t) : NULL;

	if (!tp)
		return t ? -ENOMEM : -ENOENT;
	tp->policy = policy_parse(row->policy, NULL);
	return tp->policy ? 0 : -EINVAL;
}

static int read_refusals(struct core *c, struct err *e)
{
	const struct json *list = c->config->egress.refuse;
	struct policies *ps = c->policies;
	struct egress_policy p = { .otherwise = EGRESS_DENY };

	p.rules = arena_array(&ps->arena, list ? list->n : 0, sizeof(*p.rules));
	if (!p.rules)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "egress.refuse");
	for (size_t i = 0; list && i < list->n; i++) {
		if (egress_target(&ps->arena, list->items[i].text, c->images->standard.sets, &p.rules[i], e) <
		    0)
			return -1;
		p.rules[i].verdict = EGRESS_DENY;
		p.n_rules++;
	}
	return egress_flatten(&ps->arena, &p, c->images->standard.sets, &ps->refuse, e);
}

int policies_init(struct core *c, struct err *e)
{
	const struct config *cfg = c->config;
	const struct json *images = cfg->egress.images;
	struct policies *ps = c->policies;

	c->images->standard = (struct config_sets){ cfg->egress.sets, cfg->egress.sources };
	map_init(&ps->by_tenant);
	list_init(&ps->unsent);
	arena_init(&ps->arena, POLICY_BYTES);
	policies_log_init(c);
	if (cfg->egress.policy &&
	    !(ps->standard = policy_read(cfg->egress.policy, c->images->standard.sets, e)))
		return err_wrap(e, "egress.policy");
	ps->images = calloc((images ? images->n : 0) + 1, sizeof(*ps->images));
	if (!ps->images)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "egress.images");
	for (size_t i = 0; images && i < images->n; i++) {
		struct policy_image *im = &ps->images[ps->n_images];

		im->name = images->members[i].key;
		im->policy = policy_read(&images->members[i].value, c->images->standard.sets, e);
		if (!im->policy)
			return err_wrap(e, "egress.images");
		ps->n_images++;
	}
	return read_refusals(c, e);
}

void policies_done(struct core *c)
{
	struct policies *ps = c->policies;

	for (struct map_node *n; (n = map_first(&ps->by_tenant));) {
		struct tenant_policy *tp = CONTAINER(n, struct tenant_policy, by_tenant);
		map_del(&ps->by_tenant, n);
		policy_free(tp->policy);
		free(tp);
	}
	map_done(&ps->by_tenant);
	for (size_t i = 0; i < ps->n_images; i++)
		policy_free(ps->images[i].policy);
	free(ps->images);
	ps->n_images = 0;
	policy_free(TAKE_PTR(ps->standard));
	buf_done(&ps->logs.gone);
	arena_done(&ps->arena);
}
