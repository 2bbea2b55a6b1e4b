/*
 * paddock-watch: paddock-window's connection to the daemon.
 *
 * Peers: paddock-window, which starts it and reads its lines (message.h), and the daemon's API. Runs as the
 * user. It finds the daemon and the key as `paddock` does and is the only one of the two to hold the key: the
 * window, which shows pages, gets a session of the dashboard. It follows the daemon's events, looks what
 * waits for approval, and tries again while the daemon is away. It decides nothing. It ends with its input.
 *
 * Input: a line "again" tries now, a line "sign-in" makes a new session.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "clock.h"
#include "confine.h"
#include "fd.h"
#include "feed.h"
#include "message.h"
#include "session.h"

#include "poison.h"

#define ARENA_MAX    (64u << 20)
#define CALL_MS      15000
#define RETRY_MS     1000
#define NO_KEY_MS    3000
#define LOOK_MS      5000
#define RENEW_MS     (5u * 60 * 1000)
#define SESSION_MS   (11u * 60 * 60 * 1000) /* the daemon ends sessions after twelve hours */
#define TOLD_AT_ONCE 3
#define PENDING_PATH "/v1/transactions?state=pending&limit=500"
#define EVENTS_PATH  "/v1/events?type=transaction.pending,transaction.decided,transaction.changed"

enum told { TOLD_NOTHING, TOLD_AWAY, TOLD_LOCKED, TOLD_HERE };

struct watch {
	struct session_flags flags;
	struct arena arena;   /* of one connection */
	struct arena scratch; /* of one call: a connection may last for days */
	struct session calls, stream;
	char origin[CONFINE_ORIGIN_MAX];
	char cookie[129]; /* of the session; "": none */
	uint64_t signed_in_ms, renew_ms;
	enum told told;
	char why[192]; /* of TOLD_AWAY and TOLD_LOCKED */
	struct feed feed;
	uint64_t pending;
	bool pending_told, look_again, ended;
};

/* ---- telling ---- */

static void tell(struct watch *w, const struct message *m)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(4 * MESSAGE_MAX);

	b.secret = true;
	message_put(&b, m);
	if (b.bad || fd_write_all(STDOUT_FILENO, buf_view(&b).p, buf_len(&b)) < 0)
		w->ended = true;
}

static void tell_away(struct watch *w, const struct err *e, bool local)
{
	if (w->told == TOLD_AWAY && strcmp(w->why, e->msg) == 0)
		return;
	w->told = TOLD_AWAY;
	snprintf(w->why, sizeof(w->why), "%s", e->msg);
	tell(w, &(struct message){ .type = MESSAGE_AWAY, .text = view_of(e->msg), .local = local });
}

static void tell_here(struct watch *w, enum told told, bool fresh, const char *why)
{
	if (told == TOLD_LOCKED && w->told == TOLD_LOCKED && strcmp(w->why, why) == 0)
		return;
	w->told = told;
	snprintf(w->why, sizeof(w->why), "%s", why);
	tell(w, &(struct message){ .type = MESSAGE_HERE,
				   .url = view_of(w->origin),
				   .cookie = view_of(w->cookie),
				   .ca = view_of(w->calls.client.ca ? w->calls.client.ca : ""),
				   .text = view_of(why),
				   .fresh = fresh });
}

/* ---- input ---- */

static int sign_in(struct watch *w, struct err *e);

static void command(struct watch *w, struct view line)
{
	struct err ignored = { 0 };

	if (view_is(line, "sign-in") && w->told == TOLD_HERE && sign_in(w, &ignored) == 0)
		tell_here(w, TOLD_HERE, true, "");
}

static void read_input(struct watch *w)
{
	char text[256];
	ssize_t n = read(STDIN_FILENO, text, sizeof(text));

	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
		w->ended = true;
		return;
	}
	for (struct view rest = { text, n > 0 ? (size_t)n : 0 }; rest.p && rest.n;)
		command(w, view_split(rest, '\n', &rest));
}

/* Until it is time, or there is a word from the window. */
static void pause_for(struct watch *w, int ms)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	if (!w->ended && poll(&in, 1, ms) > 0)
		read_input(w);
}

/* ---- the dashboard's session ---- */

/* As the dashboard's page does it: with its headers, and without the key's. */
static int call_page(struct watch *w, const char *method, struct view body, char *ret_cookie,
		     struct json **ret, struct err *e)
{
	_cleanup_(buf_done) struct buf headers = BUF_INIT(2048), answer = BUF_INIT(64u << 10);
	struct client_request rq = { .method = method,
				     .path = VIEW("/dashboard/session"),
				     .content_type = body.p ? "application/json" : NULL,
				     .body = body,
				     .timeout_ms = CALL_MS };
	const char *key = w->calls.client.key;
	struct response r;
	int result;

