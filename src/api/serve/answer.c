/*
 * Answers: see answer.h.
 */
#include "answer.h"

#include <stdio.h>

#include "answer_long.h"
#include "clock.h"
#include "log.h"
#include "money.h"
#include "record.h"
#include "serve.h"
#include "poison.h"

#define HEADERS_MAX 16

/* ---- answers that wait for the audit log ---- */

/* In the exchange's arena. */
struct answer_held {
	struct err e; /* or an answer: */
	int status;
	const char *type;
	struct view body;
	struct http_header extra[HEADERS_MAX];
	size_t n_extra;
};

static void fail_held(struct request *r)
{
	answer_fail_with(r, &r->held->e, NULL);
}

/* Whether it is sent later. Without memory to keep it, the request fails. */
static bool hold_fail(struct request *r, const struct err *e)
{
	struct answer_held *h = r->record ? arena_alloc(r->x->arena, sizeof(*h)) : NULL;

	if (h)
		h->e = *e;
	r->held = h;
	return record_close(r, e, h ? fail_held : request_break);
}

static bool copy_held(struct request *r, struct answer_held *h, int status, const char *type,
		      struct view body, const struct http_header *extra, size_t n_extra)
{
	struct arena *a = r->x->arena;

	assert(n_extra <= ELEMS(h->extra));
	h->status = status;
	h->type = type ? arena_str(a, view_of(type)) : NULL;
	h->body = body.n ? arena_view(a, body) : VIEW("");
	for (h->n_extra = 0; h->n_extra < n_extra; h->n_extra++) {
		struct http_header *to = &h->extra[h->n_extra];
		to->name = arena_view(a, extra[h->n_extra].name);
		to->value = arena_view(a, extra[h->n_extra].value);
		if (!to->name.p || !to->value.p)
			return false;
	}
	return (h->type || !type) && h->body.p;
}

/* What a dialect says with a status and no error. */
static void status_error(int status, struct err *e)
{
	err_set(e,
		status >= 500   ? ERR_INTERNAL
		: status == 403 ? ERR_FORBIDDEN
				: ERR_INVALID,
		"the answer has the status %d", status);
}

/* Whether it is sent later, by `then`, which ends the request. */
static bool hold(struct request *r, int status, const char *type, struct view body,
		 const struct http_header *extra, size_t n_extra, void (*then)(struct request *r))
{
	struct answer_held *h = r->record ? arena_alloc(r->x->arena, sizeof(*h)) : NULL;
	struct err e = { 0 };

	if (!r->record)
		return false;
	if (status >= 400)
		status_error(status, &e);
	bool kept = h && copy_held(r, h, status, type, body, extra, n_extra);
	r->held = h;
	return record_close(r, e.code ? &e : NULL, kept ? then : request_break);
}

/* ---- errors ---- */

/* When to come again: when the rate allows it, or soon. */
static bool retry_header(struct request *r, const struct err *e, char text[16], struct http_header *ret)
{
	if (e->code != ERR_RATE && e->code != ERR_UNAVAILABLE && e->code != ERR_QUOTA)
		return false;
	snprintf(text, 16, "%u", e->code == ERR_RATE ? quotas_retry_after(r->core, r->actor.tenant) : 1);
	*ret = (struct http_header){ VIEW("retry-after"), view_of(text) };
	return true;
}

/* For whoever asks what became of a request. Strangers write nothing; a path may have a ticket in it. */
static void log_failure(const struct request *r, const struct err *e)
{
	if (r->actor.tenant && r->route && rate_spend(&r->serve->log, loop_now(r->x->loop)))
		log_info("request %s of key %s: %.*s %s: %s: %s", r->x->request_id, r->actor.key,
			 VIEW_ARG(r->x->method), r->route->pattern, err_name(e->code),
			 log_quoted(view_of(e->msg)));
}

void answer_fail_with(struct request *r, const struct err *e, const struct http_header *extra)
{
	struct err copy = *e; /* may live in what is freed now */
	struct http_header retry;
	char seconds[16];

	if (r->surface->lost && r->surface->lost(r, &copy))
		return;
	if (hold_fail(r, &copy))
		return;
	log_failure(r, &copy);
	if (r->surface->translate)
		r->surface->translate(&copy);
	if (r->fail) {
		r->fail(r, &copy);
		return;
	}
	if (!extra && retry_header(r, &copy, seconds, &retry))
		extra = &retry;
	r->surface->fail(r, &copy, extra, extra ? 1 : 0);
	request_done(r);
}

void answer_fail(struct request *r, const struct err *e)
{
	answer_fail_with(r, e, NULL);
}

/* The surface's own headers before those of this answer. */
static size_t all_headers(const struct request *r, const struct http_header *extra, size_t n_extra,
			  struct http_header all[HEADERS_MAX])
{
	const struct surface *f = r->surface;

	assert(f->n_headers + n_extra <= HEADERS_MAX);
	if (f->n_headers)
		memcpy(all, f->headers, f->n_headers * sizeof(*all));
	if (n_extra)
		memcpy(all + f->n_headers, extra, n_extra * sizeof(*all));
	return f->n_headers + n_extra;
}

static void reply(struct request *r, int status, const char *type, struct view body,
		  const struct http_header *extra, size_t n_extra)
{
	struct http_header all[HEADERS_MAX];
	size_t n = all_headers(r, extra, n_extra, all);

	http_reply(r->x, status, type, body, all, n);
}

