/*
 * What a fuzz target defines and how it complains. Shared by libFuzzer and replay_main.c.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Holds in release builds, too. */
#define FUZZ_CHECK(cond)                                                                                     \
	do {                                                                                                 \
		if (!(cond)) {                                                                               \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                           \
			abort();                                                                             \
		}                                                                                            \
	} while (0)
