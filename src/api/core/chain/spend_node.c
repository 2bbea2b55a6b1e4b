/*
 * Asking the nodes of a chain: one batch, to one node after the other until one answers what it was asked and
 * serves the chain that it should. See spend_node.h.
 */
#include "spend_node.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "addr.h"
#include "clock.h"
#include "core_base.h"
#include "num.h"
#include "poison.h"

#define ONE_MS    6000 /* for a node, while there is another one */
#define BODY_MOST (2u * 1024 * 1024)
#define SAID_MOST (64u * 1024 * 1024)
#define STARTS    (16u * 1024)

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
	LIST_EACH (it, &c->chains->nodes) {
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
	list_append(&c->chains->nodes, &n->link);
	return n;
}

struct spend_node *spend_node_at(struct core *c, uint64_t chain, struct view url, struct err *e)
{
	struct spend_node *n = find(c, chain, url);
	char id[CHAIN_ID_MAX + 1];

	snprintf(id, sizeof(id), "eip155:%" PRIu64, chain);
	return n ? n : make(c, id, chain, url, e);
}

void spend_node_free_all(struct core *c)
{
	LIST_EACH (it, &c->chains->nodes) {
		struct spend_node *n = CONTAINER(it, struct spend_node, link);
		list_del(&n->link);
		free(n->url);
		free(n);
	}
}

/* ---- a call ---- */

static void begin(struct spend_call *k);
static void ask(struct spend_call *k);

static bool is_loopback(const struct config_url *u)
{
	return view_is(u->host, "host.docker.internal") || view_is(u->host, "localhost") ||
	       view_is(u->host, "127.0.0.1") || view_is(u->host, "::1") || view_is(u->host, "[::1]");
}

void spend_call_init(struct spend_call *k, struct spend_node *n)
{
	*k = (struct spend_call){ .node = n,
				  .body = BUF_INIT(BODY_MOST),
				  .starts = BUF_INIT(STARTS),
				  .arena = ARENA_INIT(SAID_MOST) };
	spend_call_add(k, "eth_chainId", "[]");
}

