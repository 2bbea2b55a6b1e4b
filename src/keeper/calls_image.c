/*
 * The calls about images: see calls_image.h.
 */
#include "calls_image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ahead.h"
#include "boxes.h"
#include "copying.h"
#include "sweep.h"
#include "wire_gen.h"
#include "poison.h"

#define RECORDS_MOST (2u << 20) /* bytes of images' records in one list */

static int image_message(struct keeper_call *c, const struct image *i, struct wire_image *out)
{
	size_t n = 0;
	for (const struct image_name *name = c->k->images.names; name; name = name->next)
		n += strcmp(name->digest, i->digest) == 0;
	*out = (struct wire_image){ .digest = view_of(i->digest),
				    .created_ms = i->created_ms,
				    .machine = i->machine,
				    .seeded = i->base[0],
				    .record = { i->record, i->record_size },
				    .config = { i->config, i->config_size } };
	out->names.items = arena_array(&c->arena, n, sizeof(*out->names.items));
	if (!out->names.items)
		return -ENOMEM;
	for (const struct image_name *name = c->k->images.names; name; name = name->next)
		if (strcmp(name->digest, i->digest) == 0)
			out->names.items[out->names.n++] = view_of(name->name);
	return 0;
}

int calls_image_list(struct keeper_call *c, const void *msg, struct err *e)
{
	(void)msg;
	size_t n = 0;
	for (const struct image *i = c->k->images.all; i; i = i->next)
		n++;
	struct wire_image_list_reply out = { .images = { arena_array(&c->arena, n, sizeof(struct wire_image)),
							 0 } };
	size_t records = 0;
	for (const struct image *i = c->k->images.all; out.images.items && i; i = i->next) {
		struct wire_image *m = &out.images.items[out.images.n++];
		if (image_message(c, i, m) < 0)
			return err_sys(e, ERR_INTERNAL, ENOMEM, "list of images");
		/* A message has an end: what is left out is asked for with Survey. */
		records += m->record.n;
		if (records > RECORDS_MOST)
			m->record = VIEW_NONE;
	}
	calls_reply(c, &wire_image_list_reply_msg, &out);
	return 0;
}

static void on_committed(struct keeper *k, struct keeper_box *b)
{
	struct keeper_call c = {
		.k = k, .type = WIRE_TYPE_IMAGE_COMMIT, .stream = b->stream, .arena = ARENA_INIT(65536)
	};
	struct err e = { 0 };
	const struct image *i;
	struct wire_image m;
	char tree[SPEC_ID + 16];
	snprintf(tree, sizeof(tree), "%s/workspace", b->spec.id);
	int r = images_commit(&k->images, &k->storage.disk, k->storage.boxes, tree, view_of(b->commit_name),
			      view_of(b->commit_digest), &i, &e);
	const struct view config = { b->commit_config, b->commit_config_size };
	if (r == 0 && config.n && !i->config &&
	    images_keep_config(&k->images, view_of(i->digest), config) < 0)
		r = err_set(&e, ERR_STORAGE, "cannot keep the configuration of the image");
	free(b->commit_config);
	b->commit_config = NULL;
	if (r < 0)
		calls_fail(&c, &e);
	else if (image_message(&c, i, &m) < 0)
		err_sys(&e, ERR_INTERNAL, ENOMEM, "the new image"), calls_fail(&c, &e);
	else
		calls_reply(&c, &wire_image_committed_msg, &(struct wire_image_committed){ .image = &m });
	(void)!boxes_discard(k, b->spec.id);
	arena_done(&c.arena);
}

int calls_image_seed(struct keeper_call *c, const char *id, const struct wire_image_commit *m, struct err *e)
{
	const struct image *i;
	struct wire_image out;
	if (images_seed(&c->k->images, &c->k->storage.disk, c->k->storage.snapshots, id, m->base, m->name,
			m->digest, &i, e) < 0)
		return -1;
	if (image_message(c, i, &out) < 0)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "the new image");
	calls_reply(c, &wire_image_committed_msg, &(struct wire_image_committed){ .image = &out });
	return 0;
}

/* A snapshot is there already: nothing has to end first. */
static int commit_snapshot(struct keeper_call *c, const struct wire_image_commit *m, struct err *e)
{
	char id[SPEC_ID + 1];
	if (!spec_id_ok(m->snapshot) || view_to_str(m->snapshot, id, sizeof(id)) < 0)
		return err_set(e, ERR_INVALID, "not the id of a snapshot");
	return c->k->storage.disk.btrfs ? calls_image_seed(c, id, m, e) : copying_image(c, id, m, e);
}

static char *memdup_view(struct view v)
{
	char *copy = malloc(v.n);
	if (copy)
		memcpy(copy, v.p, v.n);
	return copy;
}

int calls_image_commit(struct keeper_call *c, const void *msg, struct err *e)
{
	const struct wire_image_commit *m = msg;
	if (!images_name_ok(m->name) || !images_digest_ok(m->digest))
		return err_set(e, ERR_INVALID, "not a name or not a digest of an image");
	if (m->snapshot.n)
		return commit_snapshot(c, m, e);
	struct keeper_box *b = calls_find_box(c, m->box, e);
	if (!b)
		return -1;
	(void)!view_to_str(m->name, b->commit_name, sizeof(b->commit_name));
	(void)!view_to_str(m->digest, b->commit_digest, sizeof(b->commit_digest));
	if (m->config.n > IMAGES_CONFIG)
		return err_set(e, ERR_TOO_LARGE, "the configuration of the image is too large");
	free(b->commit_config);
	b->commit_config = m->config.n ? memdup_view(m->config) : NULL;
	b->commit_config_size = b->commit_config ? m->config.n : 0;
	b->stream = c->stream;
	boxes_end(c->k, b, on_committed);
	return 0;
}

int calls_image_remove(struct keeper_call *c, const void *msg, struct err *e)
{
	const struct wire_image_remove *m = msg;
	if (view_is(m->image, IMAGES_MACHINE))
		return err_set(e, ERR_STATE, "the machine's own image cannot be removed");
	for (struct map_node *n = map_first(&c->k->boxes.by_id); n; n = map_next(&c->k->boxes.by_id, n)) {
		const struct keeper_box *b = CONTAINER(n, struct keeper_box, node);
		bool same = view_is(m->image, b->image);
		for (const struct image_name *name = c->k->images.names; name; name = name->next)
			same = same || (view_is(m->image, name->name) && strcmp(name->digest, b->image) == 0);
		if (same)
			return err_set(e, ERR_STATE, "sandbox %s runs on this image", b->spec.id);
	}
	ahead_drop(c->k); /* it may have the image's files; another is made when there is time */
	if (images_remove(&c->k->images, &c->k->storage.disk, m->image, c->k->storage.trash, e) < 0)
		return -1;
	sweep_start(c->k);
	calls_reply(c, &wire_image_removed_msg, &(struct wire_image_removed){ 0 });
	return 0;
}
