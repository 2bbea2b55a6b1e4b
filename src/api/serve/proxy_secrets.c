/*
 * Credentials in requests for boxes: see proxy_secrets.h.
 *
 * A name is compared as http_get_query reads it, decoded once: what the dialect took as a credential is what
 * goes. A key is looked for more deeply, since a server may decode once more than we do.
 */
#include "proxy_secrets.h"

#include "text.h"
#include "who.h"
#include "poison.h"

#define DIGITS (KEYS_TEXT_SIZE - 1 - 4) /* of a key, behind "pdk_" or "e2b_" */
#define ROUNDS 4                        /* of decoding */

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool has_key(struct view v)
{
	for (; v.n >= DIGITS + 4; v = view_skip(v, 1)) {
		size_t n = 4;
		if (!view_starts(v, "pdk_") && !view_starts(v, "e2b_"))
			continue;
		while (n < DIGITS + 4 && is_hex(v.p[n]))
			n++;
		if (n == DIGITS + 4)
			return true;
	}
	return false;
}

/* Of a broken sequence the characters stay: a server may be as lenient. */
static int decode(struct buf *out, struct view v)
{
	while (v.n) {
		char c[2] = { v.p[0], 0 };
		size_t n = v.n >= 3 && v.p[0] == '%' && text_unhex((struct view){ v.p + 1, 2 }, c, 1) == 0
				   ? 3
				   : 1;

		buf_putc(out, c[0]);
		v = view_skip(v, n);
	}
	return out->bad;
}

static bool has_key_coded(struct view v)
{
	_cleanup_(buf_done) struct buf one = BUF_INIT(v.n + 1), two = BUF_INIT(v.n + 1);
	struct buf *to = &one;

	for (unsigned i = 0; i < ROUNDS; i++, to = to == &one ? &two : &one) {
		if (has_key(v))
			return true;
		if (!v.n || !memchr(v.p, '%', v.n))
			return false;
		buf_clear(to);
		if (decode(to, v) < 0)
			return true; /* out of memory: rather lost than shown */
		v = buf_view(to);
	}
	return has_key(v);
}

static bool has_key_basic(struct view v)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(v.n + 1);

	if (v.n < 6 || !view_eq_nocase(view_head(v, 6), VIEW("basic ")))
		return false;
	return text_unbase64(&text, view_trim(view_skip(v, 6))) == 0 && has_key(buf_view(&text));
}

bool proxy_secrets_in(struct view v)
{
	return has_key_coded(v) || has_key_basic(v);
}

static bool is_named(struct view name, const char *names)
{
	_cleanup_(buf_done) struct buf plain = BUF_INIT(name.n + 1);
	struct view rest = view_of(names ? names : "");

	if (text_unpercent(&plain, name, true) < 0)
		return false;
	while (rest.n)
		if (view_eq(view_split(rest, ' ', &rest), buf_view(&plain)))
			return true;
	return false;
}

void proxy_secrets_query(struct buf *out, struct view query, const char *names)
{
	char mark = '?';

	while (query.n) {
		struct view value, pair = view_split(query, '&', &query);
		if (is_named(view_split(pair, '=', &value), names) || proxy_secrets_in(pair))
			continue;
		buf_putc(out, mark);
		buf_add(out, pair);
		mark = '&';
	}
}
