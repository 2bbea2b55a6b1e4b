/*
 * Shared by the files of paddock-hook: see main.c.
 */
#pragma once

#include "link.h"
#include "outgoing.h"

#define HOOK_REQUEST_MS 10000 /* one delivery, from the name to the answer's head */
#define HOOK_AT_ONCE    256

struct hook {
	struct loop *loop;
	struct link api;
	struct view refuse;     /* webhooks.refuse: see addr_refused */
	unsigned n;             /* deliveries under way */
	struct tls_client *tls; /* NULL: there are no authorities */
	struct names *names;
};

/* post.c: one HookPost; the frame is a CALL of the api. */
void post_start(struct hook *h, const struct frame *f);
