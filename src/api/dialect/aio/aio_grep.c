/*
 * /v1/file/grep. The sandbox searches line by line. What it does not do itself happens here: several patterns
 * of names, the size of files, lines before and after, an offset. Every file with a match is read once more
 * for that; the search waits meanwhile, since its bytes are given back only then.
 */
#include "aio_file.h"

#include "glob.h"
#include "num.h"
#include "poison.h"

#define CONTEXT_MAX 20
#define ANSWER_ROOM (8u * 1024 * 1024)  /* past it the answer is cut */
#define SEARCHED    (16u * 1024 * 1024) /* larger files the sandbox passes over itself */

/* Names of kinds of files, as ripgrep has them. */
static const struct {
	const char *name, *patterns;
} types[] = {
	{ "py", "*.py *.pyi" },
	{ "python", "*.py *.pyi" },
	{ "js", "*.js *.jsx *.mjs *.cjs *.vue" },
	{ "ts", "*.ts *.tsx *.cts *.mts" },
	{ "typescript", "*.ts *.tsx *.cts *.mts" },
	{ "rust", "*.rs" },
	{ "go", "*.go" },
	{ "c", "*.c *.h *.H *.cats" },
	{ "cpp", "*.cpp *.cc *.cxx *.C *.h *.hh *.hpp *.hxx *.inl *.H *.h.in" },
	{ "cs", "*.cs" },
	{ "csharp", "*.cs" },
	{ "java", "*.java *.jsp *.jspx *.properties" },
	{ "kotlin", "*.kt *.kts" },
	{ "swift", "*.swift" },
	{ "ruby", "*.rb *.rbw *.gemspec *.ru Gemfile Rakefile" },
	{ "php", "*.php *.php3 *.php4 *.php5 *.php7 *.php8 *.phtml" },
	{ "perl", "*.pl *.pm *.PL *.perl *.plh *.plx *.t" },
	{ "lua", "*.lua" },
	{ "r", "*.R *.r *.Rmd *.Rnw" },
	{ "sh", "*.sh *.bash *.zsh *.ksh *.csh *.tcsh .bashrc .profile .zshrc" },
	{ "sql", "*.sql *.psql" },
	{ "html", "*.htm *.html *.ejs" },
	{ "css", "*.css *.scss" },
	{ "json", "*.json *.sarif composer.lock" },
	{ "yaml", "*.yaml *.yml" },
	{ "toml", "*.toml Cargo.lock" },
	{ "xml", "*.xml *.xsd *.xsl *.xslt *.dtd *.rng *.sch *.xhtml *.xjb *.svg" },
	{ "md", "*.md *.markdown *.mdown *.mdwn *.mdx *.mkd *.mkdn" },
	{ "markdown", "*.md *.markdown *.mdown *.mdwn *.mdx *.mkd *.mkdn" },
	{ "txt", "*.txt" },
	{ "make", "*.mk *.mak Makefile makefile GNUmakefile" },
	{ "cmake", "*.cmake CMakeLists.txt" },
	{ "docker", "*Dockerfile*" },
	{ "csv", "*.csv" },
};

/* A match that waits, with its path behind it. */
struct match {
	uint64_t line;
	size_t path_n;
};

struct work {
	struct aio_file f; /* reads the file at hand */
	struct file_op grep;
	struct view path, pattern, max_file_size, type;
	struct json_strlist include, exclude;
	bool ignore_case, fixed, multiline, recursive;
	uint64_t before, after, max_results, offset, size_max;
	const char *type_patterns; /* NULL: any */
	struct view root;          /* where the search begins */
	struct buf queue;          /* struct match and its path, one behind the other */
	size_t bytes;              /* of the sandbox's that these were */
	bool is_over;              /* the search is */
	bool is_cut;
	uint64_t found, sent, files;
	struct json_out *o;
	/* the file at hand */
	struct buf file, full; /* its path, below the root and as a whole */
	bool has_file, is_reading, skips_file, told;
	uint64_t line; /* that begins at at_line */
	size_t at_line;
};

static void release(struct aio_file *f)
{
	struct work *w = CONTAINER(f, struct work, f);

	files_cancel(&w->grep);
	buf_done(&w->queue);
	buf_done(&w->file);
	buf_done(&w->full);
}

static void hold(struct work *w)
{
	http_hold(w->f.r->x, w->f.whole.bytes.cap + w->queue.cap + w->f.r->out.cap);
}

/* ---- the answer ---- */

static void finish(struct work *w)
{
	struct request *r = w->f.r;
	struct json_out *o = w->o;
	bool is_whole = w->is_over && !w->include.n && !w->exclude.n && !w->type_patterns && w->recursive;

	json_out_end(o, ']');
	json_out_ku64(o, "match_count", w->sent);
	json_out_key(o, "files_searched");
	if (is_whole)
		json_out_u64(o, w->grep.sum.files);
	else
		json_out_null(o);
	json_out_ku64(o, "files_matched", w->files);
	json_out_kbool(o, "truncated", w->is_cut);
	json_out_end(o, '}');
	aio_send(r);
}

