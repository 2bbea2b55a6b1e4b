/*
 * Tables and JSON on standard output, built in memory and written at once.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "fd.h"
#include "num.h"
#include "show.h"

#include "poison.h"

#define OUT_MAX      (1u << 30)
#define TEXT_MAX     (256u << 20)
#define COLUMN_LEAST 6

void show_table_init(struct show_table *t, const char *const *titles, size_t n_columns)
{
	struct view cells[SHOW_COLUMNS];

	*t = (struct show_table){ .n_columns = n_columns, .text = ARENA_INIT(TEXT_MAX) };
	for (size_t i = 0; i < n_columns; i++)
		cells[i] = view_of(titles[i]);
	show_table_add(t, cells);
}

void show_table_done(struct show_table *t)
{
	free(t->rows);
	t->rows = NULL;
	arena_done(&t->text);
}

void show_table_add(struct show_table *t, const struct view *cells)
{
	if (t->n_rows == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 64;
		void *rows = reallocarray(t->rows, cap, sizeof(*t->rows));

		if (!rows) {
			t->n_columns = 0; /* show_table_print says so */
			return;
		}
		t->rows = rows;
		t->cap = cap;
	}
	memcpy(t->rows[t->n_rows++], cells, t->n_columns * sizeof(*cells));
}

/* Characters, which in UTF-8 are the bytes that continue nothing. */
static size_t width(struct view v)
{
	size_t n = 0;

	for (size_t i = 0; i < v.n; i++)
		n += ((unsigned char)v.p[i] & 0xc0) != 0x80;
	return n;
}

/* On a terminal, the widest columns are cut until a row fits a line, but not to less than what is still of
 * use. */
static void fit(size_t *widths, size_t n)
{
	struct winsize size = { 0 };
	size_t all = 2 * (n - 1);

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col)
		return;
	for (size_t c = 0; c < n; c++)
		all += widths[c];
	while (all > size.ws_col) {
		size_t widest = 0;
		for (size_t c = 1; c < n; c++)
			if (widths[c] > widths[widest])
				widest = c;
		if (widths[widest] <= COLUMN_LEAST)
			return;
		widths[widest]--;
		all--;
	}
}

/* As much as fits, with an ellipsis for the rest. */
static size_t put_cell(struct buf *b, struct view cell, size_t most)
{
	size_t n = 0, chars = 0;

	if (width(cell) <= most) {
		show_clean(b, cell);
		return width(cell);
	}
	for (; n < cell.n; n++) {
		bool begins = ((unsigned char)cell.p[n] & 0xc0) != 0x80;
		if (begins && chars == most - 1)
			break;
		chars += begins;
	}
	show_clean(b, view_head(cell, n));
	buf_puts(b, "…");
	return most;
}

int show_table_print(const struct show_table *t, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(OUT_MAX);
	size_t widths[SHOW_COLUMNS] = { 0 };

	if (t->n_columns == 0)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t r = 0; r < t->n_rows; r++)
		for (size_t c = 0; c < t->n_columns; c++)
			widths[c] = MAX(widths[c], width(t->rows[r][c]));
	fit(widths, t->n_columns);
	for (size_t r = 0; r < t->n_rows; r++) {
		for (size_t c = 0; c < t->n_columns; c++) {
			size_t pad = put_cell(&b, t->rows[r][c], widths[c]);
			for (; c + 1 < t->n_columns && pad < widths[c] + 2; pad++)
				buf_putc(&b, ' ');
		}
		buf_putc(&b, '\n');
	}
	if (b.bad)
		return err_set(e, ERR_INTERNAL, "out of memory");
	return show_bytes(STDOUT_FILENO, buf_view(&b), e);
}

void show_table_set(struct show_table *t, size_t column, struct view cell)
{
	if (t->n_rows && column < t->n_columns)
		t->rows[t->n_rows - 1][column] = cell;
}

struct view show_keep(struct show_table *t, struct view text)
{
	struct view kept = arena_view(&t->text, text);

	return kept.p ? kept : VIEW("?");
}

void show_size(struct buf *out, uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double size = (double)bytes;
	size_t unit = 0;

	while (size >= 1023.95 && unit + 1 < ELEMS(units)) {
		size /= 1024;
		unit++;
	}
	buf_printf(out, unit && size < 99.95 ? "%.1f %s" : "%.0f %s", size, units[unit]);
}

/* "2026-11-15T20:00:00.000Z", in UTC as the API always writes it. */
static bool read_time(struct view v, int64_t *ret_ms)
{
	static const unsigned char at[] = { 0, 5, 8, 11, 14, 17 }, len[] = { 4, 2, 2, 2, 2, 2 };
	uint32_t n[6];
	struct tm tm = { 0 };

	if (v.n < 20 || v.p[4] != '-' || v.p[10] != 'T' || v.p[v.n - 1] != 'Z')
		return false;
	for (size_t i = 0; i < ELEMS(n); i++)
		if (num_u32((struct view){ v.p + at[i], len[i] }, &n[i]) < 0)
			return false;
	tm = (struct tm){ .tm_year = (int)n[0] - 1900,
			  .tm_mon = (int)n[1] - 1,
			  .tm_mday = (int)n[2],
			  .tm_hour = (int)n[3],
			  .tm_min = (int)n[4],
			  .tm_sec = (int)n[5] };
	*ret_ms = (int64_t)timegm(&tm) * 1000;
	return true;
}

