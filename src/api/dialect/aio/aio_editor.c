/*
 * /v1/file/str_replace_editor: view, create, str_replace, insert, undo_edit, as agents' editing tools have
 * them.
 */
#include <errno.h>
#include <stdlib.h>

#include "aio_file.h"
#include "aio_undo.h"
#include "text.h"
#include "poison.h"

#define AROUND      4 /* lines that are shown before and after an edit */
#define BODY_MAX    (3 * AIO_FILE_MAX)
#define ENTRIES_MAX 10000

struct work {
	struct aio_file f;
	struct view command, path, file_text, old_str, new_str, replace_mode, sheet_name;
	uint64_t insert_line;
	bool has_line, metadata;
	const struct json *view_range, *page_range, *row_range, *slide_range;
	int64_t first, last; /* view: lines from 1; last -1: to the end */
	struct buf changed, output;
	uint64_t replaced, at_line; /* at_line: where the edit is, from 1 */
	bool existed;
	struct arena names;
	struct view *entries; /* of a directory */
	size_t n_entries;
};

static struct work *of(struct aio_file *f)
{
	return CONTAINER(f, struct work, f);
}

static void release(struct aio_file *f)
{
	struct work *w = of(f);

	buf_done(&w->changed);
	buf_done(&w->output);
	arena_done(&w->names);
	free(w->entries);
}

/* ---- text ---- */

static uint64_t count_lines(struct view v)
{
	uint64_t n = 0;

	while (v.p && v.n) {
		(void)view_split(v, '\n', &v);
		n++;
	}
	return n;
}

/* As `cat -n`: lines `first` to `last`, counted from 1. */
static void number_lines(struct buf *out, struct view v, uint64_t first, uint64_t last)
{
	for (uint64_t i = 1; v.p && v.n && i <= last; i++) {
		struct view line = view_split(v, '\n', &v);
		if (i < first)
			continue;
		buf_printf(out, "%6llu\t", (unsigned long long)i);
		buf_add(out, line);
		buf_putc(out, '\n');
	}
}

static void put_path(struct work *w)
{
	buf_add(&w->output, w->f.place.path);
}

/* ---- answers ---- */

static void put_content(struct aio_file *f, const char *key, struct view v, bool is_there)
{
	if (is_there)
		answer_put_long(f->r, key, ANSWER_STRING, v);
	else
		json_out_kz(&f->r->json, key, NULL);
}

static void send_result(struct work *w, bool prev_exist, struct view before, bool has_before, struct view now,
			bool has_now)
{
	struct aio_file *f = &w->f;
	struct json_out *o = aio_data(f->r, NULL);

	json_out_object(o);
	json_out_kz(o, "error", NULL);
	json_out_kstr(o, "path", f->place.path);
	json_out_kbool(o, "prev_exist", prev_exist);
	json_out_kz(o, "metadata", NULL);
	answer_put_long(f->r, "output", ANSWER_STRING, buf_view(&w->output));
	put_content(f, "old_content", before, has_before);
	put_content(f, "new_content", now, has_now);
	json_out_end(o, '}');
	http_hold(f->r->x, f->whole.bytes.cap + w->changed.cap + w->output.cap);
	aio_send(f->r);
}

static void show_edit(struct work *w)
{
	struct view now = buf_view(&w->changed);
	uint64_t first = w->at_line > AROUND ? w->at_line - AROUND : 1;

	buf_puts(&w->output, "The file ");
	put_path(w);
	buf_puts(&w->output, " has been edited. Here's the result of running `cat -n` on a snippet of ");
	put_path(w);
	buf_puts(&w->output, ":\n");
	number_lines(&w->output, now, first, w->at_line + AROUND + MIN(count_lines(w->new_str), 100u));
	buf_puts(&w->output, "Review the changes and make sure they are as expected. "
			     "Edit the file again if necessary.");
}

static void keep_undo(struct work *w, bool existed, struct view content)
{
	if (!aio_undo_keep(w->f.r->state, w->f.r->box, w->f.place.path, existed, content))
		buf_puts(&w->output, "\nNote: the file is too large for undo_edit.");
}

/* ---- view ---- */

