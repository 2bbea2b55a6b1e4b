/*
 * What the files about spending share.
 */
#pragma once

#include "buf.h"
#include "err.h"
#include "spend.h"

/* ---- rest_csv.c ---- */

void rest_csv_head(struct buf *out);
void rest_csv_put(struct buf *out, const struct spend_view *v);
