/*
 * One stream of HTTP/2 through the gate: a request that is judged, gets its secrets and
 * goes on, and an answer that is masked. See intercept_h2.h.
 *
 * It lives as long as the client's stream. The server's is made when the secrets are
 * there, and dropped when the client's has gone or when we answer ourselves.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "intercept_h2.h"
#include "wire_gen.h"
#include "poison.h"

#define HTTPS VIEW("https")

/* ---- life ---- */

struct h2_stream *h2_stream_new(struct intercept_h2 *h, int32_t id)
{
	struct h2_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->h = h;
	s->client_id = id;
	h2_head_init(&s->head, INJECT_HEAD);
	h2_head_init(&s->up_tail, INJECT_HEAD);
	h2_head_init(&s->answer, INJECT_HEAD);
	s->raw = (struct buf){ .max = INJECT_BODY + H2_WINDOW, .secret = true };
	s->filled = (struct buf){ .max = INJECT_OUT, .secret = true };
	s->held = (struct buf){ .max = INJECT_BODY, .secret = true };
	s->down = (struct buf){ .max = INJECT_BODY + H2_WINDOW, .secret = true };
	list_append(&h->streams, &s->link);
	return s;
}

void h2_stream_free(struct h2_stream *s)
{
	list_del(&s->link);
	h2_head_done(&s->head);
	h2_head_done(&s->up_tail);
	h2_head_done(&s->answer);
	inject_done(&s->inject);
	buf_done(&s->raw);
	buf_done(&s->filled);
	buf_done(&s->held);
	buf_done(&s->down);
	free(s);
}

struct h2_stream *h2_stream_find(struct intercept_h2 *h, int32_t client_id)
{
	LIST_EACH (it, &h->streams)
		if (CONTAINER(it, struct h2_stream, link)->client_id == client_id)
			return CONTAINER(it, struct h2_stream, link);
	return NULL;
}

/* ---- windows ---- */

/* What is not held any more goes back to the window that it came through. */
static void give_back(nghttp2_session *session, int32_t id, size_t *owed, size_t held)
{
	if (!session || *owed <= held)
		return;
	if (id)
		(void)!nghttp2_session_consume(session, id, *owed - held);
	else
		(void)!nghttp2_session_consume_connection(session, *owed - held);
	*owed = held;
}

static void give_back_up(struct h2_stream *s, size_t held)
{
	give_back(s->h->client.session, s->client_id, &s->owed_up, held);
}

static void give_back_down(struct h2_stream *s, size_t held)
{
	give_back(s->h->server.session, s->server_id, &s->owed_down, held);
}

static void release(struct h2_stream *s)
{
	s->h->collected -= s->reserved;
	conn_collected(s->h->ic->conn, s->reserved);
	s->reserved = 0;
}

/* ---- the ends ---- */

static void drop_server(struct h2_stream *s, uint32_t code)
{
	nghttp2_session *session = s->h->server.session;

	if (session && s->server_id) {
		(void)nghttp2_session_set_stream_user_data(session, s->server_id, NULL);
		(void)!nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, s->server_id, code);
	}
	s->server_id = 0;
	give_back_down(s, 0);
}

static void reset_client(struct h2_stream *s, uint32_t code)
{
	(void)!nghttp2_submit_rst_stream(s->h->client.session, NGHTTP2_FLAG_NONE, s->client_id, code);
}

void h2_stream_client_closed(struct h2_stream *s, uint32_t code)
{
	give_back(s->h->client.session, 0, &s->owed_up, 0);
	drop_server(s, code == NGHTTP2_NO_ERROR ? NGHTTP2_CANCEL : code);
	release(s);
	list_del(&s->link);
	list_append(&s->h->gone, &s->link);
}

/* The answer is through: where nobody reads the rest of the request any more, the client is told. */
void h2_stream_client_sent_end(struct h2_stream *s)
{
	s->sent_end = true;
	if (!s->server_id && !s->up_end)
		reset_client(s, NGHTTP2_NO_ERROR);
}

