/*
 * paddock tx: what agents want to spend, and the decisions of people. The card comes from the daemon as text
 * and as data in one answer, so that the digest that is approved belongs to what was shown.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "call.h"
#include "text.h"

#include "poison.h"

#define PAGE_BYTES  (64u << 20)
#define CARD_BYTES  (1u << 20)
#define EXPORT_PART 10000 /* lines of CSV that the daemon gives at once */

/* ---- filters ---- */

struct filter_flags {
	const char *agent, *state, *chain, *asset, *format;
	bool pending;
};

#define AT(member) offsetof(struct filter_flags, member)
static const struct opt FILTER_OPTS[] = {
	{ "agent", 'a', OPT_TEXT, AT(agent), "AGENT", "only those of this agent" },
	{ "state", 's', OPT_TEXT, AT(state), "STATE", "only those in this state, such as pending" },
	{ "chain", 0, OPT_TEXT, AT(chain), "CHAIN", "only those on this chain, such as eip155:1" },
	{ "asset", 0, OPT_TEXT, AT(asset), "ADDRESS", "only those that spend this token, or native" },
	{ "pending", 'p', OPT_FLAG, AT(pending), NULL, "only those that wait for a decision" },
};
static const struct opt EXPORT_OPTS[] = {
	{ "format", 0, OPT_TEXT, AT(format), "FORMAT", "csv or json (default: csv)" },
};
#undef AT

static void add_filter(struct buf *path, const char *name, const char *value)
{
	if (!value)
		return;
	buf_printf(path, "&%s=", name);
	text_percent_all(path, view_of(value));
}

static void put_query(struct buf *path, const struct filter_flags *f, unsigned limit)
{
	buf_printf(path, "/v1/transactions?limit=%u", limit);
	add_filter(path, "agent", f->agent);
	add_filter(path, "state", f->pending ? "pending" : f->state);
	add_filter(path, "chain", f->chain);
	add_filter(path, "asset", f->asset);
}

/* ---- list ---- */

static const char *const TITLES[] = { "ID", "STATE", "AGENT", "CHAIN", "CREATED", "SUMMARY" };
static const char *const FIELDS[] = { "id", "state", "agent_name", "chain", "created_at", "summary" };

static int get_page(struct session *s, const struct filter_flags *f, struct view after, unsigned limit,
		    struct json **ret, struct err *e)
{
	_cleanup_(buf_done) struct buf path = BUF_INIT(8192);
	struct session_call call = { .method = "GET", .timeout_ms = SESSION_CALL_MS };

	put_query(&path, f, limit);
	if (after.n) {
		buf_puts(&path, "&after=");
		text_percent_all(&path, after);
	}
	if (path.bad)
		return err_set(e, ERR_INVALID, "the filters are too long");
	call.path = buf_view(&path);
	if (session_call(s, &call, ret, e) < 0)
		return -1;
	const struct json *list = *ret ? json_get(*ret, "transactions") : NULL;
	return list && list->type == JSON_ARRAY
		       ? 0
		       : err_set(e, ERR_INTERNAL, "the daemon's answer has no list of transactions");
}

static int run_ls(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
		  struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	struct json *answer;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0 ||
	    get_page(&s, flags, VIEW_NONE, 100, &answer, e) < 0)
		return -1;
	if (ctx->json)
		return show_json(json_get(answer, "transactions"), e);
	return show_list(answer, "transactions", TITLES, FIELDS, ELEMS(FIELDS), e);
}

/* ---- export ---- */

/* All but the first line, which is the same for each part. */
static int print_rest(struct client *c, struct err *e)
{
	bool begun = false;
	struct view data;
	int r;

	while ((r = client_read(c, &data, e)) > 0) {
		const char *end = begun ? data.p : memchr(data.p, '\n', data.n);
		if (!end)
			continue;
		data = view_skip(data, begun ? 0 : (size_t)(end - data.p) + 1);
		begun = true;
		if (show_bytes(STDOUT_FILENO, data, e) < 0)
			return -1;
	}
	return r;
}

