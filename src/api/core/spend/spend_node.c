/*
 * Asking the nodes of a chain: one batch, to one node after the other until one answers what it was asked and
 * serves the chain that it should. See spends.h.
 */
#include "spends.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "addr.h"
#include "clock.h"
#include "core_state.h"
#include "num.h"
#include "poison.h"

#define ONE_MS    6000 /* for a node, while there is another one */
#define BODY_MOST (2u * 1024 * 1024)
#define SAID_MOST (64u * 1024 * 1024)

/* ---- the nodes ---- */

static const struct config_chain *configured(const struct core *c, const char *id)
{
	for (size_t i = 0; i < c->config->agents.n_chains; i++)
		if (view_is(c->config->agents.chain_list[i].id, id))
			return &c->config->agents.chain_list[i];
	return NULL;
}

static struct spend_node *find(struct core *c, uint64_t chain, struct view url)
{
	LIST_EACH (it, &c->spends.nodes) {
		struct spend_node *n = CONTAINER(it, struct spend_node, link);
		if (n->chain == chain && (url.n ? n->url && view_is(url, n->url) : !n->url))
			return n;
	}
	return NULL;
}

static struct spend_node *make(struct core *c, const char *id, uint64_t chain, struct view url, struct err *e)
{
	const struct config_chain *known = configured(c, id);
	struct spend_node *n = NULL;

	if (!known && !url.n) {
		err_set(e, ERR_UNAVAILABLE, "RPC Error: no node is configured for the chain %s", id);
		return NULL;
	}
	n = calloc(1, sizeof(*n));
	if (n && url.n)
		n->url = strndup(url.p, url.n);
	if (!n || (url.n && !n->url)) {
		free(n);
		err_sys(e, ERR_INTERNAL, ENOMEM, "a chain");
		return NULL;
	}
	n->core = c;
	n->chain = chain;
	snprintf(n->id, sizeof(n->id), "%s", id);
	if (known)
		n->settings = *known;
	else
		config_chain_default(view_of(n->id), &n->settings);
	if (n->url && config_url(view_of(n->url), &n->one, e) < 0) {
		free(n->url);
		free(n);
		return NULL;
	}
	if (n->url) {
		n->settings.rpc = &n->one;
		n->settings.n_rpc = 1;
	}
	list_init(&n->followed);
	list_append(&c->spends.nodes, &n->link);
	return n;
}

struct spend_node *spend_node_get(struct core *c, struct view agent, uint64_t chain, struct err *e)
{
	const struct agent *a = spend_agent(c, agent);
	struct view own = VIEW_NONE;
	struct agent_view v;
	char id[MANIFEST_CHAIN_MAX + 1];

	snprintf(id, sizeof(id), "eip155:%" PRIu64, chain);
	if (a) {
		agents_show(a, &v);
		own = spec_map_get(&v.manifest->permissions.rpcs, view_of(id));
	}
	struct spend_node *n = find(c, chain, own);
	return n ? n : make(c, id, chain, own, e);
}

void spend_node_free_all(struct core *c)
{
	LIST_EACH (it, &c->spends.nodes) {
		struct spend_node *n = CONTAINER(it, struct spend_node, link);
		list_del(&n->link);
		free(n->url);
		free(n);
	}
}

/* ---- a call ---- */

static void ask(struct spend_call *k);

static bool is_loopback(const struct config_url *u)
{
	return view_is(u->host, "host.docker.internal") || view_is(u->host, "localhost") ||
	       view_is(u->host, "127.0.0.1") || view_is(u->host, "::1") || view_is(u->host, "[::1]");
}

void spend_call_init(struct spend_call *k, struct spend_node *n)
{
	*k = (struct spend_call){ .node = n, .body = BUF_INIT(BODY_MOST), .arena = ARENA_INIT(SAID_MOST) };
	spend_call_add(k, "eth_chainId", "[]");
}

