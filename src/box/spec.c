/*
 * Checking a wish: see spec.h.
 */
#include "spec.h"

#include <string.h>

#include "poison.h"

bool spec_id_ok(struct view id)
{
	if (id.n != SPEC_ID)
		return false;
	for (size_t i = 0; i < id.n; i++)
		if (!((id.p[i] >= 'a' && id.p[i] <= 'z') || (id.p[i] >= '0' && id.p[i] <= '9')))
			return false;
	return true;
}

static bool hostname_ok(struct view h)
{
	if (h.n == 0 || h.p[0] == '-' || h.p[0] == '.')
		return false;
	for (size_t i = 0; i < h.n; i++) {
		char c = h.p[i];
		bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			    c == '-' || c == '.';
		if (!fine)
			return false;
	}
	return true;
}

/* The api has checked them by the same list; a message that it made up is refused here. */
static int check_limits(const struct box_limits *l, const struct box_limits *ceiling, struct err *e)
{
	for (unsigned i = 0; i < BOX_LIMITS; i++) {
		const struct box_limit_row *r = &box_limits_rows[i];
		bool disk = r->kind == BOX_LIMIT_DISK; /* may be none; what it has at most is the disk's */
		uint64_t v = box_limits_get(l, i), min = box_limits_min(i),
			 max = disk ? UINT64_MAX : box_limits_get(ceiling, i);

		if (disk && v == 0)
			continue;
		if (v < min || v > max)
			return err_set(e, ERR_INVALID, "%s must be between %llu and %llu", r->kept,
				       (unsigned long long)min, (unsigned long long)max);
	}
	return 0;
}

static bool nested(const char *a, const char *b)
{
	return view_within(view_of(a), view_of(b)) || view_within(view_of(b), view_of(a));
}

/* Its way leads through nothing that another box can change: neither a workspace nor a directory of the
 * machine is above it, or below. */
static int check_workspaces(const struct spec *s, struct err *e)
{
	const struct spec_workspaces *w = s->workspaces;

	for (unsigned i = 0; i < w->n; i++) {
		const char *path = w->items[i].path;
		bool bad = false;
		if (!spec_id_ok(view_of(w->items[i].id)))
			return err_set(e, ERR_INVALID, "a workspace has no such id");
		for (unsigned k = 0; k < i; k++)
			bad = bad || nested(path, w->items[k].path);
		for (unsigned k = 0; s->mounts && k < s->mounts->n; k++)
			bad = bad || nested(path, s->mounts->items[k].target);
		if (bad)
			return err_set(e, ERR_INVALID,
				       "workspaces: %.100s lies in another mount, or around it", path);
	}
	return 0;
}

bool spec_has_workspace(const struct spec *s, const char *id, bool writable_only)
{
	for (unsigned i = 0; s->workspaces && i < s->workspaces->n; i++)
		if (strcmp(s->workspaces->items[i].id, id) == 0 &&
		    !(writable_only && s->workspaces->items[i].readonly))
			return true;
	return false;
}

int spec_check(const struct spec *s, const struct box_limits *c, struct err *e)
{
	if (!spec_id_ok(view_of(s->id)))
		return err_set(e, ERR_INVALID, "the id must be %d characters of a-z and 0-9", SPEC_ID);
	if (!hostname_ok(view_of(s->hostname)))
		return err_set(e, ERR_INVALID, "the host name has characters that a host name cannot have");
	if (s->snapshot[0] && !spec_id_ok(view_of(s->snapshot)))
		return err_set(e, ERR_INVALID, "a snapshot has no such id");
	if (s->workspaces && check_workspaces(s, e) < 0)
		return -1;
	return check_limits(&s->limits, c, e);
}
