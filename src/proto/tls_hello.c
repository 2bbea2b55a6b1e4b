/*
 * ClientHello (RFC 8446, 4.1.2; server_name: RFC 6066): see tls_hello.h.
 *
 * A reader hands out bytes of the handshake message and steps over the headers of
 * records. -EAGAIN is the end of what has come, and is final for this call.
 */
#include "tls_hello.h"

#include <errno.h>
#include <string.h>

#include "poison.h"

enum {
	RECORD_HANDSHAKE = 22,
	CLIENT_HELLO = 1,
	EXT_SERVER_NAME = 0,
	EXT_ALPN = 16,
	EXT_ECH = 0xfe0d,
	EXT_ECH_DRAFT = 0xfe08,
	EXT_ESNI = 0xffce
};

#define RECORD_MAX 16384

struct reader {
	struct view in;
	size_t record; /* bytes that are left of the current record */
	size_t left;   /* bytes that are left of the message */
	int bad;
};

static int fail(struct reader *r, int error)
{
	if (!r->bad)
		r->bad = error;
	return r->bad;
}

static void next_record(struct reader *r)
{
	const uint8_t *p = (const uint8_t *)r->in.p;

	if (r->in.n >= 1 && p[0] != RECORD_HANDSHAKE)
		fail(r, -EINVAL);
	else if (r->in.n >= 2 && p[1] != 3)
		fail(r, -EINVAL);
	else if (r->in.n < 5)
		fail(r, -EAGAIN);
	else {
		r->record = (size_t)p[3] << 8 | p[4];
		if (r->record == 0 || r->record > RECORD_MAX)
			fail(r, -EINVAL);
		r->in = view_skip(r->in, 5);
	}
}

/* The next n bytes of the message; dst may be NULL to skip them. */
static void take(struct reader *r, void *dst, size_t n)
{
	if (!r->bad && n > r->left)
		fail(r, -EINVAL);
	while (!r->bad && n > 0) {
		if (r->record == 0) {
			next_record(r);
			continue;
		}
		size_t some = MIN(n, MIN(r->record, r->in.n));
		if (some == 0) {
			fail(r, -EAGAIN);
			break;
		}
		if (dst) {
			memcpy(dst, r->in.p, some);
			dst = (char *)dst + some;
		}
		r->in = view_skip(r->in, some);
		r->record -= some;
		r->left -= some;
		n -= some;
	}
}

static size_t number(struct reader *r, size_t bytes)
{
	uint8_t b[3] = { 0 };
	size_t value = 0;

	take(r, b, bytes);
	for (size_t i = 0; i < bytes; i++)
		value = value << 8 | b[i];
	return r->bad ? 0 : value;
}

/* A length, which must fit into `room`. */
static size_t length(struct reader *r, size_t bytes, size_t room)
{
	size_t n = number(r, bytes);

	if (!r->bad && n > room)
		fail(r, -EINVAL);
	return r->bad ? 0 : n;
}

static void read_server_name(struct reader *r, size_t size, struct tls_hello *h)
{
	size_t end = r->left - MIN(size, r->left);
	size_t list = length(r, 2, size);

	if (r->bad || list + 2 != size || h->name[0]) {
		fail(r, -EINVAL);
		return;
	}
	/* One entry, of the one type that there is. */
	size_t type = number(r, 1), n = length(r, 2, list);
	if (r->bad || type != 0 || n == 0 || n >= sizeof(h->name) || n + 3 != list) {
		fail(r, -EINVAL);
		return;
	}
	take(r, h->name, n);
	h->name[n] = 0;
	if (!r->bad && (memchr(h->name, 0, n) || r->left != end))
		fail(r, -EINVAL);
}

static void read_alpn(struct reader *r, size_t size, struct tls_hello *h)
{
	size_t list = length(r, 2, size);

	if (!r->bad && list + 2 != size)
		fail(r, -EINVAL);
	while (!r->bad && list > 0) {
		char name[255];
		size_t n = length(r, 1, list - 1);
		take(r, name, n);
		if (n == 2 && memcmp(name, "h2", 2) == 0)
			h->alpn_h2 = true;
		list -= n + 1;
	}
}

static void read_extensions(struct reader *r, struct tls_hello *h)
{
	bool named = false;

	if (r->left == 0)
		return;
	if (length(r, 2, r->left) != r->left)
		fail(r, -EINVAL);
	while (!r->bad && r->left > 0) {
		size_t type = number(r, 2), n = length(r, 2, r->left);
		if (r->bad)
			return;
		if (n > r->left) {
			fail(r, -EINVAL);
		} else if (type == EXT_SERVER_NAME) {
			if (named)
				fail(r, -EINVAL);
			named = true;
			read_server_name(r, n, h);
		} else if (type == EXT_ALPN) {
			read_alpn(r, n, h);
		} else {
			h->ech = h->ech || (type >= EXT_ECH_DRAFT && type <= EXT_ECH) || type == EXT_ESNI;
			take(r, NULL, n);
		}
	}
}

/* All that came was taken, but for a header of a record that is not whole. */
static size_t needed(const struct reader *r, size_t came)
{
	return came - r->in.n + r->left + (r->record < r->left ? 5 : 0);
}

int tls_hello_parse(struct view in, struct tls_hello *ret)
{
	struct reader r = { .in = in, .left = 4 };
	struct tls_hello h = { 0 };

	if (number(&r, 1) != CLIENT_HELLO && !r.bad)
		return -EINVAL;
	size_t size = number(&r, 3);
	if (!r.bad && size > TLS_HELLO_MAX)
		return -EINVAL;
	r.left = r.bad ? r.left : size;
	take(&r, NULL, 2 + 32); /* version, random */
	take(&r, NULL, length(&r, 1, 32));
	size_t suites = length(&r, 2, r.left);
	if (!r.bad && (suites == 0 || suites % 2))
		return -EINVAL;
	take(&r, NULL, suites);
	take(&r, NULL, length(&r, 1, r.left));
	if (!r.bad)
		read_extensions(&r, &h);
	if (r.bad && r.bad != -EAGAIN)
		return -EINVAL;
	h.need = r.bad ? needed(&r, in.n) : 0;
	*ret = h;
	return r.bad ? 0 : 1;
}
