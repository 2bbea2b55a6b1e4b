/*
 * Templates in the store: a row each, with its builds as a JSON document. A build that was under way when the
 * daemon went down ends with a reason when it is loaded. Of the newest builds the logs are there, too.
 */
#include <errno.h>
#include <stdio.h>

#include "core_base.h"
#include "keys.h"
#include "store_events.h"
#include "templates.h"
#include "who.h"
#include "poison.h"

#define DOC_MAX    (64u * 1024 * 1024)
#define LOG_BUILDS 10            /* newest ones whose logs are stored */
#define LOG_BYTES  (256u * 1024) /* of each, its last ones */

static const char *const statuses[] = { "waiting", "building", "ready", "error" };

static size_t first_log(const struct template_build *b)
{
	size_t i = b->n_logs, bytes = 0;

	while (i > 0 && (bytes += strlen(b->logs[i - 1].text) + sizeof(b->logs[0])) <= LOG_BYTES)
		i--;
	return i;
}

/* [milliseconds, level, text] each. */
static void put_logs(struct json_out *o, const struct template_build *b)
{
	json_out_key(o, "logs");
	json_out_array(o);
	for (size_t i = first_log(b); i < b->n_logs; i++) {
		json_out_array(o);
		json_out_i64(o, b->logs[i].at_ms);
		json_out_u64(o, b->logs[i].level);
		json_out_str(o, view_of(b->logs[i].text));
		json_out_end(o, ']');
	}
	json_out_end(o, ']');
}

static void put_build(struct json_out *o, const struct template_build *b, bool logs)
{
	json_out_object(o);
	json_out_kz(o, "id", b->id);
	json_out_kz(o, "status", statuses[b->status]);
	json_out_kz(o, "reason", b->reason);
	json_out_kz(o, "step", b->step);
	json_out_kz(o, "key", b->key);
	if (logs)
		put_logs(o, b);
	json_out_kz(o, "snapshot", b->snapshot);
	json_out_ki64(o, "created_ms", b->created_ms);
	json_out_ki64(o, "updated_ms", b->updated_ms);
	json_out_ku64(o, "cpu", b->cpu);
	json_out_ku64(o, "memory_mb", b->memory_mb);
	json_out_key(o, "tags");
	json_out_array(o);
	for (size_t i = 0; i < b->n_tags; i++)
		json_out_str(o, view_of(b->tags[i]));
	json_out_end(o, ']');
	json_out_kmap(o, "env", &b->env);
	json_out_kstr(o, "user", b->user);
	json_out_kstr(o, "workdir", b->workdir);
	json_out_kstr(o, "start", b->start);
	json_out_kstr(o, "ready", b->ready);
	json_out_kstr(o, "record", b->record);
	json_out_end(o, '}');
}

void templates_put_row(struct template *t, store_done *done, void *arg)
{
	struct buf text = BUF_INIT(DOC_MAX);
	struct json_out o;
	struct err e = { 0 };

	json_out_init(&o, &text);
	json_out_array(&o);
	size_t n = 0;
	TEMPLATES_EACH_BUILD(b, t)
	n++;
	TEMPLATES_EACH_BUILD(b, t)
	put_build(&o, b, n-- <= LOG_BUILDS);
	json_out_end(&o, ']');
	const struct store_template row = { view_of(t->id), view_of(t->tenant->id), view_of(t->name),
					    buf_view(&text), t->created_ms };
	if (text.bad) {
		err_sys(&e, ERR_INTERNAL, text.bad, "the template's row");
		done(arg, &e);
	} else {
		store_template_put(t->core->store, &row, done, arg);
	}
	buf_done(&text);
}

struct build_row {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view id, snapshot, user, workdir, start, ready, record, status, reason, step, key;
	const struct json *logs;
	uint64_t created_ms, updated_ms, cpu, memory_mb;
	struct json_strlist tags;
	struct json_strmap env;
};

#define AT(f) .offset = offsetof(struct build_row, f)
static const struct json_field row_fields[] = {
	{ "id", JSON_F_STRING, AT(id), .required = true },
	{ "snapshot", JSON_F_STRING, AT(snapshot), .required = true },
	{ "created_ms", JSON_F_U64, AT(created_ms), .max = INT64_MAX },
	{ "updated_ms", JSON_F_U64, AT(updated_ms), .max = INT64_MAX },
	{ "cpu", JSON_F_U64, AT(cpu), .max = UINT32_MAX },
	{ "memory_mb", JSON_F_U64, AT(memory_mb), .max = UINT32_MAX },
	{ "tags", JSON_F_STRLIST, AT(tags), .max = TEMPLATES_TAGS_MAX },
	{ "env", JSON_F_STRMAP, AT(env) },
	{ "user", JSON_F_STRING, AT(user) },
	{ "workdir", JSON_F_STRING, AT(workdir) },
	{ "start", JSON_F_STRING, AT(start) },
	{ "ready", JSON_F_STRING, AT(ready) },
	{ "record", JSON_F_STRING, AT(record) },
	{ "status", JSON_F_STRING, AT(status) },
	{ "reason", JSON_F_STRING, AT(reason) },
	{ "step", JSON_F_STRING, AT(step) },
	{ "key", JSON_F_STRING, AT(key) },
	{ "logs", JSON_F_ANY, AT(logs) },
};
#undef AT
static const struct json_schema row_schema = { row_fields, ELEMS(row_fields) };

