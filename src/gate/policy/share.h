/*
 * Counts the gate's connections by box and tenant. When there are too many, the tenant with the most
 * loses some, so a tenant gains nothing from having many boxes.
 */
#pragma once

#include "map.h"

struct share_tenant {
	struct map_node node; /* by id */
	char id[64];
	unsigned n_boxes, n_flows;
};

/* Of a box. */
struct share {
	unsigned n_flows;
	struct share_tenant *tenant; /* NULL: not known, it counts by itself */
};

void share_flows(struct share *s, int change);
/* An empty id leaves it as it is. -ENOMEM, -ENAMETOOLONG */
int share_join(struct map *tenants, struct share *s, struct view id) _must_check_;
void share_leave(struct map *tenants, struct share *s);
/* Whether its tenant has more than the other's; of the same, or as many, whether it has more itself. */
bool share_is_more(const struct share *s, const struct share *than);
