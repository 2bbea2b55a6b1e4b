/*
 * See glob.h.
 */
#include "glob.h"

#include "poison.h"

/* The character class at pattern.p[0] == '['; 0: it is none (then '[' means itself), else its length. */
static size_t class_match(struct view pattern, unsigned char c, bool *ret)
{
	size_t i = 1;
	bool hit = false, negate = i < pattern.n && (pattern.p[i] == '!' || pattern.p[i] == '^');
	if (negate)
		i++;
	for (size_t first = i; i < pattern.n && (pattern.p[i] != ']' || i == first); i++) {
		if (pattern.p[i] == '\\' && i + 1 < pattern.n)
			i++;
		unsigned char low = (unsigned char)pattern.p[i], high = low;
		if (i + 2 < pattern.n && pattern.p[i + 1] == '-' && pattern.p[i + 2] != ']') {
			i += 2;
			if (pattern.p[i] == '\\' && i + 1 < pattern.n)
				i++;
			high = (unsigned char)pattern.p[i];
		}
		hit |= c >= low && c <= high;
	}
	if (i >= pattern.n)
		return 0;
	*ret = hit != negate;
	return i + 1;
}

/* Matches one character; the length of the pattern's element, 0 when it does not match. */
static size_t one_match(struct view pattern, unsigned char c)
{
	bool hit;
	if (pattern.n == 0)
		return 0;
	if (pattern.p[0] == '?')
		return 1;
	if (pattern.p[0] == '[') {
		size_t n = class_match(pattern, c, &hit);
		if (n)
			return hit ? n : 0;
	}
	if (pattern.p[0] == '\\' && pattern.n > 1)
		return (unsigned char)pattern.p[1] == c ? 2 : 0;
	return (unsigned char)pattern.p[0] == c ? 1 : 0;
}

/* One part with one name. */
static bool glob_name(struct view pattern, struct view name)
{
	struct view star = VIEW_NONE, rest = VIEW_NONE; /* behind the last star, and what it has not eaten */
	while (name.n) {
		size_t n;
		if (pattern.n && pattern.p[0] == '*') {
			star = pattern = view_skip(pattern, 1);
			rest = name;
		} else if ((n = one_match(pattern, (unsigned char)name.p[0]))) {
			pattern = view_skip(pattern, n);
			name = view_skip(name, 1);
		} else if (star.p) {
			name = rest = view_skip(rest, 1);
			pattern = star;
		} else {
			return false;
		}
	}
	while (pattern.n && pattern.p[0] == '*')
		pattern = view_skip(pattern, 1);
	return pattern.n == 0;
}

static bool is_slash_free(struct view v)
{
	return v.n == 0 || !memchr(v.p, '/', v.n);
}

/* The same game with names instead of characters: "**" is the star, every other part is one name. */
bool glob_match(struct view pattern, struct view path)
{
	if (is_slash_free(pattern) && !view_is(pattern, "**")) {
		const char *slash = path.n ? memrchr(path.p, '/', path.n) : NULL;
		return glob_name(pattern, slash ? view_skip(path, (size_t)(slash + 1 - path.p)) : path);
	}
	struct view star = VIEW_NONE, rest = VIEW_NONE;
	bool starred = false;
	if (pattern.n && pattern.p[0] == '/')
		pattern = view_skip(pattern, 1);
	if (pattern.n == 0)
		return path.n == 0;
	while (path.p) {
		struct view p_rest = VIEW_NONE, n_rest;
		struct view part = pattern.p ? view_split(pattern, '/', &p_rest) : VIEW_NONE;
		struct view name = view_split(path, '/', &n_rest);
		if (pattern.p && view_is(part, "**")) {
			if (!p_rest.p)
				return true; /* takes all that is left */
			star = pattern = p_rest;
			rest = path;
			starred = true;
		} else if (pattern.p && glob_name(part, name)) {
			pattern = p_rest;
			path = n_rest;
		} else if (starred) {
			(void)view_split(rest, '/', &n_rest);
			path = rest = n_rest;
			pattern = star;
		} else {
			return false;
		}
	}
	return !pattern.p;
}
