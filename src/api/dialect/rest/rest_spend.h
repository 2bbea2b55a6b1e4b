/*
 * What the files about spending share.
 */
#pragma once

#include "buf.h"
#include "err.h"
#include "spend.h"

struct request;

/* Whoever decides has shown a key. ERR_FORBIDDEN. */
int rest_spend_somebody(struct request *r, struct err *e) _must_check_;

/* ---- rest_csv.c ---- */

void rest_csv_head(struct buf *out);
void rest_csv_put(struct buf *out, const struct spend_view *v);
