/*
 * Names of ports: see plane_target.h.
 */
#include "plane_target.h"

#include "num.h"
#include "poison.h"

#define ID_MAX 63 /* of a label of a host name */

bool plane_target_port(struct view v, uint16_t *ret)
{
	uint32_t n;

	if (v.n > 5 || num_u32(v, &n) < 0 || n < 1 || n > UINT16_MAX)
		return false;
	*ret = (uint16_t)n;
	return true;
}

static bool is_id(struct view v)
{
	for (size_t i = 0; i < v.n; i++) {
		char c = v.p[i];
		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')))
			return false;
	}
	return v.n > 0 && v.n <= ID_MAX;
}

bool plane_target_host(struct view host, struct view domain, struct plane_name *ret)
{
	struct view rest, id, name = view_split(host, ':', &rest);
	struct plane_name found = { .by_host = true };

	struct view label = view_split(name, '.', &rest);
	if (!domain.n || !rest.p || !view_eq_nocase(rest, domain))
		return false;
	if (!plane_target_port(view_split(label, '-', &id), &found.port) || !id.p || !is_id(id))
		return false;
	found.id = id;
	*ret = found;
	return true;
}

/* The next segment; *rest is what follows it, with its slash. */
static struct view segment(struct view *rest)
{
	struct view after, one = view_split(view_skip(*rest, 1), '/', &after);

	*rest = (struct view){ one.p + one.n, after.p ? after.n + 1 : 0 };
	return one;
}

bool plane_target_path(struct view path, struct plane_name *ret)
{
	bool box = view_starts(path, "/v1/sandboxes/"), preview = view_starts(path, "/v1/previews/");
	struct view rest = view_skip(path, box ? strlen("/v1/sandboxes") : strlen("/v1/previews"));
	struct plane_name found = { 0 };

	if (!box && !preview)
		return false;
	found.id = segment(&rest);
	if (!rest.n || (box && (!view_is(segment(&rest), "ports") || !rest.n)) ||
	    !plane_target_port(segment(&rest), &found.port))
		return false;
	if (preview) {
		if (!rest.n)
			return false;
		found.ticket = segment(&rest);
	}
	found.prefix = (struct view){ path.p, (size_t)(rest.p - path.p) };
	found.path = rest;
	*ret = found;
	return found.id.n > 0;
}

bool plane_target_router(struct view path, struct plane_name *ret)
{
	struct view rest = view_skip(path, strlen("/sandboxes/router"));
	struct plane_name found = { 0 };

	if (!view_starts(path, "/sandboxes/router/"))
		return false;
	found.id = segment(&rest);
	if (!rest.n || !is_id(found.id) || !plane_target_port(segment(&rest), &found.port) || !rest.n)
		return false;
	found.prefix = (struct view){ path.p, (size_t)(rest.p - path.p) };
	found.path = rest;
	*ret = found;
	return true;
}
