/*
 * What differs between two sets of rules of an agent, in plain words. A line that begins with "!" allows
 * more than before, or changes what people read as a name: only the owner may do that.
 */
#pragma once

#include "buf.h"
#include "signer_gen.h"

struct rules_diff {
	unsigned n, looser; /* lines */
};
struct rules_diff rules_diff(struct buf *out, const struct sgn_rules *was, const struct sgn_rules *now);
