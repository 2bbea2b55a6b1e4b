/*
 * /v1/shell/sessions: making sessions, what there is, and their end. What there is the core knows.
 */
#include <stdio.h>

#include "aio_shell.h"
#include "clock.h"
#include "text.h"
#include "poison.h"

/* ---- one ---- */

struct session_body {
	bool symlinks, has_quiet;
	struct view id, dir;
	uint64_t quiet;
};

#define AT(f) .offset = offsetof(struct session_body, f)
static const struct json_field create_fields[] = {
	{ "id", JSON_F_STRING, AT(id), .nullable = true },
	{ "exec_dir", JSON_F_STRING, AT(dir), .nullable = true },
	{ "no_change_timeout", JSON_F_U64, AT(quiet), .has = offsetof(struct session_body, has_quiet),
	  .max = AIO_SECONDS_MAX, .nullable = true },
	{ "preserve_symlinks", JSON_F_BOOL, AT(symlinks), .nullable = true },
};
static const struct json_schema create_schema = { create_fields, ELEMS(create_fields), .open = true };
static const struct json_field update_fields[] = {
	{ "id", JSON_F_STRING, AT(id), .required = true },
	{ "no_change_timeout", JSON_F_U64, AT(quiet), .has = offsetof(struct session_body, has_quiet),
	  .max = AIO_SECONDS_MAX, .nullable = true },
};
static const struct json_schema update_schema = { update_fields, ELEMS(update_fields), .open = true };
#undef AT

struct creating {
	struct aio_wait wait;
	struct aio_adopt adopt;
	struct session_body body;
	char name[AIO_SHELL_NAME];
};

static void creating_release(struct request *r)
{
	struct creating *k = r->own;

	shells_cancel(&k->adopt.op);
	aio_wait_release(&k->wait);
}

static void create_known(struct request *r)
{
	struct creating *k = r->own;
	const struct session_body b = k->body;
	_cleanup_(buf_done) struct buf text = BUF_INIT(64 * 1024);
	struct aio_wait *w = &k->wait;
	struct aio_shell *s = aio_shell_find(r->state, r->box, k->name);

	if (!s && !aio_shell_adopt(r, &k->adopt, create_known))
		return;
	if (s) { /* it is as it is */
		w->r = r;
		w->shell = s;
		aio_wait_over(w, &(struct aio_wait_end){ .status = s->status });
		return;
	}
	s = aio_shell_new(r, k->name, !b.id.n);
	if (!s)
		return;
	if (b.has_quiet)
		s->quiet_ms = b.quiet * 1000;
	buf_puts(&text, "builtin ");
	if (b.dir.n) {
		buf_puts(&text, b.symlinks ? "cd -L -- " : "cd -P -- ");
		text_quote_word(&text, b.dir);
	} else {
		buf_puts(&text, ":");
	}
	if (aio_shell_run(r, s, buf_view(&text), VIEW(""), 0) < 0)
		aio_shell_free(s);
	else
		aio_wait_begin(w, r, s, 0);
}

static void create(struct request *r)
{
	struct creating *k = aio_own(r, sizeof(*k), creating_release);

	if (!k)
		return;
	list_init(&k->wait.link);
	k->wait.kind = AIO_WAIT_CREATED;
	if (aio_read(r, &create_schema, &k->body) < 0 || !aio_shell_name(r, k->body.id, k->name) ||
	    !aio_may_exec(r))
		return;
	if (k->body.dir.n && k->body.dir.p[0] != '/') {
		aio_unprocessable(r, "exec_dir", "exec_dir: must be an absolute path");
		return;
	}
	create_known(r);
}

static void update(struct request *r)
{
	struct session_body b = { 0 };
	struct aio_shell *s;

	if (aio_read(r, &update_schema, &b) < 0 || !(s = aio_shell_get(r, b.id)))
		return;
	if (b.has_quiet)
		s->quiet_ms = b.quiet * 1000;
	struct json_out *o = aio_data(r, NULL);
	json_out_object(o);
	json_out_kz(o, "session_id", aio_shell_id(s));
	json_out_ku64(o, "no_change_timeout", s->quiet_ms / 1000);
	json_out_end(o, '}');
	aio_send(r);
}

