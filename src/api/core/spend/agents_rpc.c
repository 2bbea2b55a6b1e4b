/*
 * JSON-RPC of agents: reads a request, answers what can be answered here, asks a node for the rest in one
 * request, and writes the answers under the client's own ids. See agent.h and ethrpc.h.
 */
#include "agents.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "chains.h"
#include "core_base.h"
#include "ethrpc.h"
#include "num.h"
#include "spend.h"
#include "spends.h"
#include "poison.h"

#define ARENA_MOST  (8u * 1024 * 1024)
#define ANSWER_MOST (96u * 1024 * 1024) /* of what is read of an answer */

/* One request of a batch. */
struct slot {
	struct agent_rpc_state *of;
	struct ethrpc_request request;
	size_t asked;    /* its place in what the node is asked, from 1; 0: it is not */
	struct job *job; /* that the signer has */
	struct rpc_outcome {
		const struct json *result;
		int64_t code;
		struct view message;
		const struct json *data;
		bool nodes; /* in the words of a node, which may use our own codes */
	} outcome;
};

struct agent_rpc_state {
	struct agent *agent;
	struct agent_rpc *of; /* NULL: nobody waits */
	struct list link;
	struct arena arena, answers;
	char chain[CHAIN_ID_MAX + 1];
	struct config_url one; /* where the manifest names a node */
	struct slot *slots;
	size_t n, n_asked, pending;
	bool batch; /* the client's is */
	bool plain; /* the answer is {"result": …}, or an error of HTTP */
	struct buf request;
	struct chain_call call;
	bool called, went; /* the node is being asked; it was */
};

static void ask_node(struct agent_rpc_state *s);

/* ---- the end ---- */

static void state_free(struct agent_rpc_state *s)
{
	if (s->called)
		chains_cancel(&s->call);
	for (size_t i = 0; i < s->n; i++)
		job_abandon(s->slots[i].job);
	list_del(&s->link);
	buf_done(&s->request);
	arena_done(&s->answers);
	arena_done(&s->arena);
	free(s);
}

static void refuse(struct agent_rpc *r, int status, const char *message, unsigned wait)
{
	struct agent_rpc_state *s = TAKE_PTR(r->state);

	if (s) {
		s->of = NULL;
		state_free(s);
	}
	r->done(r, status, VIEW_NONE, message, wait);
}

static void put_slot(struct json_out *o, const struct slot *s)
{
	const struct rpc_outcome *c = &s->outcome;

	json_out_object(o);
	json_out_kz(o, "jsonrpc", "2.0");
	json_out_key(o, "id");
	if (s->request.id)
		json_out_value(o, s->request.id);
	else
		json_out_null(o);
	if (c->result) {
		json_out_key(o, "result");
		json_out_value(o, c->result);
	} else {
		json_out_key(o, "error");
		json_out_object(o);
		json_out_ki64(o, "code", c->code);
		json_out_kstr(o, "message", c->message);
		if (c->data) {
			json_out_key(o, "data");
			json_out_value(o, c->data);
		}
		json_out_end(o, '}');
	}
	json_out_end(o, '}');
}

/* Of query-chain: a result, or an error of HTTP with the words that its clients look for. */
static void answer_plain(struct agent_rpc *r, const struct slot *one)
{
	const struct rpc_outcome *c = &one->outcome;
	struct buf out = BUF_INIT(CHAINS_ANSWER_MAX * 2);
	struct json_out o;

	if (c->result) {
		json_out_init(&o, &out);
		json_out_object(&o);
		json_out_key(&o, "result");
		json_out_value(&o, c->result);
		json_out_end(&o, '}');
		if (!out.bad)
			r->done(r, 200, buf_view(&out), NULL, 0);
		else
			r->done(r, 500, VIEW_NONE, "the node's answer is too large", 0);
	} else {
		int status = c->nodes                          ? 400
			     : c->code == ETHRPC_E_METHOD      ? 403
			     : c->code == ETHRPC_E_UNSUPPORTED ? 501
			     : c->code == ETHRPC_E_LIMIT       ? 500
							       : 400;
		buf_printf(&out, "%s%.*s", status == 400 ? "RPC Error: " : "",
			   VIEW_ARG(view_head(c->message, 1000)));
		buf_putc(&out, 0);
		r->done(r, status, VIEW_NONE, out.p, 0);
	}
	buf_done(&out);
}

