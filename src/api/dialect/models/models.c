/*
 * The front of the gateway: identifies the caller of a request, decides whether it is allowed, and
 * computes what it may cost. See models.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent.h"
#include "ai_prices.h"
#include "models_impl.h"
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

static void models_free(void *state)
{
	struct models *g = state;

	arena_done(&g->arena);
	free(g);
}

static void *models_new(struct core *c, struct err *e)
{
	const struct config *cfg = core_config(c);
	struct models *g = calloc(1, sizeof(*g));
	struct json *known;

	if (!g) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "the AI gateway");
		return NULL;
	}
	*g = (struct models){ .core = c, .arena = ARENA_INIT(PRICES_MAX) };
	list_init(&g->calls);
	if (prices_read(&g->arena, cfg->ai.prices, &g->prices, e) < 0 ||
	    json_parse(&g->arena, (struct view){ ai_prices, ai_prices_size }, &known, e) < 0 ||
	    prices_read(&g->arena, known, &g->prices, e) < 0) {
		err_wrap(e, "ai");
		models_free(g);
		return NULL;
	}
	return g;
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
static const struct box *caller(struct models *g, const struct http_exchange *x, bool *ret_assegai)
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
static bool may_use_model(const struct models_call *k, const struct box *b)
{
	return listed(&k->place->models, k->ask.model) && allowances_allow(b, ALLOWANCE_MODELS, k->ask.model);
}

static bool judge_body(struct models_call *k, const struct box *b, struct err *e)
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
static bool find_price(struct models_call *k, struct budget_claim *ret, struct err *e)
{
	struct models *g = k->home;

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

static void judge(struct models_call *k)
{
	struct models *g = k->home;
	const struct box *b = boxes_by_id(g->core, view_of(k->box));
	struct err e = { 0 };
	unsigned wait = 0;
	struct usage_wish w = { .box = b,
				.provider = ask_provider_name(k->provider),
				.endpoint = k->ep->name };

	if (!b) {
		models_call_refuse(k, 401, "invalid_api_key", "the sandbox is gone", 0);
		return;
	}
	if (!judge_body(k, b, &e) || !find_price(k, &w.claim, &e)) {
		models_call_fail(k, &e);
		return;
	}
	w.model = k->ask.model.n ? k->ask.model : view_of(k->ep->name);
	if (usage_reserve(g->core, &w, &k->usage, &wait, &e) < 0) {
		if (e.code == ERR_RATE)
			models_call_refuse(k, 429, "rate_limit_exceeded", e.msg, wait);
		else if (e.code == ERR_FORBIDDEN)
			models_call_refuse(k, 403, "budget_exceeded", e.msg, 0);
		else
			models_call_fail(k, &e);
		return;
	}
	k->reserved = true;
	models_call_start(k);
}

/* ---- the exchange ---- */

/* What is held in memory for calls that are under way, of this box and of all. */
struct held {
	size_t box, all;
	unsigned calls;
};

static struct held held_for(const struct models *g, const char *box)
{
	struct held h = { 0 };

	LIST_EACH (it, &g->calls) {
		const struct models_call *k = CONTAINER(it, struct models_call, link);
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
	struct models_call *k = ((struct request *)x->ctx)->own;
	struct held h = held_for(k->home, k->box);

	if (h.box + data.n > BOX_BYTES || h.all + data.n > ALL_BYTES) {
		models_call_refuse(k, 429, "rate_limit_exceeded",
				   "Rate limit exceeded: too much is being sent at a time", 1);
		return;
	}
	if (buf_add(&k->body, data) < 0) {
		models_call_refuse(k, 413, "request_too_large", "the body is too large", 0);
		return;
	}
	if (last)
		judge(k);
}

static void on_writable(struct http_exchange *x)
{
	models_call_writable(((struct request *)x->ctx)->own);
}

static const struct http_ops ops = { .on_body = on_body,
				     .on_abort = request_abort,
				     .on_writable = on_writable };

static const struct config_provider *place_of(const struct models *g, enum ask_provider p)
{
	const struct config *cfg = core_config(g->core);

	for (size_t i = 0; i < cfg->n_providers; i++)
		if (view_is(cfg->providers[i].name, ask_provider_name(p)))
			return &cfg->providers[i];
	return NULL;
}

/* Why the box may not go there; NULL: it may. */
static const char *forbids(const struct models_call *k, const struct box *b)
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

/* Which provider a path names, and what follows its name. */
static enum ask_provider provider_of(const struct http_exchange *x, struct view *ret_path)
{
	struct view path = view_starts(x->path, "/api/") ? view_skip(x->path, 5) : VIEW_NONE, rest;
	enum ask_provider p = path.p ? ask_provider(view_split(path, '/', &rest)) : ASK_NONE;

