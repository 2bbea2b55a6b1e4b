/*
 * Protobuf as JSON: see pb_json.h.
 */
#include "pb_json.h"

#include <errno.h>
#include <stdio.h>

#include "clock.h"
#include "json.h"
#include "num.h"
#include "text.h"
#include "poison.h"

/* "exit_code" -> "exitCode" */
const char *pb_json_name(const char *name, char room[PB_JSON_NAME])
{
	size_t n = 0;
	for (; *name && n < PB_JSON_NAME - 1; name++) {
		bool up = *name == '_' && name[1] >= 'a' && name[1] <= 'z';
		room[n++] = up ? (char)(*++name - 'a' + 'A') : *name;
	}
	room[n] = 0;
	return room;
}

static size_t value_size(const struct pb_field *f)
{
	static const size_t sizes[] = {
		[PB_U32] = 4,
		[PB_U64] = 8,
		[PB_I32] = 4,
		[PB_I64] = 8,
		[PB_S32] = 4,
		[PB_S64] = 8,
		[PB_BOOL] = sizeof(bool),
		[PB_ENUM] = 4,
		[PB_DOUBLE] = sizeof(double),
		[PB_STRING] = sizeof(struct view),
		[PB_BYTES] = sizeof(struct view),
		[PB_MSG] = 0,
	};
	return f->kind == PB_MSG ? f->sub->size : sizes[f->kind];
}

/* ---- reading ---- */

static int read_msg(const struct pb_msg *m, const struct json *j, struct arena *a, char *out, unsigned depth,
		    struct err *e);

static int wrong(const struct pb_field *f, const char *want, struct err *e)
{
	return err_set(e, ERR_INVALID, "field %s must be %s", f->name, want);
}

static int no_memory(struct err *e)
{
	return err_set(e, ERR_TOO_LARGE, "the message is too large");
}

static int to_i64(const struct json *j, int64_t *ret)
{
	return j->type == JSON_STRING ? num_i64(j->text, ret) : json_to_i64(j, ret);
}

static int to_u64(const struct json *j, uint64_t *ret)
{
	return j->type == JSON_STRING ? num_u64(j->text, ret) : json_to_u64(j, ret);
}

static int read_bytes(const struct pb_field *f, struct view text, struct arena *a, struct view *ret,
		      struct err *e)
{
	struct buf plain = BUF_INIT(text.n + 4), bytes = BUF_INIT(text.n + 4);
	char *p = buf_reserve(&plain, text.n + 4);
	size_t n = text.n;
	int r = p ? 0 : no_memory(e);

	for (size_t i = 0; p && i < n; i++)
		p[i] = text.p[i] == '-' ? '+' : text.p[i] == '_' ? '/' : text.p[i];
	for (; p && n % 4; n++)
		p[n] = '=';
	if (r == 0 && text_unbase64(&bytes, (struct view){ p, n }) < 0)
		r = wrong(f, "base64", e);
	if (r == 0) {
		*ret = arena_view(a, buf_view(&bytes));
		r = ret->p ? 0 : no_memory(e);
	}
	buf_done(&plain);
	buf_done(&bytes);
	return r;
}

static int read_enum(const struct pb_field *f, const struct json *j, int32_t *ret, struct err *e)
{
	int64_t number;

	if (j->type == JSON_STRING)
		for (const struct pb_value *v = f->values; v && v->name; v++)
			if (view_is(j->text, v->name)) {
				*ret = v->number;
				return 0;
			}
	if (j->type != JSON_NUMBER || json_to_i64(j, &number) < 0 || number < INT32_MIN || number > INT32_MAX)
		return wrong(f, "a value of its enum", e);
	*ret = (int32_t)number;
	return 0;
}

static int read_number(const struct pb_field *f, const struct json *j, char *out, struct err *e)
{
	bool sign = f->kind != PB_U32 && f->kind != PB_U64;
	bool wide = f->kind == PB_U64 || f->kind == PB_I64 || f->kind == PB_S64;
	uint64_t u = 0;
	int64_t i = 0;

	if (sign ? to_i64(j, &i) < 0 : to_u64(j, &u) < 0)
		return wrong(f, "a whole number in its range", e);
	if (!wide && (sign ? i < INT32_MIN || i > INT32_MAX : u > UINT32_MAX))
		return wrong(f, "a whole number in its range", e);
	if (wide)
		memcpy(out, sign ? (void *)&i : (void *)&u, 8);
	else if (sign)
		memcpy(out, &(int32_t){ (int32_t)i }, 4);
	else
		memcpy(out, &(uint32_t){ (uint32_t)u }, 4);
	return 0;
}