static void finish(struct agent_rpc_state *s)
{
	struct agent_rpc *r = TAKE_PTR(s->of);
	struct buf out = BUF_INIT(CHAINS_ANSWER_MAX * 2);
	struct json_out o;

	r->state = NULL;
	if (s->plain) {
		answer_plain(r, &s->slots[0]);
	} else {
		json_out_init(&o, &out);
		if (s->batch)
			json_out_array(&o);
		for (size_t i = 0; i < s->n; i++)
			put_slot(&o, &s->slots[i]);
		if (s->batch)
			json_out_end(&o, ']');
		if (out.bad)
			r->done(r, 500, VIEW_NONE, "the node's answer is too large", 0);
		else
			r->done(r, 200, buf_view(&out), NULL, 0);
		buf_done(&out);
	}
	state_free(s);
}

/* The node is asked last: nothing of its answer is kept while a person decides about another request. */
static void one_less(struct agent_rpc_state *s)
{
	if (--s->pending)
		return;
	if (s->n_asked && !s->went)
		ask_node(s);
	else
		finish(s);
}

static void fail_slot(struct slot *t, int64_t code, const char *message)
{
	struct view copy = arena_view(&t->of->arena, view_of(message));

	t->outcome =
		(struct rpc_outcome){ .code = code,
				      .message = copy.p ? copy : VIEW("the request was not understood") };
}

static void give(struct slot *t, enum json_type type, struct view text)
{
	struct json *j = arena_alloc(&t->of->arena, sizeof(*j));

	if (!j) {
		fail_slot(t, ETHRPC_E_INTERNAL, "out of memory");
		return;
	}
	*j = (struct json){ .type = type, .text = text };
	t->outcome.result = j;
}

/* ---- filters: nodes give them to everybody who knows their names ---- */

static void note_filter(struct agent_rpc_state *s, const struct json *result)
{
	struct agent *a = s->agent;
	struct agent_filter *f = &a->filters[a->n_filters % AGENT_FILTERS];

	if (result->type != JSON_STRING || view_to_str(result->text, f->id, sizeof(f->id)) < 0)
		return;
	memcpy(f->chain, s->chain, sizeof(f->chain));
	a->n_filters++;
}

static bool has_filter(const struct agent_rpc_state *s, struct view id)
{
	const struct agent *a = s->agent;

	for (unsigned i = 0; i < MIN(a->n_filters, (unsigned)AGENT_FILTERS); i++)
		if (view_is(id, a->filters[i].id) && strcmp(a->filters[i].chain, s->chain) == 0)
			return true;
	return false;
}

/* ---- what is answered here ---- */

static void answer_number(struct slot *t, bool hex)
{
	struct view number = config_chain_number(view_of(t->of->chain));
	char text[32];
	uint64_t n = 0;

	(void)!num_u64(number, &n);
	if (hex)
		snprintf(text, sizeof(text), "0x%" PRIx64, n);
	else
		snprintf(text, sizeof(text), "%" PRIu64, n);
	give(t, JSON_STRING, arena_view(&t->of->arena, view_of(text)));
}

/* None where the agent has no wallet. */
static void on_account(void *arg, const void *result, const struct err *e)
{
	struct slot *t = arg;
	struct arena *a = &t->of->arena;
	struct json *item = e ? NULL : arena_alloc(a, sizeof(*item));

	t->job = NULL;
	if (e && e->code != ERR_UNSUPPORTED)
		fail_slot(t, ETHRPC_E_INTERNAL, e->msg);
	else
		give(t, JSON_ARRAY, VIEW_NONE);
	if (item && t->outcome.result) {
		struct json *list = (struct json *)t->outcome.result;
		*item = (struct json){ .type = JSON_STRING, .text = arena_view(a, view_of(result)) };
		list->items = item;
		list->n = 1;
	}
	one_less(t->of);
}

