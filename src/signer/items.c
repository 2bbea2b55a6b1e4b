/*
 * Requests in the database, and the steps that need no decision.
 */
#include <errno.h>
#include <stdio.h>

#include "log.h"
#include "hexjson.h"
#include "signer.h"

#include "poison.h"

#define ITEM_MAX     (512u * 1024)
#define PAGE         100
#define PAGE_MAX     500
#define PAGE_BYTES   (512u * 1024) /* after which a page ends */
#define AGENTS_MAX   (256u * 1024)
#define WATCH_MS     1000
#define ATTEMPTS_MAX 32

static int encode(const struct sgn_item *i, struct buf *out, struct err *e)
{
	return pb_encode(&sgn_item_msg, i, out) < 0 ? err_set(e, ERR_TOO_LARGE, "the request is too large")
						    : 0;
}

static int read_row(struct signer_call *c, sqlite3_stmt *row, struct item *ret, struct err *e)
{
	const struct view body = arena_view(&c->arena, db_view(row, 0)), content = db_view(row, 2);

	*ret = (struct item){ .gas_hint = (uint64_t)sqlite3_column_int64(row, 1) };
	if (!body.p || content.n != sizeof(ret->content) ||
	    pb_decode(&sgn_item_msg, body, 0, &c->arena, &ret->i) < 0)
		return err_set(e, ERR_INTERNAL, "a request in the database is damaged");
	memcpy(ret->content, content.p, sizeof(ret->content));
	ret->i.seq = (uint64_t)sqlite3_column_int64(row, 3);
	return 0;
}

int items_take(struct signer_call *c, sqlite3_stmt *row, struct item *ret, struct err *e)
{
	int r = db_row(&c->s->db, row, e);

	if (r == 1 && read_row(c, row, ret, e) < 0)
		r = -1;
	db_end(row);
	return r;
}

int items_get(struct signer_call *c, struct view id, struct item *ret, struct err *e)
{
	int r = items_take(c, db_ask(&c->s->db, DB_REQUEST_GET, "t", id), ret, e);

	if (r == 0)
		return err_set(e, ERR_NOT_FOUND, "there is no request %.*s", VIEW_ARG(view_head(id, 64)));
	return r < 0 ? -1 : 0;
}

int items_insert(struct signer *s, struct item *i, struct view idem, struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(ITEM_MAX);

	i->i.changed_ms = i->i.created_ms;
	if (encode(&i->i, &body, e) < 0)
		return -1;
	if (db_do(&s->db, DB_REQUEST_ADD, e, "tttitbiiib", i->i.id, i->i.agent, i->i.wallet,
		  (int64_t)i->i.state, idem, (struct view){ (const char *)i->content, sizeof(i->content) },
		  i->i.created_ms, i->i.expires_ms, (int64_t)MIN(i->gas_hint, (uint64_t)INT64_MAX),
		  buf_view(&body)) < 0)
		return -1;
	i->i.seq = (uint64_t)sqlite3_last_insert_rowid(s->db.db);
	return 0;
}

int items_update(struct signer *s, struct sgn_item *i, struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(ITEM_MAX);

	if (!i->sure) /* which is no other state */
		i->changed_ms = moment_now(s);
	if (encode(i, &body, e) < 0)
		return -1;
	return db_do(&s->db, DB_REQUEST_UPDATE, e, "iibit", (int64_t)i->state, i->expires_ms, buf_view(&body),
		     (int64_t)i->sure, i->id);
}

int items_reply(struct signer_call *c, struct sgn_item *i)
{
	return calls_reply(c, &sgn_item_reply_msg, &(struct sgn_item_reply){ .item = i });
}

int items_audit(struct signer *s, const struct sgn_item *i, const char *actor, const char *action,
		struct view note, struct err *e)
{
	_cleanup_(buf_done) struct buf detail = BUF_INIT(ITEM_MAX);
	struct json_out o;

	json_out_init(&o, &detail);
	json_out_object(&o);
	json_out_kz(&o, "state", sgn_state_name(i->state));
	json_out_kstr(&o, "agent", i->agent);
	json_out_kstr(&o, "wallet", i->wallet);
	json_out_ku64(&o, "chain", i->chain);
	json_out_kstr(&o, "class", i->call_class);
	json_out_kstr(&o, "summary", i->summary);
	json_out_kstr_any(&o, "error", i->error);
	json_out_kstr_any(&o, "note", note);
	hexjson_put(&o, "digest", i->digest);
	hexjson_put(&o, "hash", i->hash);
	json_out_key(&o, "trace");
	json_out_array(&o);
	for (size_t k = 0; k < i->trace.n; k++)
		json_out_str(&o, i->trace.items[k].text);
	json_out_end(&o, ']');
	json_out_end(&o, '}');
	if (detail.bad)
		return err_set(e, ERR_TOO_LARGE, "the entry of the audit log is too large");
	return audit_add(s, actor, action, i->id, buf_view(&detail), e);
}

int items_move(struct signer_call *c, struct sgn_item *i, int32_t to, const char *actor, struct view note,
	       struct err *e)
{
	struct signer *s = c->s;
	const int32_t from = i->state;
	/* What was never signed cannot be spent. */
	const bool release = states_releases(to) || (from == SGN_STATE_APPROVED && to == SGN_STATE_FAILED);

