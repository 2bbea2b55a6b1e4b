/*
 * The gateway's front: whose request it is, whether it may be made, what it may cost. See ai.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "ai_impl.h"
#include "ai_prices.h"
#include "money.h"
#include "who.h"
#include "poison.h"

#define BODY_MAX     (32u * 1024 * 1024)
#define ARENA_MAX    (96u * 1024 * 1024)  /* of a body that is being judged: one at a time */
#define BOX_CALLS    64                   /* at a time, whatever the configuration says */
#define BOX_BYTES    (64u * 1024 * 1024)  /* of bodies that are held for one box */
#define ALL_BYTES    (256u * 1024 * 1024) /* and for all of them */
#define PRICES_MAX   (4u * 1024 * 1024)
#define OUTPUT_GUESS 16384 /* tokens, of a model whose longest answer nobody knows */

/* ---- life ---- */

struct ai *ai_new(struct core *c, void (*next)(struct http_exchange *x, void *arg), void *arg, struct err *e)
{
	const struct config *cfg = core_config(c);
	struct ai *g = calloc(1, sizeof(*g));
	struct json *known;

	if (!g) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "the AI gateway");
		return NULL;
	}
	*g = (struct ai){ .core = c, .next = next, .arg = arg, .arena = ARENA_INIT(PRICES_MAX) };
	list_init(&g->calls);
	if (prices_read(&g->arena, cfg->ai.prices, &g->prices, e) < 0 ||
	    json_parse(&g->arena, (struct view){ ai_prices, ai_prices_size }, &known, e) < 0 ||
	    prices_read(&g->arena, known, &g->prices, e) < 0) {
		err_wrap(e, "ai");
		ai_free(g);
		return NULL;
	}
	return g;
}

void ai_free(struct ai *g)
{
	if (!g)
		return;
	arena_done(&g->arena);
	free(g);
}

void ai_print_routes(FILE *out)
{
	fprintf(out, "GET /api/{provider}/{path}\nPOST /api/{provider}/{path}\n");
}

/* ---- who asks ---- */

static struct view token_of(const struct http_exchange *x, bool *ret_assegai)
{
	struct view token = http_get_header(x, "x-assegai-agent-token");

	*ret_assegai = token.p != NULL;
	if (token.p)
		return token;
	token = http_get_header(x, "authorization");
	if (token.n > 7 && view_eq_nocase(view_head(token, 7), VIEW("bearer ")))
		return view_trim(view_skip(token, 7));
	return http_get_header(x, "x-api-key");
}

/* A connection of the box's own needs no token: nobody else can have made it. */
static const struct box *caller(struct ai *g, const struct http_exchange *x, bool *ret_assegai)
{
	struct view token = token_of(x, ret_assegai);

	if (x->origin.n)
		return boxes_by_id(g->core, x->origin);
	return tokens_opens(g->core, TOKEN_AI, token);
}

/* ---- what may be asked ---- */

static bool listed(const struct json_strlist *l, struct view v)
{
	for (size_t i = 0; i < l->n; i++)
		if (ask_fits(l->items[i], v))
			return true;
	return l->n == 0;
}

/* By the configuration, the tenant's lists and the box's. */
static bool may_use_model(const struct ai_call *k, const struct box *b)
{
	return listed(&k->place->models, k->ask.model) && allowances_allow(b, ALLOWANCE_MODELS, k->ask.model);
}

static bool judge_body(struct ai_call *k, const struct box *b, struct err *e)
{
	struct view body = buf_view(&k->body);

	if (view_is(k->x->method, "GET")) {
		if (body.n)
			err_set(e, ERR_INVALID, "this request has no body");
		return body.n == 0;
	}
	struct arena a = ARENA_INIT(ARENA_MAX);
	int r = ask_read(&a, k->ep, body, &k->ask, e);
	if (r >= 0)
		r = view_to_str(k->ask.model, k->model, sizeof(k->model));
	if (r < 0 && !e->code)
		err_set(e, ERR_INVALID, "this is not the name of a model");
	arena_done(&a);
	if (r < 0)
		return false;
	k->ask.model = view_of(k->model);
	if (k->ask.model.n && !may_use_model(k, b)) {
		err_set(e, ERR_FORBIDDEN, "the model %.*s is not allowed here", VIEW_ARG(k->ask.model));
		return false;
	}
	return true;
}

/* What it may cost at most: all of its input anew, and the longest answer. */
static bool find_price(struct ai_call *k, struct budget_claim *ret, struct err *e)
{
	struct ai *g = k->ai;

	*ret = (struct budget_claim){ .tokens = k->ep->free ? 0 : k->ask.input_tokens };
	if (k->ep->free)
		return true;
	k->price = prices_find(&g->prices, k->provider, k->ask.model);
	if (!k->price && core_config(g->core)->ai.unpriced)
		return true;
	if (!k->price) {
		err_set(e, ERR_FORBIDDEN, "price_unknown: there is no price for the model %.*s",
			VIEW_ARG(k->ask.model));
		return false;
	}
	uint64_t output = k->ask.max_output      ? k->ask.max_output
			  : k->price->max_output ? k->price->max_output
						 : OUTPUT_GUESS;
	output *= k->ask.choices;
	ret->cost = prices_most(k->price, k->ask.input_tokens, k->ep->api == METER_EMBEDDINGS ? 0 : output);
	return true;
}

