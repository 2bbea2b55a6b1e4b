/*
 * What was decided about a connection, a request or a question of a box, and why.
 */
#pragma once

#include "policy.h"

struct verdict {
	bool allowed;
	int reason; /* WIRE_GATE_REASON_… */
	const char *protocol, *via;
	struct view name, method, path;
	const struct addr *addr; /* NULL: none is known */
	uint16_t port;
	const struct policy_rule *rule; /* NULL: none has decided */
};
