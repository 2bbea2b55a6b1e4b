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

/* Code and constants: never written to (what the loader writes lies elsewhere), so nothing is lost with their
 * pages. */
static int drop_mapped(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	const uintptr_t page = *(const uintptr_t *)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD || (p->p_flags & PF_W))
			continue;
		uintptr_t start = (info->dlpi_addr + p->p_vaddr) & ~(page - 1);
		uintptr_t end = info->dlpi_addr + p->p_vaddr + p->p_memsz;
		(void)madvise((void *)start, end - start, MADV_DONTNEED);
	}
	return 0;
}

void trim_start(void)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	(void)malloc_trim(0);
	(void)dl_iterate_phdr(drop_mapped, &page);
}