static void load_logs(struct template_build *b, const struct json *list)
{
	for (size_t i = 0; list && list->type == JSON_ARRAY && i < list->n; i++) {
		const struct json *one = &list->items[i];
		int64_t at, level;
		if (one->type == JSON_ARRAY && one->n == 3 && json_to_i64(&one->items[0], &at) == 0 &&
		    json_to_i64(&one->items[1], &level) == 0 && level >= TEMPLATE_DEBUG &&
		    level <= TEMPLATE_FAILURE && one->items[2].type == JSON_STRING)
			templates_log_at(b, at, (enum template_level)level, one->items[2].text);
	}
}

/* Rows from before builds had a status have those that are ready. What was under way is so no more. */
static void load_status(struct template_build *b, const struct build_row *row)
{
	b->status = TEMPLATE_READY;
	for (size_t i = 0; i < ELEMS(statuses); i++)
		if (view_is(row->status, statuses[i]))
			b->status = (enum template_status)i;
	(void)!view_to_str(row->reason, b->reason, sizeof(b->reason));
	(void)!view_to_str(row->step, b->step, sizeof(b->step));
	(void)!view_to_str(row->key, b->key, sizeof(b->key));
	load_logs(b, row->logs);
	if (b->status == TEMPLATE_READY || b->status == TEMPLATE_ERROR)
		return;
	b->interrupted = true;
	b->status = TEMPLATE_ERROR;
	snprintf(b->reason, sizeof(b->reason), "the daemon was restarted before the build ended");
	templates_log(b, TEMPLATE_FAILURE, view_of(b->reason));
}

/* What it read stays in the build's arena. */
static int load_build(struct template *t, const struct json *j, struct err *e)
{
	struct build_row row = { .user = VIEW(""),
				 .workdir = VIEW(""),
				 .start = VIEW(""),
				 .ready = VIEW(""),
				 .record = VIEW(""),
				 .status = VIEW(""),
				 .reason = VIEW(""),
				 .step = VIEW(""),
				 .key = VIEW("") };
	struct template_build *b = templates_build_new(t);
	struct buf text = BUF_INIT(DOC_MAX);
	struct json_out o;
	struct json *own;

	if (!b)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "template");
	json_out_init(&o, &text);
	json_out_value(&o, j);
	int r = json_parse(&b->arena, buf_view(&text), &own, e);
	buf_done(&text);
	if (r < 0 || json_read(&b->arena, own, &row_schema, &row, false, e) < 0)
		return -1;
	if (view_to_str(row.id, b->id, sizeof(b->id)) < 0 ||
	    view_to_str(row.snapshot, b->snapshot, sizeof(b->snapshot)) < 0)
		return err_set(e, ERR_INTERNAL, "a build's id");
	for (size_t i = 0; i < row.tags.n; i++)
		if (view_to_str(row.tags.items[i], b->tags[b->n_tags++], sizeof(b->tags[0])) < 0)
			return err_set(e, ERR_INTERNAL, "a build's tag");
	load_status(b, &row);
	b->created_ms = (int64_t)row.created_ms;
	b->updated_ms = (int64_t)row.updated_ms;
	b->cpu = row.cpu;
	b->memory_mb = row.memory_mb;
	b->env = row.env;
	b->user = row.user;
	b->workdir = row.workdir;
	b->start = row.start;
	b->ready = row.ready;
	templates_take_record(b, row.record);
	return 0;
}

int templates_load(struct core *c, const struct store_template *row, struct err *e)
{
	const struct tenant *tenant = keys_tenant(c, row->tenant);
	struct template *t = tenant ? templates_new(c, tenant, row->id, row->name) : NULL;
	struct arena a = ARENA_INIT(DOC_MAX);
	struct json *list = NULL;
	int r = t ? json_parse(&a, row->builds, &list, e)
		  : err_set(e, ERR_INTERNAL, "no such tenant, or no memory");

	if (r >= 0)
		t->created_ms = row->created_ms;
	for (size_t i = 0; r >= 0 && list->type == JSON_ARRAY && i < list->n; i++)
		r = load_build(t, &list->items[i], e);
	arena_done(&a);
	return r < 0 ? err_wrap(e, "template %.*s", VIEW_ARG(row->id)) : 0;
}
