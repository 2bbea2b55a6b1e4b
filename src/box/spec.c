/*
 * Checking a wish: see spec.h.
 */
#include "spec.h"

#include "poison.h"

#define MIN_MEMORY    (8ull << 20) /* PID 1, a shell and their page tables */
#define MIN_CPU_MILLI 10
#define MIN_DISK      (1ull << 20)
#define MIN_PIDS      4
#define MIN_NOFILE    32

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

int spec_check(const struct spec *s, const struct spec_limits *c, struct err *e)
{
	if (!spec_id_ok(view_of(s->id)))
		return err_set(e, ERR_INVALID, "the id must be %d characters of a-z and 0-9", SPEC_ID);
	if (!hostname_ok(view_of(s->hostname)))
		return err_set(e, ERR_INVALID, "the host name has characters that a host name cannot have");
	if ((s->snapshot[0] && !spec_id_ok(view_of(s->snapshot))) ||
	    (s->workspace[0] && !spec_id_ok(view_of(s->workspace))))
		return err_set(e, ERR_INVALID, "a snapshot or workspace has no such id");
	if (s->disk_bytes && s->disk_bytes < MIN_DISK)
		return err_set(e, ERR_INVALID, "disk must be at least %llu bytes", MIN_DISK);
	if (between("cpu (thousandths of a core)", s->limits.cpu_milli, MIN_CPU_MILLI, c->cpu_milli, e) < 0 ||
	    between("memory", s->limits.memory_bytes, MIN_MEMORY, c->memory_bytes, e) < 0 ||
	    between("pids", s->limits.pids, MIN_PIDS, c->pids, e) < 0 ||
	    between("nofile", s->limits.nofile, MIN_NOFILE, c->nofile, e) < 0)
		return -1;
	return 0;
}
