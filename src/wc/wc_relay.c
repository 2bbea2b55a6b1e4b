/*
 * The relay's messages: see wc_relay.h.
 */
#include "wc_relay.h"

#include <inttypes.h>
#include <stdio.h>

#include "rnd.h"
#include "wc_crypto.h"
#include "poison.h"

#define ENVELOPE_MAX (2u * WC_MESSAGE_MAX)

static void new_id(int64_t now_ms, uint32_t entropy, char ret[WC_ID])
{
	uint32_t r;

	rnd_bytes(&r, sizeof(r));
	snprintf(ret, WC_ID, "%" PRIu64, ((uint64_t)now_ms % 10000000000000) * entropy + r % entropy);
}

void wc_relay_new_id(int64_t now_ms, char ret[WC_ID])
{
	new_id(now_ms, 1000000, ret);
}

void wc_relay_new_sign_id(int64_t now_ms, char ret[WC_ID])
{
	new_id(now_ms, 1000, ret);
}

bool wc_relay_is_id(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] < '0' || v.p[i] > '9')
			return false;
	return v.n > 0 && v.n < WC_ID;
}

/* ---- out ---- */

static void begin(struct json_out *o, struct buf *out, struct view id, const char *method)
{
	json_out_init(o, out);
	json_out_object(o);
	json_out_key(o, "id");
	json_out_raw(o, id);
	json_out_kz(o, "jsonrpc", "2.0");
	if (method) {
		json_out_kz(o, "method", method);
		json_out_key(o, "params");
		json_out_object(o);
	}
}

static int end(struct json_out *o)
{
	json_out_end(o, '}');
	json_out_end(o, '}');
	return o->b->bad;
}

int wc_relay_put_publish(struct buf *out, const char *id, const struct wc_publish *p)
{
	struct json_out o;

	begin(&o, out, view_of(id), "irn_publish");
	json_out_kstr(&o, "topic", p->topic);
	json_out_kstr(&o, "message", p->envelope);
	json_out_ku64(&o, "ttl", p->ttl_s);
	json_out_ku64(&o, "tag", p->tag);
	json_out_kbool(&o, "prompt", p->prompt);
	return end(&o);
}

int wc_relay_put_subscribe(struct buf *out, const char *id, const struct view *topics, size_t n)
{
	struct json_out o;

	begin(&o, out, view_of(id), "irn_batchSubscribe");
	json_out_key(&o, "topics");
	json_out_array(&o);
	for (size_t i = 0; i < n; i++)
		json_out_str(&o, topics[i]);
	json_out_end(&o, ']');
	return end(&o);
}

int wc_relay_put_ack(struct buf *out, struct view id)
{
	struct json_out o;

	begin(&o, out, id, NULL);
	json_out_kbool(&o, "result", true);
	json_out_end(&o, '}');
	return out->bad;
}

/* ---- in ---- */

static int wrong(struct err *e)
{
	return err_set(e, ERR_BAD_REQUEST, "the relay's message has no form that is known");
}

static struct view text_of(const struct json *j)
{
	return j && j->type == JSON_STRING ? j->text : VIEW_NONE;
}

static int read_message(const struct json *params, struct wc_relay_in *ret, struct err *e)
{
	const struct json *data = json_get(params, "data");
	const struct json *tag = json_get(data, "tag");

	ret->kind = WC_RELAY_MESSAGE;
	ret->topic = text_of(json_get(data, "topic"));
	ret->envelope = text_of(json_get(data, "message"));
	if (!wc_crypto_is_topic(ret->topic) || !ret->envelope.n || ret->envelope.n > ENVELOPE_MAX)
		return wrong(e);
	if (tag && json_to_u64(tag, &ret->tag) < 0)
		return wrong(e);
	return 0;
}

static int read_error(const struct json *error, struct wc_relay_in *ret, struct err *e)
{
	const struct json *code = json_get(error, "code");

	ret->kind = WC_RELAY_ERROR;
	ret->text = text_of(json_get(error, "message"));
	return error->type != JSON_OBJECT || (code && json_to_i64(code, &ret->code) < 0) ? wrong(e) : 0;
}

int wc_relay_read(struct arena *a, struct view text, struct wc_relay_in *ret, struct err *e)
{
	struct json *doc;
	struct wc_relay_in in = { 0 };

	if (json_parse(a, text, &doc, e) < 0)
		return -1;
	const struct json *id = json_get(doc, "id"), *method = json_get(doc, "method"),
			  *result = json_get(doc, "result"), *error = json_get(doc, "error");
	if (!id || id->type != JSON_NUMBER || !wc_relay_is_id(id->text) || !!method + !!result + !!error != 1)
		return wrong(e);
	in.id = id->text;
	in.result = result;
	in.kind = result ? WC_RELAY_RESULT : WC_RELAY_OTHER;
	if (error && read_error(error, &in, e) < 0)
		return -1;
	if (view_is(text_of(method), "irn_subscription") && read_message(json_get(doc, "params"), &in, e) < 0)
		return -1;
	*ret = in;
	return 0;
}