static void answer_accounts(struct slot *t)
{
	struct agent_rpc_state *s = t->of;
	struct err e = { 0 };

	t->job = spend_account(s->agent, view_of(s->chain), on_account, t, &e);
	if (t->job)
		s->pending++;
	else
		fail_slot(t, ETHRPC_E_INTERNAL, e.msg);
}

/* ---- for the signer ---- */

/* Codes of EIP-1193: 4001 a person said no, 4100 it is not allowed. */
static void on_signed(void *arg, const void *result, const struct err *e)
{
	struct slot *t = arg;
	const struct spend_said *said = result;

	t->job = NULL;
	if (e)
		fail_slot(t,
			  e->code == ERR_INVALID       ? ETHRPC_E_PARAMS
			  : e->code == ERR_FORBIDDEN   ? 4100
			  : e->code == ERR_UNSUPPORTED ? ETHRPC_E_UNSUPPORTED
						       : ETHRPC_E_INTERNAL,
			  e->msg);
	else if (said->error)
		fail_slot(t,
			  said->status == 429                     ? ETHRPC_E_LIMIT
			  : said->status != 403                   ? ETHRPC_E_INTERNAL
			  : said->item->state == SGN_STATE_DENIED ? 4100
								  : 4001,
			  said->error);
	else
		give(t, JSON_STRING, arena_view(&t->of->arena, said->text));
	one_less(t->of);
}

/* A quantity of Ethereum's JSON, "0x1f", in decimal digits; p == NULL: it is none. */
static struct view quantity(struct arena *a, const struct json *j, const char *otherwise)
{
	unsigned char digits[80] = { 0 };
	size_t n = 1;
	char text[81];

	if (!j)
		return view_of(otherwise);
	if (j->type != JSON_STRING || !view_starts(j->text, "0x") || j->text.n < 3 || j->text.n > 66)
		return VIEW_NONE;
	for (size_t i = 2; i < j->text.n; i++) {
		char ch = j->text.p[i];
		unsigned carry = ch >= '0' && ch <= '9'                 ? (unsigned)(ch - '0')
				 : (ch | 32) >= 'a' && (ch | 32) <= 'f' ? (unsigned)((ch | 32) - 'a') + 10
									: 16;
		if (carry > 15)
			return VIEW_NONE;
		for (size_t k = 0; k < n; k++) {
			carry += digits[k] * 16u;
			digits[k] = (unsigned char)(carry % 10);
			carry /= 10;
		}
		while (carry) {
			digits[n++] = (unsigned char)(carry % 10);
			carry /= 10;
		}
	}
	for (size_t k = 0; k < n; k++)
		text[k] = (char)('0' + digits[n - 1 - k]);
	return arena_view(a, (struct view){ text, n });
}

static struct view text_of(const struct json *j, const char *otherwise)
{
	return !j ? view_of(otherwise) : j->type == JSON_STRING ? j->text : VIEW_NONE;
}

/* eth_sendTransaction. The signer chooses nonce and fees: fields about them are refused, but for `gas`, which
 * libraries always send, and the fees that they fill in, which mean nothing here. */
