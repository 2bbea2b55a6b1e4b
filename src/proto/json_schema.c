/*
 * The schema reader: a parsed document against a table of fields, into a struct.
 *
 * Every error names the field by its path. Names that come from the document are
 * quoted and cut, so that a message is safe to show in a terminal or a log.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "json.h"
#include "nearest.h"
#include "text.h"

#include "poison.h"

#define NAME_SHOWN 40 /* bytes of a name from outside that a message repeats */

/* The way from the root to a value, as a chain through the C stack. */
struct path {
	const struct path *up;
	struct view name;
	bool foreign; /* the name is the sender's: quote it */
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

static int read_u64(struct schema_reader *r, const struct json *j, const struct json_field *f,
		    const struct path *path, uint64_t *out)
{
	uint64_t v = 0;
	int rc;

	if (j->type != JSON_NUMBER)
		return fail_type(r, j, path, "a whole number");
	rc = json_to_u64(j, &v);
	if (rc == 0 && v >= f->min && (f->max == 0 || v <= f->max)) {
		*out = v;
		return 0;
	}
	if (f->max)
		return fail(r, j, path, "must be a whole number from %" PRIu64 " to %" PRIu64, f->min,
			    f->max);
	return fail(r, j, path, "must be a whole number of at least %" PRIu64, f->min);
}

static int read_double(struct schema_reader *r, const struct json *j, const struct json_field *f,
		       const struct path *path, double *out)
{
	double v = 0;
	int rc;

	if (j->type != JSON_NUMBER)
		return fail_type(r, j, path, "a number");
	rc = json_to_double(j, &v);
	if (rc == 0 && v >= f->fmin && (f->fmax == 0 || v <= f->fmax)) {
		*out = v;
		return 0;
	}
	if (f->fmax != 0)
		return fail(r, j, path, "must be a number from %g to %g", f->fmin, f->fmax);
	return fail(r, j, path, "must be a number of at least %g", f->fmin);
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
			return fail_type(r, &m->value, &(struct path){ path, m->key, true }, "a string");
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
		return read_u64(r, j, f, path, at);
	case JSON_F_DOUBLE:
		return read_double(r, j, f, path, at);
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

static const struct json_field *find_field(const struct json_schema *s, struct view name)
{
	for (size_t i = 0; i < s->n; i++)
		if (view_is(name, s->fields[i].name))
			return &s->fields[i];
	return NULL;
}

static int fail_unknown(struct schema_reader *r, const struct json_member *m, const struct json_schema *s,
			const struct path *path)
{
	const struct path at = { path, m->key, true };
	struct nearest near = NEAREST(m->key);

	for (size_t i = 0; i < s->n; i++)
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
		const struct json *given = f->required ? json_get(j, f->name) : NULL;

		if (f->required && (!given || (given->type == JSON_NULL && f->nullable)))
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