void h2_stream_server_closed(struct h2_stream *s, uint32_t code)
{
	bool refused = code == NGHTTP2_REFUSED_STREAM || (s->h->leaving && !s->sent_head);

	s->server_id = 0;
	if (!s->down_end)
		reset_client(s, refused                    ? NGHTTP2_REFUSED_STREAM
				: code == NGHTTP2_NO_ERROR ? NGHTTP2_CANCEL
							   : code);
	else if (s->sent_end && !s->up_end)
		reset_client(s, NGHTTP2_NO_ERROR);
}

/* ---- fields for libnghttp2, which copies them ---- */

static size_t fields_of(const struct h2_head *h, nghttp2_nv nv[H2_HEAD_FIELDS])
{
	for (size_t i = 0; i < h->n; i++) {
		struct http_header f = h2_head_get(h, i);
		nv[i] = (nghttp2_nv){ (uint8_t *)(uintptr_t)f.name.p, (uint8_t *)(uintptr_t)f.value.p,
				      f.name.n, f.value.n,
				      h->fields[i].hidden ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE };
	}
	return h->n;
}

/* At the end of a body: trailers, if there are any. */
static int submit_tail(nghttp2_session *session, int32_t id, const struct h2_head *in, const struct inject *j,
		       const struct mask *m, uint32_t *flags)
{
	nghttp2_nv nv[H2_HEAD_FIELDS];
	struct h2_head out;

	h2_head_init(&out, H2_OUT_HEAD);
	int r = h2_trailers_write(in, j, m, &out);
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (r == 0 && out.n) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		r = nghttp2_submit_trailer(session, id, nv, fields_of(&out, nv));
	}
	h2_head_done(&out);
	return r == 0 ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

/* ---- answers, to the client ---- */

/*
 * The end of an answer of our own waits a while for the end of the request, which is thrown away: what comes
 * with an early end is a reset, and there are clients that it leaves waiting for their own writes.
 */
static bool may_end(const struct h2_stream *s)
{
	return s->down_end && (s->step != H2_OURS || s->up_end || s->tired);
}

static void tire(struct h2_stream *s)
{
	s->tired = true;
	(void)!nghttp2_session_resume_data(s->h->client.session, s->client_id);
}

static void discard(struct h2_stream *s, size_t n)
{
	buf_clear(&s->raw);
	give_back_up(s, 0);
	s->discarded += n;
	s->heard_ms = loop_now(s->h->ic->all->loop);
	if (s->discarded > H2_DISCARD && !s->tired)
		tire(s);
}

bool h2_stream_tidy(struct h2_stream *s, uint64_t now_ms)
{
	if (s->step != H2_OURS || s->up_end || s->tired)
		return false;
	if (now_ms - s->heard_ms < H2_TIDY_MS)
		return true;
	tire(s);
	return false;
}

static ssize_t read_down(nghttp2_session *session, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
			 nghttp2_data_source *source, void *arg)
{
	struct h2_stream *s = nghttp2_session_get_stream_user_data(session, id);

	(void)source;
	(void)arg;
	if (!s)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (!buf_len(&s->down) && !may_end(s))
		return NGHTTP2_ERR_DEFERRED;
	n = MIN(n, buf_len(&s->down));
	if (n)
		memcpy(p, buf_view(&s->down).p, n);
	buf_consume(&s->down, n);
	give_back_down(s, buf_len(&s->down));
	if (buf_len(&s->down) || !may_end(s))
		return (ssize_t)n;
	int r = submit_tail(session, id, &s->answer, NULL, &s->h->ic->mask, flags);
	return r < 0 ? r : (ssize_t)n;
}

