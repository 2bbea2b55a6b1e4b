/*
 * A box as JSON.
 */
#pragma once

#include "json.h"

struct box;

void rest_boxes_put(struct json_out *o, const struct box *b);
