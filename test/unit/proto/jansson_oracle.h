/*
 * jansson as a judge of JSON, behind plain C types: its header and ours use the
 * same names.
 *
 * The canonical text of a document: n, t, f, i<integer>, r<real, %.17g>,
 * s<length>:<bytes>, [values], {key value …} with keys as strings, in order.
 */
#pragma once

#include "buf.h"

/* False when jansson refuses the text; *ret_why (static) then says why. */
bool jansson_oracle(struct view text, struct buf *ret_canonical, const char **ret_why);
