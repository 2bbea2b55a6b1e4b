/*
 * DNS messages: see dns.h. Names inside of records are skipped, not followed; a
 * question's own name may not be compressed (there is nothing before it to point to).
 */
#include "dns.h"

#include <errno.h>

#include "poison.h"

#define HEADER     12
#define CLASS_IN   1
#define OPTION_EDE 15

static unsigned u16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

static int put16(struct buf *out, unsigned v)
{
	return buf_append(out, (const uint8_t[]){ (uint8_t)(v >> 8), (uint8_t)v }, 2);
}

/* The name at `at` of a question, as text; the place behind it, or 0. */
static size_t read_name(const uint8_t *m, size_t len, size_t at, char dst[DNS_NAME])
{
	size_t n = 0;

	while (at < len && m[at] != 0) {
		size_t label = m[at++];
		if (label > 63 || label > len - at || n + label + 2 > DNS_NAME)
			return 0;
		if (n)
			dst[n++] = '.';
		for (size_t i = 0; i < label; i++, at++) {
			/* A dot or NUL inside of a label would be another name as text. */
			if (m[at] <= ' ' || m[at] == '.' || m[at] >= 0x7f)
				return 0;
			dst[n++] = (char)(m[at] >= 'A' && m[at] <= 'Z' ? m[at] + 32 : m[at]);
		}
	}
	if (at >= len || n > 253)
		return 0;
	dst[n] = 0;
	return at + 1;
}

static size_t skip_name(const uint8_t *m, size_t len, size_t at)
{
	while (at < len) {
		if (m[at] == 0)
			return at + 1;
		if ((m[at] & 0xc0) == 0xc0)
			return at + 2 <= len ? at + 2 : 0;
		if (m[at] & 0xc0)
			return 0;
		at += 1u + m[at];
	}
	return 0;
}

int dns_query_parse(struct view in, struct dns_query *ret)
{
	const uint8_t *m = (const uint8_t *)in.p;
	struct dns_query q = { 0 };

	if (in.n < HEADER || in.n > 4096 || m[2] & 0x80)
		return -EBADMSG;
	q.id = (uint16_t)u16(m);
	q.recursion = m[2] & 1;
	*ret = q;
	if (m[2] & 0x7a || u16(m + 4) != 1 || u16(m + 6) != 0 || u16(m + 8) != 0 || u16(m + 10) > 1)
		return -EOPNOTSUPP;
	size_t at = read_name(m, in.n, HEADER, q.name);
	if (!at || at + 4 > in.n)
		return -EOPNOTSUPP;
	q.type = (uint16_t)u16(m + at);
	q.class = (uint16_t)u16(m + at + 2);
	q.question = at + 4 - HEADER;
	at += 4;
	if (u16(m + 10) == 1) {
		if (at + 11 > in.n || m[at] != 0 || u16(m + at + 1) != DNS_OPT ||
		    u16(m + at + 9) > in.n - at - 11)
			return -EOPNOTSUPP;
		q.edns = true;
	}
	*ret = q;
	return q.class == CLASS_IN ? 0 : -EOPNOTSUPP;
}

int dns_answer(struct buf *out, struct view in, const struct dns_query *q, unsigned rcode,
	       const struct dns_address *found, size_t n, uint32_t ttl)
{
	size_t size = q->type == DNS_AAAA ? 16 : 4;

	put16(out, q->id);
	buf_putc(out, (char)(0x80 | (q->recursion ? 1 : 0)));
	buf_putc(out, (char)(0x80 | rcode)); /* recursion is available */
	put16(out, q->question ? 1 : 0);
	put16(out, (unsigned)n);
	put16(out, 0);
	put16(out, q->edns ? 1 : 0);
	buf_add(out, view_head(view_skip(in, HEADER), q->question));
	for (size_t i = 0; i < n; i++) {
		put16(out, 0xc000 | HEADER); /* the name of the question */
		put16(out, q->type);
		put16(out, CLASS_IN);
		put16(out, ttl >> 16);
		put16(out, ttl & 0xffff);
		put16(out, (unsigned)size);
		buf_append(out, found[i].b, size);
	}
	if (q->edns) {
		buf_putc(out, 0);
		put16(out, DNS_OPT);
		put16(out, DNS_MESSAGE);
		put16(out, 0);
		put16(out, 0);
		size_t n_why = q->why ? strlen(q->why) : 0;
		put16(out, q->why ? (unsigned)n_why + 6 : 0);
		if (q->why) {
			put16(out, OPTION_EDE);
			put16(out, (unsigned)n_why + 2);
			put16(out, DNS_EDE_BLOCKED);
			buf_append(out, q->why, n_why);
		}
	}
	return out->bad;
}

int dns_question(struct buf *out, uint16_t id, struct view name, uint16_t type)
{
	if (name.n < 1 || name.n > 253)
		return -EINVAL;
	put16(out, id);
	buf_append(out, "\1\0\0\1\0\0\0\0\0\0", 10); /* recursion, one question */
	while (name.p) {
		struct view label = view_split(name, '.', &name);
		if (label.n < 1 || label.n > 63)
			return -EINVAL;
		buf_putc(out, (char)label.n);
		buf_add(out, label);
	}
	buf_putc(out, 0);
	put16(out, type);
	put16(out, CLASS_IN);
	return out->bad;
}

/* One record; the place behind it, or 0. */
static size_t read_record(const uint8_t *m, size_t len, size_t at, uint16_t type, struct dns_reply *r)
{
	at = skip_name(m, len, at);
	if (!at || at + 10 > len)
		return 0;
	size_t size = u16(m + at + 8), want = type == DNS_AAAA ? 16 : 4;
	uint32_t ttl = u16(m + at + 4) << 16 | u16(m + at + 6);
	if (size > len - at - 10)
		return 0;
	if (u16(m + at + 2) == CLASS_IN && u16(m + at) == type && size == want) {
		r->ttl = MIN(r->ttl, ttl);
		if (r->n < ELEMS(r->found))
			memcpy(r->found[r->n++].b, m + at + 10, size);
	}
	return at + 10 + size;
}

int dns_reply_parse(struct view in, struct view question, uint16_t type, struct dns_reply *ret)
{
	const uint8_t *m = (const uint8_t *)in.p;
	struct dns_reply r = { .ttl = UINT32_MAX };

	/* The id and the question must be ours, byte by byte. */
	if (in.n < question.n || question.n < HEADER || memcmp(m, question.p, 2) != 0 || !(m[2] & 0x80) ||
	    u16(m + 4) != 1 || memcmp(m + HEADER, question.p + HEADER, question.n - HEADER) != 0)
		return -EBADMSG;
	r.rcode = m[3] & 15;
	r.truncated = m[2] & 2;
	size_t at = question.n;
	for (unsigned i = u16(m + 6); i > 0 && at; i--)
		at = read_record(m, in.n, at, type, &r);
	*ret = r;
	return 0;
}
