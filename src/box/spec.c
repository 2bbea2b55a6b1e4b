/*
 * Checking a wish: see spec.h.
 */
#include "spec.h"

#include <string.h>

#include "bounds.h"

#include "poison.h"

#define MIN_MEMORY ((uint64_t)BOUNDS_MEMORY_MB_MIN << 20)
#define MIN_DISK   ((uint64_t)BOUNDS_DISK_MB_MIN << 20)

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

static int between(const char *what, uint64_t v, uint64_t min, uint64_t max, struct err *e)
{
	if (v >= min && v <= max)
		return 0;
	return err_set(e, ERR_INVALID, "%s must be between %llu and %llu", what, (unsigned long long)min,
		       (unsigned long long)max);
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

int spec_check(const struct spec *s, const struct spec_limits *c, struct err *e)
{
	if (!spec_id_ok(view_of(s->id)))
		return err_set(e, ERR_INVALID, "the id must be %d characters of a-z and 0-9", SPEC_ID);
	if (!hostname_ok(view_of(s->hostname)))
		return err_set(e, ERR_INVALID, "the host name has characters that a host name cannot have");
	if (s->snapshot[0] && !spec_id_ok(view_of(s->snapshot)))
		return err_set(e, ERR_INVALID, "a snapshot has no such id");
	if (s->workspaces && check_workspaces(s, e) < 0)
		return -1;
	if (s->disk_bytes && s->disk_bytes < MIN_DISK)
		return err_set(e, ERR_INVALID, "disk must be at least %llu bytes",
			       (unsigned long long)MIN_DISK);
	if (between("cpu (thousandths of a core)", s->limits.cpu_milli, BOUNDS_CPU_MILLI_MIN, c->cpu_milli,
		    e) < 0 ||
	    between("memory", s->limits.memory_bytes, MIN_MEMORY, c->memory_bytes, e) < 0 ||
	    between("pids", s->limits.pids, BOUNDS_PIDS_MIN, c->pids, e) < 0 ||
	    between("nofile", s->limits.nofile, BOUNDS_NOFILE_MIN, c->nofile, e) < 0)
		return -1;
	return 0;
}
