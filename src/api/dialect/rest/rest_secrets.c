/*
 * /v1/secrets and /v1/sandboxes/{id}/secrets: names and versions of secrets, never their values; and
 * /v1/vault.
 */
#include "secret.h"

#include "rest_impl.h"
#include "text.h"
#include "poison.h"

static void put_info(struct json_out *o, const struct secret_info *s)
{
	bool any = s->n_versions > 0;

	json_out_object(o);
	json_out_kstr(o, "name", s->name);
	json_out_ku64(o, "version", any ? s->versions[0].version : 0);
	answer_put_time(o, "updated_at", any ? s->versions[0].created_ms : 0);
	json_out_key(o, "versions");
	json_out_array(o);
	for (size_t i = 0; i < s->n_versions; i++) {
		json_out_object(o);
		json_out_ku64(o, "version", s->versions[i].version);
		answer_put_time(o, "created_at", s->versions[i].created_ms);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
	json_out_kmap(o, "metadata", &s->metadata);
	json_out_end(o, '}');
}

/* ---- set ---- */

struct put_body {
	bool unused; /* the schema puts nothing at offset 0 */
	bool has_metadata;
	struct view value, encoding;
	struct json_strmap metadata;
};

static const struct json_field put_fields[] = {
	{ "value", JSON_F_STRING, offsetof(struct put_body, value), .min = 1, .required = true },
	{ "encoding", JSON_F_STRING, offsetof(struct put_body, encoding), .nullable = true },
	{ "metadata", JSON_F_STRMAP, offsetof(struct put_body, metadata),
	  .has = offsetof(struct put_body, has_metadata), .nullable = true },
};
static const struct json_schema put_schema = { put_fields, ELEMS(put_fields) };

static void on_put(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct secret_info *info = result;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	put_info(o, info);
	answer_send(r, info->n_versions && info->versions[0].version == 1 ? 201 : 200);
}

static int decode(const struct put_body *b, struct buf *binary, struct view *ret, struct err *e)
{
	*ret = b->value;
	if (!b->encoding.n || view_is(b->encoding, "utf-8"))
		return 0;
	if (!view_is(b->encoding, "base64"))
		return err_set(e, ERR_INVALID, "encoding must be utf-8 or base64");
	if (text_unbase64(binary, b->value) < 0)
		return err_set(e, ERR_INVALID, "value is not base64, or too large");
	*ret = buf_view(binary);
	return 0;
}

static void put(struct request *r, struct secret_place p)
{
	_cleanup_(buf_done) struct buf binary = { .max = SECRETS_VALUE + 1, .secret = true };
	struct put_body b = { 0 };
	struct view value;
	struct err e = { 0 };

	if (request_read(r, &put_schema, &b) < 0)
		return;
	p.metadata = b.has_metadata ? &b.metadata : NULL;
	if (decode(&b, &binary, &value, &e) >= 0)
		r->job = secrets_put(r->core, &r->actor, &p, value, on_put, r, &e);
	if (!r->job)
		answer_fail(r, &e);
}

static void put_tenant(struct request *r)
{
	put(r, (struct secret_place){ .name = r->params[0] });
}

static void put_box(struct request *r)
{
	put(r, (struct secret_place){ .box = r->params[0], .name = r->params[1] });
}

/* ---- list ---- */

static void on_list(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct secret_list *reply = result;
	struct json_out *o = answer_result_list(r, e, "secrets");

	if (!o)
		return;
	for (size_t i = 0; i < reply->n; i++)
		put_info(o, &reply->secrets[i]);
	answer_send_list(r);
}

static void list(struct request *r, const struct secret_place *p)
{
	struct err e = { 0 };

	answer_await(r, secrets_list(r->core, &r->actor, p, on_list, r, &e), &e);
}

static void list_tenant(struct request *r)
{
	list(r, &(struct secret_place){ .name = VIEW_NONE });
}

static void list_box(struct request *r)
{
	list(r, &(struct secret_place){ .box = r->params[0] });
}

/* ---- remove ---- */

static void remove_one(struct request *r, const struct secret_place *p)
{
	struct err e = { 0 };

	answer_await(r, secrets_remove(r->core, &r->actor, p, answer_removed, r, &e), &e);
}

static void remove_tenant(struct request *r)
{
	remove_one(r, &(struct secret_place){ .name = r->params[0] });
}

static void remove_box_secret(struct request *r)
{
	remove_one(r, &(struct secret_place){ .box = r->params[0], .name = r->params[1] });
}

/* ---- the vault ---- */

static void on_rotated(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct secret_rotation *reply = result;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	json_out_object(o);
	json_out_kstr(o, "key", reply->key);
	json_out_ku64(o, "resealed", reply->resealed);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void rotate(struct request *r)
{
	struct err e = { 0 };

	answer_await(r, secrets_rotate(r->core, &r->actor, on_rotated, r, &e), &e);
}

static void on_authority(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct view *pem = result;

	if (!answer_ended(r, e))
		return;
	http_reply(r->x, 200, "application/x-pem-file", *pem, NULL, 0);
	request_done(r);
}

static void authority(struct request *r)
{
	struct err e = { 0 };

	answer_await(r, secrets_authority(r->core, &r->actor, on_authority, r, &e), &e);
}

const struct route rest_secrets_routes[] = {
	{ "PUT", "/v1/secrets/{name}", put_tenant, .body = ROUTE_JSON, .secret = true,
	  .audit = "secret.set" },
	{ "GET", "/v1/secrets", list_tenant },
	{ "DELETE", "/v1/secrets/{name}", remove_tenant, .audit = "secret.delete" },
	{ "PUT", "/v1/sandboxes/{id}/secrets/{name}", put_box, .body = ROUTE_JSON, .secret = true,
	  .audit = "secret.set" },
	{ "GET", "/v1/sandboxes/{id}/secrets", list_box },
	{ "DELETE", "/v1/sandboxes/{id}/secrets/{name}", remove_box_secret, .audit = "secret.delete" },
	{ "POST", "/v1/vault/rotate", rotate, .audit = "vault.rotate" },
	{ "GET", "/v1/vault/ca.pem", authority },
	{ 0 },
};