	if (!states_may(from, to))
		return err_set(e, ERR_STATE, "the request is %s", sgn_state_name(from));
	i->state = to;
	if (states_unsigned(to))
		i->data = view_head(i->data, ITEMS_DATA_KEPT);
	if (db_begin(&s->db, e) < 0 || (release && holds_release_rows(s, i->id, e) < 0) ||
	    (states_revives(from, to) && holds_again_rows(s, i->id, e) < 0) || items_update(s, i, e) < 0 ||
	    items_audit(s, i, actor, sgn_state_name(to), note, e) < 0 || db_commit(&s->db, e) < 0) {
		db_rollback(&s->db);
		i->state = from;
		return -1;
	}
	if (release)
		holds_release(s, i->id);
	calls_changed(c, i->id);
	return 0;
}

/* Every signature that was made for it. */
static int read_attempts(struct signer_call *c, struct sgn_item *i, struct err *e)
{
	sqlite3_stmt *row = db_ask(&c->s->db, DB_SIGNATURE_LIST, "t", i->id);
	int r = 0;

	i->attempts.items = arena_array(&c->arena, ATTEMPTS_MAX, sizeof(*i->attempts.items));
	while (i->attempts.items && i->attempts.n < ATTEMPTS_MAX && (r = db_row(&c->s->db, row, e)) == 1)
		i->attempts.items[i->attempts.n++] =
			(struct sgn_attempt){ .generation = (uint32_t)sqlite3_column_int(row, 0),
					      .hash = arena_view(&c->arena, db_view(row, 1)),
					      .nonce = i->nonce, /* all have the same */
					      .raw = arena_view(&c->arena, db_view(row, 3)),
					      .signed_ms = sqlite3_column_int64(row, 4) };
	db_end(row);
	return r < 0 ? -1 : 0;
}

int items_call_get(struct signer_call *c, const void *msg, struct err *e)
{
	struct item i;

	if (items_get(c, ((const struct sgn_get *)msg)->id, &i, e) < 0 || read_attempts(c, &i.i, e) < 0)
		return -1;
	return items_reply(c, &i.i);
}

/* Without what is large. A row may be as large as all of a page, so that each is read by itself. */
static int list_one(struct signer_call *c, sqlite3_stmt *row, struct sgn_item *ret, size_t *bytes,
		    struct err *e)
{
	struct signer_call one = { .s = c->s, .arena = ARENA_INIT(4 * ITEM_MAX) };
	_cleanup_(buf_done) struct buf body = BUF_INIT(ITEM_MAX);
	struct item i;
	int r = read_row(&one, row, &i, e);

	if (r == 0) {
		i.i.data = i.i.raw = i.i.tree = VIEW("");
		i.i.trace.n = i.i.moves.n = 0;
		r = encode(&i.i, &body, e);
	}
	arena_done(&one.arena);
	if (r < 0)
		return -1;
	const struct view kept = arena_view(&c->arena, buf_view(&body));
	if (!kept.p || pb_decode(&sgn_item_msg, kept, 0, &c->arena, ret) < 0)
		return err_set(e, ERR_INTERNAL, "out of memory");
	*bytes += kept.n;
	return 0;
}

/* For the query: a list in JSON, or nothing where all are meant. */
static int agents_text(const struct sgn_list *m, struct buf *out, struct err *e)
{
	struct json_out o;

	if (m->agents.n == 0)
		return 0;
	json_out_init(&o, out);
	json_out_array(&o);
	for (size_t i = 0; i < m->agents.n; i++)
		json_out_str(&o, m->agents.items[i]);
	json_out_end(&o, ']');
	return out->bad ? err_set(e, ERR_TOO_LARGE, "list: too many agents") : 0;
}

int items_call_list(struct signer_call *c, const void *msg, struct err *e)
{
	const struct sgn_list *m = msg;
	const uint32_t max = m->max ? MIN(m->max, PAGE_MAX) : PAGE;
	struct sgn_list_reply out = { .items.items = arena_array(&c->arena, max, sizeof(*out.items.items)) };
	_cleanup_(buf_done) struct buf agents = BUF_INIT(AGENTS_MAX);
	size_t bytes = 0;
	int r = 0;

	if (!out.items.items || agents_text(m, &agents, e) < 0)
		return out.items.items ? -1 : err_set(e, ERR_INTERNAL, "out of memory");
	sqlite3_stmt *row =
		db_ask(&c->s->db, DB_REQUEST_LIST, "tititi", m->agent, (int64_t)m->state, m->after,
		       (int64_t)max + 1, buf_len(&agents) ? buf_view(&agents) : VIEW(""), (int64_t)m->unsure);
	while ((r = db_row(&c->s->db, row, e)) == 1) {
		out.more = out.items.n == max || bytes > PAGE_BYTES;
		if (out.more)
			break;
		r = list_one(c, row, &out.items.items[out.items.n], &bytes, e);
		if (r < 0)
			break;
		out.items.n++;
	}
	db_end(row);
	return r < 0 ? -1 : calls_reply(c, &sgn_list_reply_msg, &out);
}

