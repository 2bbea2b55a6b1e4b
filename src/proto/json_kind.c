/*
 * Kinds of fields as memory: see json_kind.h.
 */
#include "json_kind.h"

#include "poison.h"

size_t json_kind_size(const struct json_field *f)
{
	switch (f->kind) {
	case JSON_F_STRING:
	case JSON_F_RAW:
		return sizeof(struct view);
	case JSON_F_BOOL:
		return sizeof(bool);
	case JSON_F_U64:
	case JSON_F_I64:
	case JSON_F_TIME_MS:
		return sizeof(uint64_t);
	case JSON_F_DOUBLE:
		return sizeof(double);
	case JSON_F_STRMAP:
		return sizeof(struct json_strmap);
	case JSON_F_STRLIST:
		return sizeof(struct json_strlist);
	case JSON_F_ANY:
	case JSON_F_Z:
	case JSON_F_PTR:
		return sizeof(void *);
	case JSON_F_U32:
	case JSON_F_I32:
	case JSON_F_ENUM:
	case JSON_F_BITS:
	case JSON_F_MILLI:
		return sizeof(uint32_t);
	case JSON_F_U16:
		return sizeof(uint16_t);
	case JSON_F_OBJECT:
		return f->sub->size;
	case JSON_F_LIST:
		return sizeof(void *) + sizeof(size_t);
	case JSON_F_CHARS:
	case JSON_F_ARRAY:
	case JSON_F_CUSTOM:
		return f->size;
	}
	return 0;
}

struct json_items json_kind_items(const struct json_field *f, const void *in)
{
	struct json_items items = {
		.each = f->item ? *f->item : (struct json_field){ .kind = JSON_F_OBJECT, .sub = f->sub }
	};

	items.step = f->size ? f->size : json_kind_size(&items.each);
	items.each.offset = 0;
	items.n = *json_kind_count(f, (void *)in);
	items.p = f->kind == JSON_F_ARRAY ? json_kind_at(f, in) : *(const char *const *)json_kind_at(f, in);
	assert(items.step > 0);
	return items;
}

static bool all_empty(const struct json_schema *s, const void *in)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct json_field *f = &s->fields[i];

		if (f->has ? json_kind_has(f, in) : !json_kind_empty(f, in))
			return false;
	}
	return true;
}

bool json_kind_empty(const struct json_field *f, const void *in)
{
	const void *at = json_kind_at(f, in);

	switch (f->kind) {
	case JSON_F_STRING:
	case JSON_F_RAW:
		return ((const struct view *)at)->n == 0;
	case JSON_F_BOOL:
		return !*(const bool *)at;
	case JSON_F_U64:
	case JSON_F_I64:
	case JSON_F_TIME_MS:
		return *(const uint64_t *)at == 0;
	case JSON_F_DOUBLE:
		return *(const double *)at == 0;
	case JSON_F_STRMAP:
		return ((const struct json_strmap *)at)->n == 0;
	case JSON_F_STRLIST:
		return ((const struct json_strlist *)at)->n == 0;
	case JSON_F_ANY:
		return !*(const struct json *const *)at ||
		       (*(const struct json *const *)at)->type == JSON_NULL;
	case JSON_F_Z:
	case JSON_F_PTR:
		return !*(const void *const *)at;
	case JSON_F_U32:
	case JSON_F_I32:
	case JSON_F_ENUM:
	case JSON_F_BITS:
	case JSON_F_MILLI:
		return *(const uint32_t *)at == 0;
	case JSON_F_U16:
		return *(const uint16_t *)at == 0;
	case JSON_F_CHARS:
		return *(const char *)at == 0;
	case JSON_F_OBJECT:
		return all_empty(f->sub, at);
	case JSON_F_LIST:
	case JSON_F_ARRAY:
		return *json_kind_count(f, (void *)in) == 0;
	case JSON_F_CUSTOM:
		return f->codec->empty && f->codec->empty(f, at);
	}
	return true;
}

bool json_kind_present(const struct json_field *f, const void *in)
{
	if (f->has)
		return json_kind_has(f, in);
	return f->skip == JSON_ALWAYS || !json_kind_empty(f, in);
}
