/*
 * The options of `paddock agent allow`, and the rules that come of them.
 */
#pragma once

#include "json.h"
#include "opts.h"
#include "owner.h"

struct allow_flags {
	struct owner_flags owner; /* first */
	const char *wallet, *rules, *auto_below;
	struct opt_list limit, token, unlimited, chain, contract, call, to, deny, typed, window, remove,
		reset;
	bool yes, pause, resume;
	/* The plain rules; times in milliseconds. */
#define FLAG(name, ...)  bool name;
#define COUNT(name, ...) uint64_t name;
#include "rule_fields.def"
#undef FLAG
#undef COUNT
};

struct allow {
	struct arena *arena;
	const struct allow_flags *f;
	const struct json *manifest;
	struct view wallet; /* the id of --wallet; empty: not given */
	bool first;         /* nothing was allowed before: what the manifest asks for is taken */
	struct sgn_rules rules;
};

/* Changes the rules by what the options name; everything else stays. */
int allow_take(struct allow *a, struct err *e) _must_check_;
