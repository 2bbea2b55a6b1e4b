/*
 * /v1/bash/sessions: making sessions, what there is, and their end. See aio_bash.h.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "aio_bash.h"
#include "clock.h"
#include "rnd.h"
#include "poison.h"

/* ---- the table ---- */

void aio_bash_last(const struct aio_bash *s, char ret[AIO_BASH_TAG])
{
	*ret = 0;
	if (s->count)
		snprintf(ret, AIO_BASH_TAG, "cmd-%s-%u", s->key, s->count);
}

bool aio_bash_owns(const struct aio_bash *s, struct view tag)
{
	char start[AIO_BASH_TAG];

	snprintf(start, sizeof(start), "cmd-%s-", s->key);
	return view_starts(tag, start);
}

struct aio_bash *aio_bash_find(const struct request *r, struct view id)
{
	const struct aio_state *st = r->state;

	LIST_EACH (it, &st->bashes) {
		struct aio_bash *s = CONTAINER(it, struct aio_bash, link);
		if (!strcmp(s->box, r->box) && view_is(id, s->id))
			return s;
	}
	return NULL;
}

struct aio_bash *aio_bash_get(struct request *r, struct view id, bool closed_too)
{
	struct aio_bash *s;

	if (!aio_may_exec(r))
		return NULL;
	s = aio_bash_find(r, id);
	if (!s)
		aio_refuse(r, "there is no session \"%.*s\"", (int)MIN(id.n, (size_t)100), id.p);
	else if (s->closed && !closed_too)
		aio_refuse(r, "the session \"%s\" is closed", s->id);
	else
		s->used_ms = clock_wall_ms();
	return s && (!s->closed || closed_too) ? s : NULL;
}

void aio_bash_free(struct aio_bash *s)
{
	list_del(&s->link);
	buf_done(&s->cwd);
	buf_done(&s->profile);
	free(s);
}

/* A session costs a directory's name: the one that nobody used for longest makes place. What it started goes
 * on in the box. */
static void make_place(struct request *r)
{
	struct aio_state *st = r->state;
	struct aio_bash *oldest = NULL;
	unsigned n = 0;

	LIST_EACH (it, &st->bashes) {
		struct aio_bash *s = CONTAINER(it, struct aio_bash, link);
		if (!boxes_by_id(r->core, view_of(s->box))) {
			aio_bash_free(s);
			continue;
		}
		if (strcmp(s->box, r->box) != 0)
			continue;
		n++;
		if (!oldest || (s->closed && !oldest->closed) ||
		    (s->closed == oldest->closed && s->used_ms < oldest->used_ms))
			oldest = s;
	}
	if (n >= AIO_BASH_MAX)
		aio_bash_free(oldest);
}

struct aio_bash *aio_bash_new(struct request *r, struct view id, struct view dir)
{
	struct aio_state *st = r->state;
	struct aio_bash *s;

	if (id.n && (id.n >= AIO_BASH_ID || !spec_is_name(id))) {
		aio_refuse(r, "a session's id must be 1 to %d characters of [A-Za-z0-9._-]", AIO_BASH_ID - 1);
		return NULL;
	}
	make_place(r);
	s = calloc(1, sizeof(*s));
	if (!s) {
		aio_refuse(r, "out of memory");
		return NULL;
	}
	memcpy(s->box, r->box, sizeof(s->box));
	rnd_name(s->key, AIO_BASH_KEY);
	snprintf(s->id, sizeof(s->id), "%.*s", VIEW_ARG(id.n ? id : view_of(s->key)));
	s->created_ms = s->used_ms = clock_wall_ms();
	s->cwd = s->profile = BUF_INIT(SPEC_PATH_MAX);
	buf_add(&s->cwd, dir);
	list_append(&st->bashes, &s->link);
	return s;
}

/* ---- what is said of one ---- */

/* The command of the session that was started last and still runs; NULL: none does. */
static const struct proc_info *current(const struct aio_bash *s, const struct proc_info *list, size_t n)
{
	const struct proc_info *found = NULL;

	for (size_t i = 0; i < n; i++)
		if (list[i].running && aio_bash_owns(s, list[i].tag) &&
		    (!found || list[i].started_ms >= found->started_ms))
			found = &list[i];
	return found;
}

static void put_session(struct json_out *o, const struct request *r, const struct aio_bash *s,
			const struct proc_info *runs)
{
	const struct box *b = boxes_by_id(r->core, view_of(s->box));

	json_out_object(o);
	json_out_kz(o, "session_id", s->id);
	json_out_kz(o, "status", s->closed ? "closed" : "ready");
	json_out_kstr(o, "working_dir",
		      buf_len(&s->cwd) ? buf_view(&s->cwd)
		      : b              ? b->spec.workdir
				       : VIEW("/"));
	answer_put_time(o, "created_at", s->created_ms);
	answer_put_time(o, "last_used_at", s->used_ms);
	json_out_key(o, "current_command");
	if (runs && runs->argv.n)
		json_out_str(o, runs->argv.items[runs->argv.n - 1]);
	else
		json_out_null(o);
	json_out_ku64(o, "command_count", s->count);
	json_out_end(o, '}');
}

