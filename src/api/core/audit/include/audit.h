/*
 * The audit log: who did what to which object, by which way and from where, and how it ended. It has an
 * entry for every operation of a client that changes more than what is inside a sandbox: keys, tenants,
 * policies, secrets, images, sandboxes, transactions. Commands and files in a sandbox have none.
 *
 * The side that serves a request opens a record, the operation itself says in it which objects it is about
 * (audit_about, by the actor that it acts for), and the record ends with a verdict. Then the entry is
 * written, and the answer waits until it is on disk: what was answered is in the log, whatever happens
 * next. Entries that come while the disk is busy share one commit.
 *
 * The newest AUDIT_KEPT entries of each kind (audit_log.h) are kept: what users do, and what happens often,
 * pushes out nothing of what administrators did. The entries of a kind are a chain of hashes
 * (audit_chain.h).
 */
#pragma once

#include "list.h"
#include "who.h"

#define AUDIT_KEPT   2000
#define AUDIT_TARGET 160

struct core;

enum audit_verdict {
	AUDIT_NONE,    /* invalid */
	AUDIT_DONE,    /* it happened */
	AUDIT_REFUSED, /* not permitted, or beyond a quota */
	AUDIT_FAILED,  /* by our own fault, perhaps halfway */
	AUDIT_LEFT,    /* the client went away before it ended; it may have happened */
	AUDIT_VERDICTS
};

struct audit_entry {
	uint64_t id;     /* increasing over all kinds */
	uint64_t number; /* of its chain; 0: of an older version, which is in none */
	int64_t at_ms;
	const struct tenant *tenant; /* the caller's */
	enum store_role role;
	enum audit_verdict verdict;
	uint8_t kind;
	bool stored, failed;          /* whether the store has it, or has refused it */
	char key[48];                 /* the id of the caller's key; "agent:ID", "sandbox:ID", "anonymous" */
	char via[24];                 /* "rest", "dashboard", "e2b", … */
	char from[48];                /* the client's address */
	char request[72];             /* the request's id */
	char action[32];              /* "key.create" */
	char target[AUDIT_TARGET];    /* ids and names, between spaces */
	char detail[160];             /* of what was asked for, as JSON; may be cut off */
	char code[24];                /* of the error; "" where it is done */
	uint8_t before[32], hash[32]; /* in this order, as the store has them */
};

/* What is known when a request begins. Copied. */
struct audit_opening {
	const char *action, *via;
	struct view from, request;
};

/* Somebody who waits for an entry. Taken off its list (list_del), it waits no more. */
struct audit_wait {
	struct list link;
	uint64_t id;
	void (*stored)(struct audit_wait *w);
};

/* A number for actor.record and audit_close; 0: no memory, which is logged. */
uint64_t audit_open(struct core *c, const struct audit_opening *o);
/* The operation that the actor's record is of is about this object. Nothing happens without a record. */
void audit_about(struct core *c, const struct actor *a, struct view object);
/* Ends the record with an entry. `code` is of the error, or ERR_OK. True: it is not on disk yet, and
 * w->stored will be called, later. False: there is nothing to wait for. */
bool audit_close(struct core *c, uint64_t record, const struct actor *a, enum audit_verdict verdict,
		 enum err_code code, struct view detail, struct audit_wait *w);
/* Ends it without one: nothing has happened. */
void audit_drop(struct core *c, uint64_t record);

const char *audit_verdict_name(enum audit_verdict v);
const char *audit_chain_name(const struct audit_entry *n);

/* Empty views and zeros match everything. */
struct audit_filter {
	struct view target; /* one of its objects */
	struct view tenant; /* by id or name */
	struct view action; /* all of it, or what stands before its dot */
	struct view key;
	int64_t since_ms, until_ms;
	uint64_t before; /* a lower id than this */
};

/* The newest first, until `each` says that it has enough. An admin sees all, others those of their tenant.
 */
int audit_each(struct core *c, const struct actor *a, const struct audit_filter *f,
	       bool (*each)(void *arg, const struct audit_entry *n), void *arg, struct err *e) _must_check_;
