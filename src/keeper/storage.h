/*
 * The directories of boxes: DATA/boxes/ID. Making one costs half a dozen mkdirs,
 * which some file systems are slow at, so a few are kept ready in DATA/spare and
 * renamed into place.
 */
#pragma once

#include "plan.h"

#define STORAGE_SPARES 8

struct storage {
	int boxes, spare;
	unsigned n; /* spares that are ready: DATA/spare/0 … n-1 */
};

int storage_open(struct storage *s, int data, struct err *e) _must_check_;
/* An fd of DATA/boxes/ID, with all directories of the plan. */
int storage_make(struct storage *s, const struct plan *p, struct err *e) _must_check_;
/* Makes one spare; true when there is more to do. */
bool storage_refill(struct storage *s);
