/*
 * Host patterns: see host_match.h.
 */
#include "host_match.h"

#include "poison.h"

static struct view without_root(struct view v)
{
	return v.n > 1 && v.p[v.n - 1] == '.' ? view_head(v, v.n - 1) : v;
}

bool host_match(struct view pattern, struct view host)
{
	if (!pattern.n || !host.n)
		return false;
	if (view_is(pattern, "*"))
		return true;
	pattern = without_root(pattern);
	host = without_root(host);
	if (!view_starts(pattern, "*."))
		return view_eq_nocase(pattern, host);
	struct view tail = view_skip(pattern, 1); /* with its dot */
	return tail.n > 1 && host.n > tail.n && view_eq_nocase(view_skip(host, host.n - tail.n), tail);
}
