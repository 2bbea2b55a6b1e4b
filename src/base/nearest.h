/*
 * "Did you mean …?": finds the candidate nearest to a mistyped word. Candidates are offered one by
 * one; distant ones are never proposed.
 */
#pragma once

#include "view.h"

#define NEAREST_MAX 40 /* longer words are not compared */

struct nearest {
	struct view word;
	const char *best; /* NULL: nothing is near */
	unsigned distance;
};

#define NEAREST(w) ((struct nearest){ .word = (w) })

void nearest_try(struct nearest *n, const char *candidate);
