/*
 * Reading control groups: see groups.h. Which hierarchy has a file is found by looking for it.
 */
#include "groups.h"

#include <errno.h>
#include <stdio.h>

#include "fd.h"
#include "num.h"
#include "poison.h"

static int slurp(const struct groups *g, const char *id, const char *file, struct buf *out)
{
	char path[96];
	int r = -ENOENT;
	snprintf(path, sizeof(path), "%s/%s", id, file);
	for (size_t i = 0; r == -ENOENT && i < g->n; i++)
		r = fd_slurp(g->dirs[i], path, out);
	return r;
}

static int number(const struct groups *g, const char *id, const char *file, uint64_t *ret)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(4096);
	int r = slurp(g, id, file, &text);
	struct view rest;
	if (r == 0 && num_u64(view_split(buf_view(&text), '\n', &rest), ret) < 0)
		*ret = UINT64_MAX; /* "max", or -1 */
	return r;
}

struct wanted {
	const char *v1, *v2;
	uint64_t *to;
};

static void pick(struct view text, const struct wanted *w, size_t n)
{
	while (text.n) {
		struct view value, row = view_split(text, '\n', &text), key = view_split(row, ' ', &value);
		for (size_t i = 0; i < n; i++)
			if (view_is(key, w[i].v1) || view_is(key, w[i].v2))
				(void)!num_u64(value, w[i].to);
	}
}

static int read_memory(const struct groups *g, const char *id, struct figures *f)
{
	int r = number(g, id, "memory.current", &f->memory_used);
	if (r == -ENOENT)
		r = number(g, id, "memory.usage_in_bytes", &f->memory_used);
	if (r == 0) {
		r = number(g, id, "memory.max", &f->memory);
		if (r == -ENOENT)
			r = number(g, id, "memory.limit_in_bytes", &f->memory);
	}
	_cleanup_(buf_done) struct buf text = BUF_INIT(32768);
	if (r == 0)
		r = slurp(g, id, "memory.stat", &text);
	if (r < 0)
		return r;
	const struct wanted w[] = {
		{ "total_rss", "anon", &f->anon },
		{ "total_cache", "file", &f->file },
		{ "total_shmem", "shmem", &f->shmem },
		{ "total_mapped_file", "file_mapped", &f->mapped },
		{ "total_dirty", "file_dirty", &f->dirty },
		{ "total_writeback", "file_writeback", &f->writeback },
		{ "total_active_anon", "active_anon", &f->active_anon },
		{ "total_inactive_anon", "inactive_anon", &f->inactive_anon },
		{ "total_active_file", "active_file", &f->active_file },
		{ "total_inactive_file", "inactive_file", &f->inactive_file },
		{ "total_unevictable", "unevictable", &f->unevictable },
		{ "slab_reclaimable", "slab_reclaimable", &f->slab_reclaimable },
		{ "slab_unreclaimable", "slab_unreclaimable", &f->slab_unreclaimable },
	};
	pick(buf_view(&text), w, ELEMS(w));
	f->memory = MIN(f->memory, g->machine_memory);
	return 0;
}

static int read_limit(const struct groups *g, const char *id, struct figures *f)
{
	uint64_t quota = UINT64_MAX, period = 100000;
	_cleanup_(buf_done) struct buf text = BUF_INIT(4096);
	int r = slurp(g, id, "cpu.max", &text);
	if (r == 0) {
		struct view rest, row = view_split(buf_view(&text), '\n', &rest);
		if (num_u64(view_split(row, ' ', &rest), &quota) < 0 || num_u64(rest, &period) < 0)
			quota = UINT64_MAX;
	} else if (r == -ENOENT) {
		r = number(g, id, "cpu.cfs_quota_us", &quota);
		if (r == 0)
			r = number(g, id, "cpu.cfs_period_us", &period);
	}
	if (r < 0)
		return r;
	uint64_t n = quota == UINT64_MAX || !period ? g->machine_cpus : (quota + period - 1) / period;
	f->cpus = (unsigned)MIN(MAX(n, 1), g->machine_cpus);
	return 0;
}

static int read_used(const struct groups *g, const char *id, struct figures *f)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(4096);
	const struct wanted w[] = { { "user", "user_usec", &f->user },
				    { "system", "system_usec", &f->system } };
	int r = slurp(g, id, "cpuacct.stat", &text); /* in clock ticks */
	bool v2 = r == -ENOENT;
	if (v2)
		r = slurp(g, id, "cpu.stat", &text);
	if (r < 0)
		return r;
	pick(buf_view(&text), w, ELEMS(w));
	if (v2) {
		f->user /= 10000;
		f->system /= 10000;
	}
	return 0;
}

int groups_read(const struct groups *g, const char *id, struct figures *ret)
{
	struct figures f = { .cpuinfo = ret->cpuinfo };
	int r = read_memory(g, id, &f);
	if (r == 0)
		r = read_limit(g, id, &f);
	if (r == 0)
		r = read_used(g, id, &f);
	if (r == 0)
		r = number(g, id, "pids.current", &f.pids);
	if (r == 0)
		*ret = f;
	return r;
}
