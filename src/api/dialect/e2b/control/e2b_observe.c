/*
 * E2B: metrics (from our history) and logs. Logs are the events of the sandbox's life; the output of
 * programs goes only to their client.
 */
#include <stdio.h>

#include "box.h"
#include "clock.h"
#include "e2b_impl.h"
#include "event.h"
#include "num.h"
#include "poison.h"

#define LOGS_MAX 1000

/* ---- metrics ---- */

struct point {
	int64_t at_ms;
	uint64_t cpu_usec, memory, disk;
};

/* `before` is the sample before it, or NULL: then nothing is known of the rate. */
static void put_metric(struct json_out *o, const struct box *b, const struct point *p,
		       const struct point *before)
{
	const struct box_limits *l = &b->spec.limits;
	double used = 0;

	if (before && p->at_ms > before->at_ms && p->cpu_usec >= before->cpu_usec) {
		double cores = (double)(p->cpu_usec - before->cpu_usec) /
			       ((double)(p->at_ms - before->at_ms) * 1000);
		used = cores * 100000 / l->cpu_milli; /* of what it may use */
	}
	json_out_object(o);
	answer_put_time(o, "timestamp", p->at_ms);
	json_out_ki64(o, "timestampUnix", p->at_ms / 1000);
	json_out_ku64(o, "cpuCount", (l->cpu_milli + 999) / 1000);
	json_out_key(o, "cpuUsedPct");
	json_out_double(o, used);
	json_out_ku64(o, "memUsed", p->memory);
	json_out_ku64(o, "memTotal", l->memory_mb << 20);
	json_out_ku64(o, "memCache", 0); /* memUsed has it */
	json_out_ku64(o, "diskUsed", p->disk);
	json_out_ku64(o, "diskTotal", l->disk_mb << 20);
	json_out_end(o, '}');
}

struct span {
	int64_t start_s, end_s;
};

static struct point sample(const struct box *b, unsigned i)
{
	const struct history_sample *s = history_get(b, i);
	return (struct point){ s->at_ms, s->cpu_usec, (uint64_t)s->memory_kb << 10,
			       (uint64_t)s->disk_kb << 10 };
}

static bool within(const struct span *s, int64_t ms)
{
	return ms / 1000 >= s->start_s && ms / 1000 <= s->end_s;
}

static void on_stats(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct box_stats *s = result;
	const struct span *span = r->own;
	struct point before, p;
	unsigned n;

	if (!answer_ended(r, e))
		return;
	n = history_count(s->box);
	struct json_out *o = answer_json(r);
	json_out_array(o);
	for (unsigned i = 0; i < n; i++, before = p) {
		p = sample(s->box, i);
		if (within(span, p.at_ms))
			put_metric(o, s->box, &p, i ? &before : NULL);
	}
	p = (struct point){ clock_wall_ms(), s->cpu_usec, s->memory_bytes, s->disk_bytes };
	if (within(span, p.at_ms))
		put_metric(o, s->box, &p, n ? &before : NULL);
	json_out_end(o, ']');
	answer_send(r, 200);
}

static void metrics(struct request *r)
{
	struct view start = request_query(r, "start"), end = request_query(r, "end");
	struct span *span = request_own(r, sizeof(*span));
	struct err e = { 0 };

	if (!span)
		return;
	*span = (struct span){ INT64_MIN, INT64_MAX };
	if ((start.p && num_i64(start, &span->start_s) < 0) || (end.p && num_i64(end, &span->end_s) < 0))
		err_set(&e, ERR_INVALID, "start and end must be seconds since 1970");
	else
		r->job = stats_box(r->core, &r->actor, r->params[0], on_stats, r, &e);
	if (!r->job)
		answer_fail(r, &e);
}

/* The newest of several boxes, without asking anybody: those that were sampled at all. */
static void metrics_of_many(struct request *r)
{
	struct err e = { 0 };
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_key(o, "sandboxes");
	json_out_object(o);
	for (size_t i = 0; i < r->n_query; i++)
		for (struct view rest = r->query[i].value; rest.p && rest.n;) {
			struct view id = view_split(rest, ',', &rest);
			const struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_READ, id, &e);
			unsigned n = b ? history_count(b) : 0;
			if (!n || !view_is(id, b->id))
				continue;
			struct point p = sample(b, n - 1), before = n > 1 ? sample(b, n - 2) : p;
			json_out_key(o, b->id);
			put_metric(o, b, &p, &before);
		}
	json_out_end(o, '}');
	json_out_end(o, '}');
	answer_send(r, 200);
}

/* ---- logs ---- */

