/*
 * The webhooks themselves: see webhooks.h.
 */
#include "webhooks.h"

#include <errno.h>
#include <stdlib.h>

#include "addr.h"
#include "clock.h"
#include "json.h"
#include "keys.h"
#include "ledger.h"
#include "log.h"
#include "num.h"
#include "rnd.h"
#include "text.h"
#include "webhooks_impl.h"
#include "poison.h"

#define SECRET_BYTES 24
#define TYPES_TEXT   256

/* ---- URLs ---- */

/* What may stand in a request line and in a Host header as it is. */
static bool all_of(struct view v, const char *extra)
{
	for (size_t i = 0; i < v.n; i++) {
		char c = v.p[i];
		bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
		if (!c || (!alnum && !strchr(extra, c)))
			return false;
	}
	return true;
}

int webhooks_read_url(struct view url, struct webhook_url *ret, struct err *e)
{
	bool tls = view_starts(url, "https://");
	struct webhook_url u = { .port = tls ? 443 : 80, .tls = tls, .target = VIEW("/") };
	struct view rest = view_skip(url, tls ? strlen("https://") : strlen("http://")), port = VIEW_NONE;
	uint32_t number;

	if (!tls && !view_starts(url, "http://"))
		return err_set(e, ERR_INVALID, "url must begin with \"https://\" or \"http://\"");
	size_t n = 0;
	while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?')
		n++;
	u.authority = view_head(rest, n);
	if (n < rest.n && rest.p[n] == '?')
		return err_set(e, ERR_INVALID, "url: a path is needed before the query");
	if (n < rest.n)
		u.target = view_skip(rest, n);
	if (u.authority.n && u.authority.p[0] == '[') {
		u.host = view_split(view_skip(u.authority, 1), ']', &port);
		if (port.n)
			port = port.p[0] == ':' ? view_skip(port, 1) : VIEW("x");
	} else {
		u.host = view_split(u.authority, ':', &port);
	}
	if (port.n) {
		if (num_u32(port, &number) < 0 || number < 1 || number > UINT16_MAX)
			return err_set(e, ERR_INVALID, "url: the port must be between 1 and %d", UINT16_MAX);
		u.port = (uint16_t)number;
	}
	if (u.host.n < 1 || u.host.n > 253 || !all_of(u.host, ".-_:"))
		return err_set(e, ERR_INVALID, "url: the host must be a name or an address");
	if (!all_of(u.target, "/?-._~!$&'()*+,;=:@%"))
		return err_set(e, ERR_INVALID, "url: the path has characters that must be escaped");
	*ret = u;
	return 0;
}

/* What is written as an address can be judged at once; names are judged when they are dialled. */
static int check_place(const struct core *c, const struct webhook_url *u, struct err *e)
{
	struct addr a;

	if (addr_parse(u->host, &a) >= 0 && addr_refused(&a, c->config->webhooks.refuse))
		return err_set(e, ERR_INVALID,
			       "url: webhooks may not go to this address; webhooks.refuse of the "
			       "configuration decides");
	return 0;
}

/* ---- into and out of memory ---- */

static struct webhook *find(struct core *c, struct view id)
{
	struct map_node *n = map_get(&c->webhooks->by_id, id);
	return n ? CONTAINER(n, struct webhook, by_id) : NULL;
}

static void types_to_text(uint32_t types, struct buf *out)
{
	for (enum event_type t = EVENT_CREATED; t < EVENT_TYPES; t++)
		if (types & 1u << t)
			buf_printf(out, "%s%s", buf_len(out) ? "," : "", events_name(t));
}

static int load(struct core *c, const struct store_webhook *row, struct webhook **ret)
{
	struct webhook *w = calloc(1, sizeof(*w));
	int r = w ? 0 : -ENOMEM;

	if (r < 0)
		return r;
	w->core = c;
	w->tenant = keys_tenant(c, row->tenant);
	w->position = row->position;
	w->created_ms = row->created_ms;
	w->first.hook = w;
	list_init(&w->order);
	list_init(&w->retries);
	if (!w->tenant || events_read_types(row->events, &w->types, NULL) < 0)
		r = -EBADMSG;
	if (r >= 0)
		r = view_to_str(row->id, w->id, sizeof(w->id));
	if (r >= 0)
		r = view_to_str(row->url, w->url, sizeof(w->url));
	if (r >= 0)
		r = view_to_str(row->secret, w->secret, sizeof(w->secret));
	if (r >= 0)
		r = map_put(&c->webhooks->by_id, &w->by_id, view_of(w->id));
	if (r < 0) {
		free(w);
		return r;
	}
	list_append(&c->webhooks->all, &w->order);
	*ret = w;
	return 0;
}

