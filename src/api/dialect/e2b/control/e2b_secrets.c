/*
 * E2B: secrets, which are the tenant's secrets in the vault. Names are in lower case; an id is "sec_"
 * followed by the name. E2B distinguishes creating from changing a secret and the vault does not, so
 * existing secrets are looked up first.
 */
#include "secret.h"

#include "e2b_network.h"
#include "poison.h"

#define ID_PREFIX "sec_"
#define PAGE      100
#define PAGE_MAX  1000

static void put_secret(struct json_out *o, const struct secret_info *s)
{
	size_t n = s->n_versions;
	struct buf id = BUF_INIT(1024);

	buf_puts(&id, ID_PREFIX);
	buf_add(&id, s->name);
	json_out_object(o);
	json_out_kstr(o, "secretID", buf_view(&id));
	json_out_kstr(o, "name", s->name);
	json_out_ku64(o, "currentVersion", n ? s->versions[0].version : 0);
	answer_put_time(o, "createdAt", n ? s->versions[n - 1].created_ms : 0);
	answer_put_time(o, "updatedAt", n ? s->versions[0].created_ms : 0);
	json_out_kmap(o, "metadata", &s->metadata);
	json_out_end(o, '}');
	buf_done(&id);
}

static void reply_one(struct request *r, int status, const struct secret_info *s)
{
	struct json_out *o = answer_json(r);

	put_secret(o, s);
	answer_send(r, status);
}

struct view e2b_secrets_name(struct arena *a, struct view name)
{
	char *lower = arena_str(a, name);

	for (size_t i = 0; lower && i < name.n; i++)
		if (lower[i] >= 'A' && lower[i] <= 'Z')
			lower[i] = (char)(lower[i] - 'A' + 'a');
	return (struct view){ lower, lower ? name.n : 0 };
}

/* ---- list ---- */

struct page {
	uint32_t limit;
	struct view after;
};

static void put_page(struct json_out *o, const struct secret_list *l, const struct page *p,
		     struct view *ret_next)
{
	uint32_t n = 0;

	json_out_array(o);
	for (size_t i = 0; i < l->n; i++) {
		struct view name = l->secrets[i].name;
		int order = memcmp(name.p, p->after.p, MIN(name.n, p->after.n));
		if (p->after.n && (order < 0 || (order == 0 && name.n <= p->after.n)))
			continue;
		if (n++ == p->limit) {
			*ret_next = l->secrets[i - 1].name;
			break;
		}
		put_secret(o, &l->secrets[i]);
	}
	json_out_end(o, ']');
}

static void on_list(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct buf out = BUF_INIT(ANSWER_MAX);
	struct view next = VIEW_NONE;
	struct json_out o;

	if (!answer_ended(r, e))
		return;
	json_out_init(&o, &out);
	put_page(&o, result, r->own, &next);
	answer_reply_with(r, 200, &out, &(struct http_header){ VIEW("x-next-token"), next }, next.n ? 1 : 0);
}

static void list(struct request *r)
{
	struct view after = request_query(r, "nextToken");
	struct page *p = request_own(r, sizeof(*p));
	struct err e = { 0 };

	if (!p)
		return;
	*p = (struct page){ PAGE, after.p ? after : VIEW("") };
	if (request_query_limit(r, PAGE_MAX, &p->limit, &e) >= 0)
		r->job = secrets_list(r->core, &r->actor, &(struct secret_place){ .name = VIEW_NONE },
				      on_list, r, &e);
	if (!r->job)
		answer_fail(r, &e);
}

/* ---- one ---- */

struct body {
	bool unused; /* the schema puts nothing at offset 0 */
	bool has_metadata;
	struct view name, value;
	struct json_strmap metadata;
};

#define VALUE                                                                                                \
	{ "value", JSON_F_STRING, .offset = offsetof(struct body, value), .min = 1, .required = true },      \
	{                                                                                                    \
		"metadata", JSON_F_STRMAP, .offset = offsetof(struct body, metadata),                        \
					   .has = offsetof(struct body, has_metadata), .nullable = true      \
	}
static const struct json_field create_fields[] = {
	{ "name", JSON_F_STRING, .offset = offsetof(struct body, name), .min = 1, .required = true },
	VALUE,
};
static const struct json_field update_fields[] = { VALUE };
#undef VALUE
static const struct json_schema create_schema = { create_fields, ELEMS(create_fields) };
static const struct json_schema update_schema = { update_fields, ELEMS(update_fields) };

struct work {
	struct view ref;  /* a name or an id */
	struct view name; /* as the vault has it */
	struct body body;
	void (*found)(struct request *r, const struct secret_info *s); /* NULL: there is none */
};

static const struct secret_info *find(const struct secret_list *l, struct view name)
{
	for (size_t i = 0; i < l->n; i++)
		if (view_eq(l->secrets[i].name, name))
			return &l->secrets[i];
	return NULL;
}

