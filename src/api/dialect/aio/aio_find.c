/*
 * /v1/file/find, glob and list: names of files. They are collected, within bounds, since they are sorted and
 * counted before the first of them is sent.
 */
#include <stdio.h>
#include <stdlib.h>

#include "aio_file.h"
#include "clock.h"
#include "poison.h"

#define NAMES_MAX   (32u * 1024 * 1024) /* bytes of names */
#define ENTRIES_MAX 200000
#define GLOB_LIMIT  50000

struct entry {
	struct view path, name; /* path: relative to where the search began */
	uint64_t size;
	int64_t mtime_ms;
	uint32_t mode;
	bool is_directory;
};

struct work {
	struct aio_file f;
	struct view path, pattern, sort_by;
	struct json_strlist exclude, file_types;
	bool recursive, show_hidden, files_only, metadata, permissions, descending, has_depth;
	uint64_t max_results, max_depth;
	bool is_glob, is_find, is_full;
	bool is_bounded, is_deeper; /* by FILES_DEPTH_MAX; directories at that depth were not entered */
	struct arena names;
	struct buf entries; /* struct entry */
	struct buf joined;
};

static void release(struct aio_file *f)
{
	struct work *w = CONTAINER(f, struct work, f);

	arena_done(&w->names);
	buf_done(&w->entries);
	buf_done(&w->joined);
}

static size_t count(const struct work *w)
{
	return buf_len(&w->entries) / sizeof(struct entry);
}

static struct entry *entry(const struct work *w, size_t i)
{
	return (struct entry *)(void *)w->entries.p + i;
}

static struct view base_name(struct view path)
{
	const char *slash = path.n ? memrchr(path.p, '/', path.n) : NULL;

	return slash ? view_skip(path, (size_t)(slash + 1 - path.p)) : path;
}

/* With its dot; empty: none. A name that begins with its only dot has none. */
static struct view extension(struct view name)
{
	const char *dot = name.n ? memrchr(name.p, '.', name.n) : NULL;

	return dot && dot != name.p ? view_skip(name, (size_t)(dot - name.p)) : VIEW("");
}

/* ---- collecting ---- */

static bool is_hidden(struct view path)
{
	while (path.p)
		if (view_starts(view_split(path, '/', &path), "."))
			return true;
	return false;
}

/* "py" and ".py" are the same. */
static bool has_type(const struct work *w, struct view name)
{
	struct view own = view_skip(extension(name), 1);

	for (size_t i = 0; i < w->file_types.n; i++) {
		struct view type = w->file_types.items[i];
		if (view_eq_nocase(view_starts(type, ".") ? view_skip(type, 1) : type, own) && own.n)
			return true;
	}
	return w->file_types.n == 0;
}

static bool fits(const struct work *w, const struct file_info *info)
{
	if (!w->show_hidden && is_hidden(info->name))
		return false;
	if (aio_file_is_among(&w->exclude, info->name))
		return false;
	return info->type == FILE_TYPE_DIRECTORY || has_type(w, base_name(info->name));
}

static bool keep(struct work *w, const struct file_info *info)
{
	struct entry en = { .path = arena_view(&w->names, info->name),
			    .size = info->size,
			    .mtime_ms = info->mtime_ms,
			    .mode = info->mode,
			    .is_directory = info->type == FILE_TYPE_DIRECTORY ||
					    (info->type == FILE_TYPE_SYMLINK &&
					     info->resolved_type == FILE_TYPE_DIRECTORY) };

	en.name = base_name(en.path);
	return en.path.p && buf_append(&w->entries, &en, sizeof(en)) >= 0;
}

static bool is_at_the_bound(const struct file_info *info)
{
	unsigned slashes = 0;

	for (size_t i = 0; i < info->name.n; i++)
		slashes += info->name.p[i] == '/';
	return info->type == FILE_TYPE_DIRECTORY && slashes + 1 == FILES_DEPTH_MAX;
}

static void answer(struct work *w);

static void on_entries(struct file_op *op, const struct file_info *entries, size_t n, size_t bytes)
{
	struct work *w = CONTAINER(op, struct work, f.op);

	for (size_t i = 0; i < n && !w->is_full; i++) {
		w->is_full = fits(w, &entries[i]) && !keep(w, &entries[i]);
		w->is_deeper |= w->is_bounded && is_at_the_bound(&entries[i]);
	}
	http_hold(w->f.r->x, w->names.used + w->entries.cap);
	if (w->is_full) {
		files_cancel(op);
		answer(w);
		return;
	}
	files_consumed(op, bytes);
}

static void on_listed(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct work *w = CONTAINER(op, struct work, f.op);

	if (e)
		aio_file_fail(&w->f, e);
	else
		answer(w);
}

static const struct file_ops list_ops = { .on_entries = on_entries, .done = on_listed };

/* ---- sorting ---- */

static int compare_views(struct view a, struct view b)
{
	int c = memcmp(a.p, b.p, MIN(a.n, b.n));

	return c ? c : (a.n > b.n) - (a.n < b.n);
}

