/*
 * /v1/audit: who did what, the newest first, in pages.
 */
#include "audit.h"

#include <stdio.h>

#include "clock.h"
#include "num.h"
#include "rest_impl.h"
#include "text.h"
#include "poison.h"

#define PAGE_DEFAULT 100

struct page {
	struct json_out *o;
	uint32_t left;
	uint64_t last; /* the id of the last one that was put */
	bool more;
};

static void put_hash(struct json_out *o, const char *key, const uint8_t hash[32])
{
	char hex[65];

	text_hex(hash, 32, hex);
	json_out_kz(o, key, hex);
}

static bool put(void *arg, const struct audit_entry *v)
{
	struct page *p = arg;
	struct json_out *o = p->o;

	p->more = p->left == 0;
	if (p->more)
		return false;
	p->left--;
	p->last = v->id;
	json_out_object(o);
	json_out_ku64(o, "id", v->id);
	answer_put_time(o, "at", v->at_ms);
	json_out_kz(o, "tenant", v->tenant->name);
	json_out_kz(o, "tenant_id", v->tenant->id);
	json_out_kz(o, "key", v->key);
	json_out_kz(o, "role", keys_role_name(v->role));
	json_out_kz(o, "via", v->via);
	json_out_kz(o, "from", v->from);
	json_out_kz(o, "request_id", v->request);
	json_out_kz(o, "action", v->action);
	json_out_kz(o, "target", v->target);
	json_out_kz(o, "detail", v->detail);
	json_out_kz(o, "verdict", audit_verdict_name(v->verdict));
	json_out_kz(o, "code", v->code[0] ? v->code : NULL);
	if (v->number) {
		json_out_kz(o, "chain", audit_chain_name(v));
		json_out_ku64(o, "number", v->number);
		put_hash(o, "previous", v->before);
		put_hash(o, "hash", v->hash);
	}
	json_out_end(o, '}');
	return true;
}

static int read_time(const struct request *r, const char *name, int64_t *ret, struct err *e)
{
	struct view v = request_query(r, name);

	return v.p && clock_from_rfc3339(v, ret) < 0
		       ? err_set(e, ERR_INVALID, "%s must be a time such as 2026-11-19T08:00:00Z", name)
		       : 0;
}

static int read_filter(const struct request *r, struct audit_filter *f, struct err *e)
{
	struct view cursor = request_query(r, "cursor"), box = request_query(r, "sandbox");
	const struct box *b = box.n ? boxes_find(r->core, &r->actor, ACT_BOX_READ, box, NULL) : NULL;

	f->target = b ? view_of(b->id) : box; /* a removed one is known by its id only */
	f->tenant = request_query(r, "tenant");
	f->action = request_query(r, "kind");
	f->key = request_query(r, "actor");
	if (cursor.p && (num_u64(cursor, &f->before) < 0 || !f->before))
		return err_set(e, ERR_INVALID, "cursor is not one that this server gave");
	return read_time(r, "since", &f->since_ms, e) < 0 ? -1 : read_time(r, "until", &f->until_ms, e);
}

static void list(struct request *r)
{
	struct audit_filter f = { 0 };
	struct page p = { .left = PAGE_DEFAULT };
	struct err e = { 0 };
	char next[24];

	if (request_query_limit(r, AUDIT_KEPT, &p.left, &e) < 0 || read_filter(r, &f, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	p.o = answer_json_list(r, "entries");
	if (audit_each(r->core, &r->actor, &f, put, &p, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	json_out_end(p.o, ']');
	snprintf(next, sizeof(next), "%llu", (unsigned long long)p.last);
	json_out_kz(p.o, "next", p.more ? next : NULL);
	json_out_end(p.o, '}');
	answer_send(r, 200);
}

const struct route rest_audit_routes[] = {
	{ "GET", "/v1/audit", list, .query = "sandbox tenant kind actor since until limit cursor" },
	{ 0 },
};