	headers.secret = true;
	buf_printf(&headers, "X-Paddock-Dashboard: 1\r\nOrigin: %s\r\n", w->origin);
	if (w->cookie[0] && !body.p)
		buf_printf(&headers, "Cookie: %s\r\n", w->cookie);
	rq.headers = buf_view(&headers);
	w->calls.client.key = NULL;
	result = session_send(&w->calls, &rq, &r, e);
	w->calls.client.key = key;
	if (result < 0 || client_read_all(&w->calls.client, &answer, e) < 0)
		return -1;
	if (ret_cookie)
		memcpy(ret_cookie, r.cookie, sizeof(r.cookie));
	arena_reset(&w->scratch);
	return json_parse(&w->scratch, buf_view(&answer), ret, e);
}

static int sign_in(struct watch *w, struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(2048);
	const struct json *seconds;
	struct json *answer = NULL;
	struct json_out o;
	uint64_t idle = 0;

	body.secret = true;
	json_out_init(&o, &body);
	json_out_object(&o);
	json_out_kz(&o, "key", w->calls.key);
	json_out_end(&o, '}');
	if (call_page(w, "POST", buf_view(&body), w->cookie, &answer, e) < 0)
		return -1;
	if (!w->cookie[0])
		return err_set(e, ERR_UNAVAILABLE, "%s has no dashboard", w->origin);
	seconds = json_get(answer, "session_seconds");
	if (!seconds || json_to_u64(seconds, &idle) < 0 || !idle)
		idle = 60;
	w->signed_in_ms = clock_mono_ms();
	w->renew_ms = MIN(idle * 500, (uint64_t)RENEW_MS);
	return 0;
}

/* A request keeps the session from ending for want of one. */
static bool is_signed_in(struct watch *w)
{
	const struct json *yes;
	struct json *answer = NULL;
	struct err ignored = { 0 };

	if (!w->cookie[0] || call_page(w, "GET", VIEW_NONE, NULL, &answer, &ignored) < 0)
		return false;
	yes = json_get(answer, "signed_in");
	return yes && yes->type == JSON_BOOL && yes->boolean;
}

/* ---- what waits for approval ---- */

static void tell_request(struct watch *w, const struct feed_request *r)
{
	tell(w, &(struct message){ .type = MESSAGE_REQUEST,
				   .id = view_of(r->id),
				   .agent = view_of(r->agent),
				   .chain = view_of(r->chain),
				   .text = view_of(r->summary) });
}

static void tell_new(struct watch *w, const struct feed_request *new, size_t n_new, size_t n)
{
	for (size_t i = 0; i < n_new && n_new <= TOLD_AT_ONCE; i++)
		tell_request(w, &new[i]);
	if (n_new > TOLD_AT_ONCE) {
		struct feed_request many = { 0 };

		snprintf(many.summary, sizeof(many.summary), "%zu requests wait for approval", n);
		tell_request(w, &many);
	}
}

/* An older daemon has none. One whose signer does not answer is asked again. */
static void look(struct watch *w)
{
	struct feed_request new[TOLD_AT_ONCE];
	struct session_call call = { "GET", VIEW(PENDING_PATH), .timeout_ms = CALL_MS };
	struct json *answer = NULL;
	struct err e = { 0 };
	size_t n_new = 0;
	int n = -1;

	arena_reset(&w->scratch);
	w->calls.arena = &w->scratch;
	if (session_call(&w->calls, &call, &answer, &e) == 0)
		n = feed_update(&w->feed, answer, new, ELEMS(new), &n_new, &e);
	w->calls.arena = &w->arena;
	w->look_again = n < 0 && e.code != ERR_NOT_FOUND;
	if (w->look_again)
		w->stream.client.wake_at_ms = MIN(w->stream.client.wake_at_ms, clock_mono_ms() + LOOK_MS);
	if (n < 0)
		n = w->pending_told ? (int)w->pending : 0;
	if (!w->pending_told || w->pending != (uint64_t)n)
		tell(w, &(struct message){ .type = MESSAGE_PENDING, .count = (uint64_t)n });
	w->pending_told = true;
	w->pending = (uint64_t)n;
	tell_new(w, new, n_new, (size_t)n);
}

static int on_wake(void *arg, struct err *e)
{
	struct watch *w = arg;
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	struct err ignored = { 0 };

	if (poll(&in, 1, 0) > 0)
		read_input(w);
	if (clock_mono_ms() >= w->stream.client.wake_at_ms) {
		w->stream.client.wake_at_ms = clock_mono_ms() + w->renew_ms;
		if (w->look_again)
			look(w);
		/* Who has signed out meant it. */
		if (is_signed_in(w) && clock_mono_ms() - w->signed_in_ms > SESSION_MS &&
		    sign_in(w, &ignored) == 0)
			tell_here(w, TOLD_HERE, false, "");
	}
	return w->ended ? err_set(e, ERR_CANCELLED, "the window was closed") : 0;
}

static int open_stream(struct watch *w, struct err *e)
{
	struct client_request rq = { .method = "GET",
				     .path = VIEW(EVENTS_PATH),
				     .accept = "text/event-stream",
				     .timeout_ms = CALL_MS };
	struct response r;
	int result;

	w->stream.client.cancel_fd = STDIN_FILENO;
	w->stream.client.on_wake = on_wake;
	w->stream.client.wake_arg = w;
	w->stream.client.wake_at_ms = clock_mono_ms() + w->renew_ms;
	result = session_send(&w->stream, &rq, &r, e);
	/* An older daemon does not know these events; what it has is of no use, but tells that it is there.
	 */
	if (result < 0 && (e->code == ERR_INVALID || e->code == ERR_BAD_REQUEST)) {
		rq.path = VIEW("/v1/events");
		result = session_send(&w->stream, &rq, &r, e);
	}
	return result;
}

