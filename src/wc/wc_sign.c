/*
 * Messages between dapp and wallet: see wc_sign.h.
 */
#include "wc_sign.h"

#include "text.h"
#include "poison.h"

static const struct {
	const char *name;
	uint16_t tag, answer;
	uint32_t ttl_s;
} methods[WC_METHODS] = {
	[WC_UNKNOWN] = { "", 0, 0, 300 },
	[WC_PAIRING_DELETE] = { "wc_pairingDelete", 1000, 1001, 86400 },
	[WC_PAIRING_PING] = { "wc_pairingPing", 1002, 1003, 30 },
	[WC_PROPOSE] = { "wc_sessionPropose", 1100, 1101, 300 },
	[WC_SETTLE] = { "wc_sessionSettle", 1102, 1103, 300 },
	[WC_UPDATE] = { "wc_sessionUpdate", 1104, 1105, 86400 },
	[WC_EXTEND] = { "wc_sessionExtend", 1106, 1107, 86400 },
	[WC_REQUEST] = { "wc_sessionRequest", 1108, 1109, 300 },
	[WC_EVENT] = { "wc_sessionEvent", 1110, 1111, 300 },
	[WC_DELETE] = { "wc_sessionDelete", 1112, 1113, 86400 },
	[WC_PING] = { "wc_sessionPing", 1114, 1115, 30 },
};

uint32_t wc_sign_tag(enum wc_method m)
{
	return methods[m].tag;
}

uint32_t wc_sign_answer_tag(enum wc_method m)
{
	return methods[m].answer;
}

uint32_t wc_sign_ttl(enum wc_method m)
{
	return methods[m].ttl_s;
}

/* ---- out ---- */

static void begin(struct json_out *o, struct buf *out, struct view id)
{
	json_out_init(o, out);
	json_out_object(o);
	json_out_key(o, "id");
	json_out_raw(o, id);
	json_out_kz(o, "jsonrpc", "2.0");
}

static void begin_request(struct json_out *o, struct buf *out, const char *id, enum wc_method m)
{
	begin(o, out, view_of(id));
	json_out_kz(o, "method", methods[m].name);
	json_out_key(o, "params");
	json_out_object(o);
}

static int end(struct json_out *o, unsigned levels)
{
	while (levels--)
		json_out_end(o, '}');
	return o->b->bad;
}

static void put_list(struct json_out *o, const char *key, const struct view *items, size_t n)
{
	json_out_key(o, key);
	json_out_array(o);
	for (size_t i = 0; i < n; i++)
		json_out_str(o, items[i]);
	json_out_end(o, ']');
}

static void put_wishes(struct json_out *o, const struct wc_proposal *p)
{
	static const struct view wanted[] = { VIEW("eth_sendTransaction"), VIEW("personal_sign"),
					      VIEW("eth_signTypedData_v4") };
	static const struct view events[] = { VIEW("accountsChanged"), VIEW("chainChanged") };

	/* Required namespaces are deprecated: wallets refuse more than they should because of them. */
	json_out_key(o, "requiredNamespaces");
	json_out_object(o);
	json_out_end(o, '}');
	json_out_key(o, "optionalNamespaces");
	json_out_object(o);
	json_out_key(o, "eip155");
	json_out_object(o);
	put_list(o, "chains", p->chains, p->n_chains);
	put_list(o, "methods", wanted, ELEMS(wanted));
	put_list(o, "events", events, ELEMS(events));
	end(o, 2);
}

int wc_sign_put_propose(struct buf *out, const struct wc_proposal *p)
{
	char key[2 * WC_KEY + 1];
	struct json_out o;

	text_hex(p->public_key, WC_KEY, key);
	begin_request(&o, out, p->id, WC_PROPOSE);
	put_wishes(&o, p);
	json_out_key(&o, "relays");
	json_out_raw(&o, VIEW("[{\"protocol\":\"irn\"}]"));
	json_out_key(&o, "proposer");
	json_out_object(&o);
	json_out_kz(&o, "publicKey", key);
	json_out_key(&o, "metadata");
	json_out_object(&o);
	json_out_kstr(&o, "name", p->name);
	json_out_kstr(&o, "description", p->description);
	json_out_kstr(&o, "url", p->url);
	put_list(&o, "icons", NULL, 0);
	end(&o, 2);
	json_out_ki64(&o, "expiryTimestamp", p->expiry_s);
	json_out_kstr(&o, "pairingTopic", p->pairing);
	return end(&o, 2);
}

