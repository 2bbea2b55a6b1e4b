/*
 * Verdicts to the api: gathered for a moment, so that a storm of connections is one
 * message and not thousands. What finds no room is counted, and the count is told.
 */
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "gate.h"
#include "wire_gen.h"
#include "poison.h"

#define FLUSH_MS     20
#define BACKLOG_MOST (1u << 20)
#define PATH_MOST    256

/* `verdicts` holds the fields 1 of a GateVerdicts, one after the other. */
void verdict_flush(struct gate *g)
{
	if (!link_open(&g->api) || link_backlog(&g->api) > BACKLOG_MOST || (!g->n_verdicts && !g->lost))
		return;
	if (g->lost) {
		struct wire_gate_verdicts m = { .dropped = g->lost };
		(void)!pb_encode(&wire_gate_verdicts_msg, &m, &g->verdicts);
	}
	if (!g->verdicts.bad)
		(void)!link_send(&g->api, &(struct frame){ .type = WIRE_TYPE_GATE_VERDICTS,
							   .kind = FRAME_EVENT,
							   .body = buf_view(&g->verdicts) });
	g->n_verdicts = 0;
	g->lost = 0;
	buf_done(&g->verdicts);
}

static void on_flush(struct loop_timer *t)
{
	verdict_flush(CONTAINER(t, struct gate, flush));
}

void verdict_say(struct gate_box *b, const struct verdict *v)
{
	struct gate *g = CONTAINER(b->all, struct gate, flows);
	char address[ADDR_TEXT] = "";
	struct wire_gate_verdict one = {
		.box = view_of(b->id),
		.time_ms = clock_wall_ms(),
		.allowed = v->allowed,
		.reason = v->reason,
		.protocol = view_of(v->protocol),
		.via = view_of(v->via),
		.name = v->name,
		.method = v->method,
		.path = view_head(v->path, PATH_MOST),
		.port = v->port,
		.rule = view_of(v->rule ? v->rule->id : ""),
		.version = b->policy ? b->policy->version : 0,
	};
	struct wire_gate_verdicts m = { .verdicts = { &one, 1 } };

	*(v->allowed ? &b->allowed : &b->denied) += 1;
	if (v->addr)
		one.address = view_of(addr_text(v->addr, address));
	if (buf_room(&g->verdicts) < 4096) {
		g->lost++;
		return;
	}
	if (pb_encode(&wire_gate_verdicts_msg, &m, &g->verdicts) < 0)
		g->lost++;
	else
		g->n_verdicts++;
	if (!loop_timer_active(&g->flush))
		loop_timer_start(g->flows.loop, &g->flush, FLUSH_MS, on_flush);
}
