/*
 * The table of walls, and what a kind may leave out: see walls.h.
 */
#include "walls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "poison.h"

static const char *const can_names[WALLS_CANS] = {
	"capture", "disk_quota", "foreign_snapshots", "memory_snapshots", "own_kernel", "pause", "snapshots",
};

const char *walls_can_name(unsigned bit)
{
	return can_names[bit];
}

int walls_add(struct walls_table *t, const struct walls_ops *ops, const struct walls_setup *s, struct err *e)
{
	if (t->n == ELEMS(t->all))
		return err_set(e, ERR_INTERNAL, "there are more than %d backends", WALLS_KINDS);
	assert(ops->size >= sizeof(struct walls));
	struct walls *w = calloc(1, ops->size);
	if (!w)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "the backend %s", ops->name);
	w->ops = ops;
	w->posture.ok = true;
	if (ops->probe(w, s, e) < 0) {
		free(w);
		return -1;
	}
	t->all[t->n++] = w; /* closed with the others, also half-open */
	return ops->open(w, s, e);
}

struct walls *walls_find(const struct walls_table *t, struct view backend, struct err *e)
{
	for (unsigned i = 0; i < t->n; i++)
		if (view_is(backend, t->all[i]->ops->name))
			return t->all[i];
	struct buf names = BUF_INIT(128);
	for (unsigned i = 0; i < t->n; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", t->all[i]->ops->name);
	err_set(e, ERR_INVALID, "backend must be one of: %.*s", VIEW_ARG(buf_view(&names)));
	buf_done(&names);
	return NULL;
}

void walls_close(struct walls_table *t, bool empty)
{
	while (t->n) {
		struct walls *w = t->all[--t->n];
		w->ops->close(w, empty);
		free(w);
	}
}

int walls_usable(const struct walls *w, struct err *e)
{
	for (unsigned i = 0; !w->posture.ok && i < w->posture.n; i++)
		if (w->posture.parts[i].required && !w->posture.parts[i].ok)
			return err_set(e, ERR_WALLS, "this machine cannot isolate a sandbox: %s: %s",
				       w->posture.parts[i].name, w->posture.parts[i].detail);
	return w->posture.ok ? 0 : err_set(e, ERR_WALLS, "this machine cannot isolate a sandbox");
}

int walls_freeze(const struct walls_box *b, bool on, int wait_ms)
{
	const struct walls_ops *ops = b->walls->ops;
	return ops->freeze ? ops->freeze(b->walls, b, on, wait_ms) : -EOPNOTSUPP;
}

int walls_limit(const struct walls_box *b, const struct box_limits *l)
{
	const struct walls_ops *ops = b->walls->ops;
	return ops->limit ? ops->limit(b->walls, b, l) : -EOPNOTSUPP;
}

bool walls_frozen(const struct walls_box *b)
{
	const struct walls_ops *ops = b->walls->ops;
	bool frozen = false;
	/* What cannot be frozen is not. */
	return ops->frozen && ops->frozen(b->walls, b, &frozen) == 0 && frozen;
}

int walls_usage(const struct walls_box *b, struct walls_usage *ret)
{
	*ret = (struct walls_usage){ 0 };
	return b->walls->ops->usage ? b->walls->ops->usage(b->walls, b, ret) : 0;
}

int walls_snapshot(const struct walls_box *b, int storage, struct err *e)
{
	return b->walls->ops->snapshot ? b->walls->ops->snapshot(b->walls, b, storage, e) : 0;
}

int walls_gate(const struct walls_box *b, enum netns_capture how, struct netns_gate *ret)
{
	return b->walls->ops->gate ? b->walls->ops->gate(b->walls, b, how, ret) : -EOPNOTSUPP;
}

int walls_storage(const struct plan *p, int storage, struct err *e)
{
	for (unsigned i = 0; i < p->n_dirs; i++) {
		const struct plan_dir *d = &p->dirs[i];
		if (mkdirat(storage, d->name, d->mode & 0755) < 0) {
			if (errno == EEXIST)
				continue; /* made ahead */
			return err_sys(e, ERR_STORAGE, errno, "cannot make the sandbox's storage (%s)",
				       d->name);
		}
		/* The umask is ours (022): sticky and open modes are set afterwards. */
		if ((d->mode & ~0755u && fchmodat(storage, d->name, d->mode, 0) < 0) ||
		    (d->owner && fchownat(storage, d->name, d->owner, d->owner, AT_SYMLINK_NOFOLLOW) < 0))
			return err_sys(e, ERR_STORAGE, errno, "cannot make the sandbox's storage (%s)",
				       d->name);
	}
	return 0;
}
