/*
 * Signatures for the core itself: see who.h.
 */
#pragma once

#include "keys.h"
#include "who.h"

#define SIGN_SECRET 32

/* From the store, and once everything is loaded: makes the secret where there is none. */
void sign_load(struct core *c, const struct store_setting *s);
int sign_ensure(struct core *c, struct err *e) _must_check_;

/* For the core itself: the HMAC of these parts, in hex. The first says what they are. */
void sign_parts(const struct core *c, const struct view *parts, size_t n, char ret[SIGN_SIZE]);