static int read_transaction(struct slot *t, struct agent_ask *ask, struct err *e)
{
	static const char *const known[] = {
		"from",    "to",       "value",    "data",         "input",
		"gas",     "gasLimit", "gasPrice", "maxFeePerGas", "maxPriorityFeePerGas",
		"chainId", "type",     "nonce"
	};
	const struct json *p = t->request.params, *tx = p && p->n == 1 ? &p->items[0] : NULL;
	struct arena *a = &t->of->arena;

	if (!tx || tx->type != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "eth_sendTransaction takes one transaction, an object");
	for (size_t i = 0; i < tx->n; i++) {
		bool ok = false;
		for (size_t k = 0; k < ELEMS(known); k++)
			ok |= view_is(tx->members[i].key, known[k]);
		if (!ok)
			return err_set(e, ERR_INVALID, "the transaction has a field that agents may not set");
	}
	const struct json *data = json_get(tx, "data"), *input = json_get(tx, "input");
	if (data && input && !view_eq(text_of(data, ""), text_of(input, "")))
		return err_set(e, ERR_INVALID, "data and input differ");
	const struct json *gas = json_get(tx, "gas");
	struct view chain = quantity(a, json_get(tx, "chainId"), ""),
		    type = quantity(a, json_get(tx, "type"), "2");
	if (chain.n && !view_eq(chain, config_chain_number(view_of(t->of->chain))))
		return err_set(e, ERR_INVALID, "chainId is another chain's");
	if (!view_is(type, "0") && !view_is(type, "1") && !view_is(type, "2"))
		return err_set(e, ERR_INVALID, "transactions of this type are never signed");
	*ask = (struct agent_ask){ .kind = AGENT_ASK_TRANSACTION,
				   .chain = view_of(t->of->chain),
				   .to = text_of(json_get(tx, "to"), ""),
				   .value = quantity(a, json_get(tx, "value"), "0"),
				   .data = text_of(data ? data : input, "0x"),
				   .from = text_of(json_get(tx, "from"), ""),
				   .gas = quantity(a, gas ? gas : json_get(tx, "gasLimit"), "") };
	if (!ask->gas.p)
		return err_set(e, ERR_INVALID, "gas must be a quantity");
	return agents_check_transaction(t->of->agent, ask, e);
}

static int read_message(struct slot *t, struct agent_ask *ask, struct err *e)
{
	const struct json *p = t->request.params;
	bool typed = !view_is(t->request.method, "personal_sign");

	if (!p || p->n < 2 || p->items[0].type != JSON_STRING || p->items[1].type != JSON_STRING)
		return err_set(e, ERR_INVALID, "%.*s takes a message and an account",
			       VIEW_ARG(t->request.method));
	*ask = (struct agent_ask){ .kind = typed ? AGENT_ASK_TYPED : AGENT_ASK_MESSAGE,
				   .chain = view_of(t->of->chain),
				   .message = p->items[typed ? 1 : 0].text,
				   .from = p->items[typed ? 0 : 1].text };
	return typed ? agents_check_typed(t->of->agent, ask->message, e) : 0;
}

static void ask_signer(struct slot *t)
{
	struct agent_rpc_state *s = t->of;
	struct agent_ask ask;
	struct err e = { 0 };
	int r = t->request.class == ETHRPC_SEND ? read_transaction(t, &ask, &e) : read_message(t, &ask, &e);

	if (r >= 0) {
		t->job = spend_ask(s->agent, &ask, false, on_signed, t, &e);
		s->pending += t->job != NULL;
	}
	if (!t->job)
		fail_slot(t,
			  e.code == ERR_INVALID       ? ETHRPC_E_PARAMS
			  : e.code == ERR_UNSUPPORTED ? ETHRPC_E_UNSUPPORTED
						      : 4100,
			  e.msg);
}

/* ---- for a node ---- */

static void on_answer(struct chain_call *k, char *body, size_t n, const struct err *e)
{
	struct agent_rpc_state *s = CONTAINER(k, struct agent_rpc_state, call);
	struct ethrpc_result *results = arena_array(&s->arena, s->n_asked, sizeof(*results));
	struct err failed = { 0 };

	s->called = false;
	if (e)
		failed = *e;
	else if (!results)
		err_sys(&failed, ERR_INTERNAL, ENOMEM, "answer");
	else
		(void)!ethrpc_answers(&s->answers, (struct view){ body, n }, 1, s->n_asked, s->n_asked > 1,
				      results, &failed);
	for (size_t i = 0; i < s->n; i++) {
		struct slot *t = &s->slots[i];
		if (!t->asked)
			continue;
		if (failed.code) {
			fail_slot(t, ETHRPC_E_LIMIT, failed.msg);
			continue;
		}
		const struct ethrpc_result *r = &results[t->asked - 1];
		t->outcome = (struct rpc_outcome){ .result = r->result,
						   .code = r->code,
						   .message = r->message,
						   .nodes = true,
						   .data = r->error ? json_get(r->error, "data") : NULL };
		if (t->request.class == ETHRPC_FILTER_NEW && r->result)
			note_filter(s, r->result);
	}
	one_less(s);
}

