/*
 * What boxes and tenants may use of models. A box has what was said for it, or else the
 * default of the configuration (ai.box), but never more than ai.max and its tenant say; a
 * tenant has what an admin said, or else the default (ai.tenant). Of the lists (providers,
 * endpoints, models) each that there is must allow a call. A change holds for the next call.
 */
#pragma once

#include "allowance.h"
#include "job.h"
#include "map.h"
#include "store_usage.h"

struct actor;
struct box;
struct core;
struct tenant;

#define ALLOWANCES_TOKEN_TTL_MAX (366 * 24 * 3600)

/* With the memory that it lives in. */
struct allowance_doc {
	struct arena arena;
	struct view text; /* its one form in JSON */
	struct allowance said;
};

struct allowances {
	struct map by_tenant;
	uint64_t box[ALLOWANCE_PARTS], tenant[ALLOWANCE_PARTS],
		max[ALLOWANCE_PARTS]; /* of the configuration */
};

/* ---- wishes ---- */

/* What somebody asks for a box of this tenant, checked: its one form in JSON, in the arena. ERR_INVALID. */
int allowances_wish(struct core *c, const struct tenant *t, const struct json *doc, struct arena *arena,
		    struct view *ret, struct err *e) _must_check_;

/* ---- boxes ---- */

/* Takes spec.ai over, which was checked when it was wished or is the store's. */
int allowances_take(struct box *b, struct err *e) _must_check_;
void allowances_forget(struct box *b); /* its end */

/* What holds now, for the box and for its tenant. */
void allowances_of(const struct box *b, struct allowance_force *ret);
void allowances_of_tenant(const struct core *c, const struct tenant *t, struct allowance_force *ret);
/* What was said, or NULL. */
const struct allowance *allowances_said(const struct box *b);
const struct allowance *allowances_said_tenant(const struct core *c, const struct tenant *t);
/* Whether the box's list and its tenant's allow it. */
bool allowances_allow(const struct box *b, enum allowance_list l, struct view text);

/* The result of these is a const struct box *. `whole`: the document replaces what was said, else it changes
 * it. */
struct job *allowances_put(struct core *c, const struct actor *a, struct view ref, const struct json *doc,
			   bool whole, job_done *done, void *arg, struct err *e) _must_check_;
/* Another token for models; the one before is worth nothing from now on. ttl_seconds 0: it ends with the box.
 */
struct job *allowances_rotate(struct core *c, const struct actor *a, struct view ref, uint64_t ttl_seconds,
			      job_done *done, void *arg, struct err *e) _must_check_;

/* ---- tenants; a reference is an id or a name. For admins ---- */

const struct tenant *allowances_tenant(struct core *c, const struct actor *a, struct view ref,
				       struct err *e) _must_check_;
/* The result is a const struct tenant *. */
struct job *allowances_tenant_put(struct core *c, const struct actor *a, struct view ref,
				  const struct json *doc, bool whole, job_done *done, void *arg,
				  struct err *e) _must_check_;

void allowances_init(struct core *c);
int allowances_load(struct core *c, const struct store_ai_limits *row) _must_check_; /* -errno */
void allowances_done(struct core *c);
