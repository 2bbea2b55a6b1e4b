/*
 * /v1/sandboxes/{id}/stats: resource usage of a sandbox, now and in the last hour.
 */
#include "box.h"
#include "rest_impl.h"
#include "poison.h"

static void put_history(struct json_out *o, const struct box *b)
{
	json_out_key(o, "history");
	json_out_array(o);
	for (unsigned i = 0; i < history_count(b); i++) {
		const struct history_sample *s = history_get(b, i);
		json_out_object(o);
		answer_put_time(o, "at", s->at_ms);
		json_out_ku64(o, "cpu_usec", s->cpu_usec);
		json_out_ku64(o, "memory_bytes", (uint64_t)s->memory_kb << 10);
		json_out_ku64(o, "disk_bytes", (uint64_t)s->disk_kb << 10);
		json_out_ku64(o, "pids", s->pids);
		json_out_ku64(o, "oom_kills", s->oom_kills);
		json_out_ku64(o, "net_rx_bytes", (uint64_t)s->net_rx_kb << 10);
		json_out_ku64(o, "net_tx_bytes", (uint64_t)s->net_tx_kb << 10);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

static void on_stats(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct box_stats *s = result;

	if (!answer_ended(r, e))
		return;
	const struct box_limits *l = &s->box->spec.limits;
	struct json_out *o = answer_json(r);
	json_out_object(o);
	json_out_ku64(o, "cpu_usec", s->cpu_usec);
	json_out_ku64(o, "memory_bytes", s->memory_bytes);
	json_out_ku64(o, "memory_limit_bytes", l->memory_mb << 20);
	json_out_ku64(o, "disk_bytes", s->disk_bytes);
	json_out_ku64(o, "disk_limit_bytes", l->disk_mb << 20);
	json_out_ku64(o, "pids", s->pids);
	json_out_ku64(o, "pids_limit", l->pids);
	json_out_ku64(o, "oom_kills", s->oom_kills);
	json_out_ku64(o, "net_rx_bytes", s->net_rx_bytes);
	json_out_ku64(o, "net_tx_bytes", s->net_tx_bytes);
	if (r->own)
		put_history(o, s->box);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void stats(struct request *r)
{
	struct err e = { 0 };
	bool history;

	if (request_query_flag(r, "history", &history) < 0)
		return;
	/* Something of its own: it wants the history, too. */
	if (history && !request_own(r, 1))
		return;
	answer_await(r, stats_box(r->core, &r->actor, r->params[0], on_stats, r, &e), &e);
}

const struct route rest_stats_routes[] = {
	{ "GET", "/v1/sandboxes/{id}/stats", stats, .query = "history" },
	{ 0 },
};
