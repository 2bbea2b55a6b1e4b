/*
 * Answers: errors in the dialect's shape, JSON, and what the end of a job becomes.
 */
#include "rest_impl.h"

#include <stdio.h>

#include "clock.h"
#include "e2b_impl.h"
#include "money.h"
#include "poison.h"

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

void rest_fail_exchange(struct http_exchange *x, const struct err *e, const struct http_header *extra,
			size_t n_extra)
{
	static const struct http_header bearer = { VIEW("www-authenticate"), VIEW("Bearer") };
	struct buf b = BUF_INIT(4096);

	if (e->code == ERR_UNAUTHORIZED) {
		extra = &bearer;
		n_extra = 1;
	}
	if (e2b_speaks(x->path))
		e2b_put_error(&b, e);
	else
		put_error(&b, e, x->request_id);
	http_reply(x, err_http(e->code), "application/json", buf_view(&b), extra, n_extra);
	buf_done(&b);
}

/* When to come again: when the rate allows it, or soon. */
static bool retry_header(struct req *r, const struct err *e, char text[16], struct http_header *ret)
{
	if (e->code != ERR_RATE && e->code != ERR_UNAVAILABLE && e->code != ERR_QUOTA)
		return false;
	snprintf(text, 16, "%u", e->code == ERR_RATE ? quotas_retry_after(r->core, r->actor.tenant) : 1);
	*ret = (struct http_header){ VIEW("retry-after"), view_of(text) };
	return true;
}

void rest_fail_with(struct req *r, const struct err *e, const struct http_header *extra)
{
	struct err copy = *e; /* may live in what is freed now */
	struct http_header retry;
	char seconds[16];

	if (!extra && retry_header(r, e, seconds, &retry))
		extra = &retry;
	rest_fail_exchange(r->x, &copy, extra, extra ? 1 : 0);
	rest_done(r);
}

void rest_fail(struct req *r, const struct err *e)
{
	rest_fail_with(r, e, NULL);
}

void rest_reply(struct req *r, int status, struct buf *json)
{
	rest_reply_with(r, status, json, NULL, 0);
}

void rest_reply_with(struct req *r, int status, struct buf *json, const struct http_header *extra,
		     size_t n_extra)
{
	struct err e = { 0 };

	buf_putc(json, '\n');
	if (json->bad) {
		err_sys(&e, ERR_INTERNAL, json->bad, "the answer cannot be written");
		rest_fail_exchange(r->x, &e, NULL, 0);
	} else {
		http_reply(r->x, status, "application/json", buf_view(json), extra, n_extra);
	}
	buf_done(json);
	rest_done(r);
}

struct json_out *rest_json(struct req *r)
{
	r->out = BUF_INIT(REST_ANSWER_MAX);
	json_out_init(&r->json, &r->out);
	return &r->json;
}

struct json_out *rest_json_list(struct req *r, const char *key)
{
	struct json_out *o = rest_json(r);

	json_out_object(o);
	json_out_key(o, key);
	json_out_array(o);
	return o;
}

bool rest_ended(struct req *r, const struct err *e)
{
	r->job = NULL;
	if (e)
		rest_fail(r, e);
	return !e;
}

struct json_out *rest_result_list(struct req *r, const struct err *e, const char *key)
{
	return rest_result(r, e) ? rest_json_list(r, key) : NULL;
}

struct json_out *rest_result(struct req *r, const struct err *e)
{
	return rest_ended(r, e) ? rest_json(r) : NULL;
}

void rest_send(struct req *r, int status)
{
	rest_reply(r, status, &r->out);
}

void rest_send_list(struct req *r)
{
	json_out_end(&r->json, ']');
	json_out_end(&r->json, '}');
	rest_send(r, 200);
}

void rest_no_content(struct req *r)
{
	http_reply(r->x, 204, NULL, VIEW_NONE, NULL, 0);
	rest_done(r);
}

void rest_await(struct req *r, struct job *job, const struct err *e)
{
	r->job = job;
	if (!job)
		rest_fail(r, e);
}

void rest_removed(void *arg, const void *result, const struct err *e)
{
	struct req *r = arg;

	if (rest_ended(r, e))
		rest_no_content(r);
}

void rest_put_time(struct json_out *o, const char *key, int64_t ms)
{
	char text[CLOCK_RFC3339_SIZE];
	if (ms)
		clock_rfc3339(ms, text);
	json_out_kz(o, key, ms ? text : NULL);
}
