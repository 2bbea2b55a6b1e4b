/*
 * The schema reader: a parsed document against a table of fields, into a struct.
 *
 * Every error names the field by its path. Names that come from the document are
 * quoted and cut, so that a message is safe to show in a terminal or a log.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "clock.h"
#include "json_kind.h"
#include "nearest.h"
#include "text.h"

#include "poison.h"

#define NAME_SHOWN 40 /* bytes of a name from outside that a message repeats */

/* The way from the root to a value, as a chain through the C stack. */
struct path {
	const struct path *up;
	struct view name;
	bool foreign; /* the name is the sender's: quote it */
	size_t item;  /* an item of a list, from 1: "rules[0]" */
};

struct schema_reader {
	struct arena *arena;
	bool with_lines;
	struct err *e;
};

static void put_path(struct buf *b, const struct path *path)
{
	if (!path)
		return;
	put_path(b, path->up);
	if (path->item) {
		buf_printf(b, "[%zu]", path->item - 1);
		return;
	}
	if (path->up)
		buf_putc(b, '.');
	if (path->foreign)
		text_quote(b, path->name, NAME_SHOWN);
	else
		buf_add(b, path->name);
}

static int fail(struct schema_reader *r, const struct json *at, const struct path *path, const char *fmt, ...)
	_printf_(4, 5);

static int fail(struct schema_reader *r, const struct json *at, const struct path *path, const char *fmt, ...)
{
	struct buf b = BUF_INIT(1024);
	va_list ap;

	if (r->with_lines && at->line > 0)
		buf_printf(&b, "line %u: ", at->line);
	if (path) {
		put_path(&b, path);
		buf_puts(&b, ": ");
	}
	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	err_set(r->e, ERR_INVALID, "%.*s", VIEW_ARG(buf_view(&b)));
	buf_done(&b);
	return -1;
}

static int fail_type(struct schema_reader *r, const struct json *j, const struct path *path,
		     const char *wanted)
{
	return fail(r, j, path, "must be %s, not %s", wanted, json_type_name(j->type));
}

static int fail_memory(struct schema_reader *r)
{
	return err_set(r->e, ERR_TOO_LARGE, "the JSON document takes more memory than is allowed");
}

static int check_count(struct schema_reader *r, const struct json *j, const struct json_field *f,
		       const struct path *path, size_t n, const char *unit)
{
	if (n < f->min && f->min == 1)
		return fail(r, j, path, "must not be empty");
	if (n < f->min)
		return fail(r, j, path, "must have at least %" PRIu64 " %s", f->min, unit);
	if (f->max && n > f->max)
		return fail(r, j, path, "must have at most %" PRIu64 " %s", f->max, unit);
	return 0;
}

static int read_string(struct schema_reader *r, const struct json *j, const struct json_field *f,
		       const struct path *path, struct view *out)
{
	if (j->type != JSON_STRING)
		return fail_type(r, j, path, "a string");
	if (check_count(r, j, f, path, j->text.n, "bytes") < 0)
		return -1;
	*out = j->text;
	return 0;
}

/* The last value of U64, U32, U16 that the table and the type allow; 0: any. */
static uint64_t last_unsigned(const struct json_field *f)
{
	uint64_t most = f->kind == JSON_F_U32 ? UINT32_MAX : f->kind == JSON_F_U16 ? UINT16_MAX : 0;

	return f->max ? f->max : most;
}

static int read_unsigned(struct schema_reader *r, const struct json *j, const struct json_field *f,
			 const struct path *path, void *out)
{
	uint64_t v = 0, max = last_unsigned(f);

	if (j->type != JSON_NUMBER)
		return fail_type(r, j, path, "a whole number");
	if (json_to_u64(j, &v) < 0 || v < f->min || (max && v > max)) {
		if (max)
			return fail(r, j, path, "must be a whole number from %" PRIu64 " to %" PRIu64, f->min,
				    max);
		return fail(r, j, path, "must be a whole number of at least %" PRIu64, f->min);
	}
	if (f->kind == JSON_F_U64)
		*(uint64_t *)out = v;
	else if (f->kind == JSON_F_U32)
		*(uint32_t *)out = (uint32_t)v;
	else
		*(uint16_t *)out = (uint16_t)v;
	return 0;
}

