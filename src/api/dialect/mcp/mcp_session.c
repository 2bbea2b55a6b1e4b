/*
 * Sessions of the older era. One belongs to the key that began it and to the path at which it was begun.
 */
#include <errno.h>
#include <stdlib.h>

#include "mcp_outputs.h"
#include "rnd.h"
#include "poison.h"

#define TENANT_MAX 512
#define IDLE_MS    (60u * 60 * 1000)
#define FORGET_MS  (2u * 60 * 1000)
#define PRUNE_MS   (30u * 1000)

static bool is_idle(const struct mcp_session *s)
{
	LIST_EACH (it, &s->streams) {
		const struct mcp_stream *t = CONTAINER(it, struct mcp_stream, link);
		if (t->r || !list_empty(&t->calls))
			return false;
	}
	return true;
}

/* The one that was not used for the longest time makes place. */
static bool make_place(struct mcp *m, const struct tenant *t)
{
	struct mcp_session *oldest = NULL;
	unsigned n = 0;

	LIST_EACH (it, &m->order) {
		struct mcp_session *s = CONTAINER(it, struct mcp_session, order);
		if (s->actor.tenant != t)
			continue;
		n++;
		if (!oldest && is_idle(s))
			oldest = s;
	}
	if (n < TENANT_MAX)
		return true;
	mcp_session_free(oldest);
	return oldest != NULL;
}

struct mcp_session *mcp_session_new(struct mcp *m, const struct actor *a, struct view scope, struct err *e)
{
	struct mcp_session *s;

	if (!make_place(m, a->tenant)) {
		err_set(e, ERR_QUOTA, "this tenant has %d sessions at work", TENANT_MAX);
		return NULL;
	}
	s = calloc(1, sizeof(*s));
	if (!s) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "session");
		return NULL;
	}
	s->mcp = m;
	s->actor = *a;
	s->used_ms = loop_now(m->loop);
	list_init(&s->streams);
	list_init(&s->asks);
	list_init(&s->order);
	rnd_name(s->id, MCP_SESSION_ID);
	if (view_to_str(scope, s->scope, sizeof(s->scope)) < 0 ||
	    map_put(&m->sessions, &s->by_id, view_of(s->id)) < 0) {
		err_set(e, ERR_INTERNAL, "the session cannot be kept");
		free(s);
		return NULL;
	}
	list_append(&m->order, &s->order);
	return s;
}

struct mcp_session *mcp_session_find(struct mcp *m, const struct request *r, struct view id)
{
	struct map_node *n = map_get(&m->sessions, id);
	struct mcp_session *s = n ? CONTAINER(n, struct mcp_session, by_id) : NULL;

	/* Another's session does not exist. */
	if (!s || !view_is(view_of(s->actor.key), r->actor.key) || s->actor.tenant != r->actor.tenant ||
	    !view_is(r->params[0], s->scope))
		return NULL;
	s->used_ms = loop_now(m->loop);
	list_del(&s->order);
	list_append(&m->order, &s->order);
	return s;
}

void mcp_session_free(struct mcp_session *s)
{
	if (!s)
		return;
	LIST_EACH (it, &s->streams)
		mcp_stream_free(CONTAINER(it, struct mcp_stream, link));
	map_del(&s->mcp->sessions, &s->by_id);
	list_del(&s->order);
	free(s);
}

static void on_prune(struct loop_timer *t)
{
	struct mcp *m = CONTAINER(t, struct mcp, prune);
	uint64_t now = loop_now(m->loop);

	LIST_EACH (it, &m->order) {
		struct mcp_session *s = CONTAINER(it, struct mcp_session, order);
		if (s->used_ms + IDLE_MS < now && is_idle(s))
			mcp_session_free(s);
		else if (now > FORGET_MS)
			mcp_stream_forget(s, now - FORGET_MS);
	}
	mcp_outputs_prune(m, now);
	if (!list_empty(&m->order) || !list_empty(&m->outputs))
		loop_timer_start(m->loop, t, PRUNE_MS, on_prune);
}

void mcp_session_prune(struct mcp *m)
{
	if (!loop_timer_active(&m->prune))
		loop_timer_start(m->loop, &m->prune, PRUNE_MS, on_prune);
}
