/*
 * Edits that can be undone: see aio_undo.h.
 */
#include "aio_undo.h"

#include <stdlib.h>

#include "poison.h"

#define ALL_BYTES (64u * 1024 * 1024)
#define ALL_EDITS 4096

static size_t bytes_of(const struct aio_undo *u)
{
	return sizeof(*u) + u->path.n + u->content.n;
}

void aio_undo_free(struct aio_state *s, struct aio_undo *u)
{
	list_del(&u->link);
	s->n_edits--;
	s->edit_bytes -= bytes_of(u);
	free(u);
}

void aio_undo_done(struct aio_state *s)
{
	LIST_EACH (it, &s->edits)
		aio_undo_free(s, CONTAINER(it, struct aio_undo, link));
}

static bool is_of(const struct aio_undo *u, const char *box, struct view path)
{
	return strcmp(u->box, box) == 0 && view_eq(u->path, path);
}

struct aio_undo *aio_undo_last(struct aio_state *s, const char *box, struct view path)
{
	struct aio_undo *last = NULL;

	LIST_EACH (it, &s->edits)
		if (is_of(CONTAINER(it, struct aio_undo, link), box, path))
			last = CONTAINER(it, struct aio_undo, link);
	return last;
}

static void forget(struct aio_state *s, const char *box, struct view path)
{
	struct aio_undo *u;

	while ((u = aio_undo_last(s, box, path)))
		aio_undo_free(s, u);
}

/* What of the sandbox is too old, and all of sandboxes that are gone. */
static void make_place(struct aio_state *s, const char *box, struct view path)
{
	size_t of_file = 0, of_box = 0;

	LIST_EACH (it, &s->edits) {
		struct aio_undo *u = CONTAINER(it, struct aio_undo, link);
		if (!boxes_by_id(s->core, view_of(u->box))) {
			aio_undo_free(s, u);
			continue;
		}
		of_file += is_of(u, box, path);
		of_box += strcmp(u->box, box) == 0 ? bytes_of(u) : 0;
	}
	LIST_EACH (it, &s->edits) {
		struct aio_undo *u = CONTAINER(it, struct aio_undo, link);
		bool own = strcmp(u->box, box) == 0, file = is_of(u, box, path);
		if (s->n_edits <= ALL_EDITS && s->edit_bytes <= ALL_BYTES &&
		    !(own && of_box > AIO_UNDO_BYTES) && !(file && of_file > AIO_UNDO_OF_FILE))
			continue;
		of_box -= own ? bytes_of(u) : 0;
		of_file -= file;
		aio_undo_free(s, u);
	}
}

bool aio_undo_keep(struct aio_state *s, const char *box, struct view path, bool existed, struct view content)
{
	struct aio_undo *u = NULL;

	if (sizeof(*u) + path.n + content.n <= AIO_UNDO_BYTES)
		u = calloc(1, sizeof(*u) + path.n + content.n);
	if (!u) {
		forget(s, box, path);
		return false;
	}
	memcpy(u->text, path.p, path.n);
	if (content.n)
		memcpy(u->text + path.n, content.p, content.n);
	u->path = (struct view){ u->text, path.n };
	u->content = (struct view){ u->text + path.n, content.n };
	u->existed = existed;
	(void)!view_to_str(view_of(box), u->box, sizeof(u->box));
	list_append(&s->edits, &u->link);
	s->n_edits++;
	s->edit_bytes += bytes_of(u);
	make_place(s, box, path);
	return true;
}