/* Part after part. */
static int export_csv(struct session *s, const struct filter_flags *f, struct err *e)
{
	char after[sizeof(((struct response *)NULL)->next)] = "";

	do {
		_cleanup_(buf_done) struct buf path = BUF_INIT(8192);
		struct client_request rq = { .method = "GET", .timeout_ms = SESSION_CALL_MS };
		struct response answer;
		const bool first = !after[0];

		put_query(&path, f, EXPORT_PART);
		buf_puts(&path, "&format=csv");
		add_filter(&path, "after", first ? NULL : after);
		if (path.bad)
			return err_set(e, ERR_INVALID, "the filters are too long");
		rq.path = buf_view(&path);
		if (session_send(s, &rq, &answer, e) < 0)
			return -1;
		memcpy(after, answer.next, sizeof(after));
		if ((first ? client_read_to_fd(&s->client, STDOUT_FILENO, e) : print_rest(&s->client, e)) < 0)
			return -1;
	} while (after[0]);
	return 0;
}

static int print_rows(const struct json *list, bool *first, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(PAGE_BYTES);

	for (size_t i = 0; i < list->n; i++) {
		struct json_out o;
		json_out_init(&o, &b);
		buf_puts(&b, *first ? "\n" : ",\n");
		json_out_value(&o, &list->items[i]);
		*first = false;
	}
	return b.bad ? err_set(e, ERR_TOO_LARGE, "a page of transactions is too large")
		     : show_bytes(STDOUT_FILENO, buf_view(&b), e);
}

/* Page after page, each in memory of its own. */
static int export_json(struct session *s, const struct filter_flags *f, struct err *e)
{
	struct arena page = ARENA_INIT(PAGE_BYTES);
	char after[64] = "";
	bool first = true;
	struct json *answer;
	int r;

	s->arena = &page;
	r = show_bytes(STDOUT_FILENO, VIEW("["), e);
	do {
		arena_reset(&page);
		r = r < 0 ? r : get_page(s, f, view_of(after), 500, &answer, e);
		if (r < 0)
			break;
		r = print_rows(json_get(answer, "transactions"), &first, e);
		after[0] = '\0';
		(void)!view_to_str(session_text(answer, "next"), after, sizeof(after));
	} while (r >= 0 && after[0]);
	arena_done(&page);
	return r < 0 ? r : show_bytes(STDOUT_FILENO, VIEW("\n]\n"), e);
}

static int run_export(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
		      struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	const struct filter_flags *f = flags;

	if (f->format && strcmp(f->format, "csv") != 0 && strcmp(f->format, "json") != 0)
		return err_set(e, ERR_INVALID, "--format is csv or json");
	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	return f->format && strcmp(f->format, "json") == 0 ? export_json(&s, f, e) : export_csv(&s, f, e);
}

/* ---- show ---- */

/* The card has lines of its own; nothing else in it may move the cursor. */
static int print_card(int fd, const struct json *tx, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(2 * CARD_BYTES);
	struct view rest = session_text(json_get(tx, "card"), "text");

	if (!rest.n)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no card");
	while (rest.p && rest.n) {
		show_clean(&b, view_split(rest, '\n', &rest));
		buf_putc(&b, '\n');
	}
	return b.bad ? err_set(e, ERR_TOO_LARGE, "the card is too large") : show_bytes(fd, buf_view(&b), e);
}

static int get_one(struct session *s, const char *id, struct json **ret, struct err *e)
{
	if (call_with(s, &(struct cli_call){ "GET", "transactions", id }, ret, e) < 0)
		return -1;
	return *ret ? 0 : err_set(e, ERR_INTERNAL, "the daemon said nothing about it");
}

static int run_show(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_, char **operands,
		    struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	struct json *tx;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0 || get_one(&s, operands[0], &tx, e) < 0)
		return -1;
	return ctx->json ? show_json(tx, e) : print_card(STDOUT_FILENO, tx, e);
}

/* ---- decisions ---- */

static int print_state(struct cmd_ctx *ctx, const struct json *tx, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(CARD_BYTES);

	if (ctx->json)
		return show_json(tx, e);
	show_clean(&b, session_text(tx, "id"));
	buf_puts(&b, ": ");
	show_clean(&b, session_text(tx, "state"));
	if (session_text(tx, "hash").n) {
		buf_puts(&b, ", ");
		show_clean(&b, session_text(tx, "hash"));
	}
	buf_putc(&b, '\n');
	return show_bytes(STDOUT_FILENO, buf_view(&b), e);
}

