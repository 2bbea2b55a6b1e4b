/*
 * A box as JSON.
 */
#pragma once

#include "json.h"

struct box;
struct request;

void rest_boxes_put(struct json_out *o, const struct box *b);
/* A job_done whose result is a box. */
void rest_boxes_done(void *arg, const void *result, const struct err *e);
