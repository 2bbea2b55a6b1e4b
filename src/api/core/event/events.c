/*
 * The log of events: see events.h.
 */
#include "events.h"

#include <errno.h>
#include <stdlib.h>

#include "boxes.h"
#include "clock.h"
#include "core_base.h"
#include "json.h"
#include "keys.h"
#include "log.h"
#include "poison.h"

#define DATA_MAX (8u * 1024)
#define TRIM_MS  (60u * 60 * 1000)

static const char *const names[EVENT_TYPES] = {
	[EVENT_NONE] = "none",
	[EVENT_CREATED] = "created",
	[EVENT_STARTED] = "started",
	[EVENT_EXITED] = "exited",
	[EVENT_PAUSED] = "paused",
	[EVENT_RESUMED] = "resumed",
	[EVENT_STOPPED] = "stopped",
	[EVENT_OOM] = "oom",
	[EVENT_EXPIRED] = "expired",
	[EVENT_DELETED] = "deleted",
	[EVENT_FORKED] = "forked",
	[EVENT_SNAPSHOT] = "snapshot",
	[EVENT_AI_WARNING] = "ai.budget.warning",
	[EVENT_AI_EXCEEDED] = "ai.budget.exceeded",
	[EVENT_TX_PENDING] = "transaction.pending",
	[EVENT_TX_DECIDED] = "transaction.decided",
	[EVENT_TX_CHANGED] = "transaction.changed",
};

const char *events_name(enum event_type t)
{
	return t < EVENT_TYPES ? names[t] : names[EVENT_NONE];
}

/* EVENT_NONE for what is none */
static enum event_type events_type(struct view name)
{
	for (enum event_type t = EVENT_CREATED; t < EVENT_TYPES; t++)
		if (view_is(name, names[t]))
			return t;
	return EVENT_NONE;
}

int events_read_types(struct view list, uint32_t *ret, struct err *e)
{
	uint32_t bits = 0;

	while (list.p && list.n) {
		struct view one = view_trim(view_split(list, ',', &list));
		enum event_type t = events_type(one);
		if (t == EVENT_NONE)
			return err_set(e, ERR_INVALID, "\"%.*s\" is no type of event", (int)MIN(one.n, 40),
				       one.p);
		bits |= 1u << t;
	}
	*ret = bits;
	return 0;
}

static void on_trim(struct loop_timer *t)
{
	struct core *c = CONTAINER(t, struct events, trim)->core;
	events_trim(c);
	loop_timer_start(c->loop, t, TRIM_MS, on_trim);
}

/* ---- emitting ---- */

static struct event *make(const struct tenant *tenant, struct view box, struct view data)
{
	struct event *v = calloc(1, sizeof(*v) + data.n);

	if (!v || view_to_str(box, v->box, sizeof(v->box)) < 0) {
		free(v);
		return NULL;
	}
	memcpy(v->text, data.p, data.n);
	v->data = (struct view){ v->text, data.n };
	v->tenant = tenant;
	return v;
}

struct pending {
	struct core *core;
	struct event *event;
};

static void tell(struct core *c)
{
	LIST_EACH (it, &c->events->watches) {
		struct events_watch *w = CONTAINER(it, struct events_watch, link);
		w->on_more(w);
	}
}

static void on_stored(void *arg, const struct err *e)
{
	struct pending *p = arg;
	struct core *c = p->core;

	core_store_result(c, e);
	if (e)
		log_error("event %llu (%s of sandbox %s) is not in the store",
			  (unsigned long long)p->event->id, names[p->event->type], p->event->box);
	if (events_keep(c, p->event) < 0)
		free(p->event);
	free(p);
	if (!c->stopping)
		tell(c);
}

static void emit(struct core *c, enum event_type t, const struct tenant *tenant, struct view box,
		 struct view data)
{
	struct pending *p = calloc(1, sizeof(*p));
	struct event *v = p ? make(tenant, box, data) : NULL;

	if (!v || events_number(c, v) < 0) {
		log_error("sandbox %.*s: no memory for its event \"%s\"", VIEW_ARG(box), names[t]);
		free(v);
		free(p);
		return;
	}
	v->at_ms = clock_wall_ms();
	v->type = t;
	*p = (struct pending){ c, v };
	store_event_put(c->store,
			&(struct store_event){ .id = v->id,
					       .number = v->number,
					       .at_ms = v->at_ms,
					       .tenant = view_of(tenant->id),
					       .box = view_of(v->box),
					       .type = view_of(names[t]),
					       .data = v->data },
			on_stored, p);
}

static bool silent(const struct core *c, const struct box *b)
{
	return c->stopping || b->in->hidden || b->in->pooled;
}

/* What every event says about its box. */
static void begin_data(struct json_out *o, struct buf *out, const struct box *b)
{
	json_out_init(o, out);
	json_out_object(o);
	if (b->spec.name.n)
		json_out_kstr(o, "name", b->spec.name);
	json_out_kstr(o, "image", b->spec.image);
}

static void end_data(struct core *c, enum event_type t, const struct box *b, struct json_out *o)
{
	json_out_end(o, '}');
	emit(c, t, b->tenant, view_of(b->id), o->b->bad ? VIEW("{}") : buf_view(o->b));
	buf_done(o->b);
}

void events_emit_with(struct core *c, enum event_type t, const struct box *b, const char *key,
		      struct view value)
{
	struct buf out = BUF_INIT(DATA_MAX);
	struct json_out o;

	if (silent(c, b))
		return;
	begin_data(&o, &out, b);
	if (key)
		json_out_kstr(&o, key, value);
	end_data(c, t, b, &o);
}

