/*
 * Long replies: see rpc_long.h.
 */
#include "rpc_long.h"

#include <errno.h>

#include "connect.h"
#include "pb_json.h"
#include "poison.h"

#define FIELDS_MAX 8

struct part {
	const struct pb_field *field;
	struct view bytes;
	struct answer_source *source;
	uint64_t n; /* as it is sent */
};

struct parts {
	struct part items[FIELDS_MAX];
	size_t n;
	uint64_t bytes;
};

static struct view *string_of(const struct pb_field *f, void *msg)
{
	bool one = !f->repeated && (f->kind == PB_STRING || f->kind == PB_BYTES);

	return one ? (struct view *)(void *)((char *)msg + f->offset) : NULL;
}

static bool is_long(const struct pb_field *f, const void *msg)
{
	const struct view *v = string_of(f, (void *)(uintptr_t)msg);

	return v && v->n >= ANSWER_LONG_FROM;
}

bool rpc_long_is(const struct pb_msg *m, const void *msg)
{
	for (size_t i = 0; i < m->n_fields; i++)
		if (is_long(&m->fields[i], msg))
			return true;
	return false;
}

/* ---- encoding ---- */

static uint64_t coded(const struct pb_field *f, struct view v, bool json)
{
	if (!json)
		return v.n;
	return f->kind == PB_BYTES ? (v.n + 2) / 3 * 4 : json_out_escaped(v);
}

/* Takes the long ones out of the message. */
static int split(const struct pb_msg *m, void *msg, const struct rpc_content *c, bool json, struct parts *p)
{
	for (size_t i = 0; i < m->n_fields; i++) {
		const struct pb_field *f = &m->fields[i];
		bool from = c && view_is(view_of(f->name), c->field);
		if (!from && !is_long(f, msg))
			continue;
		if (p->n == FIELDS_MAX)
			return -ENOBUFS;
		struct view *v = string_of(f, msg);
		p->items[p->n] = (struct part){ f, *v, from ? c->source : NULL,
						!from  ? coded(f, *v, json)
						: json ? c->escaped
						       : c->n };
		p->bytes += p->items[p->n++].n;
		*v = VIEW("");
		if (f->has)
			*(bool *)((char *)msg + f->has) = false;
	}
	return p->bytes > UINT32_MAX - ANSWER_LONG_TURN ? -ENOBUFS : 0;
}

static void put_varint(struct buf *b, uint64_t v)
{
	for (; v >= 128; v >>= 7)
		buf_putc(b, (char)(v | 128));
	buf_putc(b, (char)v);
}

static void put_hole(struct request *r, const struct part *p, enum answer_form form)
{
	if (p->source)
		answer_hole_from(r, p->source, form);
	else
		answer_hole(r, form, p->bytes);
}

static void put_fields(struct request *r, const struct parts *p)
{
	for (size_t i = 0; i < p->n; i++) {
		put_varint(&r->out, (uint64_t)p->items[i].field->number << 3 | 2);
		put_varint(&r->out, p->items[i].n);
		put_hole(r, &p->items[i], ANSWER_RAW);
	}
}

/* Into the object whose end was written. */
static void put_members(struct request *r, const struct parts *p)
{
	char room[PB_JSON_NAME];

	r->out.n--;
	for (size_t i = 0; i < p->n; i++) {
		const struct pb_field *f = p->items[i].field;
		bool first = r->out.p[r->out.n - 1] == '{';
		buf_printf(&r->out, "%s\"%s\":\"", first ? "" : ",", pb_json_name(f->name, room));
		put_hole(r, &p->items[i], f->kind == PB_BYTES ? ANSWER_BASE64 : ANSWER_STRING);
		buf_putc(&r->out, '"');
	}
	buf_putc(&r->out, '}');
}

int rpc_long_encode(struct request *r, const struct pb_msg *m, const void *msg, const struct rpc_content *c,
		    bool json, bool enveloped)
{
	uint8_t head[CONNECT_HEAD] = { 0 };
	struct parts p = { .n = 0 };
	struct buf *out = &r->out;
	void *rest = arena_alloc(&r->arena, m->size);

	if (!rest)
		return -ENOMEM;
	memcpy(rest, msg, m->size);
	int bad = split(m, rest, c, json, &p);
	if (enveloped)
		buf_append(out, head, sizeof(head));
	if (bad < 0 || out->bad || (json ? pb_json_write(m, rest, out) : pb_encode(m, rest, out)) < 0)
		return bad < 0 ? bad : out->bad ? out->bad : -EINVAL;
	if (json)
		put_members(r, &p);
	else
		put_fields(r, &p);
	if (out->bad || !enveloped)
		return out->bad;
	connect_head(head, 0, (uint32_t)(buf_len(out) - sizeof(head) + p.bytes));
	memcpy(out->p + out->head, head, sizeof(head));
	return 0;
}