static void put_line(struct json_out *o, const struct event *v, bool old)
{
	const char *level = v->type == EVENT_OOM ? "error" : "info";
	char line[160]; /* clients parse it as a document of its own */

	json_out_object(o);
	answer_put_time(o, "timestamp", v->at_ms);
	if (old) {
		snprintf(line, sizeof(line), "{\"level\":\"%s\",\"logger\":\"lifecycle\",\"message\":\"%s\"}",
			 level, events_name(v->type));
		json_out_kz(o, "line", line);
		json_out_end(o, '}');
		return;
	}
	json_out_kz(o, "level", level);
	json_out_kz(o, "message", events_name(v->type));
	json_out_key(o, "fields");
	json_out_object(o);
	json_out_kz(o, "category", "lifecycle");
	json_out_kz(o, "sandboxID", v->box);
	json_out_end(o, '}');
	json_out_end(o, '}');
}

struct wanted {
	int64_t from_ms; /* with `backward` until */
	uint32_t limit;
	bool backward, errors;
	struct view search;
};

/* The events that are asked for, in the order in which they are asked for. */
static void put_lines(struct request *r, struct json_out *o, const struct box *b, const struct wanted *w,
		      bool old)
{
	const struct event_filter f = { .box = view_of(b->id) };
	const struct event **found = arena_array(r->x->arena, EVENTS_KEPT, sizeof(*found)), *v;
	size_t n = 0;

	for (uint64_t after = 0; found && n < EVENTS_KEPT && (v = events_next(r->core, &r->actor, &f, after));
	     after = v->id) {
		const char *name = events_name(v->type);
		if (w->from_ms && (w->backward ? v->at_ms > w->from_ms : v->at_ms < w->from_ms))
			continue;
		if ((w->errors && v->type != EVENT_OOM) ||
		    (w->search.n && !memmem(name, strlen(name), w->search.p, w->search.n)))
			continue;
		found[n++] = v;
	}
	json_out_array(o);
	for (size_t i = 0; i < n && i < w->limit; i++)
		put_line(o, found[w->backward ? n - 1 - i : i], old);
	json_out_end(o, ']');
}

static int read_logs(struct request *r, const char *from, struct wanted *w, struct err *e)
{
	struct view start = request_query(r, from), limit = request_query(r, "limit"),
		    direction = request_query(r, "direction"), level = request_query(r, "level");

	*w = (struct wanted){ .limit = LOGS_MAX, .search = request_query(r, "search") };
	if (start.p && num_i64(start, &w->from_ms) < 0)
		return err_set(e, ERR_INVALID, "%s must be milliseconds since 1970", from);
	if (limit.p && (num_u32(limit, &w->limit) < 0 || w->limit > LOGS_MAX))
		return err_set(e, ERR_INVALID, "limit must be between 0 and %d", LOGS_MAX);
	w->backward = view_is(direction, "backward");
	if (direction.p && !w->backward && !view_is(direction, "forward"))
		return err_set(e, ERR_INVALID, "direction must be forward or backward");
	w->errors = view_is(level, "warn") || view_is(level, "error");
	if (level.p && !w->errors && !view_is(level, "debug") && !view_is(level, "info"))
		return err_set(e, ERR_INVALID, "level must be debug, info, warn or error");
	return 0;
}

static void reply_logs(struct request *r, const char *from, bool old)
{
	struct err e = { 0 };
	struct wanted w;
	const struct box *b = NULL;

	if (auth_permit(&r->actor, ACT_EVENTS, NULL, &e) >= 0 && read_logs(r, from, &w, &e) >= 0)
		b = boxes_find(r->core, &r->actor, ACT_BOX_READ, r->params[0], &e);
	if (!b) {
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = answer_json(r);
	json_out_object(o);
	json_out_key(o, "logs");
	put_lines(r, o, b, &w, old);
	if (old) {
		json_out_key(o, "logEntries");
		put_lines(r, o, b, &w, false);
	}
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void logs_old(struct request *r)
{
	reply_logs(r, "start", true);
}

static void logs(struct request *r)
{
	reply_logs(r, "cursor", false);
}

const struct route e2b_observe_routes[] = {
	{ "GET", "/sandboxes/{id}/metrics", metrics, .query = "start end" },
	{ "GET", "/sandboxes/metrics", metrics_of_many, .query = "sandbox_ids+" },
	{ "GET", "/sandboxes/{id}/logs", logs_old, .query = "start limit" },
	{ "GET", "/v2/sandboxes/{id}/logs", logs, .query = "cursor limit direction level search" },
	{ 0 },
};