static void begin_answer(struct work *w)
{
	w->o = aio_data(w->f.r, NULL);
	json_out_object(w->o);
	json_out_kstr(w->o, "path", w->root);
	json_out_kstr(w->o, "pattern", w->pattern);
	json_out_key(w->o, "matches");
	json_out_array(w->o);
}

static struct view without_cr(struct view line)
{
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	return line;
}

/* Where line n (from 1) of the file begins; lines are asked for in rising order. */
static struct view from_line(struct work *w, uint64_t n)
{
	struct view all = buf_view(&w->f.whole.bytes), rest = view_skip(all, w->at_line);

	while (w->line < n && rest.n) {
		(void)view_split(rest, '\n', &rest);
		w->line++;
		if (!rest.p)
			rest = view_skip(all, all.n);
	}
	w->at_line = all.n - rest.n;
	return rest;
}

static void put_lines(struct json_out *o, const char *key, struct view rest, uint64_t n)
{
	json_out_key(o, key);
	json_out_array(o);
	while (n-- && rest.n) {
		struct view line = view_split(rest, '\n', &rest);
		json_out_str(o, without_cr(line));
	}
	json_out_end(o, ']');
}

static void put_match(struct work *w, uint64_t number)
{
	uint64_t before = MIN(w->before, number - 1);
	struct view rest = from_line(w, number - before), start = rest, line = VIEW("");

	for (uint64_t i = 0; i <= before && rest.p; i++)
		line = view_split(rest, '\n', &rest);
	json_out_object(w->o);
	json_out_kstr(w->o, "file", w->f.place.path);
	json_out_ku64(w->o, "line_number", number);
	json_out_kstr(w->o, "line_content", without_cr(line));
	if (w->before)
		put_lines(w->o, "context_before", start, before);
	if (w->after)
		put_lines(w->o, "context_after", rest.p ? rest : VIEW(""), w->after);
	json_out_end(w->o, '}');
}

/* False: no more is wanted. */
static bool take(struct work *w, uint64_t line)
{
	if (w->found++ < w->offset)
		return true;
	if (w->sent == w->max_results || buf_len(&w->f.r->out) > ANSWER_ROOM) {
		w->is_cut = true;
		return false;
	}
	put_match(w, line);
	w->sent++;
	w->files += !w->told;
	w->told = true;
	return true;
}

/* ---- matches, one after the other ---- */

static void go_on(struct work *w);

static void on_file(struct aio_file *f, const struct file_info *info, const struct err *e)
{
	struct work *w = CONTAINER(f, struct work, f);

	w->is_reading = false;
	w->skips_file = e != NULL; /* too large, or gone meanwhile */
	hold(w);
	go_on(w);
}

static void open_file(struct work *w, struct view path)
{
	buf_clear(&w->file);
	buf_add(&w->file, path);
	w->has_file = w->is_reading = true;
	w->told = false;
	w->line = 1;
	w->at_line = 0;
	w->f.place.path = aio_file_join(&w->full, w->root, path);
	aio_file_read(&w->f, (size_t)w->size_max, on_file);
}

static void go_on(struct work *w)
{
	struct match m;

	while (!w->is_reading && buf_len(&w->queue)) {
		struct view queue = buf_view(&w->queue);
		memcpy(&m, queue.p, sizeof(m));
		struct view path = view_head(view_skip(queue, sizeof(m)), m.path_n);
		if (!w->has_file || !view_eq(buf_view(&w->file), path)) {
			open_file(w, path);
			return;
		}
		if (!w->skips_file && !take(w, m.line)) {
			files_cancel(&w->grep);
			finish(w);
			return;
		}
		buf_consume(&w->queue, sizeof(m) + m.path_n);
	}
	if (w->is_reading)
		return;
	if (w->is_over) {
		finish(w);
		return;
	}
	size_t n = w->bytes;
	w->bytes = 0;
	files_consumed(&w->grep, n);
}

static bool is_of_type(const struct work *w, struct view path)
{
	struct view rest = view_of(w->type_patterns);

	while (rest.p)
		if (glob_match(view_split(rest, ' ', &rest), path))
			return true;
	return !w->type_patterns;
}

static bool is_included(const struct work *w, struct view path)
{
	bool hit = w->include.n == 0;

	if (!path.n)
		return true; /* the file that was named */
	for (size_t i = 0; !hit && i < w->include.n; i++)
		hit = glob_match(w->include.items[i], path);
	return hit && is_of_type(w, path) && !aio_file_is_among(&w->exclude, path) &&
	       (w->recursive || !memchr(path.p, '/', path.n));
}

static void fail(struct work *w, const struct err *e)
{
	files_cancel(&w->f.op);
	w->f.place.path = w->root;
	aio_file_fail(&w->f, e);
}

