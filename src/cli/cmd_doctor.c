/*
 * paddock doctor: what this machine can give (paddockd says), and whether a
 * daemon answers. The exit code is about the machine: a daemon that is not
 * running is no illness. With --dialects it is about the daemon alone.
 */
#include <stdio.h>
#include <unistd.h>

#include "cmd.h"
#include "dialects.h"
#include "program.h"
#include "settings.h"
#include "show.h"

#include "poison.h"

#define CONFIG_MAX (1u << 20)

struct flags {
	struct settings_flags settings; /* first: settings_opts fill it */
	bool dialects;
};

/* {"daemon": {"ok", "detail", "waiting_transactions"}, "machine": …}: the last is printed by paddockd. */
static int print_json_head(bool ok, const char *detail, int waiting, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(4096);
	struct json_out o;

	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_key(&o, "daemon");
	json_out_object(&o);
	json_out_kbool(&o, "ok", ok);
	json_out_kz(&o, "detail", detail);
	json_out_key(&o, "waiting_transactions");
	if (waiting >= 0)
		json_out_u64(&o, (uint64_t)waiting);
	else
		json_out_null(&o);
	json_out_end(&o, '}');
	json_out_key(&o, "machine");
	return b.bad ? err_set(e, ERR_INTERNAL, "out of memory") : show_bytes(STDOUT_FILENO, buf_view(&b), e);
}

/* Whether it answers and can make sandboxes. */
static bool ask_daemon(struct cmd_ctx *ctx, char *detail, size_t size)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(64u << 10);
	_cleanup_(session_done) struct session s = SESSION_INIT;
	struct client_request rq = { .method = "GET", .path = VIEW("/readyz"), .timeout_ms = 5000 };
	struct err e = { 0 };
	struct response r;

	if (session_find(&s, &ctx->session, &ctx->arena, &e) < 0 || session_send(&s, &rq, &r, &e) < 0 ||
	    client_read_all(&s.client, &body, &e) < 0)
		snprintf(detail, size, "%s", e.msg);
	else
		snprintf(detail, size, "answers at http://%s", s.client.url.authority);
	return e.code == 0;
}

/* Transactions that wait for others that nobody sends, as far as this key sees them: -1: it cannot be asked.
 */
static int count_waiting(struct cmd_ctx *ctx)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	const struct session_call call = { .method = "GET",
					   .path = VIEW("/v1/transactions?state=broadcast&limit=500"),
					   .timeout_ms = 5000 };
	struct err e = { 0 };
	struct json *page;
	int n = 0;

	if (session_open(&s, &ctx->session, &ctx->arena, &e) < 0 || session_call(&s, &call, &page, &e) < 0)
		return -1;
	const struct json *list = json_get(page, "transactions");
	for (size_t i = 0; list && list->type == JSON_ARRAY && i < list->n; i++) {
		const struct json *waits = json_get(&list->items[i], "waits_for_nonce");
		n += waits && waits->type == JSON_NUMBER;
	}
	return n;
}

static int run(struct cmd_ctx *ctx, const void *given, size_t n _unused_, char **operands _unused_,
	       struct err *e)
{
	const struct flags *flags = given;
	char path[PROGRAM_PATH_MAX];
	char *const argv[] = { (char *)"paddockd", (char *)"doctor", ctx->json ? (char *)"json" : NULL,
			       NULL };
	_cleanup_(buf_done) struct buf text = BUF_INIT(CONFIG_MAX);
	struct config config;
	char daemon[320];
	bool answers;
	int code;

	if (flags->dialects)
		return dialects_show(ctx, e);
	if (settings_load(&ctx->arena, &flags->settings, &config, NULL, e) < 0)
		return -1;
	if (config_to_json(&config, &text) < 0)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (program_find("paddockd", path, e) < 0)
		return -1;
	answers = ask_daemon(ctx, daemon, sizeof(daemon));
	const int waiting = answers ? count_waiting(ctx) : -1;
	if (ctx->json && print_json_head(answers, daemon, waiting, e) < 0)
		return -1;
	code = program_run(path, argv, buf_view(&text), e);
	if (code >= 0 && ctx->json)
		return show_bytes(STDOUT_FILENO, VIEW("}\n"), e) < 0 ? -1 : code;
	if (code >= 0)
		printf("%-4s  %-20s %s\n", answers ? "ok" : "--", "daemon", daemon);
	if (code >= 0 && waiting > 0)
		printf("%-4s  %-20s %d of them wait for others that nobody sends: `paddock tx ls --state "
		       "broadcast`, then `paddock wallet abandon`\n",
		       "--", "transactions", waiting);
	return code;
}

static const struct opt opts[] = {
	{ "dialects", 0, OPT_FLAG, offsetof(struct flags, dialects), NULL,
	  "show instead which APIs the daemon serves at which address" },
};

const struct cmd cmd_doctor = {
	.name = "doctor",
	.operands = "",
	.summary = "show what walls this machine can give",
	.help = "Starts and ends a trial sandbox as the daemon would with this configuration, and\n"
		"prints one line for each part: ok, FAIL, or -- where a sandbox is made without it;\n"
		"the line says what is then missing. The exit code is 1 if a sandbox could not be\n"
		"isolated on this machine, or lacks what posture.require asks for. Run it as\n"
		"root: that is who makes the sandboxes. --dialects needs an admin's key instead, and\n"
		"lists each listener with its dialects, their paths and versions, and what is off.",
	.opts = opts,
	.n_opts = ELEMS(opts),
	.more = settings_opts,
	.n_more = SETTINGS_OPTS,
	.flags_size = sizeof(struct flags),
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.run = run,
};
