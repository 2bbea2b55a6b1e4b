/*
 * Long answers: see answer_long.h.
 */
#include "answer_long.h"

#include <errno.h>
#include <stdlib.h>

#include "serve.h"
#include "text.h"
#include "poison.h"

#define PIECE     (9u * 1024) /* of the bytes; a multiple of three, for base64 */
#define HOLES_MAX 65536u      /* of one answer */

struct hole {
	size_t at; /* in r->out */
	enum answer_form form;
	struct view bytes;
	struct answer_source *source; /* or NULL */
	bool begun;
};

struct answer_long {
	struct hole *holes;
	size_t n, cap, next;
	size_t sent; /* of r->out */
	struct buf piece;
	void (*end)(struct request *r);
	bool busy, failed;
};

/* ---- making holes ---- */

static struct answer_long *long_of(struct request *r)
{
	if (!r->answer)
		r->answer = calloc(1, sizeof(*r->answer));
	return r->answer;
}

static void add(struct request *r, struct hole hole)
{
	struct answer_long *l = long_of(r);

	if (l && l->n == l->cap && l->cap < HOLES_MAX) {
		size_t cap = l->cap ? 4 * l->cap : 4;
		struct hole *more = reallocarray(l->holes, cap, sizeof(*more));
		l->holes = more ? more : l->holes;
		l->cap = more ? cap : l->cap;
	}
	if (!l || l->n == l->cap) {
		r->out.bad = r->out.bad ? r->out.bad : l && l->cap == HOLES_MAX ? -ENOBUFS : -ENOMEM;
		return;
	}
	l->holes[l->n++] = hole;
}

void answer_hole(struct request *r, enum answer_form form, struct view bytes)
{
	if (bytes.n)
		add(r, (struct hole){ .at = buf_len(&r->out), .form = form, .bytes = bytes });
}

void answer_hole_from(struct request *r, struct answer_source *s, enum answer_form form)
{
	s->r = r;
	add(r, (struct hole){ .at = buf_len(&r->out), .form = form, .source = s });
}

static void put_short(struct json_out *o, enum answer_form form, struct view bytes)
{
	_cleanup_(buf_done) struct buf coded = BUF_INIT(2 * ANSWER_LONG_FROM);

	if (form == ANSWER_BASE64 && text_base64(&coded, bytes) < 0)
		o->b->bad = coded.bad;
	json_out_str(o, form == ANSWER_BASE64 ? buf_view(&coded) : bytes.p ? bytes : VIEW(""));
}

static void put_value(struct request *r, enum answer_form form, struct view bytes)
{
	if (bytes.n < ANSWER_LONG_FROM) {
		put_short(&r->json, form, bytes);
		return;
	}
	json_out_raw(&r->json, VIEW("\""));
	answer_hole(r, form, bytes);
	buf_putc(&r->out, '"');
}

void answer_put_long(struct request *r, const char *key, enum answer_form form, struct view bytes)
{
	json_out_key(&r->json, key);
	put_value(r, form, bytes);
}

void answer_put_from(struct request *r, const char *key, struct answer_source *s)
{
	json_out_key(&r->json, key);
	json_out_raw(&r->json, VIEW("\""));
	answer_hole_from(r, s, ANSWER_STRING);
	buf_putc(&r->out, '"');
}

void answer_put_raw(struct request *r, const char *key, struct view json)
{
	json_out_key(&r->json, key);
	json_out_raw(&r->json, VIEW(""));
	answer_hole(r, ANSWER_RAW, json);
}

void answer_put_lines(struct request *r, const char *key, struct view text)
{
	json_out_key(&r->json, key);
	json_out_raw(&r->json, text.n ? VIEW("[\"") : VIEW("["));
	answer_hole(r, ANSWER_LINES, view_head(text, text.n - (text.n && text.p[text.n - 1] == '\n')));
	buf_puts(&r->out, text.n ? "\"]" : "]");
}

void answer_keep(struct request *r, struct output *kept)
{
	outputs_done(&r->kept);
	r->kept = *kept;
	*kept = (struct output){ 0 };
}

bool answer_long_is(const struct request *r)
{
	return (r->answer && r->answer->n) || buf_len(&r->out) >= ANSWER_LONG_TURN;
}

bool answer_copy(struct request *r, struct view *bytes)
{
	struct output copy;

	outputs_start(&copy, r->core, r->actor.tenant);
	if (!outputs_add(&copy, 1, *bytes)) {
		outputs_done(&copy);
		return false;
	}
	answer_keep(r, &copy);
	*bytes = buf_view(&r->kept.bytes[0]);
	return true;
}

int64_t answer_long_length(const struct request *r)
{
	return r->answer && r->answer->n ? -1 : (int64_t)buf_len(&r->out);
}

void answer_long_free(struct request *r)
{
	if (!r->answer)
		return;
	free(r->answer->holes);
	buf_done(&r->answer->piece);
	free(r->answer);
	r->answer = NULL;
}

/* ---- sending ---- */

enum step { WROTE, FULL, WAITS, OVER, BROKEN };

static enum step put(struct request *r, struct view v)
{
	return http_write(r->x, v) ? WROTE : FULL;
}

