/*
 * Tells whether an address belongs to this machine, by the kernel's routes: they know the second address of
 * an interface as well as the first, and networks that were made local.
 */
#pragma once

#include "addr.h"
#include "err.h"

#define OWN_KNOWN 64 /* addresses of which it is known for a moment */

struct own {
	int route; /* netlink */
	struct {
		struct addr addr;
		uint64_t until_ms;
		bool own;
	} known[OWN_KNOWN]; /* by a hash of the address */
};

/* Once a program is confined no socket of this family can be made. */
int own_init(struct own *o, struct err *e) _must_check_;
/* Whether the kernel delivers this address to this machine itself (or nowhere). */
bool own_is(struct own *o, const struct addr *a, uint64_t now_ms);
