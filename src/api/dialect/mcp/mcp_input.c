/*
 * What a call asks of the client's user before it goes on: a form (elicitation), a model (sampling), the
 * roots.
 *
 * In 2026-07-28 the call ends with the result "input_required", and the client calls again with the answers
 * and the state, which is sealed: only we can have made it, for this key, this method and these arguments. In
 * the older era the questions are requests to the client on the call's stream, and the call waits. The tool
 * sees no difference: its function runs again, with mcp_input and c->state.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "mcp_impl.h"
#include "sha256.h"
#include "text.h"
#include "poison.h"

/* A question that the client of a session has not answered. */
struct ask {
	struct list link;
	struct mcp_call *call;
	char id[24], key[];
};

const struct json *mcp_input(const struct mcp_call *c, const char *key)
{
	const struct json *v = json_get(c->inputs, key);
	return v && v->type == JSON_OBJECT ? v : NULL;
}

static enum mcp_cap cap_of(const char *method)
{
	return view_is(view_of(method), "elicitation/create")       ? MCP_CAP_ELICITATION
	       : view_is(view_of(method), "sampling/createMessage") ? MCP_CAP_SAMPLING
	       : view_is(view_of(method), "roots/list")             ? MCP_CAP_ROOTS
								    : MCP_CAP_NONE;
}

/* ---- the older era: requests ---- */

static bool send_request(struct mcp_call *c, const char *key, const char *method, struct view params)
{
	struct ask *a = calloc(1, sizeof(*a) + strlen(key) + 1);
	struct buf b = BUF_INIT(1024u * 1024);
	struct json_out o;

	if (!a)
		return false;
	a->call = c;
	memcpy(a->key, key, strlen(key) + 1);
	snprintf(a->id, sizeof(a->id), "paddock-%llu", (unsigned long long)++c->mcp->asks);
	list_append(&c->stream->session->asks, &a->link);
	c->waiting++;
	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_kz(&o, "jsonrpc", "2.0");
	json_out_kz(&o, "id", a->id);
	json_out_kz(&o, "method", method);
	json_out_key(&o, "params");
	json_out_raw(&o, params);
	json_out_end(&o, '}');
	mcp_stream_note(c->stream, buf_view(&b));
	buf_done(&b);
	return true;
}

static struct ask *find(struct mcp_session *s, const struct json *id)
{
	LIST_EACH (it, &s->asks) {
		struct ask *a = CONTAINER(it, struct ask, link);
		if (id->type == JSON_STRING && view_is(id->text, a->id))
			return a;
	}
	return NULL;
}

static void go_on(struct mcp_call *c)
{
	struct json *doc;
	struct err e = { 0 };

	json_out_end(&c->answers_out, '}');
	if (json_parse(&c->stream->arena, buf_view(&c->answers), &doc, &e) < 0) {
		mcp_call_fail(c, &e);
		return;
	}
	buf_done(&c->answers);
	c->inputs = doc;
	c->n_asks = 0;
	c->run(c);
}

void mcp_input_answer(struct mcp_session *s, const struct mcp_message *m)
{
	struct ask *a = find(s, m->id);

	if (!a)
		return; /* of a call that is over */
	struct mcp_call *c = a->call;
	json_out_key(&c->answers_out, a->key);
	if (m->result) {
		json_out_value(&c->answers_out, m->result);
	} else { /* a client that cannot answer is one whose user does not want to */
		json_out_object(&c->answers_out);
		json_out_kz(&c->answers_out, "action", "cancel");
		json_out_end(&c->answers_out, '}');
	}
	list_del(&a->link);
	free(a);
	if (--c->waiting == 0)
		go_on(c);
}

void mcp_input_forget(struct mcp_call *c)
{
	if (!c->stream->session)
		return;
	LIST_EACH (it, &c->stream->session->asks) {
		struct ask *a = CONTAINER(it, struct ask, link);
		if (a->call != c)
			continue;
		list_del(&a->link);
		free(a);
	}
}

/* ---- asking ---- */

bool mcp_input_ask(struct mcp_call *c, const char *key, const char *method, struct view params)
{
	if (!(c->caps & cap_of(method)))
		return false;
	if (!mcp_call_is_modern(c)) {
		if (!c->n_asks) {
			buf_done(&c->answers);
			c->answers = BUF_INIT(4u * 1024 * 1024);
			json_out_init(&c->answers_out, &c->answers);
			json_out_object(&c->answers_out);
		}
		c->n_asks++;
		return send_request(c, key, method, params);
	}
	if (!c->n_asks++) {
		c->asks = BUF_INIT(1024u * 1024);
		json_out_init(&c->asks_out, &c->asks);
		json_out_object(&c->asks_out);
	}
	json_out_key(&c->asks_out, key);
	json_out_object(&c->asks_out);
	json_out_kz(&c->asks_out, "method", method);
	json_out_key(&c->asks_out, "params");
	json_out_raw(&c->asks_out, params);
	json_out_end(&c->asks_out, '}');
	return true;
}