/* On a terminal only: the answer of a pipe was not given by somebody who has read the card. */
static int ask(const struct json *tx, struct err *e)
{
	const struct view confirm = session_text(json_get(tx, "card"), "confirm");
	const struct view hint = session_text(json_get(tx, "card"), "confirm_hint");
	char answer[16] = "";

	if (!isatty(STDIN_FILENO))
		return err_set(e, ERR_INVALID,
			       "look at it with `paddock tx show`, and name its digest with --digest");
	if (!view_is(session_text(tx, "state"), "pending"))
		return err_set(e, ERR_STATE, "it is %.*s already",
			       VIEW_ARG(view_head(session_text(tx, "state"), 32)));
	if (confirm.n)
		fprintf(stderr, "\nThis is dangerous. To approve it: %.*s ", VIEW_ARG(hint));
	else
		fputs("\nApprove it? [y/N] ", stderr);
	if (!fgets(answer, sizeof(answer), stdin))
		answer[0] = '\0';
	answer[strcspn(answer, "\r\n")] = '\0';
	const bool yes = confirm.n ? view_eq_nocase(confirm, view_of(answer))
				   : strcmp(answer, "y") == 0 || strcmp(answer, "Y") == 0 ||
					     strcasecmp(answer, "yes") == 0;
	return yes ? 0 : err_set(e, ERR_CANCELLED, "it was not approved, and still waits");
}

static int post(struct session *s, const char *id, const char *verb, const char *key, struct view value,
		struct json **ret, struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(8192);
	struct json_out o;

	json_out_init(&o, &body);
	json_out_object(&o);
	if (value.n)
		json_out_kstr(&o, key, value);
	json_out_end(&o, '}');
	if (body.bad)
		return err_set(e, ERR_TOO_LARGE, "the note is too long");
	return call_with(s, &(struct cli_call){ "POST", "transactions", id, verb, buf_view(&body) }, ret, e);
}

struct approve_flags {
	const char *digest;
};
static const struct opt APPROVE_OPTS[] = {
	{ "digest", 0, OPT_TEXT, offsetof(struct approve_flags, digest), "DIGEST",
	  "approve without a question what has this digest, as `tx show` printed it" },
};

static int run_approve(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		       struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	const struct approve_flags *f = flags;
	struct view digest = f->digest ? view_of(f->digest) : VIEW_NONE;
	struct json *tx;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	if (!digest.p) {
		if (get_one(&s, operands[0], &tx, e) < 0 || print_card(STDERR_FILENO, tx, e) < 0 ||
		    ask(tx, e) < 0)
			return -1;
		digest = session_text(tx, "digest");
	}
	if (post(&s, operands[0], "/approve", "digest", digest, &tx, e) < 0)
		return -1;
	return print_state(ctx, tx, e);
}

struct note_flags {
	const char *note;
};
static const struct opt NOTE_OPTS[] = {
	{ "note", 'm', OPT_TEXT, offsetof(struct note_flags, note), "TEXT", "why; kept in the audit log" },
};

/* A revocation is a new request, which somebody must approve in turn. */
static int tell_how(const struct cmd_ctx *ctx, const char *verb, const struct json *tx, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(CARD_BYTES);

	if (ctx->json || strcmp(verb, "/revoke") != 0 || !view_is(session_text(tx, "state"), "pending"))
		return 0;
	buf_puts(&b, "Approve it with: paddock tx approve ");
	show_clean(&b, session_text(tx, "id"));
	buf_putc(&b, '\n');
	return show_bytes(STDOUT_FILENO, buf_view(&b), e);
}

static int decide(struct cmd_ctx *ctx, const char *verb, const struct note_flags *f, size_t n,
		  char **operands, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	int code = 0;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct err one = { 0 };
		struct json *tx;

		if (post(&s, operands[i], verb, "note", f->note ? view_of(f->note) : VIEW_NONE, &tx, &one) >=
		    0) {
			if (print_state(ctx, tx, e) < 0 || tell_how(ctx, verb, tx, e) < 0)
				return -1;
			continue;
		}
		call_complain(operands[i], &one);
		code = CMD_FAILED;
	}
	return code;
}

