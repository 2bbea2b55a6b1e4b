/*
 * Randomness: see rnd.h.
 */
#include "rnd.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "poison.h"

void rnd_bytes(void *p, size_t n)
{
	char *at = p;
	while (n) {
		ssize_t r = getrandom(at, n, 0);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			abort();
		at += r;
		n -= (size_t)r;
	}
}

void rnd_name(char *dst, size_t n)
{
	static const char set[] = "bcdfghjklmnpqrstvwxz0123456789"; /* 30 characters */
	for (size_t i = 0; i < n;) {
		uint8_t b[32];
		rnd_bytes(b, sizeof(b));
		/* 240 = 8 * 30: what is above would favour some characters. */
		for (size_t j = 0; j < sizeof(b) && i < n; j++)
			if (b[j] < 240)
				dst[i++] = set[b[j] % 30];
	}
	dst[n] = 0;
}