/* As it is written, then as E2B would have stored it, then as an id. */
static const struct secret_info *find_ref(struct request *r, const struct secret_list *l, struct view ref)
{
	const struct secret_info *s = find(l, ref);

	if (!s)
		s = find(l, e2b_secrets_name(r->x->arena, ref));
	if (!s && view_starts(ref, ID_PREFIX))
		s = find(l, view_skip(ref, sizeof(ID_PREFIX) - 1));
	return s;
}

static void on_looked(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct work *w = r->own;

	if (!answer_ended(r, e))
		return;
	const struct secret_info *s = find_ref(r, result, w->ref);
	if (s)
		w->name = arena_view(r->x->arena, s->name);
	w->found(r, s);
}

static struct work *work_new(struct request *r, void (*found)(struct request *r, const struct secret_info *s))
{
	struct work *w = request_own(r, sizeof(*w));

	if (w) {
		w->ref = r->params[0];
		w->found = found;
	}
	return w;
}

static void look(struct request *r)
{
	struct err e = { 0 };
	answer_await(r,
		     secrets_list(r->core, &r->actor, &(struct secret_place){ .name = VIEW_NONE }, on_looked,
				  r, &e),
		     &e);
}

static void none(struct request *r)
{
	struct err e = { 0 };
	err_set(&e, ERR_NOT_FOUND, "no such secret");
	answer_fail(r, &e);
}

static void show(struct request *r, const struct secret_info *s)
{
	if (s)
		reply_one(r, 200, s);
	else
		none(r);
}

static void get(struct request *r)
{
	if (work_new(r, show))
		look(r);
}

/* ---- set ---- */

static void on_put(struct request *r, int status, const struct secret_info *info, const struct err *e)
{
	if (answer_ended(r, e))
		reply_one(r, status, info);
}

static void on_created(void *arg, const void *result, const struct err *e)
{
	on_put(arg, 201, result, e);
}

static void on_updated(void *arg, const void *result, const struct err *e)
{
	on_put(arg, 200, result, e);
}

static void set(struct request *r, struct view name, job_done *done)
{
	const struct work *w = r->own;
	/* E2B: what is given replaces what was stored, and an update without any leaves it. */
	const struct secret_place place = { .name = name,
					    .metadata = w->body.has_metadata ? &w->body.metadata : NULL };
	struct err e = { 0 };
	answer_await(r, secrets_put(r->core, &r->actor, &place, w->body.value, done, r, &e), &e);
}

/* On failure the answer is sent. */
static int read_body(struct request *r, const struct json_schema *s, struct work *w)
{
	return request_read(r, s, &w->body);
}

static void create_where_none(struct request *r, const struct secret_info *s)
{
	struct work *w = r->own;
	struct err e = { 0 };

	if (!s) {
		set(r, w->ref, on_created);
		return;
	}
	err_set(&e, ERR_CONFLICT, "there is a secret with this name already");
	answer_fail(r, &e);
}

static void create(struct request *r)
{
	struct work *w = work_new(r, create_where_none);
	struct err e = { 0 };

	if (!w || read_body(r, &create_schema, w) < 0)
		return;
	w->ref = e2b_secrets_name(r->x->arena, w->body.name);
	if (w->ref.n && !view_starts(w->ref, ID_PREFIX)) {
		look(r);
		return;
	}
	err_set(&e, ERR_INVALID, "name must not begin with " ID_PREFIX);
	answer_fail(r, &e);
}

static void update_found(struct request *r, const struct secret_info *s)
{
	const struct work *w = r->own;

	if (s)
		set(r, w->name, on_updated);
	else
		none(r);
}

static void update(struct request *r)
{
	struct work *w = work_new(r, update_found);
	if (w && read_body(r, &update_schema, w) >= 0)
		look(r);
}

static void remove_found(struct request *r, const struct secret_info *s)
{
	const struct work *w = r->own;
	struct err e = { 0 };

	if (s)
		answer_await(r,
			     secrets_remove(r->core, &r->actor, &(struct secret_place){ .name = w->name },
					    answer_removed, r, &e),
			     &e);
	else
		none(r);
}

static void remove_one(struct request *r)
{
	if (work_new(r, remove_found))
		look(r);
}

const struct route e2b_secrets_routes[] = {
	{ "GET", "/secrets", list, .query = "limit nextToken" },
	{ "POST", "/secrets", create, .body = ROUTE_JSON, .secret = true, .audit = "secret.set" },
	{ "GET", "/secrets/{id}", get },
	{ "POST", "/secrets/{id}", update, .body = ROUTE_JSON, .secret = true, .audit = "secret.set" },
	{ "DELETE", "/secrets/{id}", remove_one, .audit = "secret.delete" },
	{ 0 },
};
