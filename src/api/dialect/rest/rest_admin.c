/*
 * Administration: keys, images, the posture of the machine and of a box.
 */
#include "box.h"
#include "import.h"
#include "rest_impl.h"
#include "who.h"
#include "poison.h"

#define PIECES_MAX (4u * 1024 * 1024)

/* The end of every removal. */
/* ---- keys ---- */

static void put_key(struct json_out *o, const struct key *k, const char *text)
{
	json_out_object(o);
	json_out_kz(o, "id", k->id);
	if (text)
		json_out_kz(o, "key", text);
	json_out_kz(o, "name", k->name[0] ? k->name : NULL);
	json_out_kz(o, "tenant", k->tenant->name);
	json_out_kz(o, "role", keys_role_name(k->role));
	answer_put_time(o, "created_at", k->created_ms);
	json_out_end(o, '}');
}

#define AT(f) .offset = offsetof(struct key_wish, f)
static const struct json_field key_fields[] = {
	{ "name", JSON_F_STRING, AT(name), .max = KEYS_NAME_MAX, .nullable = true },
	{ "tenant", JSON_F_STRING, AT(tenant), .min = 1, .max = KEYS_NAME_MAX, .nullable = true },
	{ "role", JSON_F_STRING, AT(role), .min = 1, .nullable = true },
	{ "create_tenant", JSON_F_BOOL, AT(create_tenant), .nullable = true },
};
#undef AT
static const struct json_schema key_schema = { key_fields, ELEMS(key_fields) };

static void on_key_made(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct key_made *made = result;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	put_key(o, made->key, made->text);
	answer_send(r, 201);
}

static void key_create(struct request *r)
{
	struct key_wish w = { 0 };
	struct err e = { 0 };

	if (request_read(r, &key_schema, &w) < 0)
		return;
	answer_await(r, keys_create(r->core, &r->actor, &w, on_key_made, r, &e), &e);
}

static void put_each_key(void *arg, const struct key *k)
{
	put_key(arg, k, NULL);
}

static void key_list(struct request *r)
{
	struct err e = { 0 };
	struct json_out *o = answer_json_list(r, "keys");

	if (keys_each(r->core, &r->actor, put_each_key, o, &e) < 0)
		answer_fail(r, &e);
	else
		answer_send_list(r);
}

static void key_remove(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, keys_remove(r->core, &r->actor, r->params[0], answer_removed, r, &e), &e);
}

/* ---- images ---- */

static void put_words(struct json_out *o, const char *key, const struct json_strlist *l)
{
	if (!l->n)
		return;
	json_out_key(o, key);
	json_out_array(o);
	for (size_t i = 0; i < l->n; i++)
		json_out_str(o, l->items[i]);
	json_out_end(o, ']');
}

/* How an image that was made elsewhere is run, as far as it says so. */
static void put_config(struct json_out *o, const struct image *i)
{
	if (i->user.n)
		json_out_kstr(o, "user", i->user);
	if (i->workdir.n)
		json_out_kstr(o, "workdir", i->workdir);
	if (i->env.n) {
		json_out_key(o, "env");
		json_out_object(o);
		for (size_t k = 0; k < i->env.n; k++) {
			json_out_key_view(o, i->env.keys[k]);
			json_out_str(o, i->env.values[k]);
		}
		json_out_end(o, '}');
	}
	put_words(o, "entrypoint", &i->entrypoint);
	put_words(o, "cmd", &i->cmd);
}

/* Without its end. */
static void begin_image(struct json_out *o, const struct image *i)
{
	json_out_object(o);
	json_out_key(o, "name");
	if (i->n_names)
		json_out_str(o, i->names[0]);
	else
		json_out_null(o);
	json_out_key(o, "names");
	json_out_array(o);
	for (size_t k = 0; k < i->n_names; k++)
		json_out_str(o, i->names[k]);
	json_out_end(o, ']');
	json_out_kstr(o, "digest", i->digest);
	answer_put_time(o, "created_at", i->created_ms);
	json_out_kbool(o, "machine", i->machine);
	put_config(o, i);
}

static void put_image(struct json_out *o, const struct image *i)
{
	begin_image(o, i);
	json_out_end(o, '}');
}

static void put_each_image(void *arg, const struct image *i)
{
	put_image(arg, i);
}

static void image_list(struct request *r)
{
	struct err e = { 0 };
	struct json_out *o = answer_json_list(r, "images");

	if (images_each(r->core, &r->actor, put_each_image, o, &e) < 0)
		answer_fail(r, &e);
	else
		answer_send_list(r);
}

struct image_wish {
	char unused; /* nothing at offset 0 */
	struct view name, snapshot;
};

static const struct json_field image_fields[] = {
	{ "name", JSON_F_STRING, offsetof(struct image_wish, name), .min = 1, .required = true },
	{ "snapshot", JSON_F_STRING, offsetof(struct image_wish, snapshot), .min = 1, .required = true },
};
static const struct json_schema image_schema = { image_fields, ELEMS(image_fields) };

static void on_image(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct err gone = { 0 };

	if (!e && !result)
		err_set(&gone, ERR_STATE, "the image was removed at once");
	if (e || !result) {
		answer_fail(r, e ? e : &gone);
		return;
	}
	struct json_out *o = answer_json(r);
	put_image(o, result);
	answer_send(r, 201);
}

