/*
 * The audit log: a chain of hashes, so that an entry cannot be changed or taken out without every later one
 * showing it. hash = SHA-256(prev ‖ seq ‖ time ‖ and each text with its length before it), numbers as 8
 * bytes, big-endian.
 */
#include <errno.h>

#include "sha256.h"
#include "signer.h"

#include "poison.h"

#define PAGE       100
#define PAGE_MAX   500
#define PAGE_BYTES (512u * 1024)

struct entry {
	int64_t seq, ts;
	struct view actor, action, object, detail;
};

static void add_number(struct sha256 *h, uint64_t v)
{
	uint8_t be[8];

	for (unsigned i = 0; i < sizeof(be); i++)
		be[i] = (uint8_t)(v >> (56 - 8 * i));
	sha256_add(h, be, sizeof(be));
}

static void count_hash(const uint8_t prev[32], const struct entry *e, uint8_t ret[32])
{
	const struct view texts[] = { e->actor, e->action, e->object, e->detail };
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, prev, 32);
	add_number(&h, (uint64_t)e->seq);
	add_number(&h, (uint64_t)e->ts);
	for (size_t i = 0; i < ELEMS(texts); i++) {
		add_number(&h, texts[i].n);
		sha256_add(&h, texts[i].p, texts[i].n);
	}
	sha256_end(&h, ret);
}

int audit_head(struct signer *s, uint64_t *ret_seq, uint8_t hash[32], struct err *e)
{
	sqlite3_stmt *row = db_ask(&s->db, DB_AUDIT_LAST, "");
	int r = db_row(&s->db, row, e);

	*ret_seq = 0;
	memset(hash, 0, 32);
	if (r == 1 && db_view(row, 1).n == 32) {
		*ret_seq = (uint64_t)sqlite3_column_int64(row, 0);
		memcpy(hash, db_view(row, 1).p, 32);
	}
	db_end(row);
	return r < 0 ? -1 : 0;
}

int audit_newest(struct signer *s, int64_t *ret_ms, struct err *e)
{
	sqlite3_stmt *row = db_ask(&s->db, DB_AUDIT_LAST, "");
	int r = db_row(&s->db, row, e);

	*ret_ms = r == 1 ? sqlite3_column_int64(row, 2) : 0;
	db_end(row);
	return r < 0 ? -1 : 0;
}

int audit_add(struct signer *s, const char *actor, const char *action, struct view object, struct view detail,
	      struct err *e)
{
	uint8_t prev[32], hash[32];
	uint64_t seq;

	if (audit_head(s, &seq, prev, e) < 0)
		return -1;
	const struct entry x = { (int64_t)seq + 1, moment_now(s), view_of(actor),
				 view_of(action),  object,        detail };
	count_hash(prev, &x, hash);
	return db_do(&s->db, DB_AUDIT_ADD, e, "iittttbb", x.seq, x.ts, x.actor, x.action, x.object, x.detail,
		     (struct view){ (const char *)prev, 32 }, (struct view){ (const char *)hash, 32 });
}

static void read_row(sqlite3_stmt *row, struct entry *ret)
{
	*ret = (struct entry){ sqlite3_column_int64(row, 0),
			       sqlite3_column_int64(row, 1),
			       db_view(row, 2),
			       db_view(row, 3),
			       db_view(row, 4),
			       db_view(row, 5) };
}

static int copy_row(struct arena *a, sqlite3_stmt *row, struct sgn_audit_entry *ret)
{
	struct entry x;

	read_row(row, &x);
	*ret = (struct sgn_audit_entry){
		.seq = (uint64_t)x.seq,
		.ts_ms = x.ts,
		.actor = arena_view(a, x.actor),
		.action = arena_view(a, x.action),
		.object = arena_view(a, x.object),
		.detail = arena_view(a, x.detail),
		.prev = arena_view(a, db_view(row, 6)),
		.hash = arena_view(a, db_view(row, 7)),
	};
	return ret->actor.p && ret->action.p && ret->object.p && ret->detail.p && ret->prev.p && ret->hash.p
		       ? 0
		       : -ENOMEM;
}

int audit_call_list(struct signer_call *c, const void *msg, struct err *e)
{
	const struct sgn_audit *m = msg;
	const uint32_t max = m->max ? MIN(m->max, PAGE_MAX) : PAGE;
	struct sgn_audit_reply out = { .entries.items =
					       arena_array(&c->arena, max, sizeof(*out.entries.items)) };
	sqlite3_stmt *row = db_ask(&c->s->db, DB_AUDIT_LIST, "ii",
				   (int64_t)MIN(m->after, (uint64_t)INT64_MAX), (int64_t)max);
	size_t bytes = 0;
	int r = out.entries.items ? 0 : err_set(e, ERR_INTERNAL, "out of memory");

	while (r >= 0 && out.entries.n < max && bytes < PAGE_BYTES && (r = db_row(&c->s->db, row, e)) == 1) {
		struct sgn_audit_entry *x = &out.entries.items[out.entries.n++];
		if (copy_row(&c->arena, row, x) < 0)
			r = err_set(e, ERR_INTERNAL, "out of memory");
		bytes += x->detail.n;
	}
	db_end(row);
	return r < 0 ? -1 : calls_reply(c, &sgn_audit_reply_msg, &out);
}

int audit_call_verify(struct signer_call *c, const void *msg, struct err *e)
{
	struct sgn_audit_verified out = { 0 };
	sqlite3_stmt *row = db_ask(&c->s->db, DB_AUDIT_LIST, "ii", (int64_t)0, (int64_t)INT64_MAX);
	uint8_t prev[32] = { 0 }, hash[32];
	int r;

	(void)msg;
	while ((r = db_row(&c->s->db, row, e)) == 1 && !out.broken_at) {
		struct entry x;
		read_row(row, &x);
		count_hash(prev, &x, hash);
		out.entries++;
		if ((uint64_t)x.seq != out.entries ||
		    !view_eq(db_view(row, 6), (struct view){ (const char *)prev, 32 }) ||
		    !view_eq(db_view(row, 7), (struct view){ (const char *)hash, 32 }))
			out.broken_at = out.entries;
		memcpy(prev, hash, 32);
	}
	db_end(row);
	return r < 0 ? -1 : calls_reply(c, &sgn_audit_verified_msg, &out);
}
