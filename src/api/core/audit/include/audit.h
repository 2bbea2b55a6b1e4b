/*
 * The audit log: who changed what, and by which way. It has entries for requests of routes that have a
 * name in `audit` (router.h), of all dialects: keys, tenants, policies, secrets, images, sandboxes. What
 * is done within a sandbox (commands, files) is not among them.
 *
 * The newest AUDIT_KEPT entries about sandboxes and sign-ins are kept, and as many of other acts of admins
 * and of users, so that nothing that happens often pushes out who made a key. An entry is shown at once and
 * is in the store a second later: it costs the request nothing, and a crash may lose the last second.
 */
#pragma once

#include "who.h"

#define AUDIT_KEPT 2000

struct core;

struct audit_entry {
	uint64_t id;
	int64_t at_ms;
	const struct tenant *tenant; /* the caller's */
	enum store_role role;
	unsigned status;        /* of the answer */
	char key[KEYS_ID_SIZE]; /* the id of the caller's key; "": none */
	char via[24];           /* "rest", "dashboard", "e2b", … */
	char action[32];        /* "key.create" */
	char target[112];       /* ids and names */
	char detail[160];       /* of what was asked for, as JSON; may be cut off */
};

struct audit_note {
	const char *action, *via;
	unsigned status;
	struct view target, detail;
};

void audit_note(struct core *c, const struct actor *a, const struct audit_note *n);
/* Those with an id below `before` (0: all), the newest first, at most `limit`. An admin sees all, others
 * those of their tenant. */
int audit_each(struct core *c, const struct actor *a, uint64_t before, uint32_t limit,
	       void (*each)(void *arg, const struct audit_entry *n), void *arg, struct err *e) _must_check_;
