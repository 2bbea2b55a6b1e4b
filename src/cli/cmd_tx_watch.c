/*
 * paddock tx watch: requests of agents as they come, printed and, on a desktop, as notices.
 */
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "call.h"

#include "poison.h"

#define LINE_BYTES (1u << 20)
#define NOTIFY     "notify-send"
#define AGAIN_NS   500000000 /* between attempts to reach the daemon again */

struct watch_flags {
	bool notify, all;
	uint64_t count;
};

#define AT(member) offsetof(struct watch_flags, member)
static const struct opt WATCH_OPTS[] = {
	{ "notify", 0, OPT_FLAG, AT(notify), NULL, "also show each new request as a notice (" NOTIFY ")" },
	{ "all", 'a', OPT_FLAG, AT(all), NULL, "also what becomes of them: sent, confirmed, …" },
	{ "count", 'n', OPT_COUNT, AT(count), "N", "end after so many" },
};
#undef AT

/* Notices may have markup: nothing of what they say is any. */
static void put_plain(struct buf *out, struct view text)
{
	_cleanup_(buf_done) struct buf clean = BUF_INIT(LINE_BYTES);

	show_clean(&clean, text);
	for (struct view v = buf_view(&clean); v.n; v = view_skip(v, 1))
		if (v.p[0] == '<' || v.p[0] == '&' || v.p[0] == '>')
			buf_puts(out, v.p[0] == '<' ? "&lt;" : v.p[0] == '>' ? "&gt;" : "&amp;");
		else
			buf_putc(out, v.p[0]);
	buf_putc(out, '\0');
}

/* The program of the desktop speaks to its bus. */
static int notify(const struct json *data, struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(LINE_BYTES);
	char *argv[] = { (char *)NOTIFY,
			 (char *)"--app-name=Paddock",
			 (char *)"--urgency=critical",
			 (char *)"--",
			 (char *)"An agent asks for a signature",
			 NULL,
			 NULL };
	pid_t pid;
	int status;

	put_plain(&body, session_text(data, "summary"));
	if (body.bad)
		return err_set(e, ERR_INTERNAL, "out of memory");
	argv[5] = body.p;
	if (posix_spawnp(&pid, NOTIFY, NULL, NULL, argv, environ) != 0)
		return err_set(e, ERR_UNSUPPORTED,
			       NOTIFY " cannot be started: it is in Debian's package libnotify-bin");
	if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return err_set(e, ERR_UNSUPPORTED,
			       NOTIFY " cannot be started: it is in Debian's package libnotify-bin");
	return 0;
}

/* "2026-11-15T20:00:00Z  pending  ID  Agent dca wants to …" */
static int print_event(const struct json *v, bool json, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(LINE_BYTES);
	const struct json *data = json_get(v, "data");
	struct json_out o;

	if (json) {
		json_out_init(&o, &b);
		json_out_value(&o, v);
	} else {
		static const char *const members[] = { "state", "id", "summary" };
		show_clean(&b, session_text(v, "at"));
		for (size_t i = 0; i < ELEMS(members); i++) {
			buf_puts(&b, "  ");
			show_clean(&b, session_text(data, members[i]));
		}
	}
	buf_putc(&b, '\n');
	return b.bad ? err_set(e, ERR_INTERNAL, "out of memory") : show_bytes(STDOUT_FILENO, buf_view(&b), e);
}

struct watching {
	struct cmd_ctx *ctx;
	const struct watch_flags *flags;
	uint64_t seen;
	char last[24];   /* the id of the newest event; "": there was none */
	bool open, over; /* open: the stream has been there once */
	bool told;       /* that the daemon is away */
};

static int on_event(struct watching *w, struct view text, struct err *e)
{
	struct arena a = ARENA_INIT(LINE_BYTES * 16);
	struct json *v;
	int r = json_parse(&a, text, &v, e);

	r = r < 0 ? -1 : print_event(v, w->ctx->json, e);
	if (r >= 0 && w->flags->notify && view_is(session_text(v, "type"), "transaction.pending"))
		r = notify(json_get(v, "data"), e);
	w->over = w->flags->count && ++w->seen >= w->flags->count;
	arena_done(&a);
	return r;
}

