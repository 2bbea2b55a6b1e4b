/*
 * Routes: see router.h.
 */
#include "router.h"

#include "poison.h"

/* Most routes are another path's, which shows in what stands before their first {…}. */
static bool may_match(const char *pattern, struct view path)
{
	for (size_t i = 0; pattern[i] && pattern[i] != '{'; i++)
		if (i >= path.n || path.p[i] != pattern[i])
			return false;
	return true;
}

/* Whether the path fits the pattern; the raw values of its {…} are stored. */
static bool matches(const char *pattern, struct view path, struct view params[ROUTE_PARAMS])
{
	struct view want = view_skip(view_of(pattern), 1), have = view_skip(path, 1);
	size_t n = 0;

	while (want.p) {
		if (!have.p)
			return false;
		struct view w_rest, h_rest;
		struct view w = view_split(want, '/', &w_rest), h = view_split(have, '/', &h_rest);
		if (view_is(w, "{path}")) {
			params[n] = have;
			return true;
		}
		if (w.n && w.p[0] == '{') {
			if (h.n == 0)
				return false;
			assert(n < ROUTE_PARAMS);
			params[n++] = h;
		} else if (!view_eq(w, h)) {
			return false;
		}
		want = w_rest;
		have = h_rest;
	}
	return !have.p;
}

static bool is_any(const struct route *t)
{
	return view_is(view_of(t->method), ROUTE_ANY_METHOD);
}

/* HEAD is GET without its body wherever it is not a route of its own. */
static bool takes(const struct route *t, struct view method, bool exact)
{
	return is_any(t) || view_is(method, t->method) ||
	       (!exact && view_is(method, "HEAD") && view_is(view_of(t->method), "GET"));
}

/* Where there is GET there is HEAD. */
static void add_allowed(struct buf *allow, const char *method, bool exact)
{
	if (view_is(view_of(method), "HEAD") && !exact)
		return;
	if (buf_len(allow))
		buf_puts(allow, ", ");
	buf_puts(allow, method);
	if (view_is(view_of(method), "GET") && !exact)
		buf_puts(allow, ", HEAD");
}

static const struct route *find_in(const struct route *t, bool exact, struct view method, struct view path,
				   const struct route *found, struct view params[ROUTE_PARAMS],
				   struct buf *allow)
{
	for (; t->method; t++) {
		if (!may_match(t->pattern, path))
			continue;
		struct view mine[ROUTE_PARAMS] = { VIEW_NONE };
		if (!matches(t->pattern, path, mine))
			continue;
		add_allowed(allow, t->method, exact);
		if (!takes(t, method, exact) ||
		    (found && (is_any(t) || view_is(view_of(found->method), "HEAD"))))
			continue;
		found = t;
		memcpy(params, mine, sizeof(mine));
	}
	return found;
}

const struct route *router_find(const struct route *const *tables, bool exact, struct view method,
				struct view path, struct view params[ROUTE_PARAMS], struct buf *allow)
{
	const struct route *found = NULL;

	for (; tables && *tables; tables++)
		found = find_in(*tables, exact, method, path, found, params, allow);
	return found;
}

void router_print(FILE *out, const struct route *const *tables)
{
	for (; tables && *tables; tables++)
		for (const struct route *t = *tables; t->method; t++)
			fprintf(out, "%s %s\n", t->method, t->pattern);
}
