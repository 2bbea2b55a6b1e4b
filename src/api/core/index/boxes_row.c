/*
 * The row of a box in the store: see boxes.h.
 */
#include "boxes.h"

#include <errno.h>
#include <stdlib.h>

#include "core_base.h"
#include "keys.h"
#include "spec_make.h"
#include "poison.h"

bool boxes_store_status(const struct box *b, store_done *done, void *arg)
{
	if (b->in->hidden || b->in->pooled || b->in->core->stopping)
		return false;
	store_box_set_status(b->in->core->store, view_of(b->id), view_of(boxes_status_name(b->state.status)),
			     done, arg);
	return true;
}

/* What of a spec the store has in JSON. */
static int spec_columns(const struct box *b, struct buf *spec, struct buf *meta, struct err *e)
{
	int r = spec_to_json(&b->spec, spec);

	if (r >= 0)
		r = spec_metadata_to_json(&b->spec, meta);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "the sandbox's row") : 0;
}

int boxes_write_row(struct box *b, const char *status, boxes_write *write, store_done *done, void *arg,
		    struct err *e)
{
	struct buf spec = BUF_INIT(SPEC_ARENA_MAX), meta = BUF_INIT(SPEC_ARENA_MAX);
	int r = spec_columns(b, &spec, &meta, e);

	if (r >= 0) {
		struct store_box row = {
			.id = view_of(b->id),
			.tenant = view_of(b->tenant->id),
			.name = b->spec.name,
			.status = view_of(status),
			.image = b->spec.image,
			.digest = b->spec.digest,
			.backend = view_of(b->spec.backend),
			.spec = buf_view(&spec),
			.metadata = buf_view(&meta),
			.created_ms = b->state.created_ms,
			.expires_ms = b->state.expires_ms,
			.used_ms = b->state.used_ms,
		};
		write(b->in->core->store, &row, done, arg);
	}
	buf_done(&spec);
	buf_done(&meta);
	return r;
}

int boxes_store_change(struct box *b, store_done *done, void *arg, struct err *e)
{
	struct buf spec = BUF_INIT(SPEC_ARENA_MAX), meta = BUF_INIT(SPEC_ARENA_MAX);
	int r = spec_columns(b, &spec, &meta, e);

	if (r >= 0) {
		struct store_box_change change = { .id = view_of(b->id),
						   .spec = buf_view(&spec),
						   .metadata = buf_view(&meta),
						   .expires_ms = b->state.expires_ms,
						   .used_ms = b->state.used_ms };
		store_box_update(b->in->core->store, &change, done, arg);
		b->in->used_stored_ms = b->state.used_ms;
	}
	buf_done(&spec);
	buf_done(&meta);
	return r;
}

struct change {
	struct job job;
	struct box *box; /* its row goes after this write: it is still there when that is done */
};

static void on_change_stored(void *arg, const struct err *e)
{
	struct change *ch = arg;

	core_store_result(ch->box->in->core, e);
	job_finish(&ch->job, ch->box, e);
	free(ch);
}

struct job *boxes_keep_change(struct box *b, job_done *done, void *arg, struct err *e)
{
	struct change *ch = calloc(1, sizeof(*ch));

	if (!ch) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "sandbox");
		return NULL;
	}
	ch->job = (struct job){ .done = done, .arg = arg };
	ch->box = b;
	if (boxes_store_change(b, on_change_stored, ch, e) < 0) {
		free(ch);
		return NULL;
	}
	return &ch->job;
}
