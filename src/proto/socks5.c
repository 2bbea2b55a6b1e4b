/*
 * SOCKS 5: see socks5.h.
 */
#include "socks5.h"

#include <errno.h>

#include "poison.h"

enum { VERSION = 5, CONNECT = 1, KIND_V4 = 1, KIND_NAME = 3, KIND_V6 = 4 };

int socks5_greeting(struct view in, uint8_t *ret_method)
{
	const uint8_t *p = (const uint8_t *)in.p;

	if (in.n >= 1 && p[0] != VERSION)
		return -EINVAL;
	if (in.n < 2)
		return 0;
	if (p[1] == 0)
		return -EINVAL;
	size_t n = 2u + p[1];
	if (in.n < n)
		return 0;
	*ret_method = memchr(p + 2, 0, p[1]) ? 0 : 0xff;
	return (int)n;
}

int socks5_parse(struct view in, struct socks5_request *ret)
{
	const uint8_t *p = (const uint8_t *)in.p;
	struct socks5_request r = { 0 };

	if ((in.n >= 1 && p[0] != VERSION) || (in.n >= 3 && p[2] != 0))
		return -EINVAL;
	if (in.n < 5)
		return 0;
	size_t at = 4, n = p[3] == KIND_V4 ? 4 : p[3] == KIND_V6 ? 16 : 0;
	if (p[3] == KIND_NAME) {
		n = p[4];
		at = 5;
	}
	if (n == 0)
		return -EINVAL;
	if (in.n < at + n + 2)
		return 0;
	r.kind = p[3];
	r.host = (struct view){ in.p + at, n };
	r.port = (uint16_t)((unsigned)p[at + n] << 8 | p[at + n + 1]);
	if (p[1] != CONNECT)
		return -EOPNOTSUPP;
	if (r.port == 0)
		return -EINVAL;
	*ret = r;
	return (int)(at + n + 2);
}

void socks5_reply(uint8_t code, char dst[SOCKS5_REPLY])
{
	memset(dst, 0, SOCKS5_REPLY);
	dst[0] = VERSION;
	dst[1] = (char)code;
	dst[3] = KIND_V4;
}