static int range_of(const struct json *j, int64_t *ret_first, int64_t *ret_last)
{
	*ret_first = 1;
	*ret_last = -1;
	if (!j || j->type == JSON_NULL || (j->type == JSON_ARRAY && j->n == 0))
		return 0;
	if (j->type != JSON_ARRAY || j->n != 2 || json_to_i64(&j->items[0], ret_first) < 0 ||
	    json_to_i64(&j->items[1], ret_last) < 0)
		return -EINVAL;
	return *ret_first >= 1 && (*ret_last == -1 || *ret_last >= *ret_first) ? 0 : -EINVAL;
}

static void on_viewed(struct aio_file *f, const struct file_info *info, const struct err *e)
{
	struct work *w = of(f);
	struct view text = buf_view(&f->whole.bytes);
	uint64_t n;

	if (e) {
		aio_file_fail(f, e);
		return;
	}
	n = count_lines(text);
	if (!text_is_utf8(text) || (text.n && memchr(text.p, 0, text.n))) {
		aio_file_refuse(f, "the file is not text: view shows text files and directories");
		return;
	}
	if ((uint64_t)w->first > MAX(n, 1u)) {
		aio_file_refuse(f, "Invalid `view_range`: the file has %llu lines", (unsigned long long)n);
		return;
	}
	buf_puts(&w->output, "Here's the result of running `cat -n` on ");
	put_path(w);
	buf_puts(&w->output, ":\n");
	number_lines(&w->output, text, (uint64_t)w->first, w->last < 0 ? UINT64_MAX : (uint64_t)w->last);
	if (w->output.bad)
		aio_file_refuse(f, "this is too much: view fewer lines with view_range");
	else
		send_result(w, true, VIEW(""), false, VIEW(""), false);
}

static int by_name(const void *a, const void *b)
{
	const struct view *x = a, *y = b;
	int c = memcmp(x->p, y->p, MIN(x->n, y->n));

	return c ? c : (x->n > y->n) - (x->n < y->n);
}

static bool is_hidden(struct view path)
{
	while (path.p)
		if (view_starts(view_split(path, '/', &path), "."))
			return true;
	return false;
}

static void on_entries(struct file_op *op, const struct file_info *entries, size_t n, size_t bytes)
{
	struct work *w = CONTAINER(op, struct work, f.op);

	for (size_t i = 0; i < n && w->n_entries < ENTRIES_MAX; i++) {
		bool is_dir = entries[i].type == FILE_TYPE_DIRECTORY;
		char *name =
			is_hidden(entries[i].name) ? NULL : arena_alloc(&w->names, entries[i].name.n + 1);
		if (!name)
			continue;
		memcpy(name, entries[i].name.p, entries[i].name.n);
		name[entries[i].name.n] = '/';
		w->entries[w->n_entries++] = (struct view){ name, entries[i].name.n + is_dir };
	}
	http_hold(w->f.r->x, w->names.used + ENTRIES_MAX * sizeof(*w->entries));
	files_consumed(op, bytes);
}

static void on_listed(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct work *w = CONTAINER(op, struct work, f.op);

	if (e) {
		aio_file_fail(&w->f, e);
		return;
	}
	qsort(w->entries, w->n_entries, sizeof(*w->entries), by_name);
	buf_puts(&w->output, "Here's the files and directories up to 2 levels deep in ");
	put_path(w);
	buf_puts(&w->output, ", excluding hidden items:\n");
	put_path(w);
	buf_puts(&w->output, "/\n");
	for (size_t i = 0; i < w->n_entries; i++) {
		put_path(w);
		buf_putc(&w->output, '/');
		buf_add(&w->output, w->entries[i]);
		buf_putc(&w->output, '\n');
	}
	if (w->n_entries == ENTRIES_MAX)
		buf_puts(&w->output, "(and more)\n");
	send_result(w, true, VIEW(""), false, VIEW(""), false);
}

static const struct file_ops list_ops = { .on_entries = on_entries, .done = on_listed };