static void judge(struct slot *t)
{
	struct err e = { 0 };

	if (t->outcome.code)
		return; /* it was not understood */
	if (ethrpc_check(&t->request, &e) < 0) {
		fail_slot(t, ETHRPC_E_PARAMS, e.msg);
		return;
	}
	switch (t->request.class) {
	case ETHRPC_REFUSED:
		err_set(&e, ERR_FORBIDDEN, "the method %.*s is not available to agents",
			VIEW_ARG(t->request.method));
		fail_slot(t, ETHRPC_E_METHOD, e.msg);
		break;
	case ETHRPC_CHAIN_ID:
		answer_number(t, true);
		break;
	case ETHRPC_NET_VERSION:
		answer_number(t, false);
		break;
	case ETHRPC_ACCOUNTS:
		answer_accounts(t);
		break;
	case ETHRPC_SEND:
	case ETHRPC_SIGN:
		ask_signer(t);
		break;
	case ETHRPC_FILTER_USE:
		if (!has_filter(t->of, t->request.params->items[0].text)) {
			fail_slot(t, -32000, "filter not found");
			break;
		}
		t->asked = ++t->of->n_asked;
		break;
	case ETHRPC_PASS:
	case ETHRPC_FILTER_NEW:
	case ETHRPC_LOGS:
		t->asked = ++t->of->n_asked;
		break;
	}
}

static bool find_nodes(struct agent_rpc_state *s)
{
	const struct config *cfg = s->agent->core->config;
	struct view own = spec_map_get(&s->agent->manifest.permissions.rpcs, view_of(s->chain));
	struct err e = { 0 };

	if (own.p && config_url(own, &s->one, &e) >= 0) {
		s->call.urls = &s->one;
		s->call.n = 1;
		return true;
	}
	for (size_t i = 0; i < cfg->agents.n_chains; i++)
		if (view_is(cfg->agents.chain_list[i].id, s->chain)) {
			s->call.urls = cfg->agents.chain_list[i].rpc;
			s->call.n = cfg->agents.chain_list[i].n_rpc;
			return true;
		}
	return false;
}

static void ask_node(struct agent_rpc_state *s)
{
	struct json_out o;

	s->went = true;
	s->pending = 1;
	json_out_init(&o, &s->request);
	if (s->n_asked > 1)
		json_out_array(&o);
	for (size_t i = 0; i < s->n; i++)
		if (s->slots[i].asked)
			ethrpc_put(&o, &s->slots[i].request, s->slots[i].asked);
	if (s->n_asked > 1)
		json_out_end(&o, ']');
	bool can = !s->request.bad && find_nodes(s);
	if (can) {
		s->call.body = buf_view(&s->request);
		s->call.done = on_answer;
		s->call.holder = &s->agent->holder;
		s->called = true;
		chains_post(s->agent->core, &s->call);
		return;
	}
	for (size_t i = 0; i < s->n; i++)
		if (s->slots[i].asked)
			fail_slot(&s->slots[i], ETHRPC_E_LIMIT,
				  s->request.bad ? "the request is too large"
						 : "no node is configured for this chain");
	one_less(s);
}

/* Everything has been read. */
static void go(struct agent_rpc_state *s)
{
	unsigned counted = 0, wait = 0;

	for (size_t i = 0; i < s->n; i++)
		counted += s->slots[i].request.class != ETHRPC_CHAIN_ID &&
			   s->slots[i].request.class != ETHRPC_NET_VERSION;
	if (counted && !agents_window(s->agent, AGENT_RPC, counted, &wait)) {
		refuse(s->of, 429, "Rate limit exceeded", wait);
		return;
	}
	s->pending = 1; /* this function */
	for (size_t i = 0; i < s->n; i++)
		judge(&s->slots[i]);
	one_less(s);
}