#define DECIDE(verb, word, text)                                                                             \
	static int run_##verb(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands,             \
			      struct err *e)                                                                 \
	{                                                                                                    \
		return decide(ctx, "/" word, flags, n, operands, e);                                         \
	}                                                                                                    \
	const struct cmd cmd_tx_##verb = {                                                                   \
		.name = "tx " word,                                                                          \
		.operands = "TRANSACTION…",                                                                  \
		.summary = text,                                                                             \
		.opts = NOTE_OPTS,                                                                           \
		.n_opts = ELEMS(NOTE_OPTS),                                                                  \
		.flags_size = sizeof(struct note_flags),                                                     \
		.lead = OPTS_ANYWHERE,                                                                       \
		.min = 1,                                                                                    \
		.max = SIZE_MAX,                                                                             \
		.client = true,                                                                              \
		.json = true,                                                                                \
		.run = run_##verb,                                                                           \
	}

DECIDE(reject, "reject", "reject transactions of agents");
DECIDE(cancel, "cancel", "withdraw transactions, or replace those that were sent by one that sends nothing");
DECIDE(speed_up, "speed-up", "send transactions again with higher fees");
DECIDE(revoke, "revoke", "ask for the end of the allowances that transactions gave");

/* ---- the kill switch ---- */

struct pause_flags {
	bool cancel;
};
static const struct opt PAUSE_OPTS[] = {
	{ "cancel-pending", 0, OPT_FLAG, offsetof(struct pause_flags, cancel), NULL,
	  "also cancel what waits for a decision or a signature" },
};

static int run_pause(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
		     struct err *e)
{
	const struct pause_flags *f = flags;
	const struct view body =
		f->cancel ? VIEW("{\"paused\":true,\"cancel_pending\":true}") : VIEW("{\"paused\":true}");
	struct json *answer;

	if (call_once(ctx, &(struct cli_call){ "PUT", "signer", .body = body }, &answer, e) < 0)
		return -1;
	if (ctx->json)
		return show_json(answer, e);
	return show_bytes(STDOUT_FILENO,
			  VIEW("Nothing is signed any more. The owner ends this on the machine itself: "
			       "paddock wallet resume\n"),
			  e);
}

/* ---- the commands ---- */

const struct cmd cmd_tx_ls = {
	.name = "tx ls",
	.operands = "",
	.summary = "list what agents want to spend, the newest first",
	.opts = FILTER_OPTS,
	.n_opts = ELEMS(FILTER_OPTS),
	.flags_size = sizeof(struct filter_flags),
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.run = run_ls,
};

const struct cmd cmd_tx_show = {
	.name = "tx show",
	.operands = "TRANSACTION",
	.summary = "show a transaction: effects, risks, simulation, limits, checks",
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_show,
};

const struct cmd cmd_tx_approve = {
	.name = "tx approve",
	.operands = "TRANSACTION",
	.summary = "show a transaction, ask, and approve it",
	.help = "A dangerous one is approved by typing the digits of the address that the question names.\n"
		"Without a terminal, --digest must name what is approved.\n",
	.opts = APPROVE_OPTS,
	.n_opts = ELEMS(APPROVE_OPTS),
	.flags_size = sizeof(struct approve_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_approve,
};

const struct cmd cmd_tx_export = {
	.name = "tx export",
	.operands = "",
	.summary = "print the history as CSV or JSON",
	.opts = EXPORT_OPTS,
	.n_opts = ELEMS(EXPORT_OPTS),
	.more = FILTER_OPTS,
	.n_more = ELEMS(FILTER_OPTS),
	.flags_size = sizeof(struct filter_flags),
	.lead = OPTS_ANYWHERE,
	.client = true,
	.run = run_export,
};

const struct cmd cmd_tx_pause = {
	.name = "tx pause",
	.operands = "",
	.summary = "the kill switch: sign nothing more, for any agent",
	.opts = PAUSE_OPTS,
	.n_opts = ELEMS(PAUSE_OPTS),
	.flags_size = sizeof(struct pause_flags),
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.run = run_pause,
};