/* ---- 2026-07-28: a result, and the state ---- */

/* Whoever calls again must be the same, and call the same. */
static void put_bound(struct mcp_call *c, struct buf *out)
{
	struct buf args = BUF_INIT(64u * 1024 * 1024);
	const struct json *name = json_get(c->params, "name"), *uri = json_get(c->params, "uri"),
			  *given = json_get(c->params, "arguments");
	uint8_t hash[SHA256_SIZE];
	struct json_out o;

	json_out_init(&o, &args);
	json_out_array(&o);
	json_out_str(&o, view_of(c->actor.tenant ? c->actor.tenant->id : ""));
	json_out_str(&o, view_of(c->actor.key));
	json_out_str(&o, view_of(c->scope));
	json_out_value(&o, name ? name : uri ? uri : &(struct json){ 0 });
	json_out_value(&o, given ? given : &(struct json){ .type = JSON_OBJECT });
	json_out_end(&o, ']');
	out->bad = out->bad ? out->bad : args.bad;
	sha256_of(buf_view(&args), hash);
	buf_append(out, hash, sizeof(hash));
	buf_done(&args);
}

static int seal(struct mcp_call *c, struct view state, struct buf *out)
{
	struct buf bound = BUF_INIT(256);
	uint8_t key[32];

	put_bound(c, &bound);
	sign_key(c->core, VIEW("mcp request state"), key);
	int r = bound.bad ? bound.bad
			  : mcp_seal(key, buf_view(&bound), clock_wall_ms() / 1000 + MCP_STATE_SECS, state,
				     out);
	explicit_bzero(key, sizeof(key));
	buf_done(&bound);
	return r;
}

void mcp_input_send(struct mcp_call *c, struct view state)
{
	struct buf sealed = BUF_INIT(MCP_STATE_MAX);

	if (!mcp_call_is_modern(c)) {
		c->state = state.p ? arena_view(&c->stream->arena, state) : VIEW_NONE;
		return;
	}
	int r = state.p ? seal(c, state, &sealed) : 0;
	mcp_call_unrecorded(c); /* until the answers have come */
	struct json_out *o = mcp_call_open(c, "input_required");
	if (c->n_asks)
		json_out_end(&c->asks_out, '}');
	json_out_key(o, "inputRequests");
	json_out_raw(o, c->n_asks ? buf_view(&c->asks) : VIEW("{}"));
	if (state.p)
		json_out_kstr(o, "requestState", buf_view(&sealed));
	c->out.bad = c->out.bad ? c->out.bad : r;
	buf_done(&sealed);
	mcp_call_send(c);
}

static bool open_state(struct mcp_call *c, struct view sealed)
{
	struct buf bound = BUF_INIT(256), text = BUF_INIT(MCP_STATE_MAX);
	uint8_t key[32];

	put_bound(c, &bound);
	sign_key(c->core, VIEW("mcp request state"), key);
	int r = bound.bad ? bound.bad
			  : mcp_seal_open(key, buf_view(&bound), clock_wall_ms() / 1000, sealed, &text);
	explicit_bzero(key, sizeof(key));
	if (r == 0)
		c->state = arena_view(&c->stream->arena, buf_view(&text));
	buf_done(&bound);
	buf_done(&text);
	if (r < 0)
		mcp_call_error(c, MCP_PARAMS, 400,
			       r == -ETIME ? "requestState has expired"
					   : "requestState is not one that was given for this call");
	return r == 0;
}

bool mcp_input_read(struct mcp_call *c)
{
	const struct json *inputs = json_get(c->params, "inputResponses"),
			  *state = json_get(c->params, "requestState");

	if (!mcp_call_is_modern(c))
		return true;
	if ((inputs && inputs->type != JSON_OBJECT) || (state && state->type != JSON_STRING)) {
		mcp_call_error(c, MCP_PARAMS, 400,
			       "inputResponses must be an object, and requestState a string");
		return false;
	}
	c->inputs = inputs;
	return state ? open_state(c, state->text) : true;
}
