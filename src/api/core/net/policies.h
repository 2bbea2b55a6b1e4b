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
#include "store_events.h"
#include "store_verdicts.h"

struct actor;
struct box;
struct box_wish;
struct core;
struct tenant;

enum policy_source { POLICY_NONE, POLICY_BOX, POLICY_IMAGE, POLICY_TENANT, POLICY_CONFIG };
const char *policies_source_name(enum policy_source s);

/* A policy with the memory that it lives in. */
struct policy {
	struct arena arena;
	struct view text; /* its one form in JSON */
	struct egress_policy egress;
};

/* ---- what a verdict leaves behind ---- */

#define POLICIES_LOG      256   /* verdicts that are kept of a box, in memory and in the store */
#define POLICIES_LOG_ALL  32768 /* and of all */
#define POLICIES_PAGE_MAX 256

/* What is said again, word for word, is not another: it counts, and is the newest then. */
struct policy_verdict {
	struct list of_box, of_all; /* in the order of their ids */
	struct box *box;
	uint64_t id;  /* increasing, also over restarts */
	uint64_t was; /* its row in the store, where that has another id; 0: none */
	uint64_t count;
	int64_t first_ms, at_ms;
	bool stored;
	bool allowed;
	int reason; /* enum wire_gate_reason */
	uint16_t port;
	struct view protocol, host, address, rule, method, path, via; /* the box's words: hostile */
	char text[];
};

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
	size_t n;
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
	struct policy *own; /* NULL: that of its image, tenant, … */
	struct policy_log log;
	uint64_t used;      /* bytes, as the gate said last, of a policy that limits them */
	struct list unsent; /* of core->policies.unsent */
};

struct policies {
	struct config_sets sets;     /* of the configuration: what this machine says */
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
	void (*on_first)(struct core *c); /* until the gate has everything, or is known to be away */
};

/* ---- wishes ---- */

/* A policy that somebody asks for a box that is as the wish says, checked: its one form in JSON, in the
 * arena. ERR_FORBIDDEN where it opens what only admins may open. */
int policies_wish(struct core *c, const struct actor *a, const struct box_wish *w, const struct json *doc,
		  struct arena *arena, struct view *ret, struct err *e) _must_check_;
/* The same from targets: rules before those that the box has, in the order of the targets. */
struct policies_more {
	enum egress_verdict verdict;
	struct json_strlist targets;
	const struct json *inject; /* for each of them; may be NULL */
};

/* ---- boxes ---- */

/* Takes spec.egress over, which was checked when it was wished or is the store's. */
int policies_take(struct box *b, struct err *e) _must_check_;
void policies_forget(struct box *b); /* its end */
const struct egress_policy *policies_of(const struct box *b, enum policy_source *ret);

/* What the names of sets mean for this box: as its template says, or its image, or this machine. */
const struct config_sets *policies_sets(const struct box *b);

/* The result of these is a const struct box *. `recheck`: open connections that are not allowed any more are
 * ended. A NULL `doc`: its own policy is taken away. */
struct job *policies_put(struct core *c, const struct actor *a, struct view ref, const struct json *doc,
			 bool recheck, job_done *done, void *arg, struct err *e) _must_check_;
struct job *policies_add(struct core *c, const struct actor *a, struct view ref,
			 const struct policies_more *more, bool recheck, job_done *done, void *arg,
			 struct err *e) _must_check_;

/* A token for the proxy in the box, as agentbox has them: who uses it reaches these hosts at most. It never
 * opens what the policy does not. */
#define POLICIES_TOKEN_TTL     (4 * 3600)
#define POLICIES_TOKEN_TTL_MAX (7 * 24 * 3600)
#define POLICIES_TOKEN_HOSTS   64
struct policies_token {
	int64_t expires_ms;
	struct view text; /* in the arena */
};
int policies_token(struct core *c, const struct actor *a, struct view ref, const struct json_strlist *hosts,
		   uint64_t ttl_seconds, struct arena *arena, struct policies_token *ret,
		   struct err *e) _must_check_;
/* What the box's tokens are signed with. */
#define POLICIES_KEY_SIZE 65
void policies_token_key(const struct box *b, char ret[POLICIES_KEY_SIZE]);

/* ---- tenants; a reference is an id or a name ---- */

/* NULL policy: it has none. */
int policies_tenant(struct core *c, const struct actor *a, struct view ref, const struct tenant **ret,
		    const struct egress_policy **ret_policy, struct err *e) _must_check_;
/* The result is a const struct tenant *. */
struct job *policies_tenant_put(struct core *c, const struct actor *a, struct view ref,
				const struct json *doc, job_done *done, void *arg,
				struct err *e) _must_check_;

/* ---- the log ---- */

/* The gate gathers verdicts for a moment: `done` comes, always without an error, when those that it has said
 * by now are here, or it does not answer. NULL: nothing is to be waited for. */
struct job *policies_settle(struct box *b, job_done *done, void *arg) _must_check_;
/* The first behind `after`, or NULL. */
const struct policy_verdict *policies_next(const struct box *b, uint64_t after);
const char *policies_reason_name(int reason);
/* What to allow so that it would pass ("example.org:443"); false when no rule helps. */
bool policies_advice(const struct core *c, const struct policy_verdict *v, struct buf *out);
void policies_log_init(struct core *c);
void policies_log_add(struct core *c, const void *verdicts); /* a struct wire_gate_verdicts */
void policies_log_load(struct core *c, const struct store_verdict *row);
void policies_log_forget(struct box *b);
/* What is not in the store yet goes there now: before the store is closed. */
void policies_log_stop(struct core *c);

/* ---- the audit ---- */

void policies_audit(struct box *b, const struct policy_verdict *v);
void policies_audit_forget(struct box *b);
void policies_audit_stop(struct core *c);

/* ---- the gate ---- */

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
