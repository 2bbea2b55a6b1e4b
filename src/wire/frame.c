/*
 * The syntax of frames. A header is checked as soon as its sixteen bytes are
 * there, before anybody waits for (or makes room for) a body.
 */
#include "frame.h"

#include <errno.h>

#include "pb.h"
#include "poison.h"

enum { ANY_TYPE = 1, ANY_STREAM = 2, DEADLINE = 4, LAST = 8, FD = 16 };

/* What each kind of frame may have beyond a body of min..max bytes. */
static const struct rule {
	uint32_t min, max;
	unsigned may;
} rules[] = {
	[FRAME_CALL] = { 0, FRAME_BODY_MAX, DEADLINE | FD },
	[FRAME_REPLY] = { 0, FRAME_BODY_MAX, LAST | FD },
	[FRAME_FAIL] = { 0, FRAME_BODY_MAX, ANY_TYPE },
	[FRAME_DATA] = { 0, FRAME_DATA_MAX, ANY_TYPE },
	[FRAME_END] = { 0, 0, ANY_TYPE },
	[FRAME_WINDOW_ADD] = { 4, 4, ANY_TYPE },
	[FRAME_CANCEL] = { 0, 0, ANY_TYPE },
	[FRAME_EVENT] = { 0, FRAME_BODY_MAX, FD },
};

bool frame_valid(const struct frame *f, size_t body_len)
{
	if (f->kind < FRAME_CALL || f->kind > FRAME_EVENT)
		return false;
	const struct rule *r = &rules[f->kind];
	if (body_len < r->min || body_len > r->max)
		return false;
	if (f->type == 0 && !(r->may & ANY_TYPE))
		return false;
	if ((f->stream == 0) != (f->kind == FRAME_EVENT))
		return false;
	if (f->deadline_ms && !(r->may & DEADLINE))
		return false;
	if (f->flags & ~(FRAME_LAST | FRAME_FD))
		return false;
	if ((f->flags & FRAME_LAST) && !(r->may & LAST))
		return false;
	return !(f->flags & FRAME_FD) || (r->may & FD);
}

static uint32_t get_u32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void put_u32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

int frame_parse(struct view in, struct frame *ret, size_t *ret_size)
{
	*ret_size = FRAME_HEADER;
	if (in.n < FRAME_HEADER)
		return 0;
	const uint8_t *p = (const uint8_t *)in.p;
	uint32_t len = get_u32(p);
	struct frame f = {
		.type = (uint16_t)(p[4] | p[5] << 8),
		.kind = p[6],
		.flags = p[7],
		.stream = get_u32(p + 8),
		.deadline_ms = get_u32(p + 12),
	};
	if (!frame_valid(&f, len))
		return -EBADMSG;
	*ret_size = FRAME_HEADER + (size_t)len;
	if (in.n < *ret_size)
		return 0;
	f.body = (struct view){ in.p + FRAME_HEADER, len };
	*ret = f;
	return 1;
}

void frame_header(char dst[FRAME_HEADER], const struct frame *f, size_t body_len)
{
	uint8_t *p = (uint8_t *)dst;
	put_u32(p, (uint32_t)body_len);
	p[4] = (uint8_t)f->type;
	p[5] = (uint8_t)(f->type >> 8);
	p[6] = f->kind;
	p[7] = f->flags;
	put_u32(p + 8, f->stream);
	put_u32(p + 12, f->deadline_ms);
}

int frame_put(struct buf *out, const struct frame *f)
{
	if (!frame_valid(f, f->body.n))
		return -EINVAL;
	char head[FRAME_HEADER];
	frame_header(head, f, f->body.n);
	size_t before = buf_len(out);
	(void)buf_append(out, head, sizeof(head));
	if (f->body.n)
		(void)buf_add(out, f->body);
	if (out->bad)
		out->n = out->head + before; /* whole frames or nothing */
	return out->bad;
}

int frame_put_msg(struct buf *out, uint16_t type, uint8_t kind, uint8_t flags, uint32_t stream,
		  uint32_t deadline_ms, const struct pb_msg *m, const void *msg)
{
	struct frame f = {
		.type = type, .kind = kind, .flags = flags, .stream = stream, .deadline_ms = deadline_ms
	};
	char head[FRAME_HEADER] = { 0 };
	size_t before = buf_len(out);
	int r = buf_append(out, head, sizeof(head));
	if (r == 0)
		r = pb_encode(m, msg, out);
	size_t len = buf_len(out) - before - (r == 0 ? FRAME_HEADER : 0);
	if (r == 0 && !frame_valid(&f, len))
		r = -EINVAL;
	if (r < 0) {
		out->n = out->head + before;
		return r;
	}
	frame_header(out->p + out->head + before, &f, len);
	return 0;
}
