/*
 * Turns: see http_turn.h.
 */
#include "http_turn.h"

#include "clock.h"
#include "http_conn.h"
#include "poison.h"

#define ROUND_NS 2000000

static struct http_conn *next_in_line(struct http_server *s)
{
	struct http_party *p = CONTAINER(s->turns.next, struct http_party, turn);
	struct http_conn *c = CONTAINER(p->line.next, struct http_conn, turn);

	list_del(&p->turn);
	list_del(&c->turn);
	if (!list_empty(&p->line))
		list_append(&s->turns, &p->turn);
	return c;
}

static void take_turns(struct loop_task *t)
{
	struct http_server *s = CONTAINER(t, struct http_server, turn_task);
	uint64_t end = clock_mono_ns() + ROUND_NS;

	s->in_turns = true;
	while (!list_empty(&s->turns) && clock_mono_ns() < end)
		http_conn_turn(next_in_line(s));
	s->in_turns = false;
	/* After the turns: somebody may have to give way, who has asked for something in this batch. */
	http_server_accept(s);
	if (!list_empty(&s->turns))
		http_turn_soon(s);
}

void http_turn_init(struct http_server *s)
{
	list_init(&s->turns);
	list_init(&s->turn_task.link);
}

void http_turn_done(struct http_server *s)
{
	list_del(&s->turn_task.link);
}

void http_turn_soon(struct http_server *s)
{
	if (list_empty(&s->turn_task.link) && !s->in_turns)
		loop_defer(s->loop, &s->turn_task, take_turns);
}

void http_turn_wait(struct http_conn *c)
{
	struct http_server *s = c->server;
	struct http_party *p = c->seat.party;

	if (!list_empty(&c->turn) || !p)
		return;
	http_turn_soon(s);
	list_append(&p->line, &c->turn);
	if (list_empty(&p->turn))
		list_append(&s->turns, &p->turn);
}

bool http_turn_leave(struct http_conn *c)
{
	struct http_party *p = c->seat.party;

	if (list_empty(&c->turn))
		return false;
	list_del(&c->turn);
	if (list_empty(&p->line))
		list_del(&p->turn);
	return true;
}
