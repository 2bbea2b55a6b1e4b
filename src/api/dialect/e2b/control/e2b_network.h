/*
 * E2B's words for what a box may reach.
 */
#pragma once

#include "e2b_impl.h"

struct egress_policy;

struct e2b_network {
	bool internet, has_internet; /* a schema has nothing at offset 0 that tells presence */
	struct json_strlist allow_out, deny_out;
	const struct json *rules;
	const struct json *proxy; /* refused */
};

bool e2b_network_says(const struct json *j);
/* The policy for policies_wish or policies_put; NULL: nothing was said, so that of the image, tenant, …
 * holds. */
int e2b_network_policy(struct request *r, const struct e2b_network *n, const struct egress_policy **ret,
		       struct err *e) _must_check_;
/* A secret's name as E2B keeps it: in lower case. n == 0: no memory. */
struct view e2b_secrets_name(struct arena *a, struct view name);
/* "network": {…}, into an open object. */
void e2b_network_put(struct json_out *o, const struct box *b);