/* How far a time as the API writes it is from now: "3 m ago", "in 2 h". False: it is no time. */
static bool show_age(struct buf *out, struct view time, int64_t now_ms)
{
	int64_t at, s;
	const char *unit = "s";
	bool future;

	if (!read_time(time, &at))
		return false;
	future = at > now_ms;
	s = (future ? at - now_ms : now_ms - at) / 1000;
	if (s >= 2 * 86400) {
		s /= 86400;
		unit = "d";
	} else if (s >= 2 * 3600) {
		s /= 3600;
		unit = "h";
	} else if (s >= 2 * 60) {
		s /= 60;
		unit = "m";
	}
	buf_printf(out, future ? "in %lld%s" : "%lld%s ago", (long long)s, unit);
	return true;
}

static bool ends_with(const char *s, const char *suffix)
{
	size_t n = strlen(s), k = strlen(suffix);

	return n >= k && strcmp(s + n - k, suffix) == 0;
}

struct view show_cell(struct show_table *t, const struct json *object, const char *field)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(128);
	const struct json *j = object ? json_get(object, field) : NULL;
	uint64_t n;

	if (j && j->type == JSON_BOOL)
		return j->boolean ? VIEW("yes") : VIEW("no");
	if (!j || (j->type != JSON_STRING && j->type != JSON_NUMBER) || j->text.n == 0)
		return VIEW("-");
	if (j->type == JSON_STRING && ends_with(field, "_at") && show_age(&b, j->text, clock_wall_ms()))
		return show_keep(t, buf_view(&b));
	if (j->type == JSON_NUMBER && ends_with(field, "bytes") && json_to_u64(j, &n) == 0) {
		show_size(&b, n);
		return show_keep(t, buf_view(&b));
	}
	return j->text;
}

void show_table_object(struct show_table *t, const struct json *object, const char *const *fields)
{
	struct view cells[SHOW_COLUMNS];

	for (size_t i = 0; i < t->n_columns; i++)
		cells[i] = show_cell(t, object, fields[i]);
	show_table_add(t, cells);
}

int show_list(const struct json *answer, const char *list, const char *const *titles,
	      const char *const *fields, size_t n_columns, struct err *e)
{
	_cleanup_(show_table_done) struct show_table t;
	const struct json *rows = answer ? json_get(answer, list) : NULL;

	if (!rows || rows->type != JSON_ARRAY)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no %s", list);
	show_table_init(&t, titles, n_columns);
	for (size_t i = 0; i < rows->n; i++)
		show_table_object(&t, &rows->items[i], fields);
	return show_table_print(&t, e);
}

size_t show_steers(struct view v)
{
	const unsigned char a = (unsigned char)v.p[0], b = v.n > 1 ? (unsigned char)v.p[1] : 0,
			    c = v.n > 2 ? (unsigned char)v.p[2] : 0;

	if (a < 0x20 || a == 0x7f)
		return 1;
	/* U+0080 to U+009F are controls as well, in UTF-8 C2 80 to C2 9F. */
	if ((a == 0xc2 && (b & 0xe0) == 0x80) || (a == 0xd8 && b == 0x9c))
		return 2;
	if (a == 0xe2 && b == 0x80 && (c == 0x8e || c == 0x8f || (c >= 0xa8 && c <= 0xae)))
		return 3;
	return a == 0xe2 && b == 0x81 && c >= 0xa6 && c <= 0xa9 ? 3 : 0;
}

int show_clean(struct buf *out, struct view text)
{
	while (text.n) {
		const size_t n = show_steers(text);

		buf_putc(out, n ? '?' : text.p[0]);
		text = view_skip(text, n ? n : 1);
	}
	return out->bad;
}

static void indent(struct buf *b, unsigned depth)
{
	buf_putc(b, '\n');
	for (unsigned i = 0; i < depth; i++)
		buf_puts(b, "  ");
}

/* The document's depth is bounded by its reader (JSON_DEPTH). */
static void put_json(struct buf *b, const struct json *j, unsigned depth)
{
	bool object = j->type == JSON_OBJECT;
	struct json_out o;

	if ((!object && j->type != JSON_ARRAY) || j->n == 0) {
		json_out_init(&o, b);
		json_out_value(&o, j);
		return;
	}
	buf_putc(b, object ? '{' : '[');
	for (size_t i = 0; i < j->n; i++) {
		if (i)
			buf_putc(b, ',');
		indent(b, depth + 1);
		if (object) {
			json_out_init(&o, b);
			json_out_str(&o, j->members[i].key);
			buf_puts(b, ": ");
		}
		put_json(b, object ? &j->members[i].value : &j->items[i], depth + 1);
	}
	indent(b, depth);
	buf_putc(b, object ? '}' : ']');
}

int show_json(const struct json *j, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(OUT_MAX);

	put_json(&b, j, 0);
	buf_putc(&b, '\n');
	if (b.bad)
		return err_set(e, ERR_INTERNAL, "out of memory");
	return show_bytes(STDOUT_FILENO, buf_view(&b), e);
}

int show_bytes(int fd, struct view bytes, struct err *e)
{
	int r = bytes.n ? fd_write_all(fd, bytes.p, bytes.n) : 0;

	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "cannot write the output") : 0;
}
