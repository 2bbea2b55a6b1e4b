/*
 * The table's copy: a struct whose members point into an arena alone.
 */
#include <errno.h>

#include "json_kind.h"

#include "poison.h"

static int copy_view(struct arena *a, struct view from, struct view *to)
{
	*to = from.p ? arena_view(a, from) : VIEW_NONE;
	return from.p && !to->p ? -ENOMEM : 0;
}

static int copy_strlist(struct arena *a, const struct json_strlist *from, struct json_strlist *to)
{
	struct json_strlist list = { arena_array(a, from->n, sizeof(*list.items)), from->n };

	if (!list.items)
		return -ENOMEM;
	for (size_t i = 0; i < from->n; i++)
		if (copy_view(a, from->items[i], &list.items[i]) < 0)
			return -ENOMEM;
	*to = list;
	return 0;
}

static int copy_strmap(struct arena *a, const struct json_strmap *from, struct json_strmap *to)
{
	struct json_strlist keys = { from->keys, from->n }, values = { from->values, from->n };

	if (copy_strlist(a, &keys, &keys) < 0 || copy_strlist(a, &values, &values) < 0)
		return -ENOMEM;
	*to = (struct json_strmap){ keys.items, values.items, from->n };
	return 0;
}

/* What a pointer leads to. */
static int copy_pointed(struct arena *a, const struct json_field *f, const void *from, void **to)
{
	void *p = NULL;
	int rc = 0;

	if (from && f->kind == JSON_F_ANY) {
		p = json_value_copy(a, from);
	} else if (from && f->kind == JSON_F_Z) {
		p = arena_str(a, view_of(from));
	} else if (from) {
		p = arena_array(a, 1, f->sub->size);
		rc = p ? json_copy(a, f->sub, from, p) : -ENOMEM;
	}
	if (from && !p)
		rc = -ENOMEM;
	*to = p;
	return rc;
}

static int copy_field(struct arena *a, const struct json_field *f, const void *from, void *to);

static int copy_items(struct arena *a, const struct json_field *f, const void *from, void *to)
{
	struct json_items items = json_kind_items(f, from);
	char *p = (char *)to + f->offset;

	assert(f->kind == JSON_F_LIST || items.n <= f->max);
	if (f->kind == JSON_F_LIST) {
		p = arena_array(a, items.n, items.step);
		if (!p)
			return -ENOMEM;
		*(char **)(void *)((char *)to + f->offset) = p;
	}
	for (size_t i = 0; i < items.n; i++)
		if (copy_field(a, &items.each, items.p + i * items.step, p + i * items.step) < 0)
			return -ENOMEM;
	*json_kind_count(f, to) = items.n;
	return 0;
}

static int copy_field(struct arena *a, const struct json_field *f, const void *from, void *to)
{
	const void *x = json_kind_at(f, from);
	void *y = (char *)to + f->offset;

	switch (f->kind) {
	case JSON_F_STRING:
	case JSON_F_RAW:
		return copy_view(a, *(const struct view *)x, y);
	case JSON_F_STRMAP:
		return copy_strmap(a, x, y);
	case JSON_F_STRLIST:
		return copy_strlist(a, x, y);
	case JSON_F_OBJECT:
		return json_copy(a, f->sub, x, y);
	case JSON_F_ANY:
	case JSON_F_Z:
	case JSON_F_PTR:
		return copy_pointed(a, f, *(const void *const *)x, y);
	case JSON_F_LIST:
	case JSON_F_ARRAY:
		return copy_items(a, f, from, to);
	case JSON_F_CUSTOM:
		if (f->codec->copy)
			return f->codec->copy(a, f, x, y);
		_fallthrough_;
	case JSON_F_BOOL:
	case JSON_F_U64:
	case JSON_F_U32:
	case JSON_F_U16:
	case JSON_F_I64:
	case JSON_F_I32:
	case JSON_F_DOUBLE:
	case JSON_F_CHARS:
	case JSON_F_ENUM:
	case JSON_F_BITS:
	case JSON_F_MILLI:
	case JSON_F_TIME_MS:
		memcpy(y, x, json_kind_size(f));
		return 0;
	}
	return -EINVAL;
}

int json_copy(struct arena *a, const struct json_schema *s, const void *from, void *to)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct json_field *f = &s->fields[i];
		int rc = copy_field(a, f, from, to);

		if (rc < 0)
			return rc;
		if (f->has)
			*(bool *)((char *)to + f->has) = json_kind_has(f, from);
	}
	return 0;
}
