/*
 * Answers: see answer.h.
 */
#include "answer.h"

#include <stdio.h>

#include "answer_long.h"
#include "audit.h"
#include "clock.h"
#include "login.h"
#include "money.h"
#include "serve.h"
#include "poison.h"

#define HEADERS_MAX 16

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

void answer_fail_with(struct request *r, const struct err *e, const struct http_header *extra)
{
	struct err copy = *e; /* may live in what is freed now */
	struct http_header retry;
	char seconds[16];

	if (r->surface->lost && r->surface->lost(r, &copy))
		return;
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

/* What a create answers with, in any dialect. Our own JSON: within a string there is no such text. */
static struct view made_id(struct view body)
{
	static const char *const keys[] = { "\"id\":\"", "\"sandboxID\":\"", "\"templateID\":\"",
					    "\"session_id\":\"" };

	for (size_t i = 0; i < ELEMS(keys); i++) {
		const char *p = memmem(body.p, body.n, keys[i], strlen(keys[i]));
		struct view rest;
		if (p)
			return view_split(view_skip(body, (size_t)(p - body.p) + strlen(keys[i])), '"',
					  &rest);
	}
	return VIEW_NONE;
}

/* What was asked for, where that is no secret: rules of a policy may put one into requests. */
static struct view shown_body(const struct request *r)
{
	static const char *const words[] = { "inject", "headers", "transform" };
	struct view body = r->route->audit_body ? buf_view(&r->body) : VIEW_NONE;

	for (size_t i = 0; body.n && i < ELEMS(words); i++)
		if (memmem(body.p, body.n, words[i], strlen(words[i])))
			return VIEW_NONE;
	return body;
}

static void note_audit(const struct request *r, int status, struct view body)
{
	const struct route *t = r->route;
	const char *via = r->surface->heading && r->surface->heading[0] ? r->surface->heading : "rest";
	struct buf target = BUF_INIT(1024);

	if (!t || !t->audit || !r->actor.tenant || (status >= 400 && status != 403))
		return;
	for (size_t i = 0; i < ROUTE_PARAMS && r->params[i].p; i++) {
		buf_puts(&target, i ? " " : "");
		buf_add(&target, r->params[i]);
	}
	struct view id =
		body.n && (status == 201 || (status < 300 && !buf_len(&target))) ? made_id(body) : VIEW_NONE;
	buf_puts(&target, id.n && buf_len(&target) ? " " : "");
	buf_add(&target, id);
	if (!request_token(r->x).p && login_token(r->x).p)
		via = "dashboard";
	audit_note(r->core, &r->actor,
		   &(struct audit_note){ t->audit, via, (unsigned)status, buf_view(&target), shown_body(r) });
	buf_done(&target);
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

	note_audit(r, status, body);
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

	note_audit(r, status, buf_view(&r->out));
	http_begin(r->x, status, "application/json", answer_long_length(r), all, n);
	answer_long_send(r, end_long);
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
		r->surface->fail(r, &e, NULL, 0);
	} else {
		if (json != &r->out) {
			buf_done(&r->out);
			r->out = *json;
			*json = BUF_INIT(json->max);
		}
		if (answer_long_is(r)) {
			reply_long(r, status, extra, n_extra);
			return;
		}
		reply(r, status, "application/json", buf_view(&r->out), extra, n_extra);
	}
	buf_done(json);
	request_done(r);
}

void answer_plain(struct request *r, int status, const char *type, struct view body)
{
	answer_plain_with(r, status, type, body, NULL, 0);
}

void answer_plain_with(struct request *r, int status, const char *type, struct view body,
		       const struct http_header *extra, size_t n_extra)
{
	reply(r, status, type, body, extra, n_extra);
	request_done(r);
}

void answer_empty(struct request *r, int status, const struct http_header *extra, size_t n_extra)
{
	reply(r, status, NULL, VIEW_NONE, extra, n_extra);
	request_done(r);
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