/* ---- time ---- */

static int expire(struct signer *s, struct err *e)
{
	int r = 1;

	while (r == 1) {
		struct signer_call c = { .s = s, .arena = ARENA_INIT(4 * ITEM_MAX) };
		struct item i;
		r = items_take(&c, db_ask(&s->db, DB_REQUEST_OVERDUE, "i", moment_now(s)), &i, e);
		if (r == 1) {
			i.i.decided_ms = moment_now(s);
			if (items_move(&c, &i.i, SGN_STATE_EXPIRED, "signer", VIEW(""), e) < 0)
				r = -1;
		}
		arena_done(&c.arena);
	}
	return r;
}

static int count_open(struct signer *s, struct err *e)
{
	sqlite3_stmt *row = db_ask(&s->db, DB_REQUEST_OPEN, "");
	int r = db_row(&s->db, row, e);
	const int n = r == 1 ? sqlite3_column_int(row, 0) : 0;

	db_end(row);
	return r < 0 ? -1 : n;
}

static bool any_open(struct signer *s, struct err *e)
{
	sqlite3_stmt *row = db_ask(&s->db, DB_REQUEST_ANY_OPEN, "");
	int r = db_row(&s->db, row, e);

	db_end(row);
	return r != 0; /* also where it cannot be told */
}

static void on_time(struct loop_timer *t)
{
	struct signer *s = CONTAINER(t, struct signer, expiry);

	items_watch(s);
	batch_commit(s);
}

void items_watch(struct signer *s)
{
	struct err e = { 0 };

	if (expire(s, &e) < 0)
		log_error("ending overdue requests: %s", e.msg);
	if (!loop_timer_active(&s->expiry) && any_open(s, &e))
		loop_timer_start(s->loop, &s->expiry, WATCH_MS, on_time);
}

/* ---- the kill switch ---- */

int items_load_paused(struct signer *s, struct err *e)
{
	sqlite3_stmt *row = db_ask(&s->db, DB_META_GET, "t", VIEW("paused"));
	int r = db_row(&s->db, row, e);

	s->paused = r == 1 && view_is(db_view(row, 0), "1");
	db_end(row);
	return r < 0 ? -1 : 0;
}

/* 1: there was one. Each has memory of its own: together they may be larger than a call. */
static int cancel_one(struct signer_call *c, struct err *e)
{
	struct signer_call one = { .s = c->s, .role = c->role, .arena = ARENA_INIT(4 * ITEM_MAX) };
	struct item i;
	int r = items_take(&one, db_ask(&c->s->db, DB_REQUEST_OVERDUE, "i", (int64_t)INT64_MAX), &i, e);

	if (r == 1) {
		i.i.decided_ms = moment_now(c->s);
		i.i.decided_by = VIEW("kill switch");
		if (items_move(&one, &i.i, SGN_STATE_CANCELLED, calls_actor(c), VIEW("kill switch"), e) < 0)
			r = -1;
	}
	arena_done(&one.arena);
	return r;
}

static int cancel_all(struct signer_call *c, uint32_t *ret, struct err *e)
{
	int r;

	while ((r = cancel_one(c, e)) == 1)
		++*ret;
	return r;
}

int items_call_pause(struct signer_call *c, const void *msg, struct err *e)
{
	const struct sgn_pause *m = msg;
	struct sgn_paused out = { 0 };
	const bool before = c->s->paused;

	if (before && !m->paused && c->role != SGN_SIGNER_ROLE_OWNER)
		return err_set(e, ERR_FORBIDDEN, "only the owner may end a pause");
	if (db_begin(&c->s->db, e) < 0 ||
	    db_do(&c->s->db, DB_META_PUT, e, "tb", VIEW("paused"), m->paused ? VIEW("1") : VIEW("0")) < 0 ||
	    audit_add(c->s, calls_actor(c), m->paused ? "pause" : "resume", VIEW(""), VIEW("{}"), e) < 0 ||
	    db_commit(&c->s->db, e) < 0) {
		db_rollback(&c->s->db);
		return -1;
	}
	c->s->paused = m->paused;
	if (m->cancel_pending && cancel_all(c, &out.cancelled, e) < 0)
		return -1;
	return calls_reply(c, &sgn_paused_msg, &out);
}

int items_call_status(struct signer_call *c, const void *msg, struct err *e)
{
	struct sgn_status_reply out = { .paused = c->s->paused };
	uint8_t hash[32];
	sqlite3_stmt *row = db_ask(&c->s->db, DB_WALLET_LIST, "");
	int r, n;

	(void)msg;
	while ((r = db_row(&c->s->db, row, e)) == 1)
		out.wallets++;
	db_end(row);
	n = r < 0 ? -1 : count_open(c->s, e);
	if (n < 0 || audit_head(c->s, &out.audit_seq, hash, e) < 0)
		return -1;
	out.pending = (uint32_t)n;
	out.audit_hash = (struct view){ (const char *)hash, sizeof(hash) };
	return calls_reply(c, &sgn_status_reply_msg, &out);
}
