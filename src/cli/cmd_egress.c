/*
 * paddock egress: what a box may reach, and what it tried to reach.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cmd.h"
#include "create.h"
#include "fd.h"
#include "show.h"

#include "poison.h"

#define POLICY_MAX (1u << 20)
#define PAGE       256

struct change_flags {
	bool close;
};

static const struct opt CHANGE_OPTS[] = {
	{ "close", 0, OPT_FLAG, offsetof(struct change_flags, close), NULL,
	  "also end open connections that are not allowed any more" },
};

static int call(struct cmd_ctx *ctx, const char *method, const char *box, const char *rest, struct view body,
		struct json **ret, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	_cleanup_(buf_done) struct buf path = BUF_INIT(8192);
	struct session_call c = { .method = method, .body = body, .timeout_ms = SESSION_CALL_MS };

	buf_puts(&path, "/v1/sandboxes/");
	if (session_segment(&path, box, e) < 0)
		return -1;
	buf_puts(&path, rest);
	c.path = buf_view(&path);
	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	return session_call(&s, &c, ret, e);
}

/* ---- show ---- */

static int run_show(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_, char **operands,
		    struct err *e)
{
	struct json *answer;

	if (call(ctx, "GET", operands[0], "/egress", VIEW_NONE, &answer, e) < 0)
		return -1;
	if (!answer)
		return err_set(e, ERR_INTERNAL, "the daemon said nothing about it");
	return show_json(answer, e);
}

/* ---- allow, deny ---- */

static int run_rules(struct cmd_ctx *ctx, const char *action, const struct change_flags *f, size_t n, char **operands,
		     struct err *e)
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
	json_out_end(&o, '}');
	if (body.bad)
		return err_set(e, ERR_TOO_LARGE, "too many targets for one request");
	return call(ctx, "POST", operands[0], f->close ? "/egress/rules?open=close" : "/egress/rules", buf_view(&body), NULL,
		    e);
}

static int run_allow(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e)
{
	return run_rules(ctx, "allow", flags, n, operands, e);
}

static int run_deny(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e)
{
	return run_rules(ctx, "deny", flags, n, operands, e);
}

/* ---- set, reset ---- */

static int read_policy(const char *path, struct buf *out, struct err *e)
{
	int r = strcmp(path, "-") == 0 ? fd_slurp(AT_FDCWD, "/dev/stdin", out) : fd_slurp(AT_FDCWD, path, out);

	return r < 0 ? err_sys(e, ERR_INVALID, r, "cannot read %.120s", path) : 0;
}

static int run_set(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(POLICY_MAX);
	const struct change_flags *f = flags;

	if (read_policy(operands[1], &body, e) < 0)
		return -1;
	return call(ctx, "PUT", operands[0], f->close ? "/egress?open=close" : "/egress", buf_view(&body), NULL, e);
}

static int run_reset(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	const struct change_flags *f = flags;

	return call(ctx, "DELETE", operands[0], f->close ? "/egress?open=close" : "/egress", VIEW_NONE, NULL, e);
}

/* ---- log ---- */

struct log_flags {
	bool denied;
	uint64_t after;
};

static const struct opt LOG_OPTS[] = {
	{ "denied", 0, OPT_FLAG, offsetof(struct log_flags, denied), NULL, "only what was not let through" },
	{ "after", 0, OPT_COUNT, offsetof(struct log_flags, after), "ID", "only what came behind this one" },
};

static struct view text_of(const struct json *object, const char *key)
{
	const struct json *j = json_get(object, key);

	return j && (j->type == JSON_STRING || j->type == JSON_NUMBER) ? j->text : VIEW("-");
}

/* "GET example.org:443/path", as far as it is known. */
static struct view what(struct arena *a, const struct json *v)
{
	struct buf b = BUF_INIT(2048);
	struct view method = session_text(v, "method"), host = session_text(v, "host");
	struct view address = session_text(v, "address");

	if (method.n)
		buf_printf(&b, "%.*s ", VIEW_ARG(method));
	buf_add(&b, host.n ? host : address);
	buf_printf(&b, ":%.*s%.*s", VIEW_ARG(text_of(v, "port")), VIEW_ARG(session_text(v, "path")));
	struct view ret = arena_view(a, buf_view(&b));
	buf_done(&b);
	return ret;
}

static int run_log(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	static const char *const titles[] = { "ID", "AT", "VERDICT", "REASON", "PROTOCOL", "WHAT", "WOULD_ALLOW" };
	_cleanup_(show_table_done) struct show_table t;
	const struct log_flags *f = flags;
	struct json *answer;
	char rest[128];

	snprintf(rest, sizeof(rest), "/egress/log?limit=%d&after=%llu%s", PAGE, (unsigned long long)f->after,
		 f->denied ? "&verdict=deny" : "");
	show_table_init(&t, titles, ELEMS(titles));
	if (call(ctx, "GET", operands[0], rest, VIEW_NONE, &answer, e) < 0)
		return -1;
	const struct json *rows = answer ? json_get(answer, "verdicts") : NULL;
	if (!rows || rows->type != JSON_ARRAY)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no list of verdicts");
	for (size_t i = 0; i < rows->n; i++) {
		const struct json *v = &rows->items[i];
		struct view cells[] = {
			text_of(v, "id"),       text_of(v, "at"),  text_of(v, "verdict"),     text_of(v, "reason"),
			text_of(v, "protocol"), what(&ctx->arena, v), text_of(v, "would_allow"),
		};
		show_table_add(&t, cells);
	}
	return show_table_print(&t, e);
}

#define CHANGE .opts = CHANGE_OPTS, .n_opts = ELEMS(CHANGE_OPTS), .flags_size = sizeof(struct change_flags)
#define TARGETS                                                                                                \
	"A target is a set (`pypi`, `npm`, `github`, `debian`, …), a host with or without a port\n"            \
	"(`example.org`, `*.example.org:443`), a network (`192.0.2.0/24:5432`), or a URL\n"                    \
	"(`https://example.org/v1`: that path and what is below it)."

const struct cmd cmd_egress_show = {
	.name = "egress show",
	.operands = "BOX",
	.summary = "show what a box may reach, and who said so",
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.run = run_show,
};

const struct cmd cmd_egress_allow = {
	.name = "egress allow",
	.operands = "BOX TARGET…",
	.summary = "let a box reach something more",
	.help = TARGETS,
	CHANGE,
	.lead = OPTS_ANYWHERE,
	.min = 2,
	.max = SIZE_MAX,
	.client = true,
	.run = run_allow,
};

const struct cmd cmd_egress_deny = {
	.name = "egress deny",
	.operands = "BOX TARGET…",
	.summary = "keep a box from reaching something",
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
	.operands = "BOX FILE|-",
	.summary = "give a box a policy of its own, from JSON",
	CHANGE,
	.lead = OPTS_ANYWHERE,
	.min = 2,
	.max = 2,
	.client = true,
	.run = run_set,
};

const struct cmd cmd_egress_reset = {
	.name = "egress reset",
	.operands = "BOX",
	.summary = "take a box's own policy away: its image's or tenant's holds",
	CHANGE,
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.run = run_reset,
};

const struct cmd cmd_egress_log = {
	.name = "egress log",
	.operands = "BOX",
	.summary = "show what a box tried to reach, and what would allow it",
	.opts = LOG_OPTS,
	.n_opts = ELEMS(LOG_OPTS),
	.flags_size = sizeof(struct log_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.run = run_log,
};
