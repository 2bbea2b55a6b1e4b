/*
 * Views: see view.h.
 */
#include "view.h"

#include <errno.h>

#include "poison.h"

static unsigned char lower(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

bool view_eq_nocase(struct view a, struct view b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (lower(a.p[i]) != lower(b.p[i]))
			return false;
	return true;
}

struct view view_split(struct view v, char c, struct view *rest)
{
	const char *at = v.n ? memchr(v.p, c, v.n) : NULL;
	if (!at) {
		*rest = VIEW_NONE;
		return v;
	}
	size_t n = at - v.p;
	*rest = (struct view){ at + 1, v.n - n - 1 };
	return (struct view){ v.p, n };
}

struct view view_trim(struct view v)
{
	while (v.n && (v.p[0] == ' ' || v.p[0] == '\t'))
		v.p++, v.n--;
	while (v.n && (v.p[v.n - 1] == ' ' || v.p[v.n - 1] == '\t'))
		v.n--;
	return v;
}

bool view_eq_secret(struct view a, struct view b)
{
	if (a.n != b.n)
		return false;
	volatile unsigned char diff = 0;
	for (size_t i = 0; i < a.n; i++)
		diff |= (unsigned char)a.p[i] ^ (unsigned char)b.p[i];
	return diff == 0;
}

int view_to_str(struct view v, char *dst, size_t size)
{
	if (v.n >= size)
		return -ENAMETOOLONG;
	if (v.n && memchr(v.p, 0, v.n))
		return -EINVAL;
	if (v.n)
		memcpy(dst, v.p, v.n);
	dst[v.n] = 0;
	return 0;
}
