/*
 * paddock ai: what a box or a tenant may use of models, what it has used, and a box's token.
 */
#include <stdio.h>

#include "call.h"
#include "create.h"
#include "show.h"
#include "text.h"

#include "poison.h"

#define BODY_MAX (256u * 1024)

struct ai_flags {
	bool tenant;
	const char *requests, *tokens, *parallel, *day, *week, *month, *warn, *bodies;
	struct opt_list providers, endpoints, models;
};

#define AT(member) offsetof(struct ai_flags, member)
#define TENANT                                                                                               \
	{                                                                                                    \
		"tenant", 0, OPT_FLAG, AT(tenant), NULL,                                                     \
			"of the tenant of this name, not of a sandbox (for admins)"                          \
	}
static const struct opt PLACE_OPTS[] = { TENANT };
static const struct opt SET_OPTS[] = {
	TENANT,
	{ "requests-per-minute", 0, OPT_TEXT, AT(requests), "N", "calls in a minute" },
	{ "tokens-per-minute", 0, OPT_TEXT, AT(tokens), "N", "tokens in a minute" },
	{ "parallel", 0, OPT_TEXT, AT(parallel), "N", "calls at a time" },
	{ "day", 0, OPT_TEXT, AT(day), "DOLLARS", "in a day (of UTC)" },
	{ "week", 0, OPT_TEXT, AT(week), "DOLLARS", "in a week, from Monday" },
	{ "month", 0, OPT_TEXT, AT(month), "DOLLARS", "in a month of the calendar" },
	{ "warn", 0, OPT_TEXT, AT(warn), "PART", "the part of a budget at which to warn, as 0.8" },
	{ "log-bodies", 0, OPT_TEXT, AT(bodies), "yes|no",
	  "keep the text of calls, without what looks like a secret" },
	{ "provider", 0, OPT_LIST, AT(providers), "NAME",
	  "a provider that may be used, and no other; may be repeated" },
	{ "endpoint", 0, OPT_LIST, AT(endpoints), "PATTERN",
	  "an endpoint, as chat/completions; may be repeated" },
	{ "model", 0, OPT_LIST, AT(models), "PATTERN", "a model, as gpt-4o-*; may be repeated" },
};
#undef AT

static int call(struct cmd_ctx *ctx, const char *method, bool tenant, const char *name, const char *rest,
		struct view body, struct json **ret, struct err *e)
{
	return call_once(ctx,
			 &(struct cli_call){ method, tenant ? "tenants" : "sandboxes", name, rest, body },
			 ret, e);
}

static int show(const struct json *answer, struct err *e)
{
	return answer ? show_json(answer, e) : err_set(e, ERR_INTERNAL, "the daemon said nothing about it");
}

/* ---- show, reset, rotate ---- */

static int run_show(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	const struct ai_flags *f = flags;
	struct json *answer;

	return call(ctx, "GET", f->tenant, operands[0], "/ai", VIEW_NONE, &answer, e) < 0 ? -1
											  : show(answer, e);
}

static int run_reset(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		     struct err *e)
{
	const struct ai_flags *f = flags;

	return call(ctx, "PUT", f->tenant, operands[0], "/ai", VIEW("{}"), NULL, e);
}

struct rotate_flags {
	uint64_t ttl_ms;
};

static const struct opt ROTATE_OPTS[] = {
	{ "ttl", 0, OPT_MS, offsetof(struct rotate_flags, ttl_ms), "TIME",
	  "how long it is good (default: as long as the sandbox is)" },
};

static int run_rotate(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		      struct err *e)
{
	const struct rotate_flags *f = flags;
	struct json *answer;
	char body[64];

	if (f->ttl_ms)
		snprintf(body, sizeof(body), "{\"ttl_seconds\":%llu}",
			 (unsigned long long)MAX(f->ttl_ms / 1000, 1u));
	else
		snprintf(body, sizeof(body), "{}");
	return call(ctx, "POST", false, operands[0], "/ai/token", view_of(body), &answer, e) < 0
		       ? -1
		       : show(answer, e);
}

/* ---- set ---- */

static int put_number(struct json_out *o, const char *key, const char *text, struct err *e)
{
	if (!text)
		return 0;
	json_out_key(o, key);
	if (view_is(view_of(text), "none")) {
		json_out_null(o);
		return 0;
	}
	if (!json_is_number(view_of(text)))
		return err_set(e, ERR_INVALID, "%s must be a number, or none: \"%.60s\"", key, text);
	json_out_value(o, &(struct json){ .type = JSON_NUMBER, .text = view_of(text) });
	return 0;
}

static int put_choice(struct json_out *o, const char *key, const char *text, struct err *e)
{
	if (!text)
		return 0;
	struct view v = view_of(text);
	json_out_key(o, key);
	if (view_is(v, "none"))
		json_out_null(o);
	else if (view_is(v, "yes") || view_is(v, "no"))
		json_out_bool(o, view_is(v, "yes"));
	else
		return err_set(e, ERR_INVALID, "%s must be yes, no or none: \"%.60s\"", key, text);
	return 0;
}