/* Until the connection breaks: -1. */
static int follow(struct watch *w, struct err *e)
{
	_cleanup_(buf_done) struct buf lines = BUF_INIT(4 * FEED_LINE);
	struct view data;
	int r;

	while ((r = client_read(&w->stream.client, &data, e)) > 0) {
		if (buf_add(&lines, data) < 0)
			return err_set(e, ERR_TOO_LARGE, "the daemon's answer has a line that is too long");
		if (feed_changed(&lines))
			look(w);
		if (w->ended)
			return -1;
	}
	return r < 0 ? -1 : err_set(e, ERR_UNAVAILABLE, "%s ended the connection", w->origin);
}

/* ---- a connection ---- */

/* Browsers leave a default port out of `Host`, and the session is for the host as the browser names it. */
static int name_host(struct watch *w, struct session *s, struct err *e)
{
	struct url *u = &s->client.url;
	char text[sizeof(u->authority) + 16];
	const char *host;

	snprintf(text, sizeof(text), "http%s://%s", u->tls ? "s" : "", u->authority);
	if (confine_origin(view_of(text), w->origin, e) < 0)
		return -1;
	host = strstr(w->origin, "://") + 3;
	return view_to_str(view_of(host), u->authority, sizeof(u->authority)) < 0 ? -1 : 0;
}

/* Without a key the dashboard asks for one itself. */
static int serve_locked(struct watch *w, const char *why, struct err *e)
{
	struct json *answer = NULL;
	bool was_here = w->told == TOLD_LOCKED;

	w->cookie[0] = '\0';
	if (call_page(w, "GET", VIEW_NONE, NULL, &answer, e) < 0)
		return -1;
	tell_here(w, TOLD_LOCKED, !was_here, why);
	client_close(&w->calls.client);
	pause_for(w, NO_KEY_MS);
	return 0;
}

static int serve(struct watch *w, bool *ret_local, struct err *e)
{
	const char *named = getenv("PADDOCK_URL");
	bool valid;

	if (session_find(&w->calls, &w->flags, &w->arena, e) < 0 || name_host(w, &w->calls, e) < 0)
		return -1;
	*ret_local = w->calls.client.url.loopback && !w->flags.url && !(named && *named);
	session_done(&w->calls);
	if (session_open(&w->calls, &w->flags, &w->arena, e) < 0) {
		struct err why = *e;

		if (session_find(&w->calls, &w->flags, &w->arena, e) < 0 || name_host(w, &w->calls, e) < 0)
			return -1;
		return serve_locked(w, why.msg, e);
	}
	if (session_open(&w->stream, &w->flags, &w->arena, e) < 0 || name_host(w, &w->stream, e) < 0 ||
	    name_host(w, &w->calls, e) < 0)
		return -1;
	valid = is_signed_in(w);
	if (!valid && sign_in(w, e) < 0) {
		struct err why = *e;

		w->cookie[0] = '\0';
		return e->code == ERR_UNAUTHORIZED ? serve_locked(w, why.msg, e) : -1;
	}
	if (open_stream(w, e) < 0)
		return -1;
	tell_here(w, TOLD_HERE, !valid, "");
	look(w);
	return follow(w, e);
}

int main(int argc, char **argv)
{
	static struct watch w = { .calls = { .client = { .fd = -1, .cancel_fd = -1 } },
				  .stream = { .client = { .fd = -1, .cancel_fd = -1 } } };
	struct arena options = ARENA_INIT(1u << 20);
	const struct opt_table tables[] = { { session_opts, SESSION_OPTS, &w.flags } };
	struct err e = { 0 };
	char **operands;
	size_t n;

	/* It holds the key: other programs of the same user have no business in its memory. */
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return 1;
	if (opts_parse(&options, tables, ELEMS(tables), OPTS_ANYWHERE, (size_t)argc - 1, argv + 1, &operands,
		       &n, &e) < 0 ||
	    n > 0) {
		fprintf(stderr, "paddock-watch: %s\n", n ? "it takes no operands" : e.msg);
		return 2;
	}
	while (!w.ended) {
		bool local = false;

		arena_init(&w.arena, ARENA_MAX);
		arena_init(&w.scratch, ARENA_MAX);
		w.arena.secret = true;
		e = (struct err){ 0 };
		if (serve(&w, &local, &e) < 0 && !w.ended) {
			tell_away(&w, &e, local);
			pause_for(&w, RETRY_MS);
		}
		session_done(&w.calls);
		session_done(&w.stream);
		arena_done(&w.arena);
		arena_done(&w.scratch);
	}
	explicit_bzero(&w, sizeof(w));
	arena_done(&options);
	return 0;
}
