/*
 * Mounted secrets of a spec, for the core itself: see spec.h.
 */
#pragma once

#include "json.h"
#include "spec.h"

int spec_secrets_copy(struct arena *a, const struct spec_secrets *from,
		      struct spec_secrets *to) _must_check_; /* -ENOMEM */
