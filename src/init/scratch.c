/*
 * See scratch.h.
 */
#include "scratch.h"

#include <sys/mman.h>

#include "poison.h"

char scratch[SCRATCH_SIZE] __attribute__((aligned(4096)));

void scratch_release(void)
{
	(void)madvise(scratch, sizeof(scratch), MADV_DONTNEED);
}
