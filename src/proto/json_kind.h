/*
 * What the functions of json_table.h share: the kinds of fields as memory.
 */
#pragma once

#include "json_table.h"

/* The items of a LIST or ARRAY: n of them, `step` bytes apart. */
struct json_items {
	const char *p;
	size_t n, step;
	struct json_field each; /* describes one, at offset 0 */
};

size_t json_kind_size(const struct json_field *f); /* bytes of the member; of ARRAY: of one item */
struct json_items json_kind_items(const struct json_field *f, const void *in);
/* Whether there is a value to write: by `has`, or by itself. `in` is the struct. */
bool json_kind_present(const struct json_field *f, const void *in);
/* Whether the value itself is zero, without regard to `has`. */
bool json_kind_empty(const struct json_field *f, const void *in);
/* One value without its key. */
void json_kind_write(struct json_out *o, const struct json_field *f, const void *in);
bool json_kind_equal(const struct json_field *f, const void *a, const void *b);

static inline const void *json_kind_at(const struct json_field *f, const void *in)
{
	return (const char *)in + f->offset;
}

static inline bool json_kind_has(const struct json_field *f, const void *in)
{
	return !f->has || *(const bool *)((const char *)in + f->has);
}

/* A list's count. */
static inline size_t *json_kind_count(const struct json_field *f, void *out)
{
	if (f->count || f->kind == JSON_F_ARRAY)
		return (size_t *)(void *)((char *)out + f->count);
	return (size_t *)(void *)((char *)out + f->offset + sizeof(void *));
}

/* The value of U64, U32, U16 and of I64, I32. */
static inline uint64_t json_kind_unsigned(const struct json_field *f, const void *at)
{
	return f->kind == JSON_F_U64   ? *(const uint64_t *)at
	       : f->kind == JSON_F_U32 ? *(const uint32_t *)at
				       : *(const uint16_t *)at;
}

static inline int64_t json_kind_signed(const struct json_field *f, const void *at)
{
	return f->kind == JSON_F_I64 ? *(const int64_t *)at : *(const int32_t *)at;
}