static int read_signed(struct schema_reader *r, const struct json *j, const struct json_field *f,
		       const struct path *path, void *out)
{
	bool any = f->imin == 0 && f->imax == 0, narrow = f->kind == JSON_F_I32;
	int64_t v = 0, min = any ? (narrow ? INT32_MIN : INT64_MIN) : f->imin,
		max = any ? (narrow ? INT32_MAX : INT64_MAX) : f->imax;

	if (j->type != JSON_NUMBER)
		return fail_type(r, j, path, "a whole number");
	if (json_to_i64(j, &v) < 0 || v < min || v > max)
		return fail(r, j, path, "must be a whole number from %" PRId64 " to %" PRId64, min, max);
	if (narrow)
		*(int32_t *)out = (int32_t)v;
	else
		*(int64_t *)out = v;
	return 0;
}

static int read_double(struct schema_reader *r, const struct json *j, const struct json_field *f,
		       const struct path *path, void *out)
{
	double v = 0, max = f->fmax == 0 && f->kind == JSON_F_MILLI ? UINT32_MAX / 1000 : f->fmax;

	if (j->type != JSON_NUMBER)
		return fail_type(r, j, path, "a number");
	if (json_to_double(j, &v) < 0 || v < f->fmin || (max != 0 && v > max)) {
		if (max != 0)
			return fail(r, j, path, "must be a number from %g to %g", f->fmin, max);
		return fail(r, j, path, "must be a number of at least %g", f->fmin);
	}
	if (f->kind == JSON_F_MILLI)
		*(uint32_t *)out = (uint32_t)(v * 1000 + 0.5);
	else
		*(double *)out = v;
	return 0;
}

static int read_text(struct schema_reader *r, const struct json *j, const struct json_field *f,
		     const struct path *path, void *out)
{
	struct json_field bounds = *f;
	struct view v;
	char *z;

	if (f->kind == JSON_F_CHARS && (!f->max || f->max >= f->size))
		bounds.max = f->size - 1;
	if (read_string(r, j, &bounds, path, &v) < 0)
		return -1;
	if (f->kind == JSON_F_CHARS)
		return view_to_str(v, out, f->size) < 0 ? fail_type(r, j, path, "a string") : 0;
	z = arena_str(r->arena, v);
	if (!z)
		return fail_memory(r);
	*(const char **)out = z;
	return 0;
}

static int read_time(struct schema_reader *r, const struct json *j, const struct path *path, int64_t *out)
{
	if (j->type != JSON_STRING)
		return fail_type(r, j, path, "a string");
	if (clock_from_rfc3339(j->text, out) < 0)
		return fail(r, j, path, "must be a time such as 2026-11-15T08:12:52Z");
	return 0;
}

static int fail_names(struct schema_reader *r, const struct json *j, const struct json_field *f,
		      const struct path *path)
{
	struct buf b = BUF_INIT(1024);
	const char *before = NULL;
	size_t known = 0;
	int rc;

	for (size_t i = 0; i < f->n_names; i++) {
		if (!f->names[i])
			continue;
		if (before)
			buf_printf(&b, "%s%s", known++ ? ", " : "", before);
		before = f->names[i];
	}
	if (before)
		buf_printf(&b, "%s%s", known ? " or " : "", before);
	rc = fail(r, j, path, "must be %.*s", VIEW_ARG(buf_view(&b)));
	buf_done(&b);
	return rc;
}

/* The place of a name; -1 */
static int find_name(const struct json_field *f, struct view name)
{
	for (size_t i = 0; i < f->n_names; i++)
		if (f->names[i] && view_is(name, f->names[i]))
			return (int)i;
	return -1;
}

static int read_enum(struct schema_reader *r, const struct json *j, const struct json_field *f,
		     const struct path *path, uint32_t *out)
{
	int found;

	if (j->type != JSON_STRING)
		return fail_type(r, j, path, "a string");
	found = find_name(f, j->text);
	if (found < 0)
		return fail_names(r, j, f, path);
	*out = (uint32_t)found;
	return 0;
}

static int read_bits(struct schema_reader *r, const struct json *j, const struct json_field *f,
		     const struct path *path, uint32_t *out)
{
	uint32_t bits = 0;

	if (j->type != JSON_ARRAY)
		return fail_type(r, j, path, "an array of strings");
	if (check_count(r, j, f, path, j->n, "items") < 0)
		return -1;
	for (size_t i = 0; i < j->n; i++) {
		const struct path at = { path, .item = i + 1 };
		int found;

		if (j->items[i].type != JSON_STRING)
			return fail_type(r, &j->items[i], &at, "a string");
		found = find_name(f, j->items[i].text);
		if (found < 0 || found >= 32)
			return fail_names(r, &j->items[i], f, &at);
		bits |= UINT32_C(1) << found;
	}
	*out = bits;
	return 0;
}