static void judge(struct ai_call *k)
{
	struct ai *g = k->ai;
	const struct box *b = boxes_by_id(g->core, view_of(k->box));
	struct err e = { 0 };
	unsigned wait = 0;
	struct usage_wish w = { .box = b,
				.provider = ask_provider_name(k->provider),
				.endpoint = k->ep->name };

	if (!b) {
		ai_call_refuse(k, 401, "invalid_api_key", "the sandbox is gone", 0);
		return;
	}
	if (!judge_body(k, b, &e) || !find_price(k, &w.claim, &e)) {
		ai_call_fail(k, &e);
		return;
	}
	w.model = k->ask.model.n ? k->ask.model : view_of(k->ep->name);
	if (usage_reserve(g->core, &w, &k->usage, &wait, &e) < 0) {
		if (e.code == ERR_RATE)
			ai_call_refuse(k, 429, "rate_limit_exceeded", e.msg, wait);
		else if (e.code == ERR_FORBIDDEN)
			ai_call_refuse(k, 403, "budget_exceeded", e.msg, 0);
		else
			ai_call_fail(k, &e);
		return;
	}
	k->reserved = true;
	ai_call_start(k);
}

/* ---- the exchange ---- */

/* What is held in memory for calls that are under way, of this box and of all. */
struct held {
	size_t box, all;
	unsigned calls;
};

static struct held held_for(const struct ai *g, const char *box)
{
	struct held h = { 0 };

	LIST_EACH (it, &g->calls) {
		const struct ai_call *k = CONTAINER(it, struct ai_call, link);
		size_t n = k->body.cap + k->out.cap;
		bool same = view_is(view_of(k->box), box);
		h.all += n;
		h.box += same ? n : 0;
		h.calls += same;
	}
	return h;
}

static void on_body(struct http_exchange *x, struct view data, bool last)
{
	struct ai_call *k = x->ctx;
	struct held h = held_for(k->ai, k->box);

	if (h.box + data.n > BOX_BYTES || h.all + data.n > ALL_BYTES) {
		ai_call_refuse(k, 429, "rate_limit_exceeded",
			       "Rate limit exceeded: too much is being sent at a time", 1);
		return;
	}
	if (buf_add(&k->body, data) < 0) {
		ai_call_refuse(k, 413, "request_too_large", "the body is too large", 0);
		return;
	}
	if (last)
		judge(k);
}

static void on_abort(struct http_exchange *x)
{
	ai_call_abort(x->ctx);
}

static void on_writable(struct http_exchange *x)
{
	ai_call_writable(x->ctx);
}

static const struct http_ops ops = { .on_body = on_body, .on_abort = on_abort, .on_writable = on_writable };

static const struct config_provider *place_of(const struct ai *g, enum ask_provider p)
{
	const struct config *cfg = core_config(g->core);

	for (size_t i = 0; i < cfg->n_providers; i++)
		if (view_is(cfg->providers[i].name, ask_provider_name(p)))
			return &cfg->providers[i];
	return NULL;
}

/* Why the box may not go there; NULL: it may. */
static const char *forbids(const struct ai_call *k, const struct box *b)
{
	if (!k->place)
		return "this provider is not configured";
	if (!allowances_allow(b, ALLOWANCE_PROVIDERS, view_of(ask_provider_name(k->provider))))
		return "this provider is not allowed here";
	if (k->ep && (!listed(&k->place->endpoints, view_of(k->ep->name)) ||
		      !allowances_allow(b, ALLOWANCE_ENDPOINTS, view_of(k->ep->name))))
		return "this endpoint is not allowed here";
	return NULL;
}

static void start(struct ai *g, struct http_exchange *x, enum ask_provider p, struct view path)
{
	struct ai_call *k = calloc(1, sizeof(*k));
	bool assegai = false;

	if (!k) {
		http_reply(x, 503, NULL, VIEW_NONE, NULL, 0);
		return;
	}
	const struct box *b = caller(g, x, &assegai);
	*k = (struct ai_call){ .ai = g,
			       .x = x,
			       .provider = p,
			       .path = path,
			       .place = place_of(g, p),
			       .ep = ask_endpoint(p, x->method, path),
			       .io = { .fd = -1 },
			       .fd = -1,
			       .body = BUF_INIT(BODY_MAX),
			       .began_ms = loop_now(x->loop),
			       .style = assegai              ? AI_STYLE_ASSEGAI
					: p == ASK_ANTHROPIC ? AI_STYLE_ANTHROPIC
							     : AI_STYLE_OPENAI };
	list_append(&g->calls, &k->link);
	if (!b) {
		ai_call_refuse(k, 401, "invalid_api_key", "Unauthorized: the token of a sandbox is needed",
			       0);
		return;
	}
	memcpy(k->box, b->id, sizeof(k->box));
	if (held_for(g, k->box).calls > BOX_CALLS) {
		ai_call_refuse(k, 429, "rate_limit_exceeded", "Rate limit exceeded: too many calls at a time",
			       1);
		return;
	}
	const char *why = forbids(k, b);
	if (why) {
		ai_call_refuse(k, 403, "not_allowed", why, 0);
		return;
	}
	if (!k->ep) {
		ai_call_refuse(k, 403, "not_allowed", "this endpoint cannot be metered and is refused", 0);
		return;
	}
	x->ops = &ops;
	x->ctx = k;
	x->eof_aborts = true;
}

void ai_request(struct http_exchange *x, void *arg)
{
	struct ai *g = arg;
	struct view path = view_starts(x->path, "/api/") ? view_skip(x->path, 5) : VIEW_NONE, rest;
	enum ask_provider p = path.p ? ask_provider(view_split(path, '/', &rest)) : ASK_NONE;

	if (p)
		start(g, x, p, view_skip(path, strlen(ask_provider_name(p))));
	else if (x->origin.n)
		http_reply(x, 404, "application/json",
			   VIEW("{\"error\":\"there is nothing at this path\"}\n"), NULL, 0);
	else
		g->next(x, g->arg);
}
