/*
 * What all rooms of the core use: see core_base.h.
 */
#include "core_base.h"

#include "buf.h"
#include "log.h"
#include "poison.h"

const struct config *core_config(const struct core *c)
{
	return c->config;
}

const struct core_posture *core_posture(const struct core *c)
{
	return &c->posture;
}

const struct backend *core_backend(const struct core *c, struct view name, struct err *e)
{
	const struct core_posture *p = &c->posture;

	for (size_t i = 0; i < p->n; i++)
		if (!name.n || view_eq(name, p->backends[i].name))
			return &p->backends[i];
	struct buf names = BUF_INIT(128);
	for (size_t i = 0; i < p->n; i++)
		buf_printf(&names, "%s%.*s", i ? ", " : "", VIEW_ARG(p->backends[i].name));
	err_set(e, ERR_INVALID, "backend must be one of: %.*s", VIEW_ARG(buf_view(&names)));
	buf_done(&names);
	return NULL;
}

bool core_backend_can(const struct backend *b, const char *what)
{
	for (size_t i = 0; i < b->n_can; i++)
		if (view_is(b->can[i], what))
			return true;
	return false;
}

struct store_stats core_store_stats(const struct core *c)
{
	return store_stats(c->store);
}

void core_store_result(struct core *c, const struct err *e)
{
	/* A write that broke a rule of the schema says nothing about the disk. */
	bool failed = e && e->code != ERR_CONFLICT && e->code != ERR_NOT_FOUND;

	if (failed && !c->store_failed)
		log_error("the store does not take writes: %s", e->msg);
	c->store_failed = failed;
}

void core_store_done(void *arg, const struct err *e)
{
	core_store_result(arg, e);
}