static void view_directory(struct work *w)
{
	struct request *r = w->f.r;
	struct file_page page = { .depth = 2 };
	struct err e = { 0 };

	if (w->first != 1 || w->last != -1) {
		aio_file_refuse(&w->f, "view_range is not allowed for a directory");
		return;
	}
	w->entries = calloc(ENTRIES_MAX, sizeof(*w->entries));
	w->f.op = (struct file_op){ .ops = &list_ops };
	if (!w->entries)
		err_sys(&e, ERR_INTERNAL, ENOMEM, "view");
	if (e.code || files_list(r->core, &r->actor, &w->f.place, &page, &w->f.op, &e) < 0)
		aio_file_fail(&w->f, &e);
}

/* ---- create ---- */

static void on_created(struct aio_file *f, const struct file_info *info, const struct err *e)
{
	struct work *w = of(f);

	if (e) {
		aio_file_fail(f, e);
		return;
	}
	buf_puts(&w->output, "File created successfully at: ");
	put_path(w);
	keep_undo(w, false, VIEW(""));
	send_result(w, false, VIEW(""), false, w->file_text, true);
}

/* ---- what the path is, for view and create ---- */

static void on_stat(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct work *w = CONTAINER(op, struct work, f.op);
	struct aio_file *f = &w->f;
	bool is_view = view_is(w->command, "view");

	if (e && (is_view || e->code != ERR_NOT_FOUND))
		aio_file_fail(f, e);
	else if (e)
		aio_file_write(f, w->file_text, false, on_created);
	else if (!is_view)
		aio_file_refuse(f, "File already exists. Cannot overwrite files using command `create`: use "
				   "str_replace, or POST /v1/file/write");
	else if (info->type == FILE_TYPE_DIRECTORY || info->resolved_type == FILE_TYPE_DIRECTORY)
		view_directory(w);
	else
		aio_file_read(f, AIO_FILE_MAX, on_viewed);
}

static const struct file_ops stat_ops = { .done = on_stat };

static void look(struct work *w)
{
	struct request *r = w->f.r;
	struct err e = { 0 };

	w->f.op = (struct file_op){ .ops = &stat_ops, .detail = true };
	if (files_stat(r->core, &r->actor, &w->f.place, &w->f.op, &e) < 0)
		aio_file_fail(&w->f, &e);
}

static void create(struct work *w)
{
	if (!w->file_text.p)
		aio_unprocessable(w->f.r, "file_text", "file_text is needed for create");
	else
		look(w);
}

static void view(struct work *w)
{
	if (range_of(w->view_range, &w->first, &w->last) < 0)
		aio_unprocessable(w->f.r, "view_range", "view_range must be [first, last] or [first, -1]");
	else if (w->page_range || w->sheet_name.p || w->row_range || w->slide_range)
		aio_file_refuse(&w->f, "page_range, sheet_name, row_range and slide_range are not supported: "
				       "view shows text files and directories");
	else
		look(w);
}

/* ---- str_replace and insert ---- */

static void on_changed(struct aio_file *f, const struct file_info *info, const struct err *e)
{
	struct work *w = of(f);

	if (e) {
		aio_file_fail(f, e);
		return;
	}
	show_edit(w);
	keep_undo(w, true, buf_view(&f->whole.bytes));
	send_result(w, true, buf_view(&f->whole.bytes), true, buf_view(&w->changed), true);
}

static void store(struct work *w)
{
	http_hold(w->f.r->x, w->f.whole.bytes.cap + w->changed.cap + w->f.r->body.cap + w->f.r->arena.used);
	if (w->changed.bad)
		aio_file_refuse(&w->f, "the file would have more than %u bytes", 2 * AIO_FILE_MAX);
	else
		aio_file_write(&w->f, buf_view(&w->changed), false, on_changed);
}

/* How often, and where: the first and the last place. */
static uint64_t occurrences(struct view text, struct view what, size_t *ret_first, size_t *ret_last)
{
	struct view rest = text;
	const char *at;
	uint64_t n = 0;

	while (rest.n && (at = memmem(rest.p, rest.n, what.p, what.n))) {
		*ret_last = (size_t)(at - text.p);
		*ret_first = n++ ? *ret_first : *ret_last;
		rest = view_skip(text, *ret_last + what.n);
	}
	return n;
}