void events_emit(struct core *c, enum event_type t, const struct box *b)
{
	events_emit_with(c, t, b, NULL, VIEW_NONE);
}

static void put_dollars(struct json_out *o, const char *key, int64_t nano)
{
	json_out_key(o, key);
	json_out_double(o, (double)nano / 1e9);
}

void events_emit_budget(struct core *c, enum event_type t, const struct box *b, const struct event_budget *n)
{
	struct buf out = BUF_INIT(DATA_MAX);
	struct json_out o;

	if (silent(c, b))
		return;
	begin_data(&o, &out, b);
	json_out_kz(&o, "scope", n->scope);
	json_out_kz(&o, "window", n->window);
	put_dollars(&o, "limit_usd", n->limit);
	put_dollars(&o, "spent_usd", n->spent);
	put_dollars(&o, "reserved_usd", n->reserved);
	end_data(c, t, b, &o);
}

void events_oom(struct core *c, const struct box *b)
{
	struct buf out = BUF_INIT(DATA_MAX);
	struct json_out o;

	if (silent(c, b))
		return;
	begin_data(&o, &out, b);
	json_out_ku64(&o, "memory_limit_mb", b->spec.limits.memory_mb);
	end_data(c, EVENT_OOM, b, &o);
}

void events_exited(struct core *c, const struct box *b, unsigned exit_code, unsigned signo, bool oom)
{
	struct buf out = BUF_INIT(DATA_MAX);
	struct json_out o;

	if (silent(c, b))
		return;
	if (oom)
		events_oom(c, b);
	begin_data(&o, &out, b);
	json_out_ku64(&o, "exit_code", signo ? 128 + signo : exit_code);
	json_out_ku64(&o, "signal", signo);
	json_out_kbool(&o, "oom", oom);
	end_data(c, EVENT_EXITED, b, &o);
}

void events_emit_transaction(struct core *c, enum event_type t, const struct event_transaction *n)
{
	struct buf out = BUF_INIT(DATA_MAX);
	struct json_out o;

	if (c->stopping)
		return;
	json_out_init(&o, &out);
	json_out_object(&o);
	json_out_kstr_any(&o, "id", n->id);
	json_out_kstr_any(&o, "agent", n->agent);
	json_out_kstr_any(&o, "agent_name", n->agent_name);
	json_out_kstr_any(&o, "chain", n->chain);
	json_out_kz(&o, "state", n->state);
	json_out_kstr_any(&o, "summary", n->summary);
	json_out_end(&o, '}');
	emit(c, t, n->tenant, n->box, out.bad ? VIEW("{}") : buf_view(&out));
	buf_done(&out);
}

/* ---- reading ---- */

static bool events_matches(const struct event_filter *f, const struct actor *a, const struct event *v)
{
	if (a->role != STORE_ROLE_ADMIN && (!a->tenant || v->tenant != a->tenant))
		return false;
	return (!f->types || f->types & 1u << v->type) && (!f->box.n || view_is(f->box, v->box));
}

const struct event *events_next(const struct core *c, const struct actor *a, const struct event_filter *f,
				uint64_t after)
{
	const struct events *v = c->events;

	if (auth_permit(a, ACT_EVENTS, NULL, NULL) < 0)
		return NULL;
	for (size_t i = events_place_after(c, after); i < v->n; i++)
		if (events_matches(f, a, v->kept[i]))
			return v->kept[i];
	return NULL;
}

const struct event *events_get(const struct core *c, uint64_t id)
{
	size_t i = id ? events_place_after(c, id - 1) : c->events->n;
	return i < c->events->n && c->events->kept[i]->id == id ? c->events->kept[i] : NULL;
}

uint64_t events_last(const struct core *c)
{
	return c->events->n ? c->events->kept[c->events->n - 1]->id : c->events->next_id - 1;
}

int events_to_json(const struct actor *a, const struct event *v, struct buf *out)
{
	char when[CLOCK_RFC3339_SIZE];

	clock_rfc3339(v->at_ms, when);
	/* The data are JSON of our own making; the rest needs no escapes but the tenant's name. */
	buf_printf(out, "{\"id\":%llu,\"type\":\"%s\",\"at\":\"%s\",\"sandbox\":\"%s\",\"tenant\":",
		   (unsigned long long)events_shown(a, v), names[v->type], when, v->box);
	struct json_out o;
	json_out_init(&o, out);
	json_out_str(&o, view_of(v->tenant->name));
	buf_puts(out, ",\"data\":");
	buf_add(out, v->data);
	buf_putc(out, '}');
	return out->bad;
}

void events_watch(struct core *c, struct events_watch *w, void (*on_more)(struct events_watch *))
{
	w->on_more = on_more;
	list_append(&c->events->watches, &w->link);
}

void events_unwatch(struct events_watch *w)
{
	if (w->link.next)
		list_del(&w->link);
}

/* ---- life ---- */

int events_load(struct core *c, const struct store_event *row)
{
	const struct tenant *tenant = keys_tenant(c, row->tenant);
	enum event_type t = events_type(row->type);
	struct event *v;

	c->events->next_id = MAX(c->events->next_id, row->id + 1);
	if (!tenant || t == EVENT_NONE)
		return 0; /* of a newer version: not ours to show */
	v = make(tenant, row->box, row->data);
	if (!v)
		return -ENOMEM;
	v->id = row->id;
	v->number = row->number;
	v->at_ms = row->at_ms;
	v->type = t;
	if (events_keep(c, v) >= 0)
		return 0;
	free(v);
	return -ENOMEM;
}

void events_start(struct core *c)
{
	c->events->started = true;
	on_trim(&c->events->trim);
}
