/*
 * Signed URLs: a path of a box, one verb, a user and an end, under an HMAC with a
 * secret of this installation. Whoever holds one needs no key for exactly that.
 */
#pragma once

#include "files.h"
#include "keys.h"

#define SIGN_SECRET      32
#define SIGN_SIZE        65 /* 64 hex digits, NUL */
#define SIGN_SECONDS_MAX 604800

struct store_setting;

/* From the store, and once everything is loaded: makes the secret where there is none. */
void sign_load(struct core *c, const struct store_setting *s);
int sign_ensure(struct core *c, struct err *e) _must_check_;

struct signed_url {
	char box[32]; /* its id, also where the wish named it */
	char signature[SIGN_SIZE];
	int64_t expires_s; /* since 1970 */
};

/* For GET (HEAD is that, too) or PUT. The actor must be permitted to do it. */
int sign_url(struct core *c, const struct actor *a, const struct file_place *p, struct view method,
	     uint32_t seconds, struct signed_url *ret, struct err *e) _must_check_;
/* Who may do this with such a signature: somebody of the box's tenant. ERR_FORBIDDEN. */
int sign_check(struct core *c, const struct file_place *p, struct view method, struct view expires,
	       struct view signature, struct actor *ret, struct err *e) _must_check_;

/* For the core itself: the HMAC of these parts, in hex. The first says what they are. */
void sign_parts(const struct core *c, const struct view *parts, size_t n, char ret[SIGN_SIZE]);