static int read_value(const struct pb_field *f, const struct json *j, struct arena *a, char *out,
		      unsigned depth, struct err *e)
{
	switch ((enum pb_kind)f->kind) {
	case PB_U32:
	case PB_U64:
	case PB_I32:
	case PB_I64:
	case PB_S32:
	case PB_S64:
		return read_number(f, j, out, e);
	case PB_BOOL:
		if (j->type != JSON_BOOL)
			return wrong(f, "true or false", e);
		*(bool *)(void *)out = j->boolean;
		return 0;
	case PB_ENUM:
		return read_enum(f, j, (int32_t *)(void *)out, e);
	case PB_DOUBLE:
		return json_to_double(j, (double *)(void *)out) < 0 ? wrong(f, "a number", e) : 0;
	case PB_STRING:
		if (j->type != JSON_STRING)
			return wrong(f, "a string", e);
		*(struct view *)(void *)out = j->text;
		return 0;
	case PB_BYTES:
		if (j->type != JSON_STRING)
			return wrong(f, "a string", e);
		return read_bytes(f, j->text, a, (struct view *)(void *)out, e);
	case PB_MSG:
		return read_msg(f->sub, j, a, out, depth + 1, e);
	}
	return wrong(f, "of a known kind", e);
}

/* A map's keys are strings, here as everywhere; its entries are {key, value}. */
static int read_map(const struct pb_field *f, const struct json *j, struct arena *a, struct pb_list *ret,
		    unsigned depth, struct err *e)
{
	const struct pb_field *key = &f->sub->fields[0], *value = &f->sub->fields[1];

	if (j->type != JSON_OBJECT)
		return wrong(f, "an object", e);
	if (key->kind != PB_STRING)
		return wrong(f, "a map by strings", e);
	char *items = arena_array(a, j->n + 1, f->sub->size);
	if (!items)
		return no_memory(e);
	for (size_t i = 0; i < j->n; i++) {
		char *item = items + i * f->sub->size;
		*(struct view *)(void *)(item + key->offset) = j->members[i].key;
		if (read_value(value, &j->members[i].value, a, item + value->offset, depth, e) < 0)
			return -1;
	}
	*ret = (struct pb_list){ items, j->n };
	return 0;
}

static int read_list(const struct pb_field *f, const struct json *j, struct arena *a, struct pb_list *ret,
		     unsigned depth, struct err *e)
{
	if (f->kind == PB_MSG && f->sub->form == PB_FORM_MAP)
		return read_map(f, j, a, ret, depth, e);
	if (j->type != JSON_ARRAY)
		return wrong(f, "an array", e);
	char *items = arena_array(a, j->n + 1, value_size(f));
	if (!items)
		return no_memory(e);
	for (size_t i = 0; i < j->n; i++)
		if (read_value(f, &j->items[i], a, items + i * value_size(f), depth, e) < 0)
			return -1;
	*ret = (struct pb_list){ items, j->n };
	return 0;
}

/* The last member counts: the others are taken back. */
static void clear_oneof(const struct pb_msg *m, uint16_t oneof, char *out)
{
	for (const struct pb_field *f = m->fields; f < m->fields + m->n_fields; f++) {
		if (f->oneof != oneof)
			continue;
		memset(out + f->offset, 0, f->kind == PB_MSG ? sizeof(void *) : value_size(f));
		if (f->has)
			*(bool *)(void *)(out + f->has) = false;
	}
}

static int read_field(const struct pb_msg *m, const struct pb_field *f, const struct json *j, struct arena *a,
		      char *out, unsigned depth, struct err *e)
{
	if (f->repeated)
		return read_list(f, j, a, (struct pb_list *)(void *)(out + f->offset), depth, e);
	if (f->oneof)
		clear_oneof(m, f->oneof, out);
	if (f->has)
		*(bool *)(void *)(out + f->has) = true;
	if (f->kind != PB_MSG)
		return read_value(f, j, a, out + f->offset, depth, e);
	char *sub = arena_alloc(a, f->sub->size);
	if (!sub)
		return no_memory(e);
	*(void **)(void *)(out + f->offset) = sub;
	return read_msg(f->sub, j, a, sub, depth + 1, e);
}

static const struct pb_field *find(const struct pb_msg *m, struct view key)
{
	char room[PB_JSON_NAME];
	for (const struct pb_field *f = m->fields; f < m->fields + m->n_fields; f++)
		if (view_is(key, f->name) || view_is(key, pb_json_name(f->name, room)))
			return f;
	return NULL;
}

static int read_msg(const struct pb_msg *m, const struct json *j, struct arena *a, char *out, unsigned depth,
		    struct err *e)
{
	if (depth > PB_DEPTH)
		return err_set(e, ERR_INVALID, "the message is nested too deeply");
	if (m->form != PB_FORM_PLAIN)
		return err_set(e, ERR_INVALID, "a %s is not taken here", m->name);
	if (j->type != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "a %s must be an object", m->name);
	for (size_t i = 0; i < j->n; i++) {
		const struct pb_field *f = find(m, j->members[i].key);
		if (!f || j->members[i].value.type == JSON_NULL)
			continue;
		if (read_field(m, f, &j->members[i].value, a, out, depth, e) < 0)
			return -1;
	}
	return 0;
}

int pb_json_read(const struct pb_msg *m, struct view text, struct arena *a, void *out, struct err *e)
{
	struct json *doc;

	memset(out, 0, m->size);
	if (json_parse(a, text, &doc, e) < 0) {
		e->code = e->code == ERR_BAD_REQUEST ? ERR_INVALID : e->code;
		return -1;
	}
	return read_msg(m, doc, a, out, 0, e);
}