static int read_strmap(struct schema_reader *r, const struct json *j, const struct json_field *f,
		       const struct path *path, struct json_strmap *out)
{
	struct json_strmap map = { .n = j->n };

	if (j->type != JSON_OBJECT)
		return fail_type(r, j, path, "an object of strings");
	if (check_count(r, j, f, path, j->n, "entries") < 0)
		return -1;
	map.keys = arena_array(r->arena, j->n, sizeof(*map.keys));
	map.values = arena_array(r->arena, j->n, sizeof(*map.values));
	if (!map.keys || !map.values)
		return fail_memory(r);
	for (size_t i = 0; i < j->n; i++) {
		const struct json_member *m = &j->members[i];

		if (m->value.type != JSON_STRING)
			return fail_type(r, &m->value, &(struct path){ path, m->key, .foreign = true },
					 "a string");
		map.keys[i] = m->key;
		map.values[i] = m->value.text;
	}
	*out = map;
	return 0;
}

static int read_strlist(struct schema_reader *r, const struct json *j, const struct json_field *f,
			const struct path *path, struct json_strlist *out)
{
	struct json_strlist list = { .n = j->n };

	if (j->type != JSON_ARRAY)
		return fail_type(r, j, path, "an array of strings");
	if (check_count(r, j, f, path, j->n, "items") < 0)
		return -1;
	list.items = arena_array(r->arena, j->n, sizeof(*list.items));
	if (!list.items)
		return fail_memory(r);
	for (size_t i = 0; i < j->n; i++) {
		if (j->items[i].type != JSON_STRING)
			return fail(r, &j->items[i], path, "item %zu must be a string, not %s", i + 1,
				    json_type_name(j->items[i].type));
		list.items[i] = j->items[i].text;
	}
	*out = list;
	return 0;
}

static int read_object(struct schema_reader *r, const struct json *j, const struct json_schema *s,
		       const struct path *path, char *out);

static int read_field(struct schema_reader *r, const struct json *j, const struct json_field *f,
		      const struct path *path, char *out);

/* The items come to a new place; ARRAY's to the one that they have. */
static int read_items(struct schema_reader *r, const struct json *j, const struct json_field *f,
		      const struct path *path, char *out)
{
	struct json_items items = json_kind_items(f, out);
	char *p = out + f->offset;

	if (j->type != JSON_ARRAY)
		return fail_type(r, j, path, "an array");
	assert(f->kind == JSON_F_LIST || f->max > 0);
	if (check_count(r, j, f, path, j->n, "items") < 0)
		return -1;
	if (f->kind == JSON_F_LIST) {
		p = arena_array(r->arena, j->n, items.step);
		if (!p)
			return fail_memory(r);
		*(char **)(void *)(out + f->offset) = p;
	}
	for (size_t i = 0; i < j->n; i++)
		if (read_field(r, &j->items[i], &items.each, &(struct path){ path, .item = i + 1 },
			       p + i * items.step) < 0)
			return -1;
	*json_kind_count(f, out) = j->n;
	return 0;
}

static int read_pointed(struct schema_reader *r, const struct json *j, const struct json_field *f,
			const struct path *path, void **out)
{
	void *p;

	assert(f->sub->size > 0);
	p = arena_array(r->arena, 1, f->sub->size);
	if (!p)
		return fail_memory(r);
	*out = p;
	return read_object(r, j, f->sub, path, p);
}

static int read_raw(struct schema_reader *r, const struct json *j, struct view *out)
{
	struct buf b = BUF_INIT(r->arena->max);
	struct json_out o;
	struct view text;

	json_out_init(&o, &b);
	json_out_value(&o, j);
	text = b.bad ? VIEW_NONE : arena_view(r->arena, buf_view(&b));
	buf_done(&b);
	if (!text.p)
		return fail_memory(r);
	*out = text;
	return 0;
}

static int read_custom(struct schema_reader *r, const struct json *j, const struct json_field *f,
		       const struct path *path, void *out)
{
	struct err e = { 0 };

	if (f->codec->read(r->arena, j, f, out, &e) == 0)
		return 0;
	return fail(r, j, path, "%s", e.msg);
}

