/*
 * The protobuf codec. Decoding makes two passes over each message: the first
 * checks the syntax and counts the elements of repeated fields, so that their
 * arrays are allocated once and exactly; the second stores. Both read through
 * the same cursor, and the second cannot meet anything that the first has not
 * accepted, except values out of a field's range.
 *
 * What official parsers forgive and this one does not: a number that does not
 * fit its field, a bool that is neither 0 nor 1, a sub-message given twice.
 * Strings are not required to be UTF-8: file names and output are not.
 */
#include "pb.h"

#include <errno.h>

#include "poison.h"

enum { WT_VARINT = 0, WT_64 = 1, WT_BYTES = 2, WT_32 = 5 };

/* ---- reading ---------------------------------------------------------- */

struct cursor {
	const uint8_t *p, *end;
};

struct tag {
	uint32_t number;
	unsigned wt;
};

static int read_varint(struct cursor *c, uint64_t *ret)
{
	uint64_t v = 0;
	for (unsigned shift = 0; shift < 70; shift += 7) {
		if (c->p == c->end)
			return -EBADMSG;
		uint8_t b = *c->p++;
		if (shift == 63 && b > 1)
			return -EBADMSG;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*ret = v;
			return 0;
		}
	}
	return -EBADMSG;
}

static int read_bytes(struct cursor *c, struct view *ret)
{
	uint64_t n;
	int r = read_varint(c, &n);
	if (r < 0)
		return r;
	if (n > (size_t)(c->end - c->p))
		return -EBADMSG;
	*ret = (struct view){ (const char *)c->p, (size_t)n };
	c->p += n;
	return 0;
}

static int read_64(struct cursor *c, uint64_t *ret)
{
	if (c->end - c->p < 8)
		return -EBADMSG;
	uint64_t v = 0;
	for (int i = 7; i >= 0; i--)
		v = v << 8 | c->p[i];
	c->p += 8;
	*ret = v;
	return 0;
}

static int read_tag(struct cursor *c, struct tag *ret)
{
	uint64_t v;
	int r = read_varint(c, &v);
	if (r < 0)
		return r;
	if (v > UINT32_MAX || v >> 3 == 0)
		return -EBADMSG;
	*ret = (struct tag){ .number = (uint32_t)(v >> 3), .wt = v & 7 };
	return 0;
}

static int skip_value(struct cursor *c, unsigned wt)
{
	uint64_t v;
	struct view bytes;
	switch (wt) {
	case WT_VARINT:
		return read_varint(c, &v);
	case WT_64:
		return read_64(c, &v);
	case WT_BYTES:
		return read_bytes(c, &bytes);
	case WT_32:
		if (c->end - c->p < 4)
			return -EBADMSG;
		c->p += 4;
		return 0;
	default: /* groups, and numbers that mean nothing */
		return -EBADMSG;
	}
}

static struct cursor cursor_of(struct view v)
{
	return (struct cursor){ (const uint8_t *)v.p, (const uint8_t *)v.p + v.n };
}

/* ---- fields ----------------------------------------------------------- */

static unsigned wire_type(const struct pb_field *f)
{
	switch ((enum pb_kind)f->kind) {
	case PB_DOUBLE:
		return WT_64;
	case PB_STRING:
	case PB_BYTES:
	case PB_MSG:
		return WT_BYTES;
	case PB_U32:
	case PB_U64:
	case PB_I32:
	case PB_I64:
	case PB_S32:
	case PB_S64:
	case PB_BOOL:
	case PB_ENUM:
		break;
	}
	return WT_VARINT;
}

/* Size of one element of a repeated field. */
static size_t elem_size(const struct pb_field *f)
{
	switch ((enum pb_kind)f->kind) {
	case PB_U32:
	case PB_I32:
	case PB_S32:
	case PB_ENUM:
		return sizeof(uint32_t);
	case PB_U64:
	case PB_I64:
	case PB_S64:
		return sizeof(uint64_t);
	case PB_BOOL:
		return sizeof(bool);
	case PB_DOUBLE:
		return sizeof(double);
	case PB_STRING:
	case PB_BYTES:
		return sizeof(struct view);
	case PB_MSG:
		break;
	}
	return f->sub->size;
}

