/*
 * Boxes that end with a connection: see box.h.
 */
#include "boxes.h"
#include "core_base.h"
#include "log.h"
#include "remove.h"
#include "poison.h"

static struct box *find(struct core *c, struct view id)
{
	struct box *b = boxes_by_id(c, id);

	return b && b->spec.tied && b->state.status != BOX_DELETING ? b : NULL;
}

bool tied_is_there(struct core *c, struct view id)
{
	return find(c, id) != NULL;
}

void tied_gone(struct core *c, struct view id)
{
	struct box *b = c->stopping ? NULL : find(c, id);

	if (!b)
		return;
	log_info("sandbox %s: its connection is gone: delete", b->id);
	remove_unwanted(b);
}

void tied_sweep(struct core *c)
{
	LIST_EACH (it, &c->boxes->all) {
		struct box *b = BOX_OF(it, order);
		if (b->spec.tied)
			tied_gone(c, view_of(b->id));
	}
}