/* ---- making one ---- */

struct create_body {
	bool unused;
	struct view id, dir, profile;
};

#define AT(f) .offset = offsetof(struct create_body, f)
static const struct json_field create_fields[] = {
	{ "session_id", JSON_F_STRING, AT(id), .nullable = true },
	{ "exec_dir", JSON_F_STRING, AT(dir), .max = SPEC_PATH_MAX - 1, .nullable = true },
	{ "snapshot_path", JSON_F_STRING, AT(profile), .max = SPEC_PATH_MAX - 1, .nullable = true },
};
#undef AT
static const struct json_schema create_schema = { create_fields, ELEMS(create_fields), .open = true };

static void create(struct request *r)
{
	struct create_body b = { 0 };
	struct aio_bash *s;

	if (aio_read(r, &create_schema, &b) < 0 || !aio_may_exec(r))
		return;
	if (b.dir.n && b.dir.p[0] != '/') {
		aio_unprocessable(r, "exec_dir", "exec_dir: must be an absolute path");
		return;
	}
	s = b.id.n ? aio_bash_find(r, b.id) : NULL;
	if (s && !s->closed) {
		aio_refuse(r, "there is a session \"%s\" already", s->id);
		return;
	}
	if (s)
		aio_bash_free(s); /* a closed one gives its id back */
	s = aio_bash_new(r, b.id, b.dir);
	if (!s)
		return;
	buf_add(&s->profile, b.profile);
	put_session(aio_data(r, NULL), r, s, NULL);
	aio_send(r);
}

/* ---- all of them, and the end of one ---- */

struct asking {
	struct proc_op op;
	struct request *r;
	struct buf tags; /* of what is still to be killed, each ended by NUL */
};

static void release(struct request *r)
{
	struct asking *k = r->own;
	procs_cancel(&k->op);
	buf_done(&k->tags);
}

static void ask(struct request *r,
		void (*done)(struct proc_op *, const struct proc_info *, size_t, const struct err *))
{
	struct asking *k = aio_own(r, sizeof(*k), release);
	struct err e = { 0 };

	if (!k)
		return;
	k->r = r;
	k->tags = BUF_INIT(1024 * 1024);
	k->op.done = done;
	if (procs_list(r->core, &r->actor, view_of(r->box), &k->op, &e) < 0)
		answer_fail(r, &e);
}

static void on_list(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct request *r = CONTAINER(op, struct asking, op)->r;
	const struct aio_state *st = r->state;

	if (e) {
		answer_fail(r, e);
		return;
	}
	struct json_out *o = aio_data(r, NULL);
	json_out_array(o);
	LIST_EACH (it, &st->bashes) {
		const struct aio_bash *s = CONTAINER(it, struct aio_bash, link);
		if (!strcmp(s->box, r->box))
			put_session(o, r, s, current(s, list, n));
	}
	json_out_end(o, ']');
	aio_send(r);
}

static void list(struct request *r)
{
	ask(r, on_list);
}

static void kill_next(struct asking *k);

static void on_killed(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct asking *k = CONTAINER(op, struct asking, op);

	if (e && e->code != ERR_NOT_FOUND) {
		answer_fail(k->r, e);
		return;
	}
	buf_consume(&k->tags, strlen(buf_view(&k->tags).p) + 1);
	kill_next(k);
}

static void kill_next(struct asking *k)
{
	struct request *r = k->r;
	struct err e = { 0 };

	if (buf_len(&k->tags)) {
		k->op = (struct proc_op){ .done = on_killed };
		if (procs_signal(r->core, &r->actor, view_of(r->box), view_of(buf_view(&k->tags).p), SIGKILL,
				 true, &k->op, &e) < 0)
			answer_fail(r, &e);
		return;
	}
	json_out_null(aio_data(r, NULL));
	aio_send(r);
}

static void on_closing(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct asking *k = CONTAINER(op, struct asking, op);
	struct aio_bash *s = e ? NULL : aio_bash_get(k->r, k->r->params[0], false);

	if (e)
		answer_fail(k->r, e);
	if (!s)
		return;
	s->closed = true;
	for (size_t i = 0; i < n; i++)
		if (list[i].running && aio_bash_owns(s, list[i].tag)) {
			buf_add(&k->tags, list[i].tag);
			buf_putc(&k->tags, 0);
		}
	kill_next(k);
}

static void end(struct request *r)
{
	if (aio_bash_get(r, r->params[0], false))
		ask(r, on_closing);
}

const struct route aio_bash_list_routes[] = {
	{ "GET", "/v1/bash/sessions", list, .query = AIO_QUERY },
	{ "POST", "/v1/bash/sessions/create", create, .body = ROUTE_JSON, .schema = &create_schema,
	  .query = AIO_QUERY },
	{ "POST", "/v1/bash/sessions/{session_id}/close", end, .body = ROUTE_WHOLE, .query = AIO_QUERY },
	{ 0 },
};
