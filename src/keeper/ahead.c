/*
 * The next box: see ahead.h.
 */
#include "ahead.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "log.h"
#include "sweep.h"
#include "poison.h"

#define NEXT "next"

/* All that its parts depend on. `plain` is what the caller knows besides: no files of another. */
static bool is_plain(const struct keeper *k, const struct spec *s, const struct walls *w)
{
	return k->config->parts && w->ops->prepare && !s->existing && !s->snapshot[0] && !s->mounts &&
	       !s->workspaces;
}

static bool same_kind(const struct spec *a, const struct spec *b)
{
#define SAME(json)                                a->json == b->json &&
#define FIELD(kind, name, json, shown, wire, ...) BOX_FIELD_IF_##wire(SAME, json)
	return
#include "box_fields.def"
#undef FIELD
		box_limits_equal(&a->limits, &b->limits) && a->thrash_s == b->thrash_s &&
		strcmp(a->backend, b->backend) == 0;
}

void ahead_learn(struct keeper *k, const struct keeper_box *b, bool plain)
{
	struct ahead *a = &k->ahead;
	if (!plain || !is_plain(k, &b->spec, b->in.walls))
		return;
	if (a->made && (!same_kind(&a->spec, &b->spec) || strcmp(a->image, b->image) != 0))
		ahead_drop(k);
	a->walls = b->in.walls;
	a->spec = b->spec;
	memcpy(a->image, b->image, sizeof(a->image));
}

static int prepare(struct keeper *k, const struct plan_image *layers, struct err *e)
{
	struct ahead *a = &k->ahead;
	struct plan plan;
	if (plan_make(&a->spec, layers, a->slot, (uint32_t)k->config->uids.base, &plan, e) < 0)
		return -1;
	a->storage = storage_prepare(&k->storage, &plan, e);
	const struct walls_start s = { .plan = &plan, .image = layers, .storage = a->storage, .run = -1 };
	return a->storage < 0 ? -1 : a->walls->ops->prepare(a->walls, &s, e);
}

bool ahead_make(struct keeper *k)
{
	struct ahead *a = &k->ahead;
	char holder[640];
	struct err e = { 0 };
	struct plan_image layers = { 0 };
	if (a->made || !a->walls || k->stopping)
		return false;
	const struct image *image = images_find(&k->images, view_of(a->image));
	if (!image) {
		a->walls = NULL;
		return false;
	}
	snprintf(holder, sizeof(holder), "%s/" NEXT, k->run_path);
	a->made = true;
	if ((mkdirat(k->run, NEXT, 0700) < 0 && errno != EEXIST) ||
	    slots_take(&k->slots, holder, &a->slot, &e) < 0 ||
	    images_layers(&k->images, image, &layers, &e) < 0 || prepare(k, &layers, &e) < 0) {
		/* A create makes its own then, and says what is wrong. */
		log_debug("the next sandbox: %s", e.msg);
		ahead_drop(k);
		a->walls = NULL;
	}
	images_release(&layers);
	return a->made;
}

void ahead_drop(struct keeper *k)
{
	struct ahead *a = &k->ahead;
	if (a->made && a->walls)
		a->walls->ops->forget(a->walls);
	fd_close(a->storage);
	a->storage = -1;
	a->made = false;
	storage_forget(&k->storage);
	(void)unlinkat(k->run, NEXT, AT_REMOVEDIR);
}

bool ahead_take(struct keeper *k, struct keeper_box *b, bool plain, int *ret_storage)
{
	struct ahead *a = &k->ahead;
	char holder[640];
	if (!a->made || !plain || a->walls != b->in.walls || !is_plain(k, &b->spec, b->in.walls) ||
	    !same_kind(&a->spec, &b->spec) || strcmp(a->image, b->image) != 0)
		return false;
	snprintf(holder, sizeof(holder), "%s/boxes/%s", k->run_path, b->spec.id);
	if (slots_move(&k->slots, a->slot, holder, k->run, NEXT, k->run_boxes, b->spec.id) < 0) {
		ahead_drop(k);
		return false;
	}
	if (storage_take(&k->storage, b->spec.id) < 0) {
		(void)unlinkat(k->run_boxes, b->spec.id, AT_REMOVEDIR);
		ahead_drop(k);
		return false;
	}
	b->slot = a->slot;
	*ret_storage = TAKE_FD(a->storage);
	a->storage = -1;
	a->made = false;
	return true;
}
