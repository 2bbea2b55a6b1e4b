/*
 * A policy with memory of its own: see egress.h.
 */
#include <errno.h>

#include "egress.h"

#include "poison.h"

static bool copy_view(struct arena *a, struct view from, struct view *to)
{
	*to = from.p ? arena_view(a, from) : VIEW_NONE;
	return !from.p || to->p;
}

static bool copy_list(struct arena *a, const struct json_strlist *from, struct json_strlist *to)
{
	bool ok = true;

	*to = (struct json_strlist){ 0 };
	if (!from->n)
		return true;
	to->items = arena_array(a, from->n, sizeof(*to->items));
	for (ok = to->items != NULL; ok && to->n < from->n; to->n++)
		ok = copy_view(a, from->items[to->n], &to->items[to->n]);
	return ok;
}

static bool copy_inject(struct arena *a, const struct egress_rule *from, struct egress_rule *to)
{
	bool ok = true;

	to->inject = NULL;
	if (!from->n_inject)
		return true;
	to->inject = arena_array(a, from->n_inject, sizeof(*to->inject));
	ok = to->inject != NULL;
	for (size_t i = 0; ok && i < from->n_inject; i++) {
		const struct egress_inject *x = &from->inject[i];
		struct egress_inject *y = &to->inject[i];

		*y = *x;
		ok = copy_view(a, x->secret, &y->secret) && copy_view(a, x->header, &y->header) &&
		     copy_view(a, x->prefix, &y->prefix) && copy_view(a, x->query, &y->query);
	}
	return ok;
}

static bool copy_rule(struct arena *a, const struct egress_rule *from, struct egress_rule *to)
{
	*to = *from;
	to->ports = NULL;
	if (from->n_ports) {
		to->ports = arena_array(a, from->n_ports, sizeof(*to->ports));
		if (!to->ports)
			return false;
		memcpy(to->ports, from->ports, from->n_ports * sizeof(*to->ports));
	}
	return copy_view(a, from->set, &to->set) && copy_view(a, from->host, &to->host) &&
	       copy_list(a, &from->methods, &to->methods) && copy_list(a, &from->paths, &to->paths) &&
	       copy_inject(a, from, to);
}

int egress_copy(struct arena *a, const struct egress_policy *p, struct egress_policy *ret)
{
	struct egress_policy copy = *p;

	copy.rules = arena_array(a, p->n_rules, sizeof(*copy.rules));
	if (!copy.rules)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_rules; i++)
		if (!copy_rule(a, &p->rules[i], &copy.rules[i]))
			return -ENOMEM;
	*ret = copy;
	return 0;
}