static void on_matches(struct file_op *op, const struct file_match *matches, size_t n, size_t bytes)
{
	struct work *w = CONTAINER(op, struct work, grep);
	struct err e = { 0 };

	for (size_t i = 0; i < n; i++) {
		struct match m = { .line = matches[i].line, .path_n = matches[i].path.n };
		if (!m.line || !is_included(w, matches[i].path))
			continue;
		buf_append(&w->queue, &m, sizeof(m));
		buf_add(&w->queue, matches[i].path);
	}
	w->bytes += bytes;
	if (w->queue.bad) {
		files_cancel(op);
		err_set(&e, ERR_INTERNAL, "no memory for the matches");
		fail(w, &e);
		return;
	}
	hold(w);
	go_on(w);
}

static void on_grepped(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct work *w = CONTAINER(op, struct work, grep);

	if (e) {
		fail(w, e);
		return;
	}
	w->is_over = true;
	go_on(w);
}

static const struct file_ops grep_ops = { .on_matches = on_matches, .done = on_grepped };

/* ---- the request ---- */

#define AT(m) .offset = offsetof(struct work, m)
#define FLAG(name, m)                                                                                        \
	{                                                                                                    \
		name, JSON_F_BOOL, AT(m), .nullable = true                                                   \
	}
static const struct json_field grep_fields[] = {
	{ "path", JSON_F_STRING, AT(path), .min = 1, .max = 4095, .required = true },
	{ "pattern", JSON_F_STRING, AT(pattern), .min = 1, .max = 1000, .required = true },
	{ "include", JSON_F_STRLIST, AT(include), .max = 100, .nullable = true },
	{ "exclude", JSON_F_STRLIST, AT(exclude), .max = 100, .nullable = true },
	FLAG("case_insensitive", ignore_case),
	FLAG("fixed_strings", fixed),
	{ "context_before", JSON_F_U64, AT(before), .max = CONTEXT_MAX, .nullable = true },
	{ "context_after", JSON_F_U64, AT(after), .max = CONTEXT_MAX, .nullable = true },
	{ "max_results", JSON_F_U64, AT(max_results), .min = 1, .max = 10000, .nullable = true },
	{ "max_file_size", JSON_F_STRING, AT(max_file_size), .nullable = true },
	FLAG("multiline", multiline),
	{ "offset", JSON_F_U64, AT(offset), .max = INT64_MAX, .nullable = true },
	{ "type", JSON_F_STRING, AT(type), .nullable = true },
	FLAG("recursive", recursive),
};
#undef AT
static const struct json_schema grep_schema = { grep_fields, ELEMS(grep_fields), .open = true };

/* "500", "500K", "1M", "1G". */
static int read_size(struct view v, uint64_t *ret)
{
	static const char units[] = "KMG";
	const char *unit = v.n ? memchr(units, v.p[v.n - 1] & ~0x20, 3) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;

	if (unit)
		v.n--;
	if (num_u64(v, ret) < 0 || *ret == 0 || *ret > UINT32_MAX)
		return -1;
	*ret = MIN(*ret << shift, SEARCHED);
	return 0;
}

static int check(struct work *w)
{
	struct request *r = w->f.r;

	if (read_size(w->max_file_size, &w->size_max) < 0) {
		aio_unprocessable(r, "max_file_size", "max_file_size must be a size such as 500K or 1M");
		return -1;
	}
	if (w->multiline) {
		aio_file_refuse(&w->f, "multiline is not supported: the search goes line by line");
		return -1;
	}
	for (size_t i = 0; w->type.n && i < ELEMS(types); i++)
		if (view_is(w->type, types[i].name))
			w->type_patterns = types[i].patterns;
	if (!w->type.n || w->type_patterns)
		return 0;
	aio_file_refuse(&w->f, "type '%.*s' is not known: use include", (int)MIN(w->type.n, 40u), w->type.p);
	return -1;
}

static void grep(struct request *r)
{
	struct work *w = aio_file_new(r, sizeof(*w), "grep");
	struct err e = { 0 };

	if (!w)
		return;
	w->f.also_release = release;
	w->queue = BUF_INIT(64u * 1024 * 1024);
	w->file = w->full = BUF_INIT(16u * 1024);
	w->max_results = 500;
	w->max_file_size = VIEW("1M");
	w->recursive = true;
	if (aio_read(r, &grep_schema, w) < 0 || aio_file_at(&w->f, w->path, false) < 0 || check(w) < 0)
		return;
	w->root = w->f.place.path;
	w->grep.ops = &grep_ops;
	struct file_search s = { .pattern = w->pattern,
				 .regex = !w->fixed,
				 .ignore_case = w->ignore_case,
				 .include = w->include.n == 1 ? w->include.items[0] : VIEW("") };
	if (files_grep(r->core, &r->actor, &w->f.place, &s, &w->grep, &e) < 0) {
		aio_file_fail(&w->f, &e);
		return;
	}
	begin_answer(w);
}

const struct route aio_grep_routes[] = {
	{ "POST", "/v1/file/grep", grep, .body = ROUTE_JSON, .schema = &grep_schema, .query = "api_key" },
	{ 0 },
};