int webhooks_load(struct core *c, const struct store_webhook *row)
{
	struct webhook *w;
	return load(c, row, &w);
}

int webhooks_load_delivery(struct core *c, const struct store_delivery *row)
{
	struct webhook *w = find(c, row->webhook);
	struct delivery *d = w ? calloc(1, sizeof(*d)) : NULL;

	if (!d)
		return w ? -ENOMEM : -ENOENT;
	d->hook = w;
	d->event = row->event;
	d->attempts = (unsigned)MIN(row->attempts, 1000);
	d->first_ms = row->first_ms;
	d->next_ms = row->next_ms;
	list_append(&w->retries, &d->link);
	w->n_retries++;
	return 0;
}

static void release(struct webhook *w)
{
	webhooks_send_stop(w);
	LIST_EACH (it, &w->retries) {
		list_del(it);
		free(CONTAINER(it, struct delivery, link));
	}
	map_del(&w->core->webhooks->by_id, &w->by_id);
	list_del(&w->order);
	explicit_bzero(w->secret, sizeof(w->secret));
	free(w);
}

/* ---- what clients ask for ---- */

struct hook_job {
	struct job job;
	struct core *core;
	char id[KEYS_ID_SIZE];
};

static struct hook_job *new_job(struct core *c, job_done *done, void *arg, struct err *e)
{
	struct hook_job *j = calloc(1, sizeof(*j));
	if (!j) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "webhook");
		return NULL;
	}
	j->job = (struct job){ .done = done, .arg = arg };
	j->core = c;
	return j;
}

static void on_created(void *arg, const struct err *e)
{
	struct hook_job *j = arg;
	struct webhook *w = find(j->core, view_of(j->id));
	struct err gone = { 0 };

	core_store_result(j->core, e);
	if (e && w && !j->core->stopping) {
		release(w);
		w = NULL;
	}
	err_set(&gone, ERR_STATE, "the webhook was removed");
	job_finish(&j->job, w, e ? e : w ? NULL : &gone);
	if (w && !e && !j->core->stopping)
		webhooks_send(w);
	free(j);
}

static int read_types(const struct json_strlist *list, uint32_t *ret, struct err *e)
{
	*ret = 0;
	for (size_t i = 0; i < list->n; i++) {
		uint32_t one;
		if (list->items[i].n == 0 || memchr(list->items[i].p, ',', list->items[i].n))
			return err_set(e, ERR_INVALID, "events: item %zu is no type of event", i + 1);
		if (events_read_types(list->items[i], &one, e) < 0)
			return err_wrap(e, "events");
		*ret |= one;
	}
	return 0;
}

static int check_secret(struct view v, struct err *e)
{
	bool ok = v.n == 0 || (v.n >= 8 && v.n <= WEBHOOKS_SECRET_MAX && text_is_utf8(v));
	for (size_t i = 0; ok && i < v.n; i++)
		ok = (unsigned char)v.p[i] >= ' ' && v.p[i] != 0x7f;
	return ok ? 0
		  : err_set(e, ERR_INVALID, "secret must have 8 to %d characters and no control characters",
			    WEBHOOKS_SECRET_MAX);
}

static int check_wish(struct core *c, const struct actor *a, const struct webhook_wish *w,
		      uint32_t *ret_types, struct err *e)
{
	struct webhook_url u;

	if (ledger_admit(c, a->tenant, &(struct quota_use){ { [LEDGER_WEBHOOKS] = 1 } }, e) < 0)
		return -1;
	if (w->url.n > WEBHOOKS_URL_MAX)
		return err_set(e, ERR_INVALID, "url must have at most %d bytes", WEBHOOKS_URL_MAX);
	if (webhooks_read_url(w->url, &u, e) < 0 || check_place(c, &u, e) < 0 ||
	    read_types(&w->events, ret_types, e) < 0)
		return -1;
	return check_secret(w->secret, e);
}

