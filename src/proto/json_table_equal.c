/*
 * The table's comparison: equality of two structs, and the differences between them as paths and values.
 */
#include <errno.h>

#include "json_kind.h"

#include "poison.h"

#define DIFF_PATH_MAX  1024
#define DIFF_VALUE_MAX (16u << 20)

static bool strmap_holds(const struct json_strmap *m, struct view key, struct view value)
{
	for (size_t i = 0; i < m->n; i++)
		if (view_eq(m->keys[i], key))
			return view_eq(m->values[i], value);
	return false;
}

static bool strmap_equal(const struct json_strmap *a, const struct json_strmap *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		if (view_eq(a->keys[i], b->keys[i]) && view_eq(a->values[i], b->values[i]))
			continue; /* mostly they are in the same order */
		if (!strmap_holds(b, a->keys[i], a->values[i]))
			return false;
	}
	return true;
}

static bool strlist_equal(const struct json_strlist *a, const struct json_strlist *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!view_eq(a->items[i], b->items[i]))
			return false;
	return true;
}

static bool items_equal(const struct json_field *f, const void *a, const void *b)
{
	struct json_items x = json_kind_items(f, a), y = json_kind_items(f, b);

	if (x.n != y.n)
		return false;
	for (size_t i = 0; i < x.n; i++)
		if (!json_kind_equal(&x.each, x.p + i * x.step, y.p + i * y.step))
			return false;
	return true;
}

/* What the codec would write. */
static bool custom_equal(const struct json_field *f, const void *a, const void *b)
{
	struct buf x = BUF_INIT(DIFF_VALUE_MAX), y = BUF_INIT(DIFF_VALUE_MAX);
	struct json_out o;
	bool equal;

	if (f->codec->equal)
		return f->codec->equal(f, a, b);
	if (!f->codec->write)
		return true;
	json_out_init(&o, &x);
	f->codec->write(&o, f, a);
	json_out_init(&o, &y);
	f->codec->write(&o, f, b);
	equal = !x.bad && !y.bad && view_eq(buf_view(&x), buf_view(&y));
	x.secret = y.secret = f->secret;
	buf_done(&x);
	buf_done(&y);
	return equal;
}

static bool pointed_equal(const struct json_field *f, const void *a, const void *b)
{
	if (f->kind == JSON_F_ANY)
		return json_value_equal(a, b);
	if (!a || !b)
		return a == b;
	return f->kind == JSON_F_Z ? view_eq(view_of(a), view_of(b)) : json_equal(f->sub, a, b);
}

bool json_kind_equal(const struct json_field *f, const void *a, const void *b)
{
	const void *x = json_kind_at(f, a), *y = json_kind_at(f, b);

	switch (f->kind) {
	case JSON_F_STRING:
	case JSON_F_RAW:
		return view_eq(*(const struct view *)x, *(const struct view *)y);
	case JSON_F_BOOL:
		return *(const bool *)x == *(const bool *)y;
	case JSON_F_DOUBLE:
		return *(const double *)x == *(const double *)y;
	case JSON_F_U64:
	case JSON_F_U32:
	case JSON_F_U16:
	case JSON_F_I64:
	case JSON_F_I32:
	case JSON_F_ENUM:
	case JSON_F_BITS:
	case JSON_F_MILLI:
	case JSON_F_TIME_MS:
		return memcmp(x, y, json_kind_size(f)) == 0;
	case JSON_F_CHARS:
		return strncmp(x, y, f->size) == 0;
	case JSON_F_STRMAP:
		return strmap_equal(x, y);
	case JSON_F_STRLIST:
		return strlist_equal(x, y);
	case JSON_F_OBJECT:
		return json_equal(f->sub, x, y);
	case JSON_F_ANY:
	case JSON_F_Z:
	case JSON_F_PTR:
		return pointed_equal(f, *(const void *const *)x, *(const void *const *)y);
	case JSON_F_LIST:
	case JSON_F_ARRAY:
		return items_equal(f, a, b);
	case JSON_F_CUSTOM:
		return custom_equal(f, x, y);
	}
	return false;
}

static bool field_equal(const struct json_field *f, const void *a, const void *b)
{
	bool in_a = json_kind_has(f, a), in_b = json_kind_has(f, b);

	return in_a == in_b && (!in_a || json_kind_equal(f, a, b));
}

bool json_equal(const struct json_schema *s, const void *a, const void *b)
{
	for (size_t i = 0; i < s->n; i++)
		if (!field_equal(&s->fields[i], a, b))
			return false;
	return true;
}

/* ---- differences ---- */

struct differ {
	json_diff_fn *fn;
	void *arg;
	struct buf path, before, after;
};

/* Empty for an absent value. */
static void show(struct buf *b, const struct json_field *f, const void *in)
{
	struct json_out o;

	buf_clear(b);
	json_out_init(&o, b);
	o.mask_secrets = true;
	if (json_kind_present(f, in) && (f->kind != JSON_F_CUSTOM || f->codec->write))
		json_kind_write(&o, f, in);
}

static int diff_object(struct differ *d, const struct json_schema *s, const void *a, const void *b);

/* Into an object that both sides have. */
static int diff_inside(struct differ *d, const struct json_field *f, const void *a, const void *b,
		       bool *ret_entered)
{
	const void *x = json_kind_at(f, a), *y = json_kind_at(f, b);

	*ret_entered = false;
	if (f->secret || (f->kind != JSON_F_OBJECT && f->kind != JSON_F_PTR) || !json_kind_has(f, a) ||
	    !json_kind_has(f, b))
		return 0;
	if (f->kind == JSON_F_PTR) {
		x = *(const void *const *)x;
		y = *(const void *const *)y;
		if (!x || !y)
			return 0;
	}
	*ret_entered = true;
	return diff_object(d, f->sub, x, y);
}

static int diff_field(struct differ *d, const struct json_field *f, const void *a, const void *b)
{
	bool entered;
	int rc = diff_inside(d, f, a, b, &entered);

	if (entered)
		return rc;
	show(&d->before, f, a);
	show(&d->after, f, b);
	if (d->before.bad || d->after.bad || d->path.bad)
		return -ENOBUFS;
	return d->fn(d->arg, d->path.p, buf_view(&d->before), buf_view(&d->after));
}

static int diff_object(struct differ *d, const struct json_schema *s, const void *a, const void *b)
{
	size_t was = d->path.n;
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < s->n; i++) {
		const struct json_field *f = &s->fields[i];

		if (field_equal(f, a, b))
			continue;
		buf_printf(&d->path, "%s%s", was ? "." : "", f->name);
		buf_append(&d->path, "", 1);
		d->path.n -= d->path.bad ? 0 : 1; /* the terminator stays behind the path */
		rc = diff_field(d, f, a, b);
		d->path.n = was;
	}
	return rc;
}

int json_diff(const struct json_schema *s, const void *before, const void *after, json_diff_fn *fn, void *arg)
{
	struct differ d = { .fn = fn,
			    .arg = arg,
			    .path = BUF_INIT(DIFF_PATH_MAX),
			    .before = BUF_INIT(DIFF_VALUE_MAX),
			    .after = BUF_INIT(DIFF_VALUE_MAX) };
	int rc = diff_object(&d, s, before, after);

	buf_done(&d.path);
	buf_done(&d.before);
	buf_done(&d.after);
	return rc;
}