static int put_list(struct json_out *o, const char *key, const struct opt_list *l, struct err *e)
{
	if (!l->n)
		return 0;
	json_out_key(o, key);
	if (l->n == 1 && view_is(view_of(l->items[0]), "none")) {
		json_out_null(o);
		return 0;
	}
	json_out_array(o);
	for (size_t i = 0; i < l->n; i++) {
		if (create_check_text(l->items[i], key, e) < 0)
			return -1;
		json_out_str(o, view_of(l->items[i]));
	}
	json_out_end(o, ']');
	return 0;
}

static int run_set(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	const struct ai_flags *f = flags;
	struct json_out o;

	json_out_init(&o, &body);
	json_out_object(&o);
	if (put_number(&o, "requests_per_minute", f->requests, e) < 0 ||
	    put_number(&o, "tokens_per_minute", f->tokens, e) < 0 ||
	    put_number(&o, "parallel", f->parallel, e) < 0 || put_number(&o, "day", f->day, e) < 0 ||
	    put_number(&o, "week", f->week, e) < 0 || put_number(&o, "month", f->month, e) < 0 ||
	    put_number(&o, "warn", f->warn, e) < 0 || put_choice(&o, "log_bodies", f->bodies, e) < 0 ||
	    put_list(&o, "providers", &f->providers, e) < 0 ||
	    put_list(&o, "endpoints", &f->endpoints, e) < 0 || put_list(&o, "models", &f->models, e) < 0)
		return -1;
	json_out_end(&o, '}');
	if (body.bad)
		return err_set(e, ERR_TOO_LARGE, "too much for one request");
	if (view_is(buf_view(&body), "{}"))
		return err_set(e, ERR_INVALID, "nothing is to be changed");
	return call(ctx, "PATCH", f->tenant, operands[0], "/ai", buf_view(&body), NULL, e);
}

/* ---- calls ---- */

struct calls_flags {
	uint64_t limit, before;
};

static const struct opt CALLS_OPTS[] = {
	{ "limit", 'n', OPT_COUNT, offsetof(struct calls_flags, limit), "N", "so many (default: 50)" },
	{ "before", 0, OPT_COUNT, offsetof(struct calls_flags, before), "ID",
	  "only what was begun before this one" },
};

static struct view text_of(const struct json *object, const char *key)
{
	const struct json *j = json_get(object, key);

	return j && (j->type == JSON_STRING || j->type == JSON_NUMBER) ? j->text : VIEW("-");
}

static uint64_t number_of(const struct json *object, const char *key)
{
	const struct json *j = json_get(object, key);
	uint64_t v = 0;

	return j && json_to_u64(j, &v) >= 0 ? v : 0;
}

static struct view tokens_of(struct arena *a, const struct json *call)
{
	char text[64];
	uint64_t in = number_of(call, "input_tokens") + number_of(call, "cache_read_tokens") +
		      number_of(call, "cache_write_tokens");

	snprintf(text, sizeof(text), "%llu+%llu", (unsigned long long)in,
		 (unsigned long long)number_of(call, "output_tokens"));
	return arena_view(a, view_of(text));
}

static int show_call(struct cmd_ctx *ctx, char **operands, struct err *e)
{
	_cleanup_(buf_done) struct buf rest = BUF_INIT(1024);
	struct json *answer;

	buf_puts(&rest, "/ai/calls/");
	if (session_segment(&rest, operands[1], e) < 0)
		return -1;
	buf_putc(&rest, 0);
	if (rest.bad)
		return err_set(e, ERR_INVALID, "a call's id is a number");
	return call(ctx, "GET", false, operands[0], rest.p, VIEW_NONE, &answer, e) < 0 ? -1 : show(answer, e);
}

static int run_calls(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e)
{
	if (n > 1)
		return show_call(ctx, operands, e);
	static const char *const titles[] = { "ID",     "AT",     "PROVIDER", "ENDPOINT", "MODEL",
					      "STATUS", "FINISH", "TOKENS",   "DOLLARS",  "MS" };
	_cleanup_(show_table_done) struct show_table t;
	const struct calls_flags *f = flags;
	struct json *answer;
	char rest[128], before[48] = "";

	if (f->before)
		snprintf(before, sizeof(before), "&before=%llu", (unsigned long long)f->before);
	snprintf(rest, sizeof(rest), "/ai/calls?limit=%llu%s", (unsigned long long)(f->limit ? f->limit : 50),
		 before);
	show_table_init(&t, titles, ELEMS(titles));
	if (call(ctx, "GET", false, operands[0], rest, VIEW_NONE, &answer, e) < 0)
		return -1;
	const struct json *rows = answer ? json_get(answer, "calls") : NULL;
	if (!rows || rows->type != JSON_ARRAY)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no list of calls");
	if (ctx->json)
		return show_json(rows, e);
	for (size_t i = 0; i < rows->n; i++) {
		const struct json *c = &rows->items[i];
		struct view cells[] = { text_of(c, "id"),       text_of(c, "at"),
					text_of(c, "provider"), text_of(c, "endpoint"),
					text_of(c, "model"),    text_of(c, "status"),
					text_of(c, "finish"),   tokens_of(&ctx->arena, c),
					text_of(c, "cost_usd"), text_of(c, "duration_ms") };
		show_table_add(&t, cells);
	}
	return show_table_print(&t, e);
}