/* ---- the beginning ---- */

static struct agent_rpc_state *state_new(struct agent *a, struct view chain, struct agent_rpc *r)
{
	struct agent_rpc_state *s;

	r->state = NULL;
	if (!manifest_has_chain(&a->manifest, chain)) {
		struct err e = { 0 };
		err_set(&e, ERR_FORBIDDEN, "Chain %.*s is not whitelisted for this agent",
			(int)MIN(chain.n, (size_t)CHAIN_ID_MAX), chain.p);
		refuse(r, 403, e.msg, 0);
		return NULL;
	}
	s = calloc(1, sizeof(*s));
	if (!s) {
		refuse(r, 500, "out of memory", 0);
		return NULL;
	}
	*s = (struct agent_rpc_state){ .agent = a,
				       .of = r,
				       .arena = ARENA_INIT(ARENA_MOST),
				       .answers = ARENA_INIT(ANSWER_MOST),
				       .request = BUF_INIT(2 * AGENT_RPC_BODY) };
	(void)!view_to_str(chain, s->chain, sizeof(s->chain)); /* it fits, as it is in the manifest */
	list_append(&a->calls, &s->link);
	r->state = s;
	return s;
}

static bool make_slots(struct agent_rpc_state *s, size_t n)
{
	s->slots = arena_array(&s->arena, n, sizeof(*s->slots));
	s->n = s->slots ? n : 0;
	for (size_t i = 0; i < s->n; i++)
		s->slots[i].of = s;
	if (!s->slots)
		refuse(s->of, 500, "out of memory", 0);
	return s->slots != NULL;
}

void agents_rpc(struct agent *a, struct view chain, struct view body, struct agent_rpc *r)
{
	struct agent_rpc_state *s = state_new(a, chain, r);
	struct err e = { 0 };
	struct json *doc = NULL;

	if (!s)
		return;
	bool parsed = json_parse(&s->arena, body, &doc, &e) >= 0;
	s->batch = parsed && doc->type == JSON_ARRAY;
	bool sized = !s->batch || (doc->n >= 1 && doc->n <= ETHRPC_BATCH_MAX);
	if (!parsed || !sized) {
		s->batch = false;
		if (!make_slots(s, 1))
			return;
		fail_slot(&s->slots[0], parsed ? ETHRPC_E_INVALID : ETHRPC_E_PARSE,
			  parsed ? "a batch has 1 to 50 requests" : e.msg);
		finish(s);
		return;
	}
	if (!make_slots(s, s->batch ? doc->n : 1))
		return;
	for (size_t i = 0; i < s->n; i++)
		if (ethrpc_read(s->batch ? &doc->items[i] : doc, &s->slots[i].request, &e) < 0)
			fail_slot(&s->slots[i], ETHRPC_E_INVALID, e.msg);
	go(s);
}

void agents_rpc_one(struct agent *a, struct view chain, struct view method, const struct json *params,
		    struct agent_rpc *r)
{
	struct agent_rpc_state *s = state_new(a, chain, r);
	struct err e = { 0 };

	if (!s || !make_slots(s, 1))
		return;
	s->plain = true;
	if (ethrpc_make(method, params, &s->slots[0].request, &e) < 0)
		fail_slot(&s->slots[0], ETHRPC_E_INVALID, e.msg);
	go(s);
}

void agents_rpc_cancel(struct agent_rpc *r)
{
	struct agent_rpc_state *s = TAKE_PTR(r->state);

	if (s)
		state_free(s);
}

void agents_rpc_end(struct agent *a)
{
	LIST_EACH (it, &a->calls) {
		struct agent_rpc_state *s = CONTAINER(it, struct agent_rpc_state, link);
		refuse(s->of, 500, "the agent is gone", 0);
	}
}
