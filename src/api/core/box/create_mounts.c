/*
 * Who may mount which directories of the machine: see create.h.
 */
#include "config.h"
#include "create.h"
#include "who.h"
#include "poison.h"

static bool names_tenant(const struct config_mount *m, const struct tenant *t)
{
	for (size_t i = 0; t && i < m->tenants.n; i++)
		if (view_is(m->tenants.items[i], t->name))
			return true;
	return false;
}

int create_mounts_permit(const struct config *c, const struct actor *a, const struct spec_mount_list *m,
			 struct err *e)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct spec_mount *one = &m->items[i];
		const struct config_mount *by = config_mount(c, one->source);

		/* Who may not mount it is not told whether it is in the list. */
		if (!by || (a->role != STORE_ROLE_ADMIN && !names_tenant(by, a->tenant)))
			return err_set(
				e, ERR_FORBIDDEN,
				"mounts[%zu]: %.*s may not be mounted; mounts.allow of the configuration "
				"names directories and tenants",
				i, (int)MIN(one->source.n, 80u), one->source.p);
		if (!one->readonly && !by->writable)
			return err_set(e, ERR_FORBIDDEN,
				       "mounts[%zu]: %.*s may only be mounted read-only (mode: ro)", i,
				       (int)MIN(one->source.n, 80u), one->source.p);
	}
	return 0;
}