struct job *webhooks_create(struct core *c, const struct actor *a, const struct webhook_wish *wish,
			    job_done *done, void *arg, struct err *e)
{
	char id[KEYS_ID_SIZE] = "wh_", secret[6 + 2 * SECRET_BYTES + 1] = "whsec_";
	uint8_t random[SECRET_BYTES];
	struct webhook *w;
	uint32_t types = 0;

	if (auth_permit(a, ACT_WEBHOOKS, NULL, e) < 0 || check_wish(c, a, wish, &types, e) < 0)
		return NULL;
	struct hook_job *j = new_job(c, done, arg, e);
	if (!j)
		return NULL;
	rnd_name(id + 3, 16);
	rnd_bytes(random, sizeof(random));
	text_hex(random, sizeof(random), secret + 6);
	struct buf text = BUF_INIT(TYPES_TEXT);
	types_to_text(types, &text);
	struct store_webhook row = { .id = view_of(id),
				     .tenant = view_of(a->tenant->id),
				     .url = wish->url,
				     .events = buf_view(&text),
				     .secret = wish->secret.n ? wish->secret : view_of(secret),
				     .position = events_last(c),
				     .created_ms = clock_wall_ms() };
	int r = load(c, &row, &w);
	if (r >= 0) {
		memcpy(j->id, id, sizeof(j->id));
		store_webhook_put(c->store, &row, on_created, j);
		log_info("webhook %s made by %s", id, a->key);
	} else {
		free(j);
		err_sys(e, ERR_INTERNAL, r, "webhook");
	}
	buf_done(&text);
	explicit_bzero(secret, sizeof(secret));
	return r >= 0 ? &j->job : NULL;
}

static struct webhook *reach(struct core *c, const struct actor *a, struct view id, struct err *e)
{
	struct webhook *w = find(c, id);

	if (auth_permit(a, ACT_WEBHOOKS, NULL, e) < 0)
		return NULL;
	if (w && (a->role == STORE_ROLE_ADMIN || w->tenant == a->tenant))
		return w;
	err_set(e, ERR_NOT_FOUND, "no such webhook");
	return NULL;
}

const struct webhook *webhooks_find(struct core *c, const struct actor *a, struct view id, struct err *e)
{
	return reach(c, a, id, e);
}

static void on_removed(void *arg, const struct err *e)
{
	struct hook_job *j = arg;
	core_store_result(j->core, e);
	job_finish(&j->job, NULL, e);
	free(j);
}

struct job *webhooks_remove(struct core *c, const struct actor *a, struct view id, job_done *done, void *arg,
			    struct err *e)
{
	struct webhook *w = reach(c, a, id, e);
	struct hook_job *j = w ? new_job(c, done, arg, e) : NULL;

	if (!j)
		return NULL;
	log_info("webhook %s removed by %s", w->id, a->key);
	memcpy(j->id, w->id, sizeof(j->id));
	release(w);
	store_webhook_delete(c->store, view_of(j->id), on_removed, j);
	return &j->job;
}

int webhooks_each(struct core *c, const struct actor *a, void (*each)(void *arg, const struct webhook *w),
		  void *arg, struct err *e)
{
	if (auth_permit(a, ACT_WEBHOOKS, NULL, e) < 0)
		return -1;
	LIST_EACH (it, &c->webhooks->all) {
		const struct webhook *w = CONTAINER(it, struct webhook, order);
		if (a->role == STORE_ROLE_ADMIN || w->tenant == a->tenant)
			each(arg, w);
	}
	return 0;
}

void webhooks_show(const struct webhook *w, struct webhook_view *ret)
{
	*ret = (struct webhook_view){ .id = w->id,
				      .url = w->url,
				      .secret = w->secret,
				      .tenant = w->tenant,
				      .types = w->types,
				      .created_ms = w->created_ms,
				      .position = w->position,
				      .delivered = w->delivered,
				      .failed = w->failed,
				      .pending = w->n_retries };
}

void webhooks_log(const struct webhook *w, void (*each)(void *arg, const struct webhook_attempt *t),
		  void *arg)
{
	for (unsigned i = 1; i <= w->log_n; i++)
		each(arg, &w->log[(w->log_at + WEBHOOKS_LOG - i) % WEBHOOKS_LOG]);
}

/* ---- life ---- */

int webhooks_init(struct core *c)
{
	map_init(&c->webhooks->by_id);
	list_init(&c->webhooks->all);
	return 0;
}

void webhooks_done(struct core *c)
{
	if (!c->webhooks->all.next)
		return;
	LIST_EACH (it, &c->webhooks->all)
		release(CONTAINER(it, struct webhook, order));
	map_done(&c->webhooks->by_id);
}

uint64_t webhooks_held(const struct core *c, const struct tenant *t, enum ledger_item i)
{
	uint64_t n = 0;

	if (i == LEDGER_WEBHOOKS)
		LIST_EACH (it, &c->webhooks->all)
			n += CONTAINER(it, struct webhook, order)->tenant == t;
	return n;
}