void spend_call_add(struct spend_call *k, const char *method, const char *params, ...)
{
	uint32_t start = (uint32_t)buf_len(&k->body) + 1;
	va_list ap;

	(void)!buf_append(&k->starts, &start, sizeof(start));
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
		begin(k);
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
static int check_chain(struct spend_call *k, const struct ethrpc_result *said, struct err *e)
{
	struct spend_node *n = k->node;

	if (spend_read_u64(said->result, &n->said_id) < 0)
		return err_set(e, ERR_UNAVAILABLE, "RPC Error: the node does not say which chain it serves");
	if (n->said_id == n->chain)
		return 0;
	err_set(e, ERR_UNAVAILABLE, "RPC Error: the node serves another chain (%" PRIu64 ")", n->said_id);
	k->why = *e;
	k->wrong_id = true;
	return -1;
}

static void answered(struct spend_call *k)
{
	k->loopback = is_loopback(&k->node->settings.rpc[k->at]);
	k->node->health = SPEND_OK;
	k->node->checked_ms = clock_wall_ms();
	k->done(k, NULL);
}

/* ---- one by one ---- */

static uint64_t bit(const struct spend_call *k)
{
	return k->at < 64 ? UINT64_C(1) << k->at : 0;
}

static struct view request(const struct spend_call *k, size_t i)
{
	const uint32_t *at = (const uint32_t *)(const void *)buf_view(&k->starts).p;
	size_t end = i + 1 < k->n ? at[i + 1] : buf_len(&k->body);

	return (struct view){ buf_view(&k->body).p + at[i], end - 1 - at[i] }; /* without "," or "]" */
}

/* A node that takes no batches says so with one error instead of answers, or with a status. */
static bool refuses_batches(struct spend_call *k, struct view body)
{
	struct err why = { 0 };
	struct json *doc;
	int status = k->post.status;

	if (status >= 400 && status <= 501)
		return true;
	if (!body.p || json_parse(&k->arena, body, &doc, &why) < 0 || doc->type != JSON_OBJECT)
		return false;
	const struct json *error = json_get(doc, "error");
	return error && error->type == JSON_OBJECT;
}

/* The chain comes first, so that a node of another one is asked, and sent, nothing else; and once more behind
 * all others, so that they are of that chain, too. */
static void on_single(struct spend_call *k, struct view body, const struct err *e)
{
	struct ethrpc_result again, *ret = k->got < k->n ? &k->said[k->got] : &again;
	struct err failed = { 0 };
	uint64_t id = k->got < k->n ? k->got + 1 : 1;

	if (e)
		err_set(&failed, ERR_UNAVAILABLE, "RPC Error: %.160s", e->msg);
	else if (!(body = arena_view(&k->arena, body)).p)
		err_sys(&failed, ERR_INTERNAL, ENOMEM, "answer");
	else if (ethrpc_answers(&k->arena, body, id, 1, false, ret, &failed) < 0)
		err_set(&failed, ERR_UNAVAILABLE, "RPC Error: the node's answer is not proper JSON-RPC");
	else if (id == 1)
		(void)!check_chain(k, ret, &failed);
	if (failed.code) {
		spend_call_next(k, &failed);
		return;
	}
	k->node->singly |= bit(k);
	if (k->got++ < k->n)
		ask(k);
	else
		answered(k);
}

static void go_single(struct spend_call *k)
{
	struct err e = { 0 };

	arena_done(&k->arena);
	k->single = true;
	k->got = 0;
	k->said = arena_array(&k->arena, k->n, sizeof(*k->said));
	if (k->said) {
		ask(k);
		return;
	}
	err_sys(&e, ERR_INTERNAL, ENOMEM, "answer");
	spend_call_next(k, &e);
}

/* ---- all at once ---- */

static void on_posted(struct chain_call *post, char *p, size_t size, const struct err *e)
{
	struct spend_call *k = CONTAINER(post, struct spend_call, post);
	struct view body = { p, size };
	struct err failed = { 0 };

	k->posted = false;
	loop_timer_stop(&k->timer);
	if (k->single) {
		on_single(k, body, e);
		return;
	}
	arena_done(&k->arena);
	if (e)
		err_set(&failed, ERR_UNAVAILABLE, "RPC Error: %.160s", e->msg);
	else if (!(k->said = arena_array(&k->arena, k->n, sizeof(*k->said))))
		err_sys(&failed, ERR_INTERNAL, ENOMEM, "answer");
	else if (ethrpc_answers(&k->arena, body, 1, k->n, true, k->said, &failed) < 0)
		err_set(&failed, ERR_UNAVAILABLE, "RPC Error: the node's answer is not proper JSON-RPC");
	else if (check_chain(k, &k->said[0], &failed) == 0) {
		answered(k);
		return;
	}
	if (!k->wrong_id && refuses_batches(k, body))
		go_single(k);
	else
		spend_call_next(k, &failed);
}

static void ask(struct spend_call *k)
{
	const struct config_chain *s = &k->node->settings;
	struct view body = k->single ? request(k, k->got % k->n) : buf_view(&k->body);

	k->post = (struct chain_call){
		.urls = &s->rpc[k->at], .n = 1, .body = body, .holder = &k->node->holder, .done = on_posted
	};
	k->posted = true;
	if (k->at + 1 < s->n_rpc)
		loop_timer_start(k->node->core->loop, &k->timer, ONE_MS, on_time);
	chains_post(k->node->core, &k->post);
}

static void begin(struct spend_call *k)
{
	k->single = false;
	if (k->node->singly & bit(k))
		go_single(k);
	else
		ask(k);
}

void spend_call_go(struct spend_call *k, void (*done)(struct spend_call *k, const struct err *e))
{
	struct err e = { 0 };

	buf_putc(&k->body, ']');
	k->done = done;
	if (k->body.bad || k->starts.bad) {
		err_set(&e, ERR_TOO_LARGE, "the request to the node is too large");
		k->done(k, &e);
		return;
	}
	begin(k);
}

void spend_call_done(struct spend_call *k)
{
	if (!k->node)
		return;
	stop(k);
	buf_done(&k->body);
	buf_done(&k->starts);
	arena_done(&k->arena);
	*k = (struct spend_call){ 0 };
}
