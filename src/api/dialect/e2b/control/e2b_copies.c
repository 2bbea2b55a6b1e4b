/*
 * E2B: forks and snapshots. A copy has the files of a box but not its processes (docs/e2b.md).
 */
#include "disk.h"
#include "e2b_impl.h"
#include "poison.h"

#define PAGE_MAX 100

/* ---- fork ---- */

#define AT(f) .offset = offsetof(struct fork_wish, f)
static const struct json_field fork_fields[] = {
	{ "count", JSON_F_U64, AT(count), .nullable = true },
	{ "timeout", JSON_F_U64, AT(ttl_seconds), .nullable = true },
};
#undef AT
static const struct json_schema fork_schema = { fork_fields, ELEMS(fork_fields) };

static void on_forked(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct fork_result *f = result;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	json_out_array(o);
	for (size_t i = 0; i < f->n; i++) {
		json_out_object(o);
		json_out_key(o, "sandbox");
		e2b_put_sandbox(o, r, f->boxes[i]);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
	answer_send(r, 201);
}

static void fork_one(struct request *r)
{
	struct fork_wish w = { .count = 1, .has_ttl = true, .ttl_seconds = E2B_TIMEOUT_OLD };
	struct err e = { 0 };

	if (e2b_read(r, &fork_schema, &w) < 0)
		return;
	if (e2b_take_timeout(r, w.ttl_seconds, &w.ttl_seconds, &e) >= 0)
		r->job = fork_box(r->core, &r->actor, r->params[0], &w, on_forked, r, &e);
	if (!r->job)
		answer_fail(r, &e);
}

/* ---- snapshots ---- */

struct snapshot_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view name;
};

static const struct json_field snapshot_fields[] = {
	{ "name", JSON_F_STRING, .offset = offsetof(struct snapshot_body, name), .min = 1, .nullable = true },
};
static const struct json_schema snapshot_schema = { snapshot_fields, ELEMS(snapshot_fields) };

static void put_snapshot(void *arg, const struct snapshot *s)
{
	struct json_out *o = arg;

	json_out_object(o);
	json_out_kz(o, "snapshotID", s->id);
	json_out_key(o, "names");
	json_out_array(o);
	if (s->name[0])
		json_out_str(o, view_of(s->name));
	json_out_end(o, ']');
	json_out_end(o, '}');
}

static void on_snapshot(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	put_snapshot(o, result);
	answer_send(r, 201);
}

static void snapshot(struct request *r)
{
	struct snapshot_body body = { 0 };
	struct err e = { 0 };

	if (e2b_read(r, &snapshot_schema, &body) < 0)
		return;
	answer_await(r, snapshots_create(r->core, &r->actor, r->params[0], body.name, on_snapshot, r, &e),
		     &e);
}

struct page {
	struct json_out o;
	const struct core *core;
	struct view name, source, after; /* empty: any; from the beginning */
	uint32_t limit, n;
	bool begun, more;
	char last[BOX_ID + 1];
};

static void put_each(void *arg, const struct snapshot *s)
{
	struct page *p = arg;

	if (!p->begun) {
		p->begun = view_is(p->after, s->id);
		return;
	}
	if (templates_own_snapshot(p->core, s))
		return;
	if ((p->name.n && !view_is(p->name, s->name)) || (p->source.n && !view_is(p->source, s->source)))
		return;
	p->more = p->n == p->limit;
	if (p->more)
		return;
	put_snapshot(&p->o, s);
	memcpy(p->last, s->id, sizeof(p->last));
	p->n++;
}

static int read_page(const struct request *r, struct page *p, struct err *e)
{
	p->limit = PAGE_MAX;
	if (request_query_limit(r, PAGE_MAX, &p->limit, e) < 0)
		return -1;
	p->source = request_query(r, "sandboxID");
	p->name = request_query(r, "name");
	p->after = request_query(r, "nextToken");
	p->begun = !p->after.n;
	return 0;
}

static void list_snapshots(struct request *r)
{
	struct buf out = BUF_INIT(ANSWER_MAX);
	struct page p = { .core = r->core };
	struct err e = { 0 };

	json_out_init(&p.o, &out);
	json_out_array(&p.o);
	if (read_page(r, &p, &e) < 0 || snapshots_each(r->core, &r->actor, put_each, &p, &e) < 0 ||
	    (!p.begun && err_set(&e, ERR_INVALID,
				 "nextToken is not one that this server gave, or its snapshot is gone"))) {
		buf_done(&out);
		answer_fail(r, &e);
		return;
	}
	json_out_end(&p.o, ']');
	const struct http_header next = { VIEW("x-next-token"), view_of(p.last) };
	answer_reply_with(r, 200, &out, &next, p.more ? 1 : 0);
}

const struct route e2b_copies_routes[] = {
	{ "POST", "/sandboxes/{id}/fork", fork_one, .body = ROUTE_JSON, .audit = "sandbox.fork" },
	{ "POST", "/sandboxes/{id}/snapshots", snapshot, .body = ROUTE_JSON, .audit = "sandbox.snapshot" },
	{ "GET", "/snapshots", list_snapshots, .query = "limit nextToken name sandboxID" },
	{ 0 },
};
