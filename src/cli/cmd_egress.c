/*
 * paddock egress: what a box may reach, and what it tried to reach.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "call.h"
#include "create.h"
#include "fd.h"
#include "show.h"

#include "poison.h"

#define POLICY_MAX (1u << 20)

struct change_flags {
	bool close, tenant;
};

#define TENANT                                                                                               \
	{                                                                                                    \
		"tenant", 0, OPT_FLAG, offsetof(struct change_flags, tenant), NULL,                          \
			"of the tenant of this name, for its sandboxes without a policy of their own (for "  \
			"admins)"                                                                            \
	}

static const struct opt SHOW_OPTS[] = { TENANT };
static const struct opt CHANGE_OPTS[] = {
	{ "close", 0, OPT_FLAG, offsetof(struct change_flags, close), NULL,
	  "also end open connections that are not allowed any more" },
};

/* ---- show ---- */

/* The policy of a sandbox or of a tenant. */
static int policy(struct cmd_ctx *ctx, const char *method, const struct change_flags *f, const char *name,
		  struct view body, struct json **ret, struct err *e)
{
	return call_once(ctx,
			 &(struct cli_call){ method, f->tenant ? "tenants" : "sandboxes", name,
					     f->close ? "/egress?open=close" : "/egress", body },
			 ret, e);
}

static int run_show(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	struct json *answer;

	if (policy(ctx, "GET", flags, operands[0], VIEW_NONE, &answer, e) < 0)
		return -1;
	if (!answer)
		return err_set(e, ERR_INTERNAL, "the daemon said nothing about it");
	return show_json(answer, e);
}

/* ---- allow, deny ---- */

struct allow_flags {
	struct change_flags change; /* first: run_rules takes either */
	struct opt_list inject;
};

static const struct opt ALLOW_OPTS[] = {
	{ "inject", 0, OPT_LIST, offsetof(struct allow_flags, inject), "WHERE",
	  "put a secret into requests to it: header:NAME='Bearer {{secret.S}}', query:NAME={{secret.S}}, "
	  "placeholder:{{secret.S}}" },
};

/* TEXT{{secret.NAME}}: what is before it, and the name. */
static bool take_secret(struct view v, struct view *ret_prefix, struct view *ret_name)
{
	static const char open[] = "{{secret.", close[] = "}}";
	const char *at = v.n ? memmem(v.p, v.n, open, sizeof(open) - 1) : NULL;

	if (!at || v.n < sizeof(close) - 1 || memcmp(v.p + v.n - 2, close, 2) != 0)
		return false;
	*ret_prefix = view_head(v, (size_t)(at - v.p));
	*ret_name = view_skip(v, ret_prefix->n + sizeof(open) - 1);
	if (ret_name->n <= 2)
		return false;
	ret_name->n -= 2;
	return !memchr(ret_name->p, '}', ret_name->n);
}

static int put_inject(struct json_out *o, const char *text, struct err *e)
{
	struct view rest, where = view_split(view_of(text), ':', &rest), value = rest, name = VIEW_NONE,
			  prefix, secret;
	bool placeholder = view_is(where, "placeholder");

	if (rest.p && !placeholder)
		name = view_split(rest, '=', &value);
	if (!rest.p ||
	    (!placeholder &&
	     (!name.n || !value.p || (!view_is(where, "header") && !view_is(where, "query")))) ||
	    !take_secret(value, &prefix, &secret) || (prefix.n && !view_is(where, "header")))
		return err_set(e, ERR_INVALID,
			       "--inject is header:NAME=TEXT{{secret.S}}, query:NAME={{secret.S}} or "
			       "placeholder:{{secret.S}}, not %.80s",
			       text);
	json_out_object(o);
	json_out_kstr(o, "secret", secret);
	if (placeholder)
		json_out_kbool(o, "placeholder", true);
	else
		json_out_kstr(o, view_is(where, "header") ? "header" : "query", name);
	if (prefix.n)
		json_out_kstr(o, "prefix", prefix);
	json_out_end(o, '}');
	return 0;
}

static int run_rules(struct cmd_ctx *ctx, const char *action, const struct change_flags *f,
		     const struct opt_list *inject, size_t n, char **operands, struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(POLICY_MAX);
	struct json_out o;

	json_out_init(&o, &body);
	json_out_object(&o);
	json_out_kz(&o, "action", action);
	json_out_key(&o, "targets");
	json_out_array(&o);
	for (size_t i = 1; i < n; i++) {
		if (create_check_text(operands[i], "a target", e) < 0)
			return -1;
		json_out_str(&o, view_of(operands[i]));
	}
	json_out_end(&o, ']');
	if (inject && inject->n) {
		json_out_key(&o, "inject");
		json_out_array(&o);
		for (size_t i = 0; i < inject->n; i++)
			if (create_check_text(inject->items[i], "an injection", e) < 0 ||
			    put_inject(&o, inject->items[i], e) < 0)
				return -1;
		json_out_end(&o, ']');
	}
	json_out_end(&o, '}');
	if (body.bad)
		return err_set(e, ERR_TOO_LARGE, "too many targets for one request");
	return call_once(ctx,
			 &(struct cli_call){ "POST", "sandboxes", operands[0],
					     f->close ? "/egress/rules?open=close" : "/egress/rules",
					     buf_view(&body) },
			 NULL, e);
}

static int run_allow(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e)
{
	const struct allow_flags *f = flags;

	return run_rules(ctx, "allow", &f->change, &f->inject, n, operands, e);
}