static void end_long(struct request *r)
{
	http_end(r->x);
	request_done(r);
}

/* r->out, from where it is. */
static void reply_long(struct request *r, int status, const struct http_header *extra, size_t n_extra)
{
	struct http_header all[HEADERS_MAX];
	size_t n = all_headers(r, extra, n_extra, all);

	http_begin(r->x, status, "application/json", answer_long_length(r), all, n);
	answer_long_send(r, end_long);
}

static void send_long_held(struct request *r)
{
	const struct answer_held *h = r->held;

	reply_long(r, h->status, h->extra, h->n_extra);
}

/* What stands in its holes lives as long as the request: nothing of that is given back before it is sent. */
static bool hold_long(struct request *r, int status, const struct http_header *extra, size_t n_extra)
{
	void (*release)(struct request * r) = r->release;

	r->release = NULL;
	bool held = hold(r, status, NULL, VIEW_NONE, extra, n_extra, send_long_held);
	r->release = release;
	return held;
}

static void send_held(struct request *r);

/* The same and the end of the request, when it may be. */
static void reply_done(struct request *r, int status, const char *type, struct view body,
		       const struct http_header *extra, size_t n_extra)
{
	if (hold(r, status, type, body, extra, n_extra, send_held))
		return;
	reply(r, status, type, body, extra, n_extra);
	request_done(r);
}

static void send_held(struct request *r)
{
	const struct answer_held *h = r->held;

	reply_done(r, h->status, h->type, h->body, h->extra, h->n_extra);
}

static void put_error(struct buf *b, const struct err *e, const char *request_id)
{
	struct json_out o;
	json_out_init(&o, b);
	json_out_object(&o);
	json_out_key(&o, "error");
	json_out_object(&o);
	json_out_kz(&o, "code", err_name(e->code));
	json_out_kz(&o, "message", e->msg);
	json_out_kz(&o, "request_id", request_id);
	json_out_end(&o, '}');
	json_out_end(&o, '}');
	buf_putc(b, '\n');
}

void answer_error(struct request *r, const struct err *e, const struct http_header *extra, size_t n_extra)
{
	struct buf b = BUF_INIT(4096);

	put_error(&b, e, r->x->request_id);
	reply(r, err_http(e->code), "application/json", buf_view(&b), extra, n_extra);
	buf_done(&b);
}

/* ---- whole answers ---- */

void answer_reply(struct request *r, int status, struct buf *json)
{
	answer_reply_with(r, status, json, NULL, 0);
}

void answer_reply_with(struct request *r, int status, struct buf *json, const struct http_header *extra,
		       size_t n_extra)
{
	struct err e = { 0 };

	buf_putc(json, '\n');
	if (json->bad) {
		err_sys(&e, ERR_INTERNAL, json->bad, "the answer cannot be written");
		buf_done(json);
		answer_fail(r, &e);
		return;
	}
	if (json != &r->out) {
		buf_done(&r->out);
		r->out = *json;
		*json = BUF_INIT(json->max);
	}
	if (!answer_long_is(r))
		reply_done(r, status, "application/json", buf_view(&r->out), extra, n_extra);
	else if (!hold_long(r, status, extra, n_extra))
		reply_long(r, status, extra, n_extra);
}

void answer_plain(struct request *r, int status, const char *type, struct view body)
{
	answer_plain_with(r, status, type, body, NULL, 0);
}

void answer_plain_with(struct request *r, int status, const char *type, struct view body,
		       const struct http_header *extra, size_t n_extra)
{
	reply_done(r, status, type, body, extra, n_extra);
}

void answer_empty(struct request *r, int status, const struct http_header *extra, size_t n_extra)
{
	reply_done(r, status, NULL, VIEW_NONE, extra, n_extra);
}

void answer_no_content(struct request *r)
{
	answer_empty(r, 204, NULL, 0);
}

/* ---- JSON and jobs ---- */

struct json_out *answer_json(struct request *r)
{
	answer_long_free(r); /* of an answer that was begun */
	buf_done(&r->out);
	r->out = BUF_INIT(ANSWER_MAX);
	json_out_init(&r->json, &r->out);
	return &r->json;
}

struct json_out *answer_json_list(struct request *r, const char *key)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_key(o, key);
	json_out_array(o);
	return o;
}

bool answer_ended(struct request *r, const struct err *e)
{
	r->job = NULL;
	if (e)
		answer_fail(r, e);
	return !e;
}

struct json_out *answer_result_list(struct request *r, const struct err *e, const char *key)
{
	return answer_result(r, e) ? answer_json_list(r, key) : NULL;
}

struct json_out *answer_result(struct request *r, const struct err *e)
{
	return answer_ended(r, e) ? answer_json(r) : NULL;
}

void answer_send(struct request *r, int status)
{
	answer_reply(r, status, &r->out);
}

void answer_send_list(struct request *r)
{
	json_out_end(&r->json, ']');
	json_out_end(&r->json, '}');
	answer_send(r, 200);
}

void answer_await(struct request *r, struct job *job, const struct err *e)
{
	r->job = job;
	if (!job)
		answer_fail(r, e);
}

void answer_removed(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (answer_ended(r, e))
		answer_no_content(r);
}

void answer_put_time(struct json_out *o, const char *key, int64_t ms)
{
	char text[CLOCK_RFC3339_SIZE];
	if (ms)
		clock_rfc3339(ms, text);
	json_out_kz(o, key, ms ? text : NULL);
}
