/*
 * Grants: see grants.h.
 */
#include "grants.h"

#include <errno.h>
#include <stdlib.h>

#include "host_match.h"
#include "wire_gen.h"
#include "poison.h"

#define BOX_MAX (1024u * 1024)

void grants_init(struct grants *g)
{
	map_init(&g->boxes);
	list_init(&g->all);
}

static void free_box(struct grants *g, struct grants_box *b)
{
	if (b->node.key.p)
		map_del(&g->boxes, &b->node);
	list_del(&b->link);
	arena_done(&b->arena);
	free(b);
}

void grants_done(struct grants *g)
{
	if (!g->all.next)
		return;
	LIST_EACH (it, &g->all)
		free_box(g, CONTAINER(it, struct grants_box, link));
	map_done(&g->boxes);
}

struct grants_box *grants_box(const struct grants *g, struct view box)
{
	struct map_node *n = map_get(&g->boxes, box);
	return n ? CONTAINER(n, struct grants_box, node) : NULL;
}

void grants_remove(struct grants *g, struct view box)
{
	struct grants_box *b = grants_box(g, box);
	if (b)
		free_box(g, b);
}

static int copy(struct grants_box *b, const struct wire_vault_box *m)
{
	b->id = arena_view(&b->arena, m->id);
	b->tenant = arena_view(&b->arena, m->tenant);
	b->grants = arena_array(&b->arena, m->grants.n, sizeof(*b->grants));
	if (!b->id.p || !b->tenant.p || !b->grants)
		return -ENOMEM;
	for (b->n = 0; b->n < m->grants.n; b->n++) {
		const struct wire_vault_grant *from = &m->grants.items[b->n];
		struct grants_grant *to = &b->grants[b->n];
		to->secret = arena_view(&b->arena, from->secret);
		to->hosts = arena_array(&b->arena, from->hosts.n, sizeof(*to->hosts));
		if (!to->secret.p || !to->hosts)
			return -ENOMEM;
		for (size_t i = 0; i < from->hosts.n; i++) {
			to->hosts[i] = arena_view(&b->arena, from->hosts.items[i]);
			if (!to->hosts[i].p)
				return -ENOMEM;
		}
		to->n_hosts = from->hosts.n;
	}
	return 0;
}

int grants_put(struct grants *g, const struct wire_vault_box *m)
{
	if (!m->id.n || !m->tenant.n)
		return -EINVAL;
	grants_remove(g, m->id); /* what it allowed ends here, whatever becomes of the rest */
	struct grants_box *b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->arena = ARENA_INIT(BOX_MAX);
	list_init(&b->link);
	int r = copy(b, m);
	if (r == 0)
		r = map_put(&g->boxes, &b->node, b->id);
	if (r < 0) {
		b->node.key = VIEW_NONE;
		free_box(g, b);
		return r;
	}
	list_append(&g->all, &b->link);
	return 0;
}

/* No secret is for every name: the api refuses such a rule, and the vault does not rely on it. */
static bool grant_names(const struct grants_grant *t, struct view host)
{
	for (size_t i = 0; i < t->n_hosts; i++)
		if (!view_is(t->hosts[i], "*") && host_match(t->hosts[i], host))
			return true;
	return false;
}

bool grants_allows(const struct grants_box *b, struct view secret, struct view host)
{
	for (size_t i = 0; i < b->n; i++)
		if (view_eq(b->grants[i].secret, secret) && grant_names(&b->grants[i], host))
			return true;
	return false;
}
