/*
 * /metrics and /envs: what the box uses, and with what environment its processes start.
 */
#include "box.h"
#include "clock.h"
#include "envd_impl.h"
#include "poison.h"

/* Of the cores it may use, between the last two samples. */
static double cpu_percent(const struct box *b, uint64_t cpu_usec)
{
	unsigned n = history_count(b);
	if (n == 0)
		return 0;
	const struct history_sample *last = history_get(b, n - 1);
	int64_t ms = clock_wall_ms() - last->at_ms;
	if (ms <= 0 || cpu_usec < last->cpu_usec)
		return 0;
	return (double)(cpu_usec - last->cpu_usec) / 10.0 / (double)ms;
}

static void on_stats(void *arg, const void *result, const struct err *e)
{
	struct request *c = arg;
	const struct box_stats *s = result;
	struct buf b = BUF_INIT(4096);
	struct json_out o;

	if (!answer_ended(c, e))
		return;
	const struct box_limits *l = &s->box->spec.limits;
	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_ki64(&o, "ts", clock_wall_ms() / 1000);
	json_out_ku64(&o, "cpu_count", MAX(1u, (l->cpu_milli + 999) / 1000));
	json_out_key(&o, "cpu_used_pct");
	json_out_double(&o, cpu_percent(s->box, s->cpu_usec));
	json_out_ku64(&o, "mem_total", l->memory_mb << 20);
	json_out_ku64(&o, "mem_used", s->memory_bytes);
	json_out_ku64(&o, "mem_total_mib", l->memory_mb);
	json_out_ku64(&o, "mem_used_mib", s->memory_bytes >> 20);
	json_out_ku64(&o, "disk_total", l->disk_mb << 20);
	json_out_ku64(&o, "disk_used", s->disk_bytes);
	json_out_end(&o, '}');
	answer_reply(c, 200, &b);
}

void envd_metrics(struct request *c)
{
	struct err e = { 0 };

	answer_await(c, stats_box(c->core, &c->actor, view_of(c->box), on_stats, c, &e), &e);
}

void envd_envs(struct request *c)
{
	struct view names[ENVD_VARS], values[ENVD_VARS];
	struct buf b = BUF_INIT(RPC_ANSWER_MAX);
	const struct box *box = envd_box(c);
	size_t n = envd_vars(c->core, box, names, values);
	struct json_out o;

	json_out_init(&o, &b);
	json_out_object(&o);
	for (size_t i = 0; i < box->spec.env.n; i++) {
		bool ours = false;
		for (size_t k = 0; k < n; k++)
			ours |= view_eq(names[k], box->spec.env.keys[i]);
		if (ours)
			continue;
		json_out_key_view(&o, box->spec.env.keys[i]);
		json_out_str(&o, box->spec.env.values[i]);
	}
	for (size_t k = 0; k < n; k++) {
		json_out_key_view(&o, names[k]);
		json_out_str(&o, values[k]);
	}
	json_out_end(&o, '}');
	answer_reply(c, 200, &b);
}
