/*
 * Questions and answers of DNS: see resolve.h. What comes back is a stranger's: every
 * offset is checked, names are skipped and not followed.
 */
#include "resolve.h"

#include <netinet/in.h>
#include <string.h>

#include "poison.h"

#define HEADER    12
#define HOST_MAX  253
#define LABEL_MAX 63
#define TYPE_A    1
#define TYPE_AAAA 28
#define CLASS_IN  1

size_t resolve_ask(const struct resolve_question *q, uint8_t out[RESOLVE_MESSAGE])
{
	struct view rest = q->host;
	size_t n = HEADER;

	if (rest.n == 0 || rest.n > HOST_MAX)
		return 0;
	memset(out, 0, HEADER);
	out[0] = (uint8_t)(q->id >> 8);
	out[1] = (uint8_t)q->id;
	out[2] = 1; /* recursion, please */
	out[5] = 1; /* one question */
	while (rest.p && rest.n) {
		struct view label = view_split(rest, '.', &rest);
		if (label.n < 1 || label.n > LABEL_MAX)
			return 0;
		out[n++] = (uint8_t)label.n;
		memcpy(out + n, label.p, label.n);
		n += label.n;
	}
	out[n++] = 0;
	out[n++] = 0;
	out[n++] = q->v6 ? TYPE_AAAA : TYPE_A;
	out[n++] = 0;
	out[n++] = CLASS_IN;
	return n;
}

/* The place behind a name, or 0. */
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

static bool take_address(const uint8_t *data, size_t n, bool v6, struct sockaddr_storage *ret, socklen_t *ret_len)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };

	if (n != (v6 ? sizeof(in6.sin6_addr) : sizeof(in.sin_addr)))
		return false;
	memset(ret, 0, sizeof(*ret));
	if (v6) {
		memcpy(&in6.sin6_addr, data, n);
		memcpy(ret, &in6, sizeof(in6));
		*ret_len = sizeof(in6);
	} else {
		memcpy(&in.sin_addr, data, n);
		memcpy(ret, &in, sizeof(in));
		*ret_len = sizeof(in);
	}
	return true;
}

static unsigned u16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

int resolve_read(const struct resolve_question *q, const uint8_t *m, size_t len, struct sockaddr_storage *ret,
		 socklen_t *ret_len)
{
	uint8_t question[RESOLVE_MESSAGE];
	size_t n = resolve_ask(q, question), at = n;

	if (!n || len < n || m[0] != question[0] || m[1] != question[1] || !(m[2] & 0x80) || u16(m + 4) != 1 ||
	    memcmp(m + HEADER, question + HEADER, n - HEADER) != 0)
		return -1;
	for (unsigned i = u16(m + 6); i > 0; i--) {
		at = skip_name(m, len, at);
		if (!at || at + 10 > len)
			return 0;
		unsigned type = u16(m + at), class = u16(m + at + 2);
		size_t size = u16(m + at + 8);
		at += 10;
		if (size > len - at)
			return 0;
		if (class == CLASS_IN && type == (q->v6 ? TYPE_AAAA : TYPE_A) &&
		    take_address(m + at, size, q->v6, ret, ret_len))
			return 1;
		at += size;
	}
	return 0;
}
