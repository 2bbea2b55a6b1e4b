/*
 * Connections by box and tenant: see share.h.
 */
#include "share.h"

#include <errno.h>
#include <stdlib.h>

#include "poison.h"

void share_flows(struct share *s, int change)
{
	s->n_flows += (unsigned)change;
	if (s->tenant)
		s->tenant->n_flows += (unsigned)change;
}

static struct share_tenant *tenant_new(struct map *tenants, struct view id)
{
	struct share_tenant *t = calloc(1, sizeof(*t));

	if (!t || view_to_str(id, t->id, sizeof(t->id)) < 0 ||
	    map_put(tenants, &t->node, view_of(t->id)) < 0) {
		free(t);
		return NULL;
	}
	return t;
}

int share_join(struct map *tenants, struct share *s, struct view id)
{
	if (!id.n || (s->tenant && view_is(id, s->tenant->id)))
		return 0;
	if (id.n >= sizeof(s->tenant->id))
		return -ENAMETOOLONG;
	struct map_node *n = map_get(tenants, id);
	struct share_tenant *t = n ? CONTAINER(n, struct share_tenant, node) : tenant_new(tenants, id);
	if (!t)
		return -ENOMEM;
	share_leave(tenants, s);
	t->n_boxes++;
	t->n_flows += s->n_flows;
	s->tenant = t;
	return 0;
}

void share_leave(struct map *tenants, struct share *s)
{
	struct share_tenant *t = TAKE_PTR(s->tenant);

	if (!t)
		return;
	t->n_flows -= s->n_flows;
	if (--t->n_boxes > 0)
		return;
	map_del(tenants, &t->node);
	free(t);
}

bool share_is_more(const struct share *s, const struct share *than)
{
	unsigned mine = s->tenant ? s->tenant->n_flows : s->n_flows,
		 others = than->tenant ? than->tenant->n_flows : than->n_flows;

	return mine != others ? mine > others : s->n_flows > than->n_flows;
}