static int by_path(const void *a, const void *b)
{
	return compare_views(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

static int by_name(const void *a, const void *b)
{
	int c = compare_views(((const struct entry *)a)->name, ((const struct entry *)b)->name);
	return c ? c : by_path(a, b);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = ((const struct entry *)a)->size, y = ((const struct entry *)b)->size;
	return x != y ? (x > y) - (x < y) : by_path(a, b);
}

static int by_time(const void *a, const void *b)
{
	int64_t x = ((const struct entry *)a)->mtime_ms, y = ((const struct entry *)b)->mtime_ms;
	return x != y ? (x > y) - (x < y) : by_path(a, b);
}

/* Directories first, then files by their extensions. */
static int by_type(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int c;

	if (x->is_directory != y->is_directory)
		return x->is_directory ? -1 : 1;
	c = compare_views(extension(x->name), extension(y->name));
	return c ? c : by_name(a, b);
}

typedef int compare(const void *a, const void *b);

static const struct order {
	const char *name;
	compare *compare;
} orders[] = { { "name", by_name }, { "size", by_size }, { "modified", by_time },
	       { "path", by_path }, { "type", by_type }, { NULL, NULL } };

static const struct order *order_of(const struct work *w)
{
	const struct order *o = orders;

	while (o->name && !view_is(w->sort_by, o->name))
		o++;
	return o;
}

static void sort(struct work *w)
{
	size_t n = count(w);

	if (n < 2)
		return;
	qsort(w->entries.p, n, sizeof(struct entry), order_of(w)->compare);
	for (size_t i = 0; w->descending && i < n / 2; i++) {
		struct entry t = *entry(w, i);
		*entry(w, i) = *entry(w, n - 1 - i);
		*entry(w, n - 1 - i) = t;
	}
}

/* ---- answers ---- */

static void put_metadata(struct json_out *o, const struct entry *en, bool wanted)
{
	json_out_key(o, "size");
	if (wanted && !en->is_directory)
		json_out_u64(o, en->size);
	else
		json_out_null(o);
	answer_put_time(o, "modified_time", en->mtime_ms);
}

static void put_entry(struct work *w, struct json_out *o, const struct entry *en)
{
	struct view full = aio_file_join(&w->joined, w->f.place.path, en->path), ext = extension(en->name);
	char mode[8];

	if (w->is_find) {
		json_out_str(o, full);
		return;
	}
	json_out_object(o);
	json_out_kstr(o, "path", full);
	json_out_kstr(o, "name", en->name);
	json_out_kbool(o, "is_directory", en->is_directory);
	if (!w->is_glob || w->metadata)
		put_metadata(o, en, w->metadata);
	if (!w->is_glob) {
		snprintf(mode, sizeof(mode), "%03o", en->mode & 07777);
		json_out_kz(o, "permissions", w->permissions ? mode : NULL);
		json_out_key(o, "extension");
		if (ext.n && !en->is_directory)
			json_out_str(o, ext);
		else
			json_out_null(o);
	}
	json_out_end(o, '}');
}

static void put_counts(struct work *w, struct json_out *o, bool cut)
{
	size_t directories = 0, n = count(w);

	if (w->is_find)
		return;
	json_out_ku64(o, "total_count", n);
	if (w->is_glob) {
		json_out_kbool(o, "truncated", cut || w->is_full);
		return;
	}
	for (size_t i = 0; i < n; i++)
		directories += entry(w, i)->is_directory;
	json_out_ku64(o, "directory_count", directories);
	json_out_ku64(o, "file_count", n - directories);
}

static void answer(struct work *w)
{
	struct request *r = w->f.r;
	size_t n = count(w);

	if (w->is_full && !w->is_glob) {
		aio_file_refuse(&w->f, "there are more than %zu entries: begin further down", n);
		return;
	}
	sort(w);
	struct json_out *o =
		aio_data_hint(r, NULL, w->is_deeper ? "directories 64 levels down were not entered" : NULL);
	json_out_object(o);
	json_out_kstr(o, "path", w->f.place.path);
	if (w->is_glob)
		json_out_kstr(o, "pattern", w->pattern);
	json_out_key(o, "files");
	json_out_array(o);
	for (size_t i = 0; i < n && i < w->max_results; i++)
		put_entry(w, o, entry(w, i));
	json_out_end(o, ']');
	put_counts(w, o, n > w->max_results);
	json_out_end(o, '}');
	aio_send(r);
}

/* ---- requests ---- */

#define AT(m) .offset = offsetof(struct work, m)
#define PATH_FIELD                                                                                           \
	{                                                                                                    \
		"path", JSON_F_STRING, AT(path), .min = 1, .max = 4095, .required = true                     \
	}
#define PATTERN(name)                                                                                        \
	{                                                                                                    \
		name, JSON_F_STRING, AT(pattern), .min = 1, .max = 1000, .required = true                    \
	}
#define FLAG(name, m)                                                                                        \
	{                                                                                                    \
		name, JSON_F_BOOL, AT(m), .nullable = true                                                   \
	}
#define ORDER { "sort_by", JSON_F_STRING, AT(sort_by), .nullable = true }, FLAG("sort_desc", descending)

static const struct json_field find_fields[] = { PATH_FIELD, PATTERN("glob") };
static const struct json_schema find_schema = { find_fields, ELEMS(find_fields), .open = true };

static const struct json_field glob_fields[] = {
	PATH_FIELD,
	PATTERN("pattern"),
	{ "exclude", JSON_F_STRLIST, AT(exclude), .max = 100, .nullable = true },
	FLAG("include_hidden", show_hidden),
	FLAG("files_only", files_only),
	FLAG("include_metadata", metadata),
	{ "max_results", JSON_F_U64, AT(max_results), .min = 1, .max = GLOB_LIMIT, .nullable = true },
	ORDER,
};
static const struct json_schema glob_schema = { glob_fields, ELEMS(glob_fields), .open = true };

static const struct json_field list_fields[] = {
	PATH_FIELD,
	FLAG("recursive", recursive),
	FLAG("show_hidden", show_hidden),
	{ "file_types", JSON_F_STRLIST, AT(file_types), .max = 100, .nullable = true },
	{ "max_depth", JSON_F_U64, AT(max_depth), .has = offsetof(struct work, has_depth), .min = 1,
	  .max = INT32_MAX, .nullable = true },
	FLAG("include_size", metadata),
	FLAG("include_permissions", permissions),
	ORDER,
};
#undef AT
static const struct json_schema list_schema = { list_fields, ELEMS(list_fields), .open = true };

/* `usual` has the defaults. NULL: the answer is sent. */
static struct work *begin(struct request *r, const struct json_schema *s, const char *operation,
			  const struct work *usual)
{
	struct work *w = aio_file_new(r, sizeof(*w), operation);

	if (!w)
		return NULL;
	struct aio_file f = w->f;
	*w = *usual;
	w->f = f;
	w->f.also_release = release;
	w->names = ARENA_INIT(NAMES_MAX);
	w->entries = BUF_INIT(ENTRIES_MAX * sizeof(struct entry));
	w->joined = BUF_INIT(16u * 1024);
	w->f.op.ops = &list_ops;
	if (aio_read(r, s, w) < 0)
		return NULL;
	if (!order_of(w)->name) {
		aio_unprocessable(r, "sort_by", "sort_by must be name, path, size, modified or type");
		return NULL;
	}
	return aio_file_at(&w->f, w->path, false) < 0 ? NULL : w;
}

/* A pattern of names, at any depth. */
static void find(struct request *r)
{
	static const struct work usual = {
		.is_find = true, .show_hidden = true, .sort_by = VIEW("path"), .max_results = ENTRIES_MAX
	};
	struct work *w = begin(r, &find_schema, "find", &usual);
	struct err e = { 0 };

	if (!w)
		return;
	struct file_search s = { .pattern = w->pattern };
	if (files_find(r->core, &r->actor, &w->f.place, &s, &w->f.op, &e) < 0)
		aio_file_fail(&w->f, &e);
}

/* A pattern of paths: without a slash it means what is in the directory itself. */
static void glob(struct request *r)
{
	static const struct work usual = { .is_glob = true,
					   .files_only = true,
					   .metadata = true,
					   .sort_by = VIEW("path"),
					   .max_results = 5000 };
	struct work *w = begin(r, &glob_schema, "glob", &usual);
	struct buf anchored = BUF_INIT(2048);
	struct err e = { 0 };

	if (!w)
		return;
	if (w->pattern.p[0] != '/')
		buf_putc(&anchored, '/');
	buf_add(&anchored, w->pattern);
	struct file_search s = { .pattern = buf_view(&anchored),
				 .type = w->files_only ? VIEW("file") : VIEW("") };
	int started = files_find(r->core, &r->actor, &w->f.place, &s, &w->f.op, &e);
	buf_done(&anchored);
	if (started < 0)
		aio_file_fail(&w->f, &e);
}

static void list(struct request *r)
{
	static const struct work usual = {
		.show_hidden = true, .metadata = true, .sort_by = VIEW("name"), .max_results = ENTRIES_MAX
	};
	struct work *w = begin(r, &list_schema, "list", &usual);
	struct err e = { 0 };

	if (!w)
		return;
	struct file_page page = { .depth = 1 };
	if (w->recursive)
		page.depth = w->has_depth ? (unsigned)MIN(w->max_depth, FILES_DEPTH_MAX) : FILES_DEPTH_MAX;
	w->is_bounded = w->recursive && (!w->has_depth || w->max_depth > FILES_DEPTH_MAX);
	w->f.op.detail = true;
	if (files_list(r->core, &r->actor, &w->f.place, &page, &w->f.op, &e) < 0)
		aio_file_fail(&w->f, &e);
}

const struct route aio_find_routes[] = {
	{ "POST", "/v1/file/find", find, .body = ROUTE_JSON, .schema = &find_schema, .query = "api_key" },
	{ "POST", "/v1/file/glob", glob, .body = ROUTE_JSON, .schema = &glob_schema, .query = "api_key" },
	{ "POST", "/v1/file/list", list, .body = ROUTE_JSON, .schema = &list_schema, .query = "api_key" },
	{ 0 },
};