static int read_field(struct schema_reader *r, const struct json *j, const struct json_field *f,
		      const struct path *path, char *out)
{
	void *at = out + f->offset;

	switch (f->kind) {
	case JSON_F_STRING:
		return read_string(r, j, f, path, at);
	case JSON_F_BOOL:
		if (j->type != JSON_BOOL)
			return fail_type(r, j, path, "true or false");
		*(bool *)at = j->boolean;
		return 0;
	case JSON_F_U64:
	case JSON_F_U32:
	case JSON_F_U16:
		return read_unsigned(r, j, f, path, at);
	case JSON_F_I64:
	case JSON_F_I32:
		return read_signed(r, j, f, path, at);
	case JSON_F_DOUBLE:
	case JSON_F_MILLI:
		return read_double(r, j, f, path, at);
	case JSON_F_Z:
	case JSON_F_CHARS:
		return read_text(r, j, f, path, at);
	case JSON_F_TIME_MS:
		return read_time(r, j, path, at);
	case JSON_F_ENUM:
		return read_enum(r, j, f, path, at);
	case JSON_F_BITS:
		return read_bits(r, j, f, path, at);
	case JSON_F_PTR:
		return read_pointed(r, j, f, path, at);
	case JSON_F_LIST:
	case JSON_F_ARRAY:
		return read_items(r, j, f, path, out);
	case JSON_F_RAW:
		return read_raw(r, j, at);
	case JSON_F_CUSTOM:
		return read_custom(r, j, f, path, at);
	case JSON_F_OBJECT:
		return read_object(r, j, f->sub, path, at);
	case JSON_F_STRMAP:
		return read_strmap(r, j, f, path, at);
	case JSON_F_STRLIST:
		return read_strlist(r, j, f, path, at);
	case JSON_F_ANY:
		*(const struct json **)at = j;
		return 0;
	}
	return fail(r, j, path, "a field of a kind that nobody can read");
}

static bool is_readable(const struct json_field *f)
{
	return !f->read_only && (f->kind != JSON_F_CUSTOM || f->codec->read);
}

static const struct json_field *find_field(const struct json_schema *s, struct view name)
{
	for (size_t i = 0; i < s->n; i++)
		if (view_is(name, s->fields[i].name) && is_readable(&s->fields[i]))
			return &s->fields[i];
	return NULL;
}

static int fail_unknown(struct schema_reader *r, const struct json_member *m, const struct json_schema *s,
			const struct path *path)
{
	const struct path at = { path, m->key, true };
	struct nearest near = NEAREST(m->key);

	for (size_t i = 0; i < s->n; i++)
		if (is_readable(&s->fields[i]))
			nearest_try(&near, s->fields[i].name);
	if (near.best)
		return fail(r, &m->value, &at, "unknown field; did you mean \"%s\"?", near.best);
	return fail(r, &m->value, &at, "unknown field");
}

static int read_object(struct schema_reader *r, const struct json *j, const struct json_schema *s,
		       const struct path *path, char *out)
{
	if (j->type != JSON_OBJECT)
		return fail_type(r, j, path, "an object");
	for (size_t i = 0; i < j->n; i++) {
		const struct json_member *m = &j->members[i];
		const struct json_field *f = find_field(s, m->key);

		if (!f && s->open)
			continue;
		if (!f)
			return fail_unknown(r, m, s, path);
		if (m->value.type == JSON_NULL && f->nullable)
			continue;
		if (read_field(r, &m->value, f, &(struct path){ path, m->key, false }, out) < 0)
			return -1;
		if (f->has)
			*(bool *)(out + f->has) = true;
	}
	for (size_t i = 0; i < s->n; i++) {
		const struct json_field *f = &s->fields[i];
		bool required = f->required && is_readable(f);
		const struct json *given = required ? json_get(j, f->name) : NULL;

		if (required && (!given || (given->type == JSON_NULL && f->nullable)))
			return fail(r, j, &(struct path){ path, view_of(f->name), false }, "is required");
	}
	return 0;
}

int json_read(struct arena *a, const struct json *j, const struct json_schema *s, void *out, bool with_lines,
	      struct err *e)
{
	struct schema_reader r = { .arena = a, .with_lines = with_lines, .e = e };

	return read_object(&r, j, s, NULL, out);
}
