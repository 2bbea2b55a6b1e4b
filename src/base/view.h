/*
 * A view is a borrowed run of bytes: never owned, never terminated. A cursor
 * consumes one and, once it has failed, fails for good.
 */
#pragma once

#include <string.h>

#include "defs.h"

struct view {
	const char *p;
	size_t n;
};

#define VIEW(lit) ((struct view){ "" lit "", sizeof(lit) - 1 })
#define VIEW_NONE ((struct view){ NULL, 0 })
/* For printf's "%.*s". */
#define VIEW_ARG(v) (int)(v).n, (v).p

static inline struct view view_of(const char *s)
{
	return (struct view){ s, s ? strlen(s) : 0 };
}

static inline bool view_eq(struct view a, struct view b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool view_is(struct view a, const char *s)
{
	return view_eq(a, view_of(s));
}

static inline bool view_starts(struct view a, const char *s)
{
	size_t n = strlen(s);
	return a.n >= n && memcmp(a.p, s, n) == 0;
}

/* Of two absolute paths without empty parts, "." and "..": the same, or below it. */
static inline bool view_within(struct view path, struct view dir)
{
	return path.n >= dir.n && memcmp(path.p, dir.p, dir.n) == 0 &&
	       (path.n == dir.n || path.p[dir.n] == '/');
}

static inline struct view view_skip(struct view a, size_t n)
{
	n = n > a.n ? a.n : n;
	return (struct view){ n ? a.p + n : a.p, a.n - n };
}

static inline struct view view_head(struct view a, size_t n)
{
	return (struct view){ a.p, n > a.n ? a.n : n };
}

/* Equal without regard to ASCII case. */
bool view_eq_nocase(struct view a, struct view b);
/* Splits at the first `c`: the part before it is returned, *rest is what
 * follows it (or nothing, with p == NULL, when there is no `c`). */
struct view view_split(struct view v, char c, struct view *rest);
struct view view_trim(struct view v); /* spaces and tabs at both ends */
/* Equal in time that depends on the lengths only. */
bool view_eq_secret(struct view a, struct view b);
/* Copies into a terminated array; -ENAMETOOLONG or -EINVAL (a NUL inside). */
int view_to_str(struct view v, char *dst, size_t size) _must_check_;