/* ---- all ---- */

struct asking {
	struct shells_op op;
	struct request *r;
	struct buf names; /* of sessions that are still to be removed, each ended by NUL */
	unsigned removed;
};

static void release(struct request *r)
{
	struct asking *k = r->own;
	shells_cancel(&k->op);
	buf_done(&k->names);
}

/* One that makes place is gone, although its shell has not ended yet. */
static bool is_session(const struct request *r, const struct shell_info *s)
{
	const struct aio_state *st = r->state;
	bool leaves = false;

	LIST_EACH (it, &st->shells) {
		const struct aio_shell *one = CONTAINER(it, struct aio_shell, link);
		leaves |= one->leaving && !strcmp(one->box, r->box) && view_is(s->name, one->name);
	}
	return view_starts(s->name, "aio.") && !leaves;
}

static void put_session(struct json_out *o, const struct aio_state *st, const char *box,
			const struct shell_info *i)
{
	char name[AIO_SHELL_NAME] = "";
	struct aio_shell *s =
		view_to_str(i->name, name, sizeof(name)) < 0 ? NULL : aio_shell_find(st, box, name);
	int64_t created = s ? s->created_ms : i->started_ms;

	json_out_key_view(o, view_skip(i->name, strlen("aio.")));
	json_out_object(o);
	json_out_kstr(o, "working_dir", i->cwd);
	answer_put_time(o, "created_at", created ? created : clock_wall_ms());
	answer_put_time(o, "last_used_at", s ? s->used_ms : created ? created : clock_wall_ms());
	json_out_ki64(o, "age_seconds", created ? MAX(clock_wall_ms() - created, 0) / 1000 : 0);
	json_out_kz(o, "status", i->busy ? "running" : "idle");
	json_out_key(o, "current_command");
	if (s && s->running && buf_len(&s->command))
		json_out_str(o, buf_view(&s->command));
	else
		json_out_null(o);
	json_out_end(o, '}');
}

static void on_list(struct shells_op *op, const struct shell_info *list, size_t n, const struct err *e)
{
	struct request *r = CONTAINER(op, struct asking, op)->r;

	if (e) {
		answer_fail(r, e);
		return;
	}
	struct json_out *o = aio_data(r, NULL);
	json_out_object(o);
	json_out_key(o, "sessions");
	json_out_object(o);
	for (size_t i = 0; i < n; i++)
		if (is_session(r, &list[i]))
			put_session(o, r->state, r->box, &list[i]);
	json_out_end(o, '}');
	json_out_end(o, '}');
	aio_send(r);
}

static void on_stats(struct shells_op *op, const struct shell_info *list, size_t n, const struct err *e)
{
	struct request *r = CONTAINER(op, struct asking, op)->r;
	unsigned all = 0, busy = 0;

	if (e) {
		answer_fail(r, e);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		bool session = is_session(r, &list[i]);
		all += session;
		busy += session && list[i].busy;
	}
	struct json_out *o = aio_data(r, NULL);
	json_out_object(o);
	json_out_ku64(o, "total_sessions", all);
	json_out_ku64(o, "active_sessions", busy);
	json_out_ku64(o, "idle_sessions", all - busy);
	json_out_ku64(o, "max_sessions", AIO_SHELL_MAX);
	json_out_ku64(o, "session_timeout", 0); /* they live as long as the sandbox */
	json_out_key(o, "usage_ratio");
	json_out_double(o, (double)all / AIO_SHELL_MAX);
	json_out_end(o, '}');
	aio_send(r);
}

static struct asking *ask(struct request *r, void (*done)(struct shells_op *, const struct shell_info *,
							  size_t, const struct err *))
{
	struct asking *k = aio_own(r, sizeof(*k), release);

	if (!k)
		return NULL;
	k->r = r;
	k->op.done = done;
	k->names = BUF_INIT(SHELLS_MAX * AIO_SHELL_NAME * 2);
	return k;
}

