/*
 * Egress policies of boxes, and the gate's verdicts.
 */
#pragma once

#include "config_sets.h"
#include "egress.h"
#include "job.h"
#include "list.h"

struct actor;
struct box;
struct box_wish;
struct core;
struct tenant;

/*
 * ---- policies.c ----
 * What boxes may reach. A box has a policy of its own, or that of its image in the
 * configuration, or that of its tenant, or that of the installation, or none, which
 * allows nothing; the first of these that there is. A change of any of them holds at
 * once for every box that it concerns.
 *
 * policies.c knows which policy holds, policies_gate.c brings it to paddock-gate and
 * again after every loss of it, policies_log.c keeps the gate's verdicts, policies_audit.c writes
 * them to the log, policies_token.c makes tokens that restrict it further.
 */

enum policy_source { POLICY_NONE, POLICY_BOX, POLICY_IMAGE, POLICY_TENANT, POLICY_CONFIG };
const char *policies_source_name(enum policy_source s);

/* ---- what a verdict leaves behind ---- */
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
	int reason; /* see policies_reason_name */
	uint16_t port;
	struct view protocol, host, address, rule, method, path, via; /* the box's words: hostile */
	char text[];
};

/* ---- wishes ---- */

/* What the names of sets mean: for a box, as its template says, or its image, or this machine; for a box that
 * is to be as the wish says; for tenants, as this machine says. */
const struct config_sets *policies_sets(const struct box *b);
const struct config_sets *policies_sets_wish(struct core *c, const struct actor *a, const struct box_wish *w);
const struct config_sets *policies_sets_tenants(const struct core *c);

/* Judges a policy that somebody asks for a box that is to be as the wish says, and puts it there; it is
 * borrowed. ERR_FORBIDDEN where it opens what only admins may open. */
int policies_wish(struct core *c, const struct actor *a, struct box_wish *w, const struct egress_policy *p,
		  struct err *e) _must_check_;
/* From targets: rules before those that the box has, in the order of the targets. */
struct policies_more {
	enum egress_verdict verdict;
	struct json_strlist targets;
	const struct json *inject; /* for each of them; may be NULL */
};

/* ---- boxes ---- */
const struct egress_policy *policies_of(const struct box *b, enum policy_source *ret);

/* The result of these is a const struct box *. `recheck`: open connections that are not allowed any more are
 * ended. NULL: its own policy is taken away. */
struct job *policies_put(struct core *c, const struct actor *a, struct view ref,
			 const struct egress_policy *said, bool recheck, job_done *done, void *arg,
			 struct err *e) _must_check_;
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

/* ---- tenants; a reference is an id or a name ---- */

/* NULL policy: it has none. */
int policies_tenant(struct core *c, const struct actor *a, struct view ref, const struct tenant **ret,
		    const struct egress_policy **ret_policy, struct err *e) _must_check_;
/* NULL: its policy is taken away. The result is a const struct tenant *. */
struct job *policies_tenant_put(struct core *c, const struct actor *a, struct view ref,
				const struct egress_policy *said, job_done *done, void *arg,
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