static void replace_at(struct work *w, struct view text, size_t first, bool all)
{
	struct view rest = view_skip(text, first);
	const char *at = rest.p;

	buf_add(&w->changed, view_head(text, first));
	do {
		buf_append(&w->changed, rest.p, (size_t)(at - rest.p));
		buf_add(&w->changed, w->new_str);
		rest = view_skip(rest, (size_t)(at - rest.p) + w->old_str.n);
	} while (all && rest.n && (at = memmem(rest.p, rest.n, w->old_str.p, w->old_str.n)));
	buf_add(&w->changed, rest);
}

static void on_replace(struct aio_file *f, const struct file_info *info, const struct err *e)
{
	struct work *w = of(f);
	struct view text = buf_view(&f->whole.bytes), mode = w->replace_mode;
	size_t first = 0, last = 0;
	uint64_t n;

	if (e) {
		aio_file_fail(f, e);
		return;
	}
	n = occurrences(text, w->old_str, &first, &last);
	if (n == 0) {
		aio_file_refuse(f,
				"No replacement was performed: old_str did not appear verbatim in the file");
		return;
	}
	if (n > 1 && !mode.p) {
		aio_file_refuse(f,
				"No replacement was performed: old_str appears %llu times, the first in line "
				"%llu. Make it unique, or set replace_mode",
				(unsigned long long)n,
				(unsigned long long)count_lines(view_head(text, first + 1)));
		return;
	}
	first = view_is(mode, "LAST") ? last : first;
	w->at_line = count_lines(view_head(text, first + 1));
	replace_at(w, text, first, view_is(mode, "ALL"));
	store(w);
}

static void str_replace(struct work *w)
{
	struct view mode = w->replace_mode;

	if (!w->old_str.n)
		aio_unprocessable(w->f.r, "old_str", "old_str is needed for str_replace");
	else if (mode.p && !view_is(mode, "ALL") && !view_is(mode, "FIRST") && !view_is(mode, "LAST"))
		aio_unprocessable(w->f.r, "replace_mode", "replace_mode must be ALL, FIRST or LAST");
	else if (view_eq(w->old_str, w->new_str))
		aio_file_refuse(&w->f, "No replacement was performed: new_str and old_str must be different");
	else
		aio_file_read(&w->f, AIO_FILE_MAX, on_replace);
}

static void on_insert(struct aio_file *f, const struct file_info *info, const struct err *e)
{
	struct work *w = of(f);
	struct view text = buf_view(&f->whole.bytes), rest = text;
	uint64_t n;

	if (e) {
		aio_file_fail(f, e);
		return;
	}
	n = count_lines(text);
	if (w->insert_line > n) {
		aio_file_refuse(f, "Invalid `insert_line` parameter: it must be between 0 and %llu",
				(unsigned long long)n);
		return;
	}
	for (uint64_t i = 0; i < w->insert_line; i++) {
		(void)view_split(rest, '\n', &rest);
		rest = rest.p ? rest : view_skip(text, text.n);
	}
	struct view before = view_head(text, text.n - rest.n);
	bool ended = !before.n || before.p[before.n - 1] == '\n';
	buf_add(&w->changed, before);
	if (!ended)
		buf_putc(&w->changed, '\n');
	buf_add(&w->changed, w->new_str);
	if (ended && !(w->new_str.n && w->new_str.p[w->new_str.n - 1] == '\n'))
		buf_putc(&w->changed, '\n');
	buf_add(&w->changed, rest);
	w->at_line = w->insert_line + 1;
	store(w);
}

static void insert(struct work *w)
{
	if (!w->has_line)
		aio_unprocessable(w->f.r, "insert_line", "insert_line is needed for insert");
	else if (!w->new_str.p)
		aio_unprocessable(w->f.r, "new_str", "new_str is needed for insert");
	else
		aio_file_read(&w->f, AIO_FILE_MAX, on_insert);
}

/* ---- undo_edit ---- */

static void end_undo(struct work *w, const struct err *e)
{
	struct aio_file *f = &w->f;
	struct aio_undo *u = aio_undo_last(f->r->state, f->r->box, f->place.path);
	bool stays = w->replaced;

	if (e) {
		aio_file_fail(f, e);
		return;
	}
	if (u)
		aio_undo_free(f->r->state, u);
	buf_puts(&w->output, "Last edit to ");
	put_path(w);
	buf_puts(&w->output,
		 stays ? " undone successfully."
		       : " undone successfully: the edit had created the file, and it is removed.");
	send_result(w, w->existed, buf_view(&f->whole.bytes), w->existed, buf_view(&w->changed), stays);
}

