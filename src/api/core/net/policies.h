/*
 * What boxes may reach. A box has a policy of its own, or that of its image in the
 * configuration, or that of its tenant, or that of the installation, or none, which
 * allows nothing; the first of these that there is. A change of any of them holds at
 * once for every box that it concerns.
 *
 * policies.c knows which policy holds, policies_gate.c brings it to paddock-gate and
 * again after every loss of it, policies_log.c keeps the gate's verdicts, policies_audit.c writes
 * them to the log, policies_token.c makes tokens that restrict it further.
 */
#pragma once

#include "config_sets.h"
#include "egress.h"
#include "job.h"
#include "map.h"
#include "mux.h"
#include "net.h"
#include "store_events.h"
#include "store_verdicts.h"

struct box;
struct box_wish;
struct core;
struct tenant;

/* A policy with the memory that it lives in. */
struct policy {
	struct arena arena;
	struct egress_policy egress;
};

#define POLICIES_LOG     256   /* verdicts that are kept of a box, in memory and in the store */
#define POLICIES_LOG_ALL 32768 /* and of all */

/* What the audit has written since a moment, and what it has left out. */
struct policy_audit {
	uint64_t since_ms, lines, left_out;
};

struct policy_log {
	struct list verdicts; /* zeroed until there is one */
	size_t n;
	struct policy_audit audit;
};

/* Of all boxes: what is there, and what the store does not know yet. */
struct policy_logs {
	struct list verdicts;
	size_t n, most;  /* POLICIES_LOG_ALL */
	uint64_t saved;  /* all up to this id are in the store, or on their way */
	struct buf gone; /* ids of rows that are to go */
	struct loop_timer save;
	bool saving;
	uint64_t next_id;
	struct policy_audit audit;
	struct loop_timer tell; /* what was left out */
};

/* Of a box. */
struct box_egress {
	struct box *box;
	struct policy *own; /* NULL: that of its image, tenant, … */
	struct policy_log log;
	uint64_t used;      /* bytes, as the gate said last, of a policy that limits them */
	struct list unsent; /* of policies.unsent */
};

struct policies {
	struct core *core;
	/* What a template's snapshot says about where packages come from; NULL: nothing. */
	const struct config_sets *(*sets_of)(const struct core *c, struct view snapshot);
	struct policy *standard;     /* of the configuration, or NULL */
	struct policy_image *images; /* of the configuration */
	size_t n_images;
	struct egress_policy refuse; /* comes before everything */
	struct arena arena;          /* of the refusals */
	struct map by_tenant;
	uint64_t version; /* of what was sent last */
	/* the gate */
	struct mux gate;
	struct call opening, synced;
	struct loop_timer again;
	struct list unsent; /* boxes whose policy is to be sent, a few at a time */
	unsigned sending;
	bool away;    /* and somebody was told */
	bool syncing; /* GateSynced is due when all are sent */
	struct policy_logs logs;
	/* NULL: nobody takes connections of programs in boxes to the AI gateway */
	void (*on_caller)(void *arg, const struct box *b, int fd);
	void *caller_arg;
	void (*on_first)(struct core *c); /* until the gate has everything, or is known to be away */
};

/* Makes spec.egress its own, which was judged when it was wished or is the store's. */
extern const struct box_part policies_part;
/* What the box's tokens are signed with. */
#define POLICIES_KEY_SIZE 65
void policies_token_key(const struct box *b, char ret[POLICIES_KEY_SIZE]);
void policies_log_init(struct core *c);
void policies_log_add(struct core *c, const void *verdicts); /* a struct wire_gate_verdicts */
void policies_log_load(struct core *c, const struct store_verdict *row);
void policies_log_forget(struct box *b);
/* What is not in the store yet goes there now: before the store is closed. */
void policies_log_stop(struct core *c);

void policies_audit(struct box *b, const struct policy_verdict *v);
void policies_audit_forget(struct box *b);
void policies_audit_stop(struct core *c);

/* Sends a policy of the box. 1: `done` will be called; 0: nobody waits, or there is no gate at the moment,
 * which gets everything when it comes. */
typedef void policies_sent(void *arg, const struct err *e);
int policies_push(struct box *b, const struct egress_policy *p, bool recheck, policies_sent *done, void *arg);
/* The policy that holds, for a box that is new. Waits (true, `done` comes) where anything is allowed: it
 * shall be so when the client hears of the box. */
bool policies_push_new(struct box *b, policies_sent *done, void *arg);
/* The policy of every box that the test picks is sent anew. */
void policies_push_all(struct core *c, bool (*pick)(const struct box *b, const void *arg), const void *arg);
/* `on_first` when the gate has everything for the first time, or cannot be had. */
void policies_gate_start(struct core *c, void (*on_first)(struct core *c));
void policies_gate_stop(struct core *c);

int policies_init(struct core *c, struct err *e) _must_check_;
int policies_load(struct core *c, const struct store_egress *row) _must_check_; /* -errno */
void policies_done(struct core *c);