/* How much of what is there may be coded now: no part of a character, no part of three bytes. */
static size_t whole(const struct hole *h, struct view there, bool is_last)
{
	size_t n = there.n;

	if (h->form == ANSWER_BASE64 && !is_last)
		n -= n % 3;
	for (size_t tail = 1; h->form == ANSWER_STRING && !is_last && tail < 4 && tail <= there.n; tail++)
		if (text_utf8_begins(view_skip(there, there.n - tail)))
			n = there.n - tail;
	return MIN(n, PIECE);
}

static int escape_lines(struct buf *piece, struct view there, size_t n, size_t *ret_used)
{
	struct view rest = view_head(there, n), after;
	size_t used;

	*ret_used = 0;
	while (rest.n) {
		struct view line = view_split(rest, '\n', &after);
		bool ends = line.n < rest.n;
		if (line.n && json_out_escape(piece, ends ? line : there, line.n, &used) < 0)
			return piece->bad;
		if (!ends) {
			*ret_used += line.n ? used : 0;
			break;
		}
		buf_puts(piece, "\",\"");
		*ret_used += line.n + 1;
		there = view_skip(there, line.n + 1);
		rest = view_skip(rest, line.n + 1);
	}
	return piece->bad;
}

static int encode(struct buf *piece, enum answer_form form, struct view there, size_t n, size_t *ret_used)
{
	*ret_used = n;
	if (form == ANSWER_BASE64)
		return text_base64(piece, view_head(there, n));
	return form == ANSWER_LINES ? escape_lines(piece, there, n, ret_used)
				    : json_out_escape(piece, there, n, ret_used);
}

/* A piece of what stands in a hole; *ret_used of `there` are in it. */
static enum step put_piece(struct request *r, const struct hole *h, struct view there, bool is_last,
			   size_t *ret_used)
{
	struct buf *piece = &r->answer->piece;
	size_t n = whole(h, there, is_last);
	enum step s;

	*ret_used = n;
	if (n == 0)
		return WAITS;
	if (h->form == ANSWER_RAW)
		return put(r, view_head(there, n));
	if (encode(piece, h->form, there, n, ret_used) < 0)
		return BROKEN;
	s = put(r, buf_view(piece));
	buf_clear(piece);
	return s;
}

static enum step fill(struct request *r, struct hole *h, size_t *ret_used)
{
	struct answer_long *l = r->answer;
	struct answer_source *s = h->source;
	enum step step;

	*ret_used = 0;
	if (s && !h->begun) {
		h->begun = true;
		s->begin(s);
		if (l->failed)
			return BROKEN;
	}
	if (s ? s->is_whole && !buf_len(&s->there) : !h->bytes.n) {
		l->next++;
		return WROTE;
	}
	step = put_piece(r, h, s ? buf_view(&s->there) : h->bytes, !s || s->is_whole, ret_used);
	if (step != WROTE && step != FULL)
		return step;
	if (!s) {
		h->bytes = view_skip(h->bytes, *ret_used);
		return step;
	}
	buf_consume(&s->there, *ret_used);
	s->sent(s, *ret_used);
	return l->failed ? BROKEN : step;
}

static enum step send_next(struct request *r, size_t *ret_used)
{
	struct answer_long *l = r->answer;
	struct hole *h = l->next < l->n ? &l->holes[l->next] : NULL;
	struct view text = view_skip(buf_view(&r->out), l->sent);

	text = view_head(text, h ? h->at - l->sent : text.n);
	if (!text.n && !h)
		return OVER;
	if (!text.n)
		return fill(r, h, ret_used);
	text = view_head(text, PIECE);
	l->sent += text.n;
	*ret_used = text.n;
	return put(r, text);
}

static void hold(struct request *r)
{
	const struct answer_long *l = r->answer;
	const struct answer_source *s = l->next < l->n ? l->holes[l->next].source : NULL;

	http_hold(r->x, r->out.cap + l->piece.cap + (s ? s->there.cap : 0) + r->body.cap + r->arena.used);
}

/* What the client takes, at most a turn's worth. May end the request. */
static void pump(struct request *r)
{
	struct answer_long *l = r->answer;
	enum step s = WROTE;
	size_t used, turn = 0;

	if (l->busy)
		return;
	l->busy = true;
	while (s == WROTE && turn < ANSWER_LONG_TURN) {
		used = 0;
		s = send_next(r, &used);
		turn += used;
	}
	l->busy = false;
	if (s == BROKEN) {
		http_break(r->x);
		request_done(r);
	} else if (s == OVER) {
		l->end(r);
	} else {
		hold(r);
		if (s == WROTE)
			http_later(r->x);
	}
}

void answer_source_more(struct answer_source *s)
{
	struct request *r = s->r;

	/* Else on_writable comes back to it. */
	if (!http_is_full(r->x))
		pump(r);
}

void answer_source_fail(struct answer_source *s)
{
	struct request *r = s->r;

	r->answer->failed = true;
	if (r->answer->busy)
		return;
	http_break(r->x);
	request_done(r);
}

static void on_writable(struct http_exchange *x)
{
	pump(x->ctx);
}

static const struct http_ops ops = { .on_body = request_drop_body,
				     .on_abort = request_abort,
				     .on_writable = on_writable };

void answer_long_send(struct request *r, void (*end)(struct request *r))
{
	struct answer_long *l = long_of(r);

	if (!l) {
		http_break(r->x);
		request_done(r);
		return;
	}
	l->piece = BUF_INIT(8 * PIECE);
	l->end = end;
	r->on_gone = NULL;
	r->on_drain = NULL;
	r->x->ops = &ops;
	pump(r);
}