static void on_restored(struct aio_file *f, const struct file_info *info, const struct err *e)
{
	end_undo(of(f), e);
}

static void on_removed(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	end_undo(CONTAINER(op, struct work, f.op), e && e->code != ERR_NOT_FOUND ? e : NULL);
}

static const struct file_ops remove_ops = { .done = on_removed };

static void on_before_undo(struct aio_file *f, const struct file_info *info, const struct err *e)
{
	struct work *w = of(f);
	struct request *r = f->r;
	const struct aio_undo *u = aio_undo_last(r->state, r->box, f->place.path);
	struct err mine = { 0 };

	w->existed = !e;
	if (e && e->code != ERR_NOT_FOUND && e->code != ERR_TOO_LARGE) {
		aio_file_fail(f, e);
		return;
	}
	if (!u) {
		aio_file_refuse(f, "No edit history found for the file");
		return;
	}
	w->replaced = u->existed;
	buf_add(&w->changed, u->content);
	if (u->existed) {
		aio_file_write(f, buf_view(&w->changed), false, on_restored);
		return;
	}
	f->op = (struct file_op){ .ops = &remove_ops };
	if (files_remove(r->core, &r->actor, &f->place, false, &f->op, &mine) < 0)
		aio_file_fail(f, &mine);
}

static void undo_edit(struct work *w)
{
	struct aio_file *f = &w->f;

	if (aio_undo_last(f->r->state, f->r->box, f->place.path))
		aio_file_read(f, AIO_FILE_MAX, on_before_undo);
	else
		aio_file_refuse(f, "No edit history found for the file");
}

/* ---- the request ---- */

#define AT(m) .offset = offsetof(struct work, m)
#define TEXT(m)                                                                                              \
	{                                                                                                    \
#m, JSON_F_STRING, AT(m), .nullable = true                                                   \
	}
#define ANY(m)                                                                                               \
	{                                                                                                    \
#m, JSON_F_ANY, AT(m), .nullable = true                                                      \
	}
static const struct json_field fields[] = {
	{ "command", JSON_F_STRING, AT(command), .required = true },
	{ "path", JSON_F_STRING, AT(path), .min = 1, .max = 4095, .required = true },
	TEXT(file_text),
	TEXT(old_str),
	TEXT(new_str),
	{ "insert_line", JSON_F_U64, AT(insert_line), .has = offsetof(struct work, has_line),
	  .max = INT64_MAX, .nullable = true },
	ANY(view_range),
	TEXT(replace_mode),
	ANY(page_range),
	TEXT(sheet_name),
	ANY(row_range),
	ANY(slide_range),
	{ "enable_metadata", JSON_F_BOOL, AT(metadata), .nullable = true },
};
#undef AT
static const struct json_schema schema = { fields, ELEMS(fields), .open = true };

static const struct {
	const char *name;
	void (*run)(struct work *w);
} commands[] = { { "view", view },
		 { "create", create },
		 { "str_replace", str_replace },
		 { "insert", insert },
		 { "undo_edit", undo_edit } };

static void edit(struct request *r)
{
	struct work *w = aio_file_new(r, sizeof(*w), "str_replace_editor");

	if (!w)
		return;
	w->f.also_release = release;
	w->changed = BUF_INIT(2 * AIO_FILE_MAX);
	w->output = BUF_INIT(2 * AIO_FILE_MAX);
	w->names = ARENA_INIT(16u * 1024 * 1024);
	if (aio_read(r, &schema, w) < 0)
		return;
	for (size_t i = 0; i < ELEMS(commands); i++)
		if (view_is(w->command, commands[i].name)) {
			w->f.operation = commands[i].name;
			if (aio_file_at(&w->f, w->path, false) >= 0)
				commands[i].run(w);
			return;
		}
	aio_unprocessable(r, "command", "command must be view, create, str_replace, insert or undo_edit");
}

const struct route aio_editor_routes[] = {
	{ "POST", "/v1/file/str_replace_editor", edit, .body = ROUTE_JSON, .schema = &schema,
	  .body_max = BODY_MAX, .query = "api_key" },
	{ 0 },
};