/* An answer of our own; when another has begun, only a cut tells the truth. */
static void answer(struct h2_stream *s, int status, const char *text)
{
	nghttp2_data_provider body = { .read_callback = read_down };
	nghttp2_nv nv[H2_HEAD_FIELDS];
	char digits[2][16];
	struct h2_head out;

	drop_server(s, NGHTTP2_CANCEL);
	release(s);
	buf_done(&s->filled);
	inject_done(&s->inject);
	discard(s, 0);
	s->step = H2_OURS;
	if (s->answered) {
		reset_client(s, NGHTTP2_INTERNAL_ERROR);
		return;
	}
	s->answered = s->down_end = true;
	if (!s->up_end)
		intercept_h2_tidy(s->h);
	h2_head_done(&s->answer);
	buf_puts(&s->down, text);
	buf_puts(&s->down, "\n");
	snprintf(digits[0], sizeof(digits[0]), "%d", status);
	snprintf(digits[1], sizeof(digits[1]), "%zu", buf_len(&s->down));
	h2_head_init(&out, H2_OUT_HEAD);
	h2_head_add(&out, VIEW(":status"), view_of(digits[0]), false);
	h2_head_add(&out, VIEW("content-type"), VIEW("text/plain"), false);
	h2_head_add(&out, VIEW("content-length"), view_of(digits[1]), false);
	if (out.bad || s->down.bad ||
	    nghttp2_submit_response(s->h->client.session, s->client_id, nv, fields_of(&out, nv), &body) != 0)
		reset_client(s, NGHTTP2_INTERNAL_ERROR);
	h2_head_done(&out);
}

static void refuse(struct h2_stream *s, int reason, int status, const char *text)
{
	conn_deny(s->h->ic->conn, reason, s->h->request.method, s->h->request.path);
	answer(s, status, text);
}

/* Later than its head: the head is read again for the verdict. */
static void refuse_secret(struct h2_stream *s)
{
	char text[sizeof(s->inject.trouble)];

	memcpy(text, s->inject.trouble, sizeof(text));
	(void)!h2_request_parse(&s->head, HTTPS, &s->h->request);
	refuse(s, WIRE_GATE_REASON_SECRET, 403, text);
}

void h2_stream_server_lost(struct h2_stream *s)
{
	s->server_id = 0;
	s->owed_down = 0;
	if (s->down_end)
		return;
	answer(s, 502, INTERCEPT_CLOSED);
}

void h2_stream_answer(struct h2_stream *s, bool end)
{
	nghttp2_session *client = s->h->client.session;
	nghttp2_data_provider body = { .read_callback = read_down };
	nghttp2_nv nv[H2_HEAD_FIELDS];
	struct h2_answer a;
	struct h2_head out;
	int r;

	if (s->answered) /* trailers: they go when the body is through */
		return;
	h2_head_init(&out, H2_OUT_HEAD);
	if (h2_answer_write(&s->answer, &s->h->ic->mask, &out, &a) < 0) {
		answer(s, 502, INTERCEPT_IMPROPER);
	} else if (a.coded && s->h->ic->mask.words && a.status >= 200) {
		answer(s, 502, INTERCEPT_CODED);
	} else {
		size_t n = fields_of(&out, nv);
		s->answered = a.status >= 200;
		s->down_end = s->answered && end;
		r = s->answered ? nghttp2_submit_response(client, s->client_id, nv, n, end ? NULL : &body)
				: nghttp2_submit_headers(client, NGHTTP2_FLAG_NONE, s->client_id, NULL, nv, n,
							 NULL);
		if (r < 0)
			reset_client(s, NGHTTP2_INTERNAL_ERROR);
		h2_head_done(&s->answer);
	}
	h2_head_done(&out);
}

void h2_stream_down(struct h2_stream *s, struct view data)
{
	s->owed_down += data.n;
	if (!s->answered || mask_through(&s->h->ic->mask, &s->held, data, &s->down) < 0) {
		answer(s, 502, INTERCEPT_IMPROPER);
		return;
	}
	/* What is held back may be all that the window lets through. */
	give_back_down(s, buf_len(&s->down));
	(void)!nghttp2_session_resume_data(s->h->client.session, s->client_id);
}