/* What the field occupies in the struct itself, when it is not repeated. */
static size_t slot_size(const struct pb_field *f)
{
	return f->kind == PB_MSG ? sizeof(void *) : elem_size(f);
}

static const struct pb_field *find_field(const struct pb_msg *m, uint32_t number)
{
	/* Numbers are dense as a rule: the table's own place is the first guess. */
	if (number <= m->n_fields && m->fields[number - 1].number == number)
		return &m->fields[number - 1];
	for (size_t i = 0; i < m->n_fields; i++)
		if (m->fields[i].number == number)
			return &m->fields[i];
	return NULL;
}

static bool packable(const struct pb_field *f)
{
	return f->repeated && wire_type(f) != WT_BYTES;
}

static struct pb_list *list_of(void *out, const struct pb_field *f)
{
	return (struct pb_list *)(void *)((char *)out + f->offset);
}

/* ---- decoding --------------------------------------------------------- */

static int store_int(const struct pb_field *f, uint64_t v, void *dst)
{
	int64_t s = (int64_t)v;
	switch ((enum pb_kind)f->kind) {
	case PB_U32:
		if (v > UINT32_MAX)
			return -EBADMSG;
		*(uint32_t *)dst = (uint32_t)v;
		return 0;
	case PB_S32:
	case PB_S64:
		s = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
		if (f->kind == PB_S64) {
			*(int64_t *)dst = s;
			return 0;
		}
		_fallthrough_;
	case PB_I32:
	case PB_ENUM:
		if (s < INT32_MIN || s > INT32_MAX)
			return -EBADMSG;
		*(int32_t *)dst = (int32_t)s;
		return 0;
	case PB_U64:
	case PB_I64:
	case PB_DOUBLE: /* the eight bytes as they are */
		memcpy(dst, &v, sizeof(v));
		return 0;
	case PB_BOOL:
		if (v > 1)
			return -EBADMSG;
		*(bool *)dst = v;
		return 0;
	case PB_STRING:
	case PB_BYTES:
	case PB_MSG:
		break;
	}
	return -EBADMSG;
}

static int read_number(struct cursor *c, const struct pb_field *f, void *dst)
{
	uint64_t v;
	int r = f->kind == PB_DOUBLE ? read_64(c, &v) : read_varint(c, &v);
	return r < 0 ? r : store_int(f, v, dst);
}

/* How many elements one occurrence of a repeated field brings. */
static int count_value(struct cursor *c, const struct pb_field *f, unsigned wt, size_t *n)
{
	if (wt == wire_type(f)) {
		++*n;
		return skip_value(c, wt);
	}
	struct view packed;
	int r = read_bytes(c, &packed);
	if (r < 0)
		return r;
	for (struct cursor in = cursor_of(packed); in.p < in.end; ++*n) {
		r = skip_value(&in, wire_type(f));
		if (r < 0)
			return r;
	}
	return 0;
}

/* First pass: syntax, and the lengths of all lists (left in their n). */
static int count_all(const struct pb_msg *m, struct view in, unsigned flags, void *out)
{
	for (struct cursor c = cursor_of(in); c.p < c.end;) {
		struct tag t;
		int r = read_tag(&c, &t);
		if (r < 0)
			return r;
		const struct pb_field *f = find_field(m, t.number);
		if (!f && !(flags & PB_SKIP_UNKNOWN))
			return -EBADMSG;
		if (f && t.wt != wire_type(f) && !(packable(f) && t.wt == WT_BYTES))
			return -EBADMSG;
		r = f && f->repeated ? count_value(&c, f, t.wt, &list_of(out, f)->n) : skip_value(&c, t.wt);
		if (r < 0)
			return r;
	}
	return 0;
}

static int alloc_lists(const struct pb_msg *m, struct arena *a, void *out)
{
	for (size_t i = 0; i < m->n_fields; i++) {
		const struct pb_field *f = &m->fields[i];
		struct pb_list *l = f->repeated ? list_of(out, f) : NULL;
		if (!l || l->n == 0)
			continue;
		l->items = arena_array(a, l->n, elem_size(f));
		if (!l->items)
			return -ENOMEM;
		l->n = 0; /* counts up again as the second pass stores */
	}
	return 0;
}

static int decode_msg(const struct pb_msg *m, struct view in, unsigned flags, struct arena *a, void *out,
		      unsigned depth);

