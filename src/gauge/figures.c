/*
 * The texts: see figures.h.
 */
#include "figures.h"

#include <string.h>

#include "poison.h"

static void line(struct buf *out, const char *name, uint64_t bytes)
{
	int pad = 15 - (int)strlen(name);
	buf_printf(out, "%s:%*llu kB\n", name, pad + 8, (unsigned long long)(bytes >> 10));
}

static void print_meminfo(const struct figures *f, struct buf *out)
{
	uint64_t used = MIN(f->memory_used, f->memory), unused = f->memory - used;
	uint64_t pages = f->active_file + f->inactive_file + f->slab_reclaimable;
	const struct {
		const char *name;
		uint64_t bytes;
	} lines[] = {
		{ "MemTotal", f->memory },
		{ "MemFree", unused },
		{ "MemAvailable", unused + MIN(pages, used) }, /* files' pages go when memory is wanted */
		{ "Buffers", 0 },
		{ "Cached", MIN(f->file, used) },
		{ "SwapCached", 0 },
		{ "Active", f->active_anon + f->active_file },
		{ "Inactive", f->inactive_anon + f->inactive_file },
		{ "Active(anon)", f->active_anon },
		{ "Inactive(anon)", f->inactive_anon },
		{ "Active(file)", f->active_file },
		{ "Inactive(file)", f->inactive_file },
		{ "Unevictable", f->unevictable },
		{ "Mlocked", 0 },
		{ "SwapTotal", 0 }, /* boxes have none */
		{ "SwapFree", 0 },
		{ "Dirty", f->dirty },
		{ "Writeback", f->writeback },
		{ "AnonPages", f->anon },
		{ "Mapped", f->mapped },
		{ "Shmem", f->shmem },
		{ "KReclaimable", f->slab_reclaimable },
		{ "Slab", f->slab_reclaimable + f->slab_unreclaimable },
		{ "SReclaimable", f->slab_reclaimable },
		{ "SUnreclaim", f->slab_unreclaimable },
	};
	for (size_t i = 0; i < ELEMS(lines); i++)
		line(out, lines[i].name, lines[i].bytes);
}

/* The first ones of the machine's: a block of lines each. */
static void print_cpuinfo(const struct figures *f, struct buf *out)
{
	struct view rest = f->cpuinfo;
	for (unsigned i = 0; i < f->cpus && rest.n; i++) {
		const char *end = memmem(rest.p, rest.n, "\n\n", 2);
		size_t n = end ? (size_t)(end - rest.p) + 2 : rest.n;
		buf_append(out, rest.p, n);
		rest = view_skip(rest, n);
	}
}

static void cpu_line(struct buf *out, uint64_t user, uint64_t system, uint64_t all)
{
	buf_printf(out, " %llu 0 %llu %llu 0 0 0 0 0 0\n", (unsigned long long)user,
		   (unsigned long long)system, (unsigned long long)(all - MIN(all, user + system)));
}

/* What it has used is shared evenly among its processors: the kernel moves its threads over all of the
 * machine's, so that a figure for each of them means nothing to the box. */
static void print_stat(const struct figures *f, struct buf *out)
{
	unsigned n = f->cpus ? f->cpus : 1;
	buf_puts(out, "cpu ");
	cpu_line(out, f->user, f->system, f->age * n);
	for (unsigned i = 0; i < n; i++) {
		buf_printf(out, "cpu%u", i);
		cpu_line(out, f->user / n + (i < f->user % n), f->system / n + (i < f->system % n), f->age);
	}
	buf_printf(out,
		   "intr 0\nctxt 0\nbtime %llu\nprocesses %llu\nprocs_running 1\nprocs_blocked 0\n"
		   "softirq 0 0 0 0 0 0 0 0 0 0 0\n",
		   (unsigned long long)f->boot_s, (unsigned long long)f->pids);
}

void figures_print(const struct figures *f, enum gauge_file file, struct buf *out)
{
	switch (file) {
	case GAUGE_MEMINFO:
		print_meminfo(f, out);
		break;
	case GAUGE_CPUINFO:
		print_cpuinfo(f, out);
		break;
	case GAUGE_STAT:
		print_stat(f, out);
		break;
	case GAUGE_LOADAVG: /* nobody counts it for a group of processes: zero, rather than the machine's */
		buf_printf(out, "0.00 0.00 0.00 1/%llu %llu\n", (unsigned long long)MAX(f->pids, 1),
			   (unsigned long long)f->pids);
		break;
	case GAUGE_SWAPS:
		buf_puts(out, "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
		break;
	case GAUGE_FILES:
		break;
	}
}