int wc_sign_put_request(struct buf *out, const char *id, struct view chain, const char *method,
			struct view params, int64_t expiry_s)
{
	struct json_out o;

	begin_request(&o, out, id, WC_REQUEST);
	json_out_key(&o, "request");
	json_out_object(&o);
	json_out_kz(&o, "method", method);
	json_out_key(&o, "params");
	json_out_raw(&o, params);
	json_out_ki64(&o, "expiryTimestamp", expiry_s);
	end(&o, 1);
	json_out_kstr(&o, "chainId", chain);
	return end(&o, 2);
}

int wc_sign_put_delete(struct buf *out, const char *id, int64_t code, const char *why)
{
	struct json_out o;

	begin_request(&o, out, id, WC_DELETE);
	json_out_ki64(&o, "code", code);
	json_out_kz(&o, "message", why);
	return end(&o, 2);
}

int wc_sign_put_true(struct buf *out, struct view id)
{
	struct json_out o;

	begin(&o, out, id);
	json_out_kbool(&o, "result", true);
	return end(&o, 1);
}

int wc_sign_put_error(struct buf *out, struct view id, int64_t code, const char *why)
{
	struct json_out o;

	begin(&o, out, id);
	json_out_key(&o, "error");
	json_out_object(&o);
	json_out_ki64(&o, "code", code);
	json_out_kz(&o, "message", why);
	return end(&o, 2);
}

/* ---- in ---- */

static int wrong(struct err *e, const char *what)
{
	return err_set(e, ERR_BAD_REQUEST, "the wallet's message has no valid %s", what);
}

static enum wc_method method_of(struct view name)
{
	for (int m = WC_UNKNOWN + 1; m < WC_METHODS; m++)
		if (view_is(name, methods[m].name))
			return (enum wc_method)m;
	return WC_UNKNOWN;
}

static int read_error(const struct json *error, struct wc_sign_in *in, struct err *e)
{
	const struct json *code = json_get(error, "code"), *text = json_get(error, "message");

	in->kind = WC_SIGN_ERROR;
	if (error->type != JSON_OBJECT || !code || json_to_i64(code, &in->code) < 0)
		return wrong(e, "error");
	in->text = text && text->type == JSON_STRING ? view_head(text->text, WC_TEXT_MAX) : VIEW_NONE;
	return 0;
}

int wc_sign_read(struct arena *a, struct view text, struct wc_sign_in *ret, struct err *e)
{
	struct wc_sign_in in = { 0 };
	struct json *doc;

	if (json_parse(a, text, &doc, e) < 0)
		return -1;
	const struct json *id = json_get(doc, "id"), *method = json_get(doc, "method"),
			  *result = json_get(doc, "result"), *error = json_get(doc, "error");
	if (!id || id->type != JSON_NUMBER || !wc_relay_is_id(id->text))
		return wrong(e, "id");
	if (!!method + !!result + !!error != 1 || (method && method->type != JSON_STRING))
		return wrong(e, "form");
	in.id = id->text;
	in.kind = method ? WC_SIGN_REQUEST : WC_SIGN_RESULT;
	in.method = method ? method_of(method->text) : WC_UNKNOWN;
	in.params = json_get(doc, "params");
	in.result = result;
	if (error && read_error(error, &in, e) < 0)
		return -1;
	*ret = in;
	return 0;
}

int wc_sign_read_responder(const struct json *result, uint8_t ret_key[WC_KEY], struct err *e)
{
	const struct json *key = json_get(result, "responderPublicKey");

	return key && key->type == JSON_STRING && text_unhex(key->text, ret_key, WC_KEY) == 0
		       ? 0
		       : wrong(e, "responderPublicKey");
}
