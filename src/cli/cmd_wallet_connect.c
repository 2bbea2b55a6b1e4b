/*
 * paddock wallet connect: wallets elsewhere, by WalletConnect. The QR code is drawn with half blocks, two
 * rows of it in a line, black on white whatever the terminal's colours are.
 */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "call.h"
#include "clock.h"
#include "create.h"

#include "poison.h"

#define QUIET    4 /* light modules around the code */
#define ROWS_MAX 200
#define LOOK_MS  1000

struct connect_flags {
	struct opt_list chains;
	const char *label;
	bool no_wait;
};

static const struct opt OPTS[] = {
	{ "chain", 'c', OPT_LIST, offsetof(struct connect_flags, chains), "CHAIN",
	  "ask for this chain, such as eip155:1; may be repeated (default: all of the configuration)" },
	{ "label", 'l', OPT_TEXT, offsetof(struct connect_flags, label), "TEXT",
	  "name of the wallets that come of it (default: the wallet's own)" },
	{ "no-wait", 0, OPT_FLAG, offsetof(struct connect_flags, no_wait), NULL,
	  "show the code and do not wait for the wallet" },
};

/* ---- the code ---- */

static bool is_dark(const struct json *rows, size_t x, size_t y)
{
	if (x < QUIET || y < QUIET || x - QUIET >= rows->n || y - QUIET >= rows->n)
		return false;
	const struct view row = rows->items[y - QUIET].text;
	return x - QUIET < row.n && row.p[x - QUIET] == '1';
}

static void draw(struct buf *out, const struct json *rows, bool colours)
{
	static const char *const blocks[] = { " ", "\u2580", "\u2584", "\u2588" };
	const size_t side = rows->n + 2 * QUIET;

	for (size_t y = 0; y < side; y += 2) {
		buf_puts(out, colours ? "\033[30;107m" : "");
		for (size_t x = 0; x < side; x++)
			buf_puts(out, blocks[is_dark(rows, x, y) + 2 * is_dark(rows, x, y + 1)]);
		buf_puts(out, colours ? "\033[0m\n" : "\n");
	}
}

static int print_code(const struct json *pairing, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT(1u << 20);
	const struct json *rows = json_get(pairing, "qr");

	if (!rows || rows->type != JSON_ARRAY || rows->n > ROWS_MAX)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no QR code");
	draw(&out, rows, isatty(STDOUT_FILENO));
	show_clean(&out, session_text(pairing, "uri"));
	buf_puts(&out, "\n");
	return show_bytes(STDOUT_FILENO, buf_view(&out), e);
}

/* ---- waiting ---- */

static const struct json *find(const struct json *answer, struct view id)
{
	const struct json *list = json_get(answer, "sessions");

	for (size_t i = 0; list && i < list->n; i++)
		if (view_eq(session_text(&list->items[i], "id"), id))
			return &list->items[i];
	return NULL;
}

static int print_session(const struct json *session, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT(1u << 20);
	const struct json *accounts = json_get(session, "accounts");

	show_clean(&out, session_text(session, "name"));
	buf_puts(&out, " is connected:\n");
	for (size_t i = 0; accounts && i < accounts->n; i++) {
		buf_puts(&out, "  ");
		show_clean(&out, accounts->items[i].text);
		buf_putc(&out, '\n');
	}
	return show_bytes(STDOUT_FILENO, buf_view(&out), e);
}

/* The daemon has no event for it; a person holds a phone meanwhile. */
static int wait_for(struct session *s, const struct json *pairing, struct err *e)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L - 1 };
	int64_t until = 0;

	if (clock_from_rfc3339(session_text(pairing, "expires_at"), &until) < 0)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no time");
	fprintf(stderr,
		"Scan it with your wallet, or paste the line into it. It is valid for five minutes.\n");
	while (clock_wall_ms() < until) {
		struct json *answer = NULL;
		if (call_with(s, &(struct cli_call){ "GET", "wallets/sessions" }, &answer, e) < 0)
			return -1;
		const struct json *session = find(answer, session_text(pairing, "id"));
		if (session)
			return print_session(session, e);
		nanosleep(&pause, NULL);
	}
	return err_set(e, ERR_TIMEOUT, "no wallet was connected in time");
}

static int put_body(const struct connect_flags *f, struct buf *body, struct err *e)
{
	struct json_out o;

	json_out_init(&o, body);
	json_out_object(&o);
	if (create_check_text(f->label, "--label", e) < 0)
		return -1;
	if (f->label)
		json_out_kz(&o, "label", f->label);
	if (f->chains.n) {
		json_out_key(&o, "chains");
		json_out_array(&o);
		for (size_t i = 0; i < f->chains.n; i++) {
			if (create_check_text(f->chains.items[i], "--chain", e) < 0)
				return -1;
			json_out_str(&o, view_of(f->chains.items[i]));
		}
		json_out_end(&o, ']');
	}
	json_out_end(&o, '}');
	return body->bad ? err_set(e, ERR_TOO_LARGE, "too many options for one request") : 0;
}

static int run_connect(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
		       struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	_cleanup_(buf_done) struct buf body = BUF_INIT(64u << 10);
	const struct connect_flags *f = flags;
	struct json *pairing = NULL;

	if (put_body(f, &body, e) < 0 || session_open(&s, &ctx->session, &ctx->arena, e) < 0 ||
	    call_with(&s, &(struct cli_call){ "POST", "wallets/connect", .body = buf_view(&body) }, &pairing,
		      e) < 0)
		return -1;
	if (ctx->json)
		return show_json(pairing, e);
	if (print_code(pairing, e) < 0)
		return -1;
	return f->no_wait ? 0 : wait_for(&s, pairing, e);
}

const struct cmd cmd_wallet_connect = {
	.name = "wallet connect",
	.operands = "",
	.summary = "connect a wallet elsewhere by WalletConnect, with a QR code",
	.help = "Its accounts become wallets, which spend nothing until `paddock agent allow` names them. "
		"What is\n"
		"approved here is confirmed in that wallet once more. With --json the answer has the URI.",
	.opts = OPTS,
	.n_opts = ELEMS(OPTS),
	.flags_size = sizeof(struct connect_flags),
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.run = run_connect,
};

/* ---- sessions ---- */

static const char *const TITLES[] = { "ID", "WALLET", "URL", "CREATED", "EXPIRES" };
static const char *const FIELDS[] = { "id", "name", "url", "created_at", "expires_at" };

static int run_sessions(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_,
			char **operands _unused_, struct err *e)
{
	return call_list(ctx, &(struct cli_call){ "GET", "wallets/sessions" }, "sessions", TITLES, FIELDS,
			 ELEMS(FIELDS), e);
}

const struct cmd cmd_wallet_sessions = {
	.name = "wallet sessions",
	.operands = "",
	.summary = "list the sessions with wallets elsewhere",
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.run = run_sessions,
};

static int run_end(struct cmd_ctx *ctx, const void *flags _unused_, size_t n, char **operands, struct err *e)
{
	return call_remove(ctx, "wallets/sessions", n, operands, e);
}

const struct cmd cmd_wallet_end = {
	.name = "wallet end",
	.operands = "ID…",
	.summary = "end sessions with wallets elsewhere",
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.min = 1,
	.max = SIZE_MAX,
	.run = run_end,
};