static void ask_list(struct request *r,
		     void (*done)(struct shells_op *, const struct shell_info *, size_t, const struct err *))
{
	struct asking *k = ask(r, done);
	struct err e = { 0 };

	if (k && shells_list(r->core, &r->actor, view_of(r->box), VIEW_NONE, &k->op, &e) < 0)
		answer_fail(r, &e);
}

static void list(struct request *r)
{
	ask_list(r, on_list);
}

static void stats(struct request *r)
{
	ask_list(r, on_stats);
}

/* ---- the end ---- */

static void forget(struct request *r, const char *name)
{
	struct aio_shell *s = aio_shell_find(r->state, r->box, name);

	if (s)
		aio_shell_free(s);
}

static void remove_next(struct asking *k);

static void on_removed(struct shells_op *op, const struct shell_info *list, size_t n, const struct err *e)
{
	struct asking *k = CONTAINER(op, struct asking, op);
	struct view rest, name = view_split(buf_view(&k->names), 0, &rest);

	if (e && e->code != ERR_NOT_FOUND) {
		answer_fail(k->r, e);
		return;
	}
	forget(k->r, name.p); /* ended by NUL */
	k->removed++;
	buf_consume(&k->names, name.n + 1);
	remove_next(k);
}

static void remove_next(struct asking *k)
{
	struct request *r = k->r;
	struct err e = { 0 };

	if (buf_len(&k->names)) {
		k->op = (struct shells_op){ .done = on_removed };
		if (shells_remove(r->core, &r->actor, view_of(r->box), view_of(buf_view(&k->names).p), &k->op,
				  &e) < 0)
			answer_fail(r, &e);
		return;
	}
	struct json_out *o = aio_data(r, NULL);
	json_out_object(o);
	json_out_ku64(o, "removed", k->removed);
	json_out_end(o, '}');
	aio_send(r);
}

static void on_all(struct shells_op *op, const struct shell_info *list, size_t n, const struct err *e)
{
	struct asking *k = CONTAINER(op, struct asking, op);

	if (e) {
		answer_fail(k->r, e);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (is_session(k->r, &list[i])) {
			buf_add(&k->names, list[i].name);
			buf_putc(&k->names, 0);
		}
	remove_next(k);
}

static void remove_all(struct request *r)
{
	ask_list(r, on_all);
}

/* Whether there is such a one the core knows, who also knows those from before a restart. */
static void on_one(struct shells_op *op, const struct shell_info *list, size_t n, const struct err *e)
{
	struct asking *k = CONTAINER(op, struct asking, op);

	if (e && e->code == ERR_NOT_FOUND)
		aio_refuse(k->r, "there is no session \"%.*s\"", (int)MIN(k->r->params[0].n, (size_t)100),
			   k->r->params[0].p);
	else if (e)
		answer_fail(k->r, e);
	else
		remove_next(k);
}

static void remove_one(struct request *r)
{
	struct asking *k = ask(r, on_one);
	char name[AIO_SHELL_NAME];
	struct err e = { 0 };

	if (!k || !aio_shell_name(r, r->params[0], name))
		return;
	buf_puts(&k->names, name);
	buf_putc(&k->names, 0);
	if (k->names.bad)
		aio_refuse(r, "out of memory");
	else if (shells_list(r->core, &r->actor, view_of(r->box), view_of(buf_view(&k->names).p), &k->op,
			     &e) < 0)
		answer_fail(r, &e);
}

const struct route aio_shell_list_routes[] = {
	{ "POST", "/v1/shell/sessions/create", create, .body = ROUTE_JSON, .schema = &create_schema,
	  .query = AIO_QUERY },
	{ "POST", "/v1/shell/sessions/update", update, .body = ROUTE_JSON, .schema = &update_schema,
	  .query = AIO_QUERY },
	{ "GET", "/v1/shell/sessions/stats", stats, .query = AIO_QUERY },
	{ "GET", "/v1/shell/sessions", list, .query = AIO_QUERY },
	{ "DELETE", "/v1/shell/sessions", remove_all, .query = AIO_QUERY },
	{ "DELETE", "/v1/shell/sessions/{session_id}", remove_one, .query = AIO_QUERY },
	{ 0 },
};