static int read_value(struct cursor *c, const struct pb_field *f, unsigned flags, struct arena *a, void *dst,
		      unsigned depth)
{
	if (wire_type(f) != WT_BYTES)
		return read_number(c, f, dst);
	struct view v;
	int r = read_bytes(c, &v);
	if (r < 0)
		return r;
	if (f->kind == PB_MSG)
		return decode_msg(f->sub, v, flags, a, dst, depth + 1);
	*(struct view *)dst = v;
	return 0;
}

static int read_repeated(struct cursor *c, const struct pb_field *f, unsigned wt, unsigned flags,
			 struct arena *a, struct pb_list *l, unsigned depth)
{
	size_t size = elem_size(f);
	if (wt == wire_type(f))
		return read_value(c, f, flags, a, (char *)l->items + size * l->n++, depth);
	struct view packed;
	int r = read_bytes(c, &packed);
	for (struct cursor in = cursor_of(packed); r == 0 && in.p < in.end;)
		r = read_number(&in, f, (char *)l->items + size * l->n++);
	return r;
}

/* Of a oneof only the member that comes last counts. */
static void clear_oneof(const struct pb_msg *m, unsigned oneof, void *out)
{
	for (size_t i = 0; i < m->n_fields; i++) {
		const struct pb_field *f = &m->fields[i];
		if (f->oneof != oneof)
			continue;
		memset((char *)out + f->offset, 0, slot_size(f));
		if (f->has)
			*(bool *)((char *)out + f->has) = false;
	}
}

static int read_single(struct cursor *c, const struct pb_msg *m, const struct pb_field *f, unsigned flags,
		       struct arena *a, void *out, unsigned depth)
{
	if (f->oneof)
		clear_oneof(m, f->oneof, out);
	void *slot = (char *)out + f->offset;
	if (f->has)
		*(bool *)((char *)out + f->has) = true;
	if (f->kind != PB_MSG)
		return read_value(c, f, flags, a, slot, depth);
	void **sub = slot;
	if (*sub)
		return -EBADMSG;
	*sub = arena_alloc(a, f->sub->size);
	return *sub ? read_value(c, f, flags, a, *sub, depth) : -ENOMEM;
}

static int decode_msg(const struct pb_msg *m, struct view in, unsigned flags, struct arena *a, void *out,
		      unsigned depth)
{
	memset(out, 0, m->size);
	if (depth >= PB_DEPTH)
		return -EBADMSG;
	int r = count_all(m, in, flags, out);
	if (r == 0)
		r = alloc_lists(m, a, out);
	for (struct cursor c = cursor_of(in); r == 0 && c.p < c.end;) {
		struct tag t;
		r = read_tag(&c, &t);
		if (r < 0)
			break;
		const struct pb_field *f = find_field(m, t.number);
		if (!f)
			r = skip_value(&c, t.wt);
		else if (f->repeated)
			r = read_repeated(&c, f, t.wt, flags, a, list_of(out, f), depth);
		else
			r = read_single(&c, m, f, flags, a, out, depth);
	}
	return r;
}

int pb_decode(const struct pb_msg *m, struct view in, unsigned flags, struct arena *a, void *out)
{
	int r = decode_msg(m, in, flags, a, out, 0);
	if (r < 0)
		memset(out, 0, m->size); /* nobody works with half a message */
	return r;
}

/* ---- encoding --------------------------------------------------------- */

