/*
 * The tools that list and search files.
 */
#include "file.h"
#include "mcp_tools.h"
#include "poison.h"

#define ENTRIES     200
#define ENTRIES_MAX 1000
#define LINE_MAX    400

struct work {
	struct mcp_args head;
	struct view path, user, pattern, include, mode;
	uint64_t depth, limit;
	bool has_regex, regex, ignore_case;
	struct file_op op;
	struct mcp_call *call;
	struct mcp_object object;
	struct view from; /* where it began */
};

#define AT(f) .offset = offsetof(struct work, f)
static const struct json_field entries_fields[] = {
	MCP_TOOLS_SANDBOX,
	{ "path", JSON_F_STRING, AT(path), .min = 1, .max = 4095, .required = true },
	{ "user", JSON_F_STRING, AT(user), .min = 1, .nullable = true },
	{ "depth", JSON_F_U64, AT(depth), .min = 1, .max = FILES_DEPTH_MAX, .nullable = true },
	{ "limit", JSON_F_U64, AT(limit), .min = 1, .max = ENTRIES_MAX, .nullable = true },
};
static const struct json_field search_fields[] = {
	MCP_TOOLS_SANDBOX,
	{ "pattern", JSON_F_STRING, AT(pattern), .min = 1, .required = true },
	{ "path", JSON_F_STRING, AT(path), .min = 1, .max = 4095, .nullable = true },
	{ "mode", JSON_F_STRING, AT(mode), .min = 1, .nullable = true },
	{ "include", JSON_F_STRING, AT(include), .min = 1, .nullable = true },
	{ "regex", JSON_F_BOOL, AT(regex), .has = offsetof(struct work, has_regex), .nullable = true },
	{ "ignore_case", JSON_F_BOOL, AT(ignore_case), .nullable = true },
	{ "user", JSON_F_STRING, AT(user), .min = 1, .nullable = true },
	{ "limit", JSON_F_U64, AT(limit), .min = 1, .max = ENTRIES_MAX, .nullable = true },
};
#undef AT
const struct json_schema mcp_tools_entries_args = { entries_fields, ELEMS(entries_fields) };
const struct json_schema mcp_tools_search_args = { search_fields, ELEMS(search_fields) };
const size_t mcp_tools_entries_size = sizeof(struct work), mcp_tools_search_size = sizeof(struct work);

static void release(struct mcp_call *c)
{
	struct work *w = c->own;
	buf_done(&w->object.text);
}

static void cancel(struct mcp_call *c)
{
	struct work *w = c->own;
	files_cancel(&w->op);
}

static void fail(struct work *w, const struct err *e)
{
	w->call->cancel = NULL;
	mcp_call_fail(w->call, e);
}

/* An absolute path where the search began at one: "/a" and "b/c" are "/a/b/c". */
static void put_path(struct json_out *o, const struct work *w, struct view name)
{
	struct buf b = BUF_INIT(16u * 1024);

	buf_add(&b, w->from);
	if (name.n && w->from.n && w->from.p[w->from.n - 1] != '/')
		buf_putc(&b, '/');
	buf_add(&b, name);
	json_out_kstr(o, "path", buf_view(&b));
	buf_done(&b);
}

static void on_entries(struct file_op *op, const struct file_info *entries, size_t n, size_t bytes)
{
	struct work *w = CONTAINER(op, struct work, op);
	struct json_out *o = &w->object.o;

	for (size_t i = 0; i < n; i++) {
		json_out_object(o);
		put_path(o, w, entries[i].name);
		json_out_kz(o, "type", files_type_name(entries[i].type));
		json_out_ku64(o, "size", entries[i].size);
		answer_put_time(o, "modified_at", entries[i].mtime_ms);
		json_out_end(o, '}');
	}
	files_consumed(op, bytes);
}

static void on_matches(struct file_op *op, const struct file_match *matches, size_t n, size_t bytes)
{
	struct work *w = CONTAINER(op, struct work, op);
	struct json_out *o = &w->object.o;

	for (size_t i = 0; i < n; i++) {
		json_out_object(o);
		put_path(o, w, matches[i].path);
		json_out_ku64(o, "line", matches[i].line);
		json_out_kstr(o, "text", view_head(matches[i].text, LINE_MAX));
		json_out_end(o, '}');
	}
	files_consumed(op, bytes);
}

static void on_done(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct work *w = CONTAINER(op, struct work, op);
	struct mcp_object x = w->object;

	if (e) {
		fail(w, e);
		return;
	}
	w->call->cancel = NULL;
	w->object.text = BUF_INIT(0); /* mcp_tools_send gives it back */
	x.o.b = &x.text;
	json_out_end(&x.o, ']');
	json_out_kbool(&x.o, "truncated", op->sum.truncated);
	mcp_tools_send(w->call, &x);
}

static const struct file_ops entry_ops = { .on_entries = on_entries, .done = on_done };
static const struct file_ops match_ops = { .on_matches = on_matches, .done = on_done };

static struct work *begin(struct mcp_call *c, const char *key, const struct file_ops *ops)
{
	struct work *w = c->own;

	w->call = c;
	w->op.ops = ops;
	struct json_out *o = mcp_tools_open(&w->object);
	json_out_key(o, key);
	json_out_array(o);
	c->done = release;
	c->cancel = cancel;
	return w;
}

void mcp_tools_entries(struct mcp_call *c)
{
	struct work *w = begin(c, "entries", &entry_ops);
	struct file_place p = { .box = w->head.sandbox, .path = w->from = w->path, .user = w->user };
	struct file_page page = { .depth = w->depth ? (unsigned)w->depth : 1,
				  .limit = w->limit ? (unsigned)w->limit : ENTRIES };
	struct err e = { 0 };

	if (files_list(c->core, &c->actor, &p, &page, &w->op, &e) < 0)
		fail(w, &e);
}

/* Without a path below the sandbox's working directory. */
static struct view path_of(struct mcp_call *c, const struct work *w)
{
	struct err e = { 0 };
	const struct box *b =
		w->path.n ? NULL : boxes_find(c->core, &c->actor, ACT_BOX_READ, w->head.sandbox, &e);

	return w->path.n ? w->path : b ? b->spec.workdir : VIEW("/");
}

void mcp_tools_search(struct mcp_call *c)
{
	struct work *args = c->own;
	bool names = view_is(args->mode, "name");
	struct work *w = begin(c, names ? "entries" : "matches", names ? &entry_ops : &match_ops);
	struct file_place p = { .box = w->head.sandbox, .path = w->from = path_of(c, w), .user = w->user };
	struct file_search s = { .pattern = w->pattern,
				 .include = w->include,
				 .regex = !w->has_regex || w->regex,
				 .ignore_case = w->ignore_case,
				 .limit = w->limit ? (unsigned)w->limit : ENTRIES };
	struct err e = { 0 };

	if (w->mode.n && !names && !view_is(w->mode, "content"))
		err_set(&e, ERR_INVALID, "mode must be content or name");
	if (e.code || (names ? files_find(c->core, &c->actor, &p, &s, &w->op, &e)
			     : files_grep(c->core, &c->actor, &p, &s, &w->op, &e)) < 0)
		fail(w, &e);
}