void h2_stream_down_end(struct h2_stream *s)
{
	if (!s->answered || s->down_end ||
	    !s->server_id) /* an end of nothing; or it is our answer that goes */
		return;
	(void)buf_add(&s->down, buf_view(&s->held));
	buf_done(&s->held);
	s->down_end = true;
	(void)!nghttp2_session_resume_data(s->h->client.session, s->client_id);
}

/* ---- requests, to the server ---- */

/* The next piece with its secrets: up to one placeholder, so that many of them do not fill our memory. */
static int fill(struct h2_stream *s)
{
	while (!buf_len(&s->filled) && buf_len(&s->raw)) {
		struct view all = buf_view(&s->raw);
		size_t n = all.n - (s->up_end ? 0 : place_open_end(all));
		struct place p;
		if (!n)
			return 0;
		if (place_find(view_head(all, n), 0, &p))
			n = p.at + p.n;
		int r = inject_body(&s->inject, view_head(all, n), &s->filled);
		if (r < 0)
			return r;
		buf_consume(&s->raw, n);
	}
	return 0;
}

static ssize_t read_up(nghttp2_session *session, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
		       nghttp2_data_source *source, void *arg)
{
	struct h2_stream *s = nghttp2_session_get_stream_user_data(session, id);
	struct buf *from = s && s->rewrite ? &s->filled : s ? &s->raw : NULL;

	(void)source;
	(void)arg;
	if (!s)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (s->rewrite && fill(s) < 0) {
		refuse_secret(s); /* half of it is with the server: it sees no end */
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	n = MIN(n, buf_len(from));
	if (n)
		memcpy(p, buf_view(from).p, n);
	buf_consume(from, n);
	give_back_up(s, buf_len(&s->raw));
	if (s->up_end && !buf_len(&s->raw) && !buf_len(&s->filled)) {
		int r = submit_tail(session, id, &s->up_tail, &s->inject, NULL, flags);
		return r < 0 ? r : (ssize_t)n;
	}
	return n ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
}

static void submit(struct h2_stream *s, bool same, int64_t length)
{
	nghttp2_data_provider body = { .read_callback = read_up };
	struct h2_request *r = &s->h->request;
	nghttp2_nv nv[H2_HEAD_FIELDS];
	struct h2_head out;

	h2_head_init(&out, H2_OUT_HEAD);
	int e = h2_request_write(r, HTTPS, &s->inject, same, length, &out);
	if (e == -ENOENT) {
		refuse_secret(s);
	} else if (e < 0) {
		answer(s, 400, INTERCEPT_TOO_LARGE);
	} else if (s->h->leaving || !s->h->server.session) {
		reset_client(s, NGHTTP2_REFUSED_STREAM);
	} else {
		int32_t id = nghttp2_submit_request(s->h->server.session, NULL, nv, fields_of(&out, nv),
						    s->no_body ? NULL : &body, s);
		s->step = H2_PASSED;
		s->server_id = id > 0 ? id : 0;
		if (id < 0)
			reset_client(s, NGHTTP2_REFUSED_STREAM);
	}
	h2_head_done(&out);
}

/* All of a body with placeholders is here. */
static void collected(struct h2_stream *s)
{
	int r = inject_body(&s->inject, buf_view(&s->raw), &s->filled);

	buf_done(&s->raw);
	if (r == -ENOENT) {
		refuse_secret(s);
		return;
	}
	if (r < 0) {
		answer(s, 400, INTERCEPT_TOO_LARGE);
		return;
	}
	(void)!h2_request_parse(&s->head, HTTPS, &s->h->request);
	submit(s, false, (int64_t)buf_len(&s->filled));
}

/* The secrets are there. */
static void pass(struct h2_stream *s)
{
	struct intercept_h2 *h = s->h;
	const struct h2_request *r = &h->request;
	int64_t length = r->content_length;
	static const nghttp2_nv go_on = { (uint8_t *)(uintptr_t) ":status", (uint8_t *)(uintptr_t) "100", 7,
					  3, NGHTTP2_NV_FLAG_NONE };

	if (!inject_ready(&s->inject)) {
		refuse_secret(s);
		return;
	}
	if (inject_mask(&s->inject, &h->ic->mask) < 0) {
		answer(s, 503, "paddock: no memory");
		return;
	}
	s->rewrite = !s->no_body && inject_has_placeholders(&s->inject);
	/* Nobody else will say it: the question does not go on. */
	if (r->expect_continue && !s->up_end)
		(void)!nghttp2_submit_headers(h->client.session, NGHTTP2_FLAG_NONE, s->client_id, NULL,
					      &go_on, 1, NULL);
	if (!s->rewrite || length < 0 || length > INJECT_BODY || h->collected + (size_t)length > H2_COLLECT ||
	    !conn_collect(h->ic->conn, (size_t)length)) {
		submit(s, !s->rewrite, -1);
		return;
	}
	s->step = H2_COLLECTING;
	s->reserved = (size_t)length;
	h->collected += s->reserved;
	give_back_up(s, 0);
	if (s->up_end)
		collected(s);
}

void h2_stream_revealed(struct h2_stream *s, const char *name, struct view value, const struct err *e)
{
	if (s->step != H2_SECRETS)
		return;
	if (!e)
		inject_give(&s->inject, view_of(name), value);
	if (--s->asked > 0)
		return;
	(void)!h2_request_parse(&s->head, HTTPS, &s->h->request);
	pass(s);
}

static void ask(struct h2_stream *s)
{
	s->step = H2_SECRETS;
	for (unsigned i = 0; i < s->inject.n_values; i++) {
		if (intercept_vault_reveal(s->h->ic, (uint32_t)s->client_id, s->inject.values[i].name) < 0) {
			answer(s, 503, INTERCEPT_NO_VAULT);
			return;
		}
		s->asked++;
	}
	if (!s->asked)
		pass(s);
}

void h2_stream_begin(struct h2_stream *s)
{
	struct intercept *ic = s->h->ic;
	struct h2_request *r = &s->h->request;
	int status = h2_request_parse(&s->head, HTTPS, r);
	char text[256];

	if (status < 0) {
		refuse(s, status == -403 ? WIRE_GATE_REASON_MISMATCH : WIRE_GATE_REASON_MALFORMED, -status,
		       r->why);
		return;
	}
	if (!s->h->server.session) {
		intercept_trouble(ic, text, sizeof(text));
		refuse(s, WIRE_GATE_REASON_UNREACHABLE, 502, text);
		return;
	}
	const char *why = intercept_judge(ic->conn, r->method, r->path, r->authority, &s->inject);
	struct inject_head h = { r->path, r->query, r->headers, r->n_headers };
	if (why)
		answer(s, 403, why);
	else if (!inject_choose(&s->inject, &h, !s->no_body))
		refuse_secret(s);
	else
		ask(s);
}

/* ---- what comes from the client behind its head ---- */

void h2_stream_up(struct h2_stream *s, struct view data)
{
	s->owed_up += data.n;
	if (s->step == H2_OURS || (s->step == H2_PASSED && !s->server_id)) {
		discard(s, data.n);
		return;
	}
	if (buf_add(&s->raw, data) < 0) {
		answer(s, 400, INTERCEPT_TOO_LARGE);
		return;
	}
	if (s->step == H2_COLLECTING)
		give_back_up(s, 0);
	else if (s->server_id)
		(void)!nghttp2_session_resume_data(s->h->server.session, s->server_id);
}

void h2_stream_up_end(struct h2_stream *s)
{
	s->up_end = true;
	if (s->step == H2_OURS)
		(void)!nghttp2_session_resume_data(s->h->client.session, s->client_id);
	else if (s->step == H2_COLLECTING)
		collected(s);
	else if (s->server_id)
		(void)!nghttp2_session_resume_data(s->h->server.session, s->server_id);
}