static int run_deny(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e)
{
	return run_rules(ctx, "deny", flags, NULL, n, operands, e);
}

/* ---- set, reset ---- */

static int read_policy(const char *path, struct buf *out, struct err *e)
{
	int r = strcmp(path, "-") == 0 ? fd_slurp(AT_FDCWD, "/dev/stdin", out)
				       : fd_slurp(AT_FDCWD, path, out);

	return r < 0 ? err_sys(e, ERR_INVALID, r, "cannot read %.120s", path) : 0;
}

static int run_set(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(POLICY_MAX);

	if (read_policy(operands[1], &body, e) < 0)
		return -1;
	return policy(ctx, "PUT", flags, operands[0], buf_view(&body), NULL, e);
}

static int run_reset(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		     struct err *e)
{
	return policy(ctx, "DELETE", flags, operands[0], VIEW_NONE, NULL, e);
}

#define CHANGE .opts = CHANGE_OPTS, .n_opts = ELEMS(CHANGE_OPTS), .flags_size = sizeof(struct change_flags)
#define WHOLE  CHANGE, .more = SHOW_OPTS, .n_more = ELEMS(SHOW_OPTS)
#define TARGETS                                                                                              \
	"A target is a set (`pypi`, `npm`, `github`, `debian`, …), a host with or without a port\n"        \
	"(`example.org`, `*.example.org:443`), a network (`192.0.2.0/24:5432`), or a URL\n"                  \
	"(`https://example.org/v1`: that path and what is below it; `tls://example.org`: TLS alone;\n"       \
	"`tcp://example.org:5432`: any bytes). paddock(1) and docs/egress.md say more."

const struct cmd cmd_egress_show = {
	.name = "egress show",
	.operands = "SANDBOX|TENANT",
	.summary = "show what a sandbox or tenant may reach, and who said so",
	.opts = SHOW_OPTS,
	.n_opts = ELEMS(SHOW_OPTS),
	.flags_size = sizeof(struct change_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_show,
};

const struct cmd cmd_egress_allow = {
	.name = "egress allow",
	.operands = "SANDBOX TARGET…",
	.summary = "let a sandbox reach something more",
	.help = TARGETS,
	.opts = CHANGE_OPTS,
	.n_opts = ELEMS(CHANGE_OPTS),
	.more = ALLOW_OPTS,
	.n_more = ELEMS(ALLOW_OPTS),
	.flags_size = sizeof(struct allow_flags),
	.lead = OPTS_ANYWHERE,
	.min = 2,
	.max = SIZE_MAX,
	.client = true,
	.run = run_allow,
};

const struct cmd cmd_egress_deny = {
	.name = "egress deny",
	.operands = "SANDBOX TARGET…",
	.summary = "keep a sandbox from reaching something",
	.help = TARGETS,
	CHANGE,
	.lead = OPTS_ANYWHERE,
	.min = 2,
	.max = SIZE_MAX,
	.client = true,
	.run = run_deny,
};

const struct cmd cmd_egress_set = {
	.name = "egress set",
	.operands = "SANDBOX|TENANT FILE|-",
	.summary = "give a sandbox or tenant a policy of its own, from JSON",
	WHOLE,
	.lead = OPTS_ANYWHERE,
	.min = 2,
	.max = 2,
	.client = true,
	.run = run_set,
};

const struct cmd cmd_egress_reset = {
	.name = "egress reset",
	.operands = "SANDBOX|TENANT",
	.summary = "take a sandbox's own policy away: its image's or tenant's holds",
	WHOLE,
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.run = run_reset,
};

/* ---- token ---- */

struct token_flags {
	uint64_t ttl_ms;
};

static const struct opt TOKEN_OPTS[] = {
	{ "ttl", 0, OPT_MS, offsetof(struct token_flags, ttl_ms), "TIME", "how long it works" },
};

static int run_token(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(POLICY_MAX);
	const struct token_flags *f = flags;
	struct json *answer;
	struct json_out o;

	json_out_init(&o, &body);
	json_out_object(&o);
	json_out_key(&o, "allowed_hosts");
	json_out_array(&o);
	for (size_t i = 1; i < n; i++) {
		if (create_check_text(operands[i], "a host", e) < 0)
			return -1;
		json_out_str(&o, view_of(operands[i]));
	}
	json_out_end(&o, ']');
	if (f->ttl_ms)
		json_out_ku64(&o, "ttl_seconds", MAX((f->ttl_ms + 999) / 1000, 1u));
	json_out_end(&o, '}');
	if (body.bad)
		return err_set(e, ERR_TOO_LARGE, "too many hosts for one request");
	if (call_once(
		    ctx,
		    &(struct cli_call){ "POST", "sandboxes", operands[0], "/egress/token", buf_view(&body) },
		    &answer, e) < 0)
		return -1;
	return call_print(ctx, answer, "proxy", e);
}

const struct cmd cmd_egress_token = {
	.name = "egress token",
	.operands = "SANDBOX HOST…",
	.summary = "print a proxy's address for the sandbox that reaches these hosts alone",
	.opts = TOKEN_OPTS,
	.n_opts = ELEMS(TOKEN_OPTS),
	.flags_size = sizeof(struct token_flags),
	.lead = OPTS_ANYWHERE,
	.min = 2,
	.max = SIZE_MAX,
	.client = true,
	.json = true,
	.run = run_token,
};