static int on_lines(struct watching *w, struct buf *b, struct err *e)
{
	struct view all = buf_view(b);
	size_t used = 0;
	const char *end;

	while (!w->over && used < all.n && (end = memchr(all.p + used, '\n', all.n - used))) {
		struct view line = { all.p + used, (size_t)(end - all.p) - used };

		used += line.n + 1;
		if (view_starts(line, "id: ") &&
		    view_to_str(view_skip(line, 4), w->last, sizeof(w->last)) < 0)
			return err_set(e, ERR_INTERNAL, "the id of an event is too long");
		if (view_starts(line, "data: ") && on_event(w, view_skip(line, 6), e) < 0)
			return -1;
	}
	buf_consume(b, used);
	return 0;
}

/* What waits already; what comes meanwhile is in the stream, which was opened before. */
static int print_waiting(struct watching *w, struct err *e)
{
	struct json *answer;
	const struct json *list;

	if (call_once(w->ctx, &(struct cli_call){ "GET", "transactions?state=pending" }, &answer, e) < 0)
		return -1;
	list = answer ? json_get(answer, "transactions") : NULL;
	for (size_t i = list ? list->n : 0; i-- > 0;) {
		_cleanup_(buf_done) struct buf b = BUF_INIT(LINE_BYTES);
		const struct json *tx = &list->items[i];

		if (w->ctx->json)
			continue;
		show_clean(&b, session_text(tx, "created_at"));
		buf_puts(&b, "  pending  ");
		show_clean(&b, session_text(tx, "id"));
		buf_puts(&b, "  ");
		show_clean(&b, session_text(tx, "summary"));
		buf_putc(&b, '\n');
		if (show_bytes(STDOUT_FILENO, buf_view(&b), e) < 0)
			return -1;
	}
	return 0;
}

/* Until the connection ends, or for good (w->over): 0, or -1. */
static int follow(struct watching *w, struct arena *a, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	_cleanup_(buf_done) struct buf lines = BUF_INIT(LINE_BYTES * 2);
	struct client_request rq = { .method = "GET",
				     .accept = "text/event-stream",
				     .timeout_ms = SESSION_CALL_MS };
	struct response answer;
	char after[64];
	struct view data;
	int r = 1;

	rq.path =
		w->flags->all
			? VIEW("/v1/events?type=transaction.pending,transaction.decided,transaction.changed")
			: VIEW("/v1/events?type=transaction.pending,transaction.decided");
	if (w->last[0]) { /* the stream begins with what was missed */
		snprintf(after, sizeof(after), "Last-Event-ID: %s\r\n", w->last);
		rq.headers = view_of(after);
	}
	if (session_open(&s, &w->ctx->session, a, e) < 0 || session_send(&s, &rq, &answer, e) < 0 ||
	    (!w->last[0] && print_waiting(w, e) < 0))
		return -1;
	if (w->told)
		fprintf(stderr, "The daemon is back.\n");
	w->told = false;
	w->open = true;
	while (!w->over && (r = client_read(&s.client, &data, e)) > 0) {
		if (buf_add(&lines, data) < 0)
			return err_set(e, ERR_TOO_LARGE, "the daemon's answer has a line that is too long");
		if (on_lines(w, &lines, e) < 0)
			return -1;
	}
	return w->over ? 0 : r;
}

/* Whoever waits for requests wants to hear of those after the daemon's restart, too. */
static int run_watch(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
		     struct err *e)
{
	struct watching w = { .ctx = ctx, .flags = flags };

	for (;;) {
		struct arena a = ARENA_INIT(LINE_BYTES * 16);
		struct err bad = { 0 };
		int r = follow(&w, &a, &bad);

		arena_done(&a);
		if (w.over)
			return 0;
		if (r < 0 && (!w.open || bad.code != ERR_UNAVAILABLE)) {
			*e = bad;
			return -1;
		}
		if (!w.told)
			fprintf(stderr, "The daemon is away. Waiting until it is back.\n");
		w.told = true;
		nanosleep(&(struct timespec){ .tv_nsec = AGAIN_NS }, NULL);
	}
}

const struct cmd cmd_tx_watch = {
	.name = "tx watch",
	.operands = "",
	.summary = "print requests of agents as they come, until interrupted",
	.opts = WATCH_OPTS,
	.n_opts = ELEMS(WATCH_OPTS),
	.flags_size = sizeof(struct watch_flags),
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.run = run_watch,
};
