/*
 * After the start: see trim.h.
 */
#include "trim.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "defs.h"
#include "poison.h"

#define TRIM_MS 2000
#define WORTH   (256u * 1024)
#define LARGE   (16u * 1024 * 1024)

struct trim_args {
	uintptr_t page;
	bool locked;
};

/* Code and constants: never written to (what the loader writes lies elsewhere), so nothing is lost with their
 * pages. */
static int drop_mapped(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	const struct trim_args *a = arg;
	const uintptr_t page = a->page;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD || (p->p_flags & PF_W))
			continue;
		uintptr_t start = (info->dlpi_addr + p->p_vaddr) & ~(page - 1);
		uintptr_t end = info->dlpi_addr + p->p_vaddr + p->p_memsz;
		if (a->locked)
			(void)munlock((void *)start, end - start);
		(void)madvise((void *)start, end - start, MADV_DONTNEED);
	}
	return 0;
}

static void on_time(struct loop_timer *timer)
{
	struct trim *t = CONTAINER(timer, struct trim, timer);
	struct mallinfo2 m = mallinfo2();

	if (m.fordblks > WORTH)
		(void)malloc_trim(0);
	if (m.uordblks + m.hblkhd > LARGE)
		loop_timer_start(t->loop, timer, TRIM_MS, on_time);
}

void trim_soon(struct trim *t)
{
	if (!loop_timer_active(&t->timer))
		loop_timer_start(t->loop, &t->timer, TRIM_MS, on_time);
}

void trim_stop(struct trim *t)
{
	loop_timer_stop(&t->timer);
}

static void trim(bool locked)
{
	struct trim_args a = { .page = (uintptr_t)sysconf(_SC_PAGESIZE), .locked = locked };
	(void)malloc_trim(0);
	(void)dl_iterate_phdr(drop_mapped, &a);
}

void trim_start(void)
{
	trim(false);
}

void trim_locked(void)
{
	trim(true);
}
