/*
 * Random bytes from the kernel. Aborts rather than return anything weaker.
 */
#pragma once

#include "defs.h"

void rnd_bytes(void *p, size_t n);
/* n characters of [a-z0-9] (no vowels, so that no words appear) and a NUL. */
void rnd_name(char *dst, size_t n);