	*ret_path = p ? view_skip(path, strlen(ask_provider_name(p))) : VIEW_NONE;
	return p;
}

static enum models_style style_of(enum ask_provider p, bool assegai)
{
	return assegai ? MODELS_ASSEGAI : p == ASK_ANTHROPIC ? MODELS_ANTHROPIC : MODELS_OPENAI;
}

/* An agent shows its token, has the models that its manifest names, and has Assegai's limits; else the answer
 * is sent. */
static bool agent_may(struct models_call *k, const struct box *b)
{
	struct agent *a = agents_of_box(k->home->core, b);
	struct view id = http_get_header(k->x, "x-assegai-agent-id");
	bool assegai = false;
	unsigned wait = 0;
	int status = 401;

	if (!a)
		return true;
	struct view token = token_of(k->x, &assegai);
	struct agent_view v;
	agents_show(a, &v);
	/* The providers' own clients send the token as a key, and no id. */
	const char *why = agents_has_token(a, b, assegai ? id : view_of(v.id), token)
				  ? agents_refuse_model(a, view_of(ask_provider_name(k->provider)),
							k->place != NULL, &status, &wait)
				  : "Unauthorized: Missing agent credentials in headers";
	if (!why)
		return true;
	models_call_refuse(k, status,
			   status == 401   ? "invalid_api_key"
			   : status == 429 ? "rate_limit_exceeded"
					   : "not_allowed",
			   why, wait);
	return false;
}

static void judge_head(struct models_call *k, const struct box *b)
{
	struct http_exchange *x = k->x;
	const char *why;

	if (!b) {
		models_call_refuse(k, 401, "invalid_api_key",
				   "Unauthorized: the token of a sandbox is needed", 0);
		return;
	}
	memcpy(k->box, b->id, sizeof(k->box));
	if (x->origin.n && !agent_may(k, b))
		return;
	if (held_for(k->home, k->box).calls > BOX_CALLS) {
		models_call_refuse(k, 429, "rate_limit_exceeded",
				   "Rate limit exceeded: too many calls at a time", 1);
		return;
	}
	why = forbids(k, b);
	if (!why && !k->ep)
		why = "this endpoint cannot be metered and is refused";
	if (why) {
		models_call_refuse(k, 403, "not_allowed", why, 0);
		return;
	}
	x->ops = &ops;
	x->eof_aborts = true;
}

static void start(struct request *r)
{
	struct models *g = r->state;
	struct http_exchange *x = r->x;
	struct models_call *k;
	struct view path;
	enum ask_provider p = provider_of(x, &path);
	bool assegai = false;

	if (!p) { /* of a program in a box, which finds nothing else here */
		answer_plain(r, 404, "application/json",
			     VIEW("{\"error\":\"there is nothing at this path\"}\n"));
		return;
	}
	k = request_own(r, sizeof(*k));
	if (!k)
		return;
	const struct box *b = caller(g, x, &assegai);
	*k = (struct models_call){ .home = g,
				   .r = r,
				   .x = x,
				   .loop = x->loop,
				   .provider = p,
				   .path = path,
				   .place = place_of(g, p),
				   .ep = ask_endpoint(p, x->method, path),
				   .io = { .fd = -1 },
				   .fd = -1,
				   .body = BUF_INIT(BODY_MAX),
				   .began_ms = loop_now(x->loop),
				   .style = style_of(p, assegai) };
	list_append(&g->calls, &k->link);
	r->release = models_call_release;
	r->on_gone = models_call_gone;
	judge_head(k, b);
}

/* ---- the dialect ---- */

static bool claims(const struct http_exchange *x, void *state)
{
	struct view path;
	return x->origin.n || provider_of(x, &path);
}

/* What the frame itself refuses; the rest is models_call_refuse's. */
static void fail(struct request *r, const struct err *e, const struct http_header *extra, size_t n_extra)
{
	struct buf b = BUF_INIT(8192);
	struct view path;
	bool assegai = http_get_header(r->x, "x-assegai-agent-token").p != NULL;
	int status = err_http(e->code);

	models_head_error(&b, style_of(provider_of(r->x, &path), assegai), status, err_name(e->code), e->msg);
	http_reply(r->x, status, "application/json", buf_view(&b), extra, n_extra);
	buf_done(&b);
}

#define PASSED .auth = ROUTE_OPEN, .body = ROUTE_STREAM, .query = ROUTE_ANY_QUERY
static const struct route routes[] = {
	{ "GET", "/api/{provider}/{path}", start, PASSED },
	{ "POST", "/api/{provider}/{path}", start, PASSED },
	{ 0 },
};
static const struct route otherwise = { NULL, NULL, start, PASSED };
#undef PASSED

static const struct route *const tables[] = { routes, NULL };
static const struct surface surface = {
	.heading = "", .routes = tables, .otherwise = &otherwise, .fail = fail
};

static void off(const struct core *c, void (*say)(void *arg, const char *what, const char *why), void *arg)
{
	for (enum ask_provider p = ASK_NONE + 1; p < ASK_PROVIDERS; p++) {
		const struct config *cfg = core_config(c);
		char path[64];
		bool found = false;
		for (size_t i = 0; i < cfg->n_providers && !found; i++)
			found = view_is(cfg->providers[i].name, ask_provider_name(p));
		snprintf(path, sizeof(path), "/api/%s", ask_provider_name(p));
		if (!found)
			say(arg, path, "not in ai.providers");
	}
}

const struct dialect models_dialect = { .name = "models",
					.version = "v1",
					.off = off,
					.claims = claims,
					.inside = true,
					.surface = &surface,
					.new = models_new,
					.free = models_free };