static size_t put_varint_at(uint8_t *dst, uint64_t v)
{
	size_t n = 0;
	while (v >= 0x80) {
		dst[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	dst[n++] = (uint8_t)v;
	return n;
}

static int put_varint(struct buf *out, uint64_t v)
{
	uint8_t tmp[10];
	return buf_append(out, tmp, put_varint_at(tmp, v));
}

static int put_tag(struct buf *out, const struct pb_field *f, unsigned wt)
{
	return put_varint(out, (uint64_t)f->number << 3 | wt);
}

static uint64_t load_int(const struct pb_field *f, const void *src)
{
	uint64_t v = 0;
	int64_t s;
	switch ((enum pb_kind)f->kind) {
	case PB_U32:
		return *(const uint32_t *)src;
	case PB_I32:
	case PB_ENUM:
		return (uint64_t)(int64_t) * (const int32_t *)src;
	case PB_S32:
	case PB_S64:
		s = f->kind == PB_S32 ? *(const int32_t *)src : *(const int64_t *)src;
		return (uint64_t)s << 1 ^ (uint64_t)(s >> 63);
	case PB_BOOL:
		return *(const bool *)src;
	case PB_U64:
	case PB_I64:
	case PB_DOUBLE:
		memcpy(&v, src, sizeof(v));
		break;
	case PB_STRING:
	case PB_BYTES:
	case PB_MSG:
		break;
	}
	return v;
}

static int put_number(struct buf *out, const struct pb_field *f, uint64_t v)
{
	if (f->kind != PB_DOUBLE)
		return put_varint(out, v);
	uint8_t le[8];
	for (int i = 0; i < 8; i++)
		le[i] = (uint8_t)(v >> 8 * i);
	return buf_append(out, le, sizeof(le));
}

/*
 * A length goes before what it measures, so one byte is left for it, and what
 * follows is moved up in the rare case that the length needs more. Positions
 * count from the start of the buffer's view: the buffer may move.
 */
static size_t begin_length(struct buf *out)
{
	(void)buf_putc(out, 0);
	return buf_len(out);
}

static int end_length(struct buf *out, size_t start)
{
	if (out->bad)
		return out->bad;
	uint8_t tmp[10];
	size_t len = buf_len(out) - start, n = put_varint_at(tmp, len);
	if (n > 1) {
		int r = buf_append(out, tmp, n - 1); /* room; the bytes are overwritten */
		if (r < 0)
			return r;
		char *p = out->p + out->head + start;
		memmove(p + n - 1, p, len);
	}
	memcpy(out->p + out->head + start - 1, tmp, n);
	return 0;
}

static int encode_msg(const struct pb_msg *m, const void *in, struct buf *out, unsigned depth);

static int put_bytes(struct buf *out, const struct pb_field *f, const void *src, unsigned depth)
{
	(void)put_tag(out, f, WT_BYTES);
	if (f->kind == PB_MSG) {
		size_t start = begin_length(out);
		int r = encode_msg(f->sub, src, out, depth + 1);
		return r < 0 ? r : end_length(out, start);
	}
	const struct view *v = src;
	(void)put_varint(out, v->n);
	return v->n ? buf_append(out, v->p, v->n) : out->bad;
}

static int put_repeated(struct buf *out, const struct pb_field *f, const struct pb_list *l, unsigned depth)
{
	size_t size = elem_size(f);
	int r = 0;
	if (l->n == 0)
		return 0;
	if (!packable(f)) {
		for (size_t i = 0; r == 0 && i < l->n; i++)
			r = put_bytes(out, f, (const char *)l->items + size * i, depth);
		return r;
	}
	(void)put_tag(out, f, WT_BYTES);
	size_t start = begin_length(out);
	for (size_t i = 0; r == 0 && i < l->n; i++)
		r = put_number(out, f, load_int(f, (const char *)l->items + size * i));
	return r < 0 ? r : end_length(out, start);
}

static int put_single(struct buf *out, const struct pb_field *f, const void *in, unsigned depth)
{
	const void *src = (const char *)in + f->offset;
	bool present = f->has && *(const bool *)((const char *)in + f->has);
	if (f->has && !present)
		return 0;
	if (f->kind == PB_MSG) {
		const void *sub = *(void *const *)src;
		return sub ? put_bytes(out, f, sub, depth) : 0;
	}
	if (wire_type(f) == WT_BYTES)
		return present || ((const struct view *)src)->n ? put_bytes(out, f, src, depth) : 0;
	uint64_t v = load_int(f, src);
	if (v == 0 && !present)
		return 0;
	(void)put_tag(out, f, wire_type(f));
	return put_number(out, f, v);
}

static int encode_msg(const struct pb_msg *m, const void *in, struct buf *out, unsigned depth)
{
	if (depth >= PB_DEPTH)
		return -EINVAL;
	int r = 0;
	for (size_t i = 0; r == 0 && i < m->n_fields; i++) {
		const struct pb_field *f = &m->fields[i];
		r = f->repeated ? put_repeated(out, f, list_of((void *)in, f), depth)
				: put_single(out, f, in, depth);
	}
	return r;
}

int pb_encode(const struct pb_msg *m, const void *in, struct buf *out)
{
	return out->bad ? out->bad : encode_msg(m, in, out, 0);
}