static void image_make(struct request *r)
{
	struct image_wish w = { 0 };
	struct err e = { 0 };

	if (request_read(r, &image_schema, &w) < 0)
		return;
	answer_await(r, images_of_snapshot(r->core, &r->actor, w.name, w.snapshot, on_image, r, &e), &e);
}

static void image_remove(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, images_remove(r->core, &r->actor, r->params[0], answer_removed, r, &e), &e);
}

/* ---- PUT of an image: the body goes to tar as fast as tar takes it ---- */

struct upload {
	struct import import;
	struct request *r;
	struct buf pieces;
	bool last;
};

static void upload_release(struct upload *u)
{
	buf_done(&u->pieces);
}

static void upload_gone(struct request *r)
{
	struct upload *u = r->own;
	import_cancel(&u->import);
	upload_release(u);
}

static void upload_push(struct import *im)
{
	struct upload *u = CONTAINER(im, struct upload, import);

	buf_consume(&u->pieces, import_send(im, buf_view(&u->pieces)));
	if (buf_len(&u->pieces))
		return;
	if (u->last)
		import_end(im);
	else
		http_body_resume(u->r->x);
}

static void upload_done(struct import *im, const struct image *image, const struct err *e)
{
	struct upload *u = CONTAINER(im, struct upload, import);
	uint64_t skipped = im->skipped;
	struct request *r = u->r;

	upload_release(u);
	struct json_out *o = answer_result(r, e);
	if (!o)
		return;
	begin_image(o, image);
	json_out_ku64(o, "skipped", skipped);
	json_out_end(o, '}');
	answer_send(r, 201);
}

static const struct import_ops import_ops = { .on_room = upload_push, .done = upload_done };

static void upload_body(struct http_exchange *x, struct view data, bool last)
{
	struct upload *u = ((struct request *)x->ctx)->own;
	struct err e = { 0 };

	u->last = last;
	if (buf_len(&u->pieces) == 0)
		data = view_skip(data, import_send(&u->import, data));
	if (buf_add(&u->pieces, data) < 0) {
		err_set(&e, ERR_INTERNAL, "the body comes in pieces that are too large");
		import_cancel(&u->import);
		upload_done(&u->import, NULL, &e);
		return;
	}
	if (buf_len(&u->pieces))
		http_body_pause(x);
	else if (last)
		import_end(&u->import);
}

static void upload_abort(struct http_exchange *x)
{
	struct request *r = x->ctx;
	upload_gone(r);
	request_done(r);
}

static const struct http_ops upload_ops = { .on_body = upload_body, .on_abort = upload_abort };

static void image_put(struct request *r)
{
	struct err e = { 0 };
	struct upload *u = request_own(r, sizeof(*u));

	if (!u)
		return;
	u->r = r;
	u->pieces = BUF_INIT(PIECES_MAX);
	u->import.ops = &import_ops;
	r->x->ops = &upload_ops;
	if (import_start(r->core, &r->actor, r->params[0], &u->import, &e) < 0)
		answer_fail(r, &e);
}

/* ---- posture ---- */

static void put_posture(struct json_out *o, const struct backend *p)
{
	json_out_object(o);
	json_out_kstr(o, "backend", p->name);
	json_out_kbool(o, "ok", p->ok);
	json_out_key(o, "parts");
	json_out_array(o);
	for (size_t i = 0; i < p->n; i++) {
		json_out_object(o);
		json_out_kstr(o, "name", p->parts[i].name);
		json_out_kbool(o, "ok", p->parts[i].ok);
		json_out_kbool(o, "required", p->parts[i].required);
		json_out_kstr(o, "detail", p->parts[i].detail);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

static void on_posture(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct json_out *o = answer_result(r, e);

	if (o) { /* of the default backend */
		put_posture(o, core_backend(r->core, VIEW(""), NULL));
		json_out_end(o, '}');
		answer_send(r, 200);
	}
}

static void on_box_posture(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct core_posture *p = result;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	put_posture(o, &p->backends[0]);
	/* What its walls let through on purpose. */
	struct err gone = { 0 };
	const struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_READ, r->params[0], &gone);
	static const struct spec_mount_list none;
	json_out_key(o, "mounts");
	spec_mounts_put(o, b ? &b->spec.mounts : &none);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void posture(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, stats_posture(r->core, &r->actor, on_posture, r, &e), &e);
}

static void box_posture(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, stats_box_posture(r->core, &r->actor, r->params[0], on_box_posture, r, &e), &e);
}

const struct route rest_admin_routes[] = {
	{ "POST", "/v1/keys", key_create, .body = ROUTE_JSON, .audit = "key.create" },
	{ "GET", "/v1/keys", key_list },
	{ "DELETE", "/v1/keys/{id}", key_remove, .audit = "key.delete" },
	{ "GET", "/v1/images", image_list },
	{ "POST", "/v1/images", image_make, .body = ROUTE_JSON, .audit = "image.create", .audit_body = true },
	{ "PUT", "/v1/images/{name}", image_put, .body = ROUTE_STREAM, .audit = "image.import" },
	{ "DELETE", "/v1/images/{name}", image_remove, .audit = "image.delete" },
	{ "GET", "/v1/posture", posture },
	{ "GET", "/v1/sandboxes/{id}/posture", box_posture },
	{ 0 },
};