void spend_call_add(struct spend_call *k, const char *method, const char *params, ...)
{
	va_list ap;

	buf_printf(&k->body,
		   "%c{\"jsonrpc\":\"2.0\",\"id\":%zu,\"method\":\"%s\",\"params\":", k->n ? ',' : '[',
		   k->n + 1, method);
	va_start(ap, params);
	buf_vprintf(&k->body, params, ap);
	va_end(ap);
	buf_putc(&k->body, '}');
	k->n++;
}

static void stop(struct spend_call *k)
{
	loop_timer_stop(&k->timer);
	if (k->posted)
		chains_cancel(&k->post);
	k->posted = false;
}

void spend_call_next(struct spend_call *k, const struct err *why)
{
	struct err e = *why;

	stop(k);
	if (!k->wrong_id)
		k->why = e;
	if (++k->at < k->node->settings.n_rpc && !k->node->core->stopping) {
		ask(k);
		return;
	}
	k->node->health = k->wrong_id ? SPEND_WRONG_ID : SPEND_DOWN;
	k->node->checked_ms = clock_wall_ms();
	e = k->why;
	k->done(k, &e);
}

static void on_time(struct loop_timer *t)
{
	struct spend_call *k = CONTAINER(t, struct spend_call, timer);
	struct err e = { 0 };

	err_set(&e, ERR_UNAVAILABLE, "RPC Error: the node does not answer in time");
	spend_call_next(k, &e);
}

/* Every signature depends on it, so that it is looked at in each answer. */
static int check_chain(struct spend_call *k, struct err *e)
{
	struct spend_node *n = k->node;

	if (spend_read_u64(k->said[0].result, &n->said_id) < 0)
		return err_set(e, ERR_UNAVAILABLE, "RPC Error: the node does not say which chain it serves");
	if (n->said_id == n->chain)
		return 0;
	err_set(e, ERR_UNAVAILABLE, "RPC Error: the node serves another chain (%" PRIu64 ")", n->said_id);
	k->why = *e;
	k->wrong_id = true;
	return -1;
}

static void on_posted(struct chain_call *post, char *body, size_t size, const struct err *e)
{
	struct spend_call *k = CONTAINER(post, struct spend_call, post);
	struct err failed = { 0 };

	k->posted = false;
	loop_timer_stop(&k->timer);
	arena_done(&k->arena);
	if (e) {
		err_set(&failed, ERR_UNAVAILABLE, "RPC Error: %.160s", e->msg);
	} else if (!(k->said = arena_array(&k->arena, k->n, sizeof(*k->said)))) {
		err_sys(&failed, ERR_INTERNAL, ENOMEM, "answer");
	} else if (ethrpc_answers(&k->arena, (struct view){ body, size }, 1, k->n, true, k->said, &failed) <
		   0) {
		err_set(&failed, ERR_UNAVAILABLE, "RPC Error: the node's answer is not proper JSON-RPC");
	} else {
		(void)!check_chain(k, &failed);
	}
	if (failed.code) {
		spend_call_next(k, &failed);
		return;
	}
	k->loopback = is_loopback(&k->node->settings.rpc[k->at]);
	k->node->health = SPEND_OK;
	k->node->checked_ms = clock_wall_ms();
	k->done(k, NULL);
}

static void ask(struct spend_call *k)
{
	const struct config_chain *s = &k->node->settings;

	k->post = (struct chain_call){
		.urls = &s->rpc[k->at], .n = 1, .body = buf_view(&k->body), .done = on_posted
	};
	k->posted = true;
	if (k->at + 1 < s->n_rpc)
		loop_timer_start(k->node->core->loop, &k->timer, ONE_MS, on_time);
	chains_post(k->node->core, &k->post);
}

void spend_call_go(struct spend_call *k, void (*done)(struct spend_call *k, const struct err *e))
{
	struct err e = { 0 };

	buf_putc(&k->body, ']');
	k->done = done;
	if (k->body.bad) {
		err_set(&e, ERR_TOO_LARGE, "the request to the node is too large");
		k->done(k, &e);
		return;
	}
	ask(k);
}

void spend_call_done(struct spend_call *k)
{
	if (!k->node)
		return;
	stop(k);
	buf_done(&k->body);
	arena_done(&k->arena);
	*k = (struct spend_call){ 0 };
}
