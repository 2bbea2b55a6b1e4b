/*
 * The files of a COPY step between their upload and the build. Each is an unlinked file in our own
 * directory, so nothing is left behind after a crash. Signed URLs let clients upload without a key.
 * See templates.h.
 */
#include "templates.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "core_base.h"
#include "fd.h"
#include "num.h"
#include "rnd.h"
#include "sign.h"
#include "who.h"
#include "poison.h"

#define LAYERS_MAX   128
#define LAYER_BYTES  (1024ull * 1024 * 1024)
#define LAYERS_BYTES (4 * LAYER_BYTES)
#define SIGNED_S     3600

struct template_layer {
	struct core *core;
	struct list order; /* the oldest first */
	char template[BOX_ID + 1], hash[TEMPLATES_HASH_MAX + 1];
	int fd;
	uint64_t size;
	bool whole;
	unsigned holders;
};

static void layer_free(struct template_layer *l)
{
	l->core->templates->layer_bytes -= l->size;
	l->core->templates->n_layers--;
	list_del(&l->order);
	fd_close(l->fd);
	free(l);
}

static struct template_layer *find(const struct core *c, const struct template *t, struct view hash)
{
	LIST_EACH (it, &c->templates->layers) {
		struct template_layer *l = CONTAINER(it, struct template_layer, order);
		if (l->whole && view_is(hash, l->hash) && view_is(view_of(t->id), l->template))
			return l;
	}
	return NULL;
}

bool templates_layer_present(const struct core *c, const struct template *t, struct view hash)
{
	return find(c, t, hash) != NULL;
}

static void sign_layer(const struct core *c, struct view template, struct view hash, struct view until,
		       char ret[SIGN_SIZE])
{
	const struct view parts[] = { VIEW("paddock layer 1"), template, hash, until };
	sign_parts(c, parts, ELEMS(parts), ret);
}

static int check_hash(struct view hash, struct err *e)
{
	bool ok = hash.n > 0 && hash.n <= TEMPLATES_HASH_MAX;

	for (size_t i = 0; ok && i < hash.n; i++)
		ok = (hash.p[i] >= '0' && hash.p[i] <= '9') || (hash.p[i] >= 'a' && hash.p[i] <= 'z') ||
		     (hash.p[i] >= 'A' && hash.p[i] <= 'Z');
	return ok ? 0
		  : err_set(e, ERR_INVALID, "the hash of files is 1 to %d letters and digits",
			    TEMPLATES_HASH_MAX);
}

int templates_layer_sign(struct core *c, const struct actor *a, struct view ref, struct view hash,
			 char ret_signature[65], int64_t *ret_expires, struct err *e)
{
	const struct template *t = templates_find(c, a, ACT_SNAPSHOT_DELETE, ref, e);
	char until[24];

	if (!t || check_hash(hash, e) < 0)
		return -1;
	*ret_expires = clock_wall_ms() / 1000 + SIGNED_S;
	snprintf(until, sizeof(until), "%lld", (long long)*ret_expires);
	sign_layer(c, view_of(t->id), hash, view_of(until), ret_signature);
	return 0;
}

/* Room for one more: what nobody waits for goes first. */
static int make_room(struct core *c, struct err *e)
{
	LIST_EACH (it, &c->templates->layers) {
		struct template_layer *l = CONTAINER(it, struct template_layer, order);
		if (c->templates->n_layers < LAYERS_MAX && c->templates->layer_bytes < LAYERS_BYTES)
			break;
		if (l->whole && !l->holders)
			layer_free(l);
	}
	if (c->templates->n_layers < LAYERS_MAX && c->templates->layer_bytes < LAYERS_BYTES)
		return 0;
	return err_set(e, ERR_UNAVAILABLE, "too many uploads wait for their builds");
}

static int open_unnamed(void)
{
	char name[32] = "layer-";
	rnd_name(name + 6, 20);
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -errno;
	if (unlink(name) < 0) {
		int error = errno;
		fd_close(fd);
		return -error;
	}
	return fd;
}

struct template_layer *templates_layer_open(struct core *c, struct view template, struct view hash,
					    struct view expires, struct view signature, struct err *e)
{
	char right[SIGN_SIZE];
	uint64_t until = 0;

	sign_layer(c, template, hash, expires, right);
	if (!view_eq_secret(signature, view_of(right)) || num_u64(expires, &until) < 0 ||
	    (int64_t)until < clock_wall_ms() / 1000) {
		err_set(e, ERR_FORBIDDEN, "the signature is wrong, or its time is over");
		return NULL;
	}
	if (make_room(c, e) < 0)
		return NULL;
	struct template_layer *l = calloc(1, sizeof(*l));
	int fd = l ? open_unnamed() : -ENOMEM;
	if (fd < 0 || view_to_str(template, l->template, sizeof(l->template)) < 0 ||
	    view_to_str(hash, l->hash, sizeof(l->hash)) < 0) {
		err_sys(e, ERR_INTERNAL, fd < 0 ? fd : -EINVAL, "the upload");
		fd_close(fd);
		free(l);
		return NULL;
	}
	l->core = c;
	l->fd = fd;
	list_append(&c->templates->layers, &l->order);
	c->templates->n_layers++;
	return l;
}

int templates_layer_write(struct template_layer *l, struct view data, struct err *e)
{
	if (l->size + data.n > LAYER_BYTES || l->core->templates->layer_bytes + data.n > LAYERS_BYTES)
		return err_set(e, ERR_TOO_LARGE,
			       "the files of a step are at most %llu bytes, all together %llu", LAYER_BYTES,
			       LAYERS_BYTES);
	while (data.n) {
		ssize_t n = write(l->fd, data.p, data.n);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_sys(e, n < 0 && errno == ENOSPC ? ERR_STORAGE : ERR_INTERNAL, errno,
				       "the upload");
		l->size += (uint64_t)n;
		l->core->templates->layer_bytes += (uint64_t)n;
		data = view_skip(data, (size_t)n);
	}
	return 0;
}

void templates_layer_commit(struct template_layer *l)
{
	LIST_EACH (it, &l->core->templates->layers) {
		struct template_layer *old = CONTAINER(it, struct template_layer, order);
		if (old != l && old->whole && !old->holders && view_is(view_of(old->hash), l->hash) &&
		    view_is(view_of(old->template), l->template))
			layer_free(old);
	}
	l->whole = true;
}

void templates_layer_abort(struct template_layer *l)
{
	layer_free(l);
}

struct template_layer *templates_layer_hold(struct core *c, const struct template *t, struct view hash)
{
	struct template_layer *l = find(c, t, hash);
	if (l)
		l->holders++;
	return l;
}

ssize_t templates_layer_read(const struct template_layer *l, uint64_t offset, void *room, size_t n)
{
	ssize_t r = pread(l->fd, room, n, (off_t)offset);
	return r < 0 ? -errno : r;
}

void templates_layer_release(struct template_layer *l)
{
	if (l)
		l->holders--;
}

void templates_layer_forget(struct core *c, const struct template *t)
{
	LIST_EACH (it, &c->templates->layers) {
		struct template_layer *l = CONTAINER(it, struct template_layer, order);
		if (l->whole && !l->holders && view_is(view_of(t->id), l->template))
			layer_free(l);
	}
}

void templates_layer_done(struct core *c)
{
	LIST_EACH (it, &c->templates->layers)
		layer_free(CONTAINER(it, struct template_layer, order));
}