#define ONE   .lead = OPTS_ANYWHERE, .min = 1, .max = 1, .client = true, .json = true
#define PLACE .opts = PLACE_OPTS, .n_opts = ELEMS(PLACE_OPTS), .flags_size = sizeof(struct ai_flags)

const struct cmd cmd_ai_show = {
	.name = "ai show",
	.operands = "SANDBOX|TENANT",
	.summary = "show what a sandbox or tenant may use of models, who said so, and what it has spent",
	PLACE,
	ONE,
	.run = run_show,
};

const struct cmd cmd_ai_set = {
	.name = "ai set",
	.operands = "SANDBOX|TENANT",
	.summary = "change what a sandbox or tenant may use of models",
	.help = "What is not named stays as it is; `none` takes back what was said.",
	.opts = SET_OPTS,
	.n_opts = ELEMS(SET_OPTS),
	.flags_size = sizeof(struct ai_flags),
	ONE,
	.run = run_set,
};

const struct cmd cmd_ai_reset = {
	.name = "ai reset",
	.operands = "SANDBOX|TENANT",
	.summary = "take back all that was said: the defaults hold",
	PLACE,
	ONE,
	.run = run_reset,
};

const struct cmd cmd_ai_rotate = {
	.name = "ai rotate",
	.operands = "SANDBOX",
	.summary = "give a sandbox another token for models; the one before is worth nothing",
	.opts = ROTATE_OPTS,
	.n_opts = ELEMS(ROTATE_OPTS),
	.flags_size = sizeof(struct rotate_flags),
	ONE,
	.run = run_rotate,
};

const struct cmd cmd_ai_calls = {
	.name = "ai calls",
	.operands = "SANDBOX [CALL]",
	.summary = "show a sandbox's calls to models, the newest first, or one with its text",
	.opts = CALLS_OPTS,
	.n_opts = ELEMS(CALLS_OPTS),
	.flags_size = sizeof(struct calls_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 2,
	.client = true,
	.json = true,
	.run = run_calls,
};

/* ---- usage ---- */

struct usage_flags {
	const char *by, *from, *to, *box, *provider, *model;
};

#define AT(member) offsetof(struct usage_flags, member)
static const struct opt USAGE_OPTS[] = {
	{ "by", 0, OPT_TEXT, AT(by), "WORDS",
	  "what to add up by, as day,tenant or provider,model (default: each sandbox, provider and model)" },
	{ "from", 0, OPT_TEXT, AT(from), "DAY", "the first day, as 2026-01-31" },
	{ "to", 0, OPT_TEXT, AT(to), "DAY", "the last day" },
	{ "sandbox", 's', OPT_TEXT, AT(box), "ID", "only of this sandbox" },
	{ "provider", 0, OPT_TEXT, AT(provider), "NAME", "only of this provider" },
	{ "model", 0, OPT_TEXT, AT(model), "NAME", "only of this model" },
};
#undef AT

static int run_usage(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
		     struct err *e)
{
	static const char *const titles[] = { "DAY",      "TENANT", "SANDBOX", "PROVIDER", "MODEL",
					      "REQUESTS", "INPUT",  "OUTPUT",  "USD" };
	static const char *const fields[] = { "day",          "tenant",        "box",
					      "provider",     "model",         "requests",
					      "input_tokens", "output_tokens", "cost_usd" };
	const struct usage_flags *f = flags;
	const char *const parts[][2] = {
		{ "by", f->by },   { "from", f->from },         { "to", f->to },
		{ "box", f->box }, { "provider", f->provider }, { "model", f->model }
	};
	_cleanup_(buf_done) struct buf rest = BUF_INIT(8192);

	for (size_t i = 0; i < ELEMS(parts); i++) {
		if (!parts[i][1])
			continue;
		buf_printf(&rest, "%c%s=", rest.n ? '&' : '?', parts[i][0]);
		text_percent_all(&rest, view_of(parts[i][1]));
	}
	buf_putc(&rest, 0);
	if (rest.bad)
		return err_set(e, ERR_INVALID, "the options are too long");
	return call_list(ctx, &(struct cli_call){ "GET", "usage", .rest = rest.p }, "usage", titles, fields,
			 ELEMS(fields), e);
}

const struct cmd cmd_ai_usage = {
	.name = "ai usage",
	.operands = "",
	.summary = "show what was used of models, and what it cost",
	.opts = USAGE_OPTS,
	.n_opts = ELEMS(USAGE_OPTS),
	.flags_size = sizeof(struct usage_flags),
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.run = run_usage,
};