/* ---- writing ---- */

static void write_msg(struct json_out *o, const struct pb_msg *m, const char *in);

static void write_text_number(struct json_out *o, bool sign, const char *p)
{
	char text[24];
	int64_t i;
	uint64_t u;

	memcpy(&i, p, 8);
	memcpy(&u, p, 8);
	int n = sign ? snprintf(text, sizeof(text), "%lld", (long long)i)
		     : snprintf(text, sizeof(text), "%llu", (unsigned long long)u);
	json_out_str(o, (struct view){ text, (size_t)n });
}

static void write_enum(struct json_out *o, const struct pb_field *f, int32_t number)
{
	for (const struct pb_value *v = f->values; v && v->name; v++)
		if (v->number == number) {
			json_out_str(o, view_of(v->name));
			return;
		}
	json_out_i64(o, number);
}

static void write_bytes(struct json_out *o, struct view v)
{
	struct buf coded = BUF_INIT(v.n / 3 * 4 + 8);

	if (text_base64(&coded, v) < 0)
		o->b->bad = coded.bad;
	json_out_str(o, buf_view(&coded));
	buf_done(&coded);
}

static void write_value(struct json_out *o, const struct pb_field *f, const char *p)
{
	switch ((enum pb_kind)f->kind) {
	case PB_U32:
		json_out_u64(o, *(const uint32_t *)(const void *)p);
		break;
	case PB_I32:
	case PB_S32:
		json_out_i64(o, *(const int32_t *)(const void *)p);
		break;
	case PB_U64:
	case PB_I64:
	case PB_S64:
		write_text_number(o, f->kind != PB_U64, p);
		break;
	case PB_BOOL:
		json_out_bool(o, *(const bool *)(const void *)p);
		break;
	case PB_ENUM:
		write_enum(o, f, *(const int32_t *)(const void *)p);
		break;
	case PB_DOUBLE:
		json_out_double(o, *(const double *)(const void *)p);
		break;
	case PB_STRING:
		json_out_str(o, *(const struct view *)(const void *)p);
		break;
	case PB_BYTES:
		write_bytes(o, *(const struct view *)(const void *)p);
		break;
	case PB_MSG:
		write_msg(o, f->sub, p);
		break;
	}
}

static void write_list(struct json_out *o, const struct pb_field *f, const struct pb_list *list)
{
	bool map = f->kind == PB_MSG && f->sub->form == PB_FORM_MAP;
	const char *items = list->items;

	if (map)
		json_out_object(o);
	else
		json_out_array(o);
	for (size_t i = 0; i < list->n; i++) {
		const char *item = items + i * value_size(f);
		if (map) {
			const struct pb_field *key = &f->sub->fields[0], *value = &f->sub->fields[1];
			json_out_key_view(o, *(const struct view *)(const void *)(item + key->offset));
			write_value(o, value, item + value->offset);
		} else {
			write_value(o, f, item);
		}
	}
	json_out_end(o, map ? '}' : ']');
}

static bool is_zero(const struct pb_field *f, const char *p)
{
	static const char zero[sizeof(uint64_t)];
	if (f->kind == PB_STRING || f->kind == PB_BYTES)
		return ((const struct view *)(const void *)p)->n == 0;
	return memcmp(p, zero, value_size(f)) == 0;
}

/* {seconds, nanos} as "2026-11-15T08:12:52.123Z" */
static void write_time(struct json_out *o, const struct pb_msg *m, const char *in)
{
	char text[CLOCK_RFC3339_SIZE];
	int64_t seconds;
	int32_t nanos;

	memcpy(&seconds, in + m->fields[0].offset, sizeof(seconds));
	memcpy(&nanos, in + m->fields[1].offset, sizeof(nanos));
	clock_rfc3339(seconds * 1000 + nanos / 1000000, text);
	json_out_str(o, view_of(text));
}

static void write_msg(struct json_out *o, const struct pb_msg *m, const char *in)
{
	char room[PB_JSON_NAME];

	if (m->form == PB_FORM_TIMESTAMP) {
		write_time(o, m, in);
		return;
	}
	json_out_object(o);
	for (const struct pb_field *f = m->fields; f < m->fields + m->n_fields; f++) {
		const char *p = in + f->offset;
		if (f->repeated) {
			if (((const struct pb_list *)(const void *)p)->n == 0)
				continue;
			json_out_key(o, pb_json_name(f->name, room));
			write_list(o, f, (const struct pb_list *)(const void *)p);
			continue;
		}
		if (f->kind == PB_MSG) {
			p = *(const char *const *)(const void *)p;
			if (!p)
				continue;
		} else if (f->has ? !*(const bool *)(const void *)(in + f->has) : is_zero(f, p)) {
			continue;
		}
		json_out_key(o, pb_json_name(f->name, room));
		write_value(o, f, p);
	}
	json_out_end(o, '}');
}

int pb_json_write(const struct pb_msg *m, const void *in, struct buf *out)
{
	struct json_out o;
	json_out_init(&o, out);
	write_msg(&o, m, in);
	return out->bad;
}
