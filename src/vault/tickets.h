/*
 * Tickets for paddock-ai, by request: the api asks for a ticket and passes it on. It names the owner
 * of a secret and the one host that it is for, and is valid once and for a short time. Kept only in
 * memory, and never with a value.
 */
#pragma once

#include <stdint.h>

#include "list.h"
#include "view.h"

#define TICKETS_ID  16    /* random bytes */
#define TICKETS_MS  15000 /* longer than paddock-ai takes to connect */
#define TICKETS_MAX 1024  /* as many calls as it makes at once, and some */

struct tickets_what {
	struct view tenant, box, secret, host;
};

struct ticket {
	struct list link;
	char id[TICKETS_ID];
	uint64_t until_ms;
	struct tickets_what what; /* views of `text` */
	char text[];
};

struct tickets {
	struct list all; /* the oldest first */
	unsigned n;
};

void tickets_init(struct tickets *t);
void tickets_done(struct tickets *t); /* stays usable */
/* -EINVAL: no host or no secret; -ENOSPC: too many are out; -ENOMEM. */
int tickets_add(struct tickets *t, const struct tickets_what *what, uint64_t now_ms,
		char ret_id[TICKETS_ID]) _must_check_;
/* NULL: there is no such ticket, or it is too old. The caller frees it: nobody has it twice. */
struct ticket *tickets_take(struct tickets *t, struct view id, uint64_t now_ms) _must_check_;
void tickets_free(struct ticket *t); /* accepts NULL */
void tickets_remove_box(struct tickets *t, struct view box);
