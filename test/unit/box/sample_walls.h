/*
 * The least that a kind of walls has to be: it can be opened and says what it could do, and refuses to
 * start. A real one is as much a struct of functions, in a folder of src/box.
 */
#pragma once

#include <errno.h>

#include "walls.h"

static int sample_probe(struct walls *w, const struct walls_setup *s, struct err *e)
{
	posture_add(&w->posture, "sample.parts", true, true, "%u made ahead", s->parts);
	w->can = WALLS_OWN_KERNEL | WALLS_MEMORY_SNAPSHOTS;
	return 0;
}

static int sample_open(struct walls *w, const struct walls_setup *s, struct err *e)
{
	return 0;
}

static int sample_start(struct walls *w, const struct walls_start *s, struct walls_box *ret,
			struct netns_gate *ret_gate, struct err *e)
{
	return err_set(e, ERR_UNSUPPORTED, "%s starts no box", w->ops->name);
}

static int sample_connect(struct walls *w, const struct walls_box *b, int run)
{
	return -ENOTCONN;
}

static void sample_kill(struct walls *w, const struct walls_box *b)
{
}

static int sample_clear(struct walls *w, struct walls_box *b)
{
	return 0;
}

static void sample_close(struct walls *w, bool empty)
{
}

static const struct walls_ops sample_walls = { "sample",
					       sizeof(struct walls),
					       .probe = sample_probe,
					       .open = sample_open,
					       .start = sample_start,
					       .connect = sample_connect,
					       .kill = sample_kill,
					       .clear = sample_clear,
					       .close = sample_close };
