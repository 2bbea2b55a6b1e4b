/*
 * The table's writer: a struct as an object, its members in the order of the table.
 */
#include "clock.h"
#include "json_kind.h"

#include "poison.h"

static void write_names(struct json_out *o, const struct json_field *f, uint32_t v)
{
	const char *name = f->kind == JSON_F_ENUM && v < f->n_names ? f->names[v] : NULL;

	if (name)
		json_out_str(o, view_of(name));
	if (f->kind == JSON_F_BITS) {
		json_out_array(o);
		for (size_t i = 0; i < f->n_names && i < 32; i++)
			if (v >> i & 1 && f->names[i])
				json_out_str(o, view_of(f->names[i]));
		json_out_end(o, ']');
	} else if (!name) {
		json_out_null(o);
	}
}

static void write_strmap(struct json_out *o, const struct json_strmap *m)
{
	json_out_object(o);
	for (size_t i = 0; i < m->n; i++) {
		json_out_key_view(o, m->keys[i]);
		json_out_str(o, m->values[i]);
	}
	json_out_end(o, '}');
}

static void write_strlist(struct json_out *o, const struct json_strlist *l)
{
	json_out_array(o);
	for (size_t i = 0; i < l->n; i++)
		json_out_str(o, l->items[i]);
	json_out_end(o, ']');
}

static void write_items(struct json_out *o, const struct json_field *f, const void *in)
{
	struct json_items items = json_kind_items(f, in);

	json_out_array(o);
	for (size_t i = 0; i < items.n; i++)
		json_kind_write(o, &items.each, items.p + i * items.step);
	json_out_end(o, ']');
}

static void write_time(struct json_out *o, int64_t ms)
{
	char text[CLOCK_RFC3339_SIZE];

	clock_rfc3339(ms, text);
	json_out_str(o, view_of(text));
}

/* What a pointer leads to; NULL is null. */
static void write_pointed(struct json_out *o, const struct json_field *f, const void *to)
{
	if (!to)
		json_out_null(o);
	else if (f->kind == JSON_F_ANY)
		json_out_value(o, to);
	else if (f->kind == JSON_F_Z)
		json_out_str(o, view_of(to));
	else
		json_write(o, f->sub, to);
}

void json_kind_write(struct json_out *o, const struct json_field *f, const void *in)
{
	const void *at = json_kind_at(f, in);

	if (f->secret && o->mask_secrets) {
		json_out_str(o, VIEW("***"));
		return;
	}
	switch (f->kind) {
	case JSON_F_STRING:
		json_out_str(o, *(const struct view *)at);
		break;
	case JSON_F_RAW:
		json_out_raw(o, *(const struct view *)at);
		break;
	case JSON_F_BOOL:
		json_out_bool(o, *(const bool *)at);
		break;
	case JSON_F_U64:
	case JSON_F_U32:
	case JSON_F_U16:
		json_out_u64(o, json_kind_unsigned(f, at));
		break;
	case JSON_F_I64:
	case JSON_F_I32:
		json_out_i64(o, json_kind_signed(f, at));
		break;
	case JSON_F_DOUBLE:
		json_out_double(o, *(const double *)at);
		break;
	case JSON_F_MILLI:
		json_out_double(o, *(const uint32_t *)at / 1000.0);
		break;
	case JSON_F_TIME_MS:
		write_time(o, *(const int64_t *)at);
		break;
	case JSON_F_CHARS:
		json_out_str(o, (struct view){ at, strnlen(at, f->size) });
		break;
	case JSON_F_ENUM:
	case JSON_F_BITS:
		write_names(o, f, *(const uint32_t *)at);
		break;
	case JSON_F_STRMAP:
		write_strmap(o, at);
		break;
	case JSON_F_STRLIST:
		write_strlist(o, at);
		break;
	case JSON_F_OBJECT:
		json_write(o, f->sub, at);
		break;
	case JSON_F_ANY:
	case JSON_F_Z:
	case JSON_F_PTR:
		write_pointed(o, f, *(const void *const *)at);
		break;
	case JSON_F_LIST:
	case JSON_F_ARRAY:
		write_items(o, f, in);
		break;
	case JSON_F_CUSTOM:
		f->codec->write(o, f, at);
		break;
	}
}

void json_write_members(struct json_out *o, const struct json_schema *s, const void *in)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct json_field *f = &s->fields[i];

		if (f->write_only || (f->kind == JSON_F_CUSTOM && !f->codec->write))
			continue;
		if (json_kind_present(f, in)) {
			json_out_key(o, f->name);
			json_kind_write(o, f, in);
		} else if (f->skip == JSON_NULL_EMPTY) {
			json_out_key(o, f->name);
			json_out_null(o);
		}
	}
}

void json_write(struct json_out *o, const struct json_schema *s, const void *in)
{
	json_out_object(o);
	json_write_members(o, s, in);
	json_out_end(o, '}');
}

void json_out_kwrite(struct json_out *o, const char *key, const struct json_schema *s, const void *in)
{
	json_out_key(o, key);
	json_write(o, s, in);
}
