/*
 * Settings for models of a box or a tenant: limits, warning thresholds, lists of allowed providers,
 * endpoints and models. A setting that is absent comes from the level above. Pure.
 */
#pragma once

#include "budget.h"
#include "json.h"

#define ALLOWANCE_TEXT_MAX (64u * 1024)
#define ALLOWANCE_ITEMS    100 /* of a list */

/* Money in nano-dollars, the warning in millionths of a budget. 0: no limit, no warning. */
enum allowance_part {
	ALLOWANCE_REQUESTS,
	ALLOWANCE_TOKENS,
	ALLOWANCE_PARALLEL,
	ALLOWANCE_DAY,
	ALLOWANCE_WEEK,
	ALLOWANCE_MONTH,
	ALLOWANCE_WARN,
	ALLOWANCE_BODIES, /* enum allowance_bodies */
	ALLOWANCE_PARTS
};

/* Whether the text of calls is kept. Who says no forbids it to those below. */
enum allowance_bodies { ALLOWANCE_BODIES_UNSAID, ALLOWANCE_BODIES_KEPT, ALLOWANCE_BODIES_NOT };

/* Patterns of ask_fits. A list that is said and empty allows nothing. */
enum allowance_list { ALLOWANCE_PROVIDERS, ALLOWANCE_ENDPOINTS, ALLOWANCE_MODELS, ALLOWANCE_LISTS };

struct allowance {
	uint64_t parts[ALLOWANCE_PARTS];
	bool said[ALLOWANCE_PARTS];
	struct json_strlist lists[ALLOWANCE_LISTS];
	bool listed[ALLOWANCE_LISTS];
};

const char *allowance_part_name(enum allowance_part p); /* "requests_per_minute" */
const char *allowance_list_name(enum allowance_list l); /* "providers" */

/* Changes `a` by the members of a document; null takes back what was said. What is read points into the
 * document and into the arena. ERR_INVALID. */
int allowance_read(struct arena *arena, const struct json *doc, struct allowance *a,
		   struct err *e) _must_check_;
/* What was said, as a document; and one number of it, in its own unit. */
void allowance_put(struct json_out *o, const struct allowance *a);
void allowance_put_part(struct json_out *o, enum allowance_part p, uint64_t v);
bool allowance_allows(const struct allowance *a, enum allowance_list l, struct view text);

/* ---- what holds ---- */

/* Somebody whose numbers nobody below may pass; the name says who. */
struct allowance_ceiling {
	const char *name;
	const uint64_t *parts;
};

struct allowance_force {
	uint64_t parts[ALLOWANCE_PARTS];
	const char *from[ALLOWANCE_PARTS]; /* who said so; NULL: nobody, there is no limit */
};

/* What was said, or else the default, but no more than any ceiling. */
void allowance_in_force(const char *name, const struct allowance *own, const uint64_t *standard,
			const struct allowance_ceiling *ceilings, size_t n, struct allowance_force *ret);
/* Whether nothing that is said is more than a ceiling; ERR_INVALID. */
int allowance_within(const struct allowance *a, const struct allowance_ceiling *ceilings, size_t n,
		     struct err *e) _must_check_;
struct budget_limits allowance_limits(const struct allowance_force *f);
