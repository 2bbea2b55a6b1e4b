/*
 * After our own restart: what lives is taken over, what does not is cleared
 * away. The truth is in the kernel and in the run directories.
 */
#include "boxes.h"
#include "copying.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "adopt.h"
#include "ahead.h"
#include "fd.h"
#include "gate.h"
#include "gauges.h"
#include "log.h"
#include "sweep.h"
#include "poison.h"

/* The entries of a directory as one block of names, so that they may be removed meanwhile. */
static char **names_in(int dir, size_t *ret_n)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	char **names = NULL;
	size_t n = 0, cap = 0;
	if (!d)
		fd_close(fd);
	for (struct dirent *de; d && (de = readdir(d));) {
		if (de->d_name[0] == '.')
			continue;
		if (n == cap) {
			cap = cap ? cap * 2 : 64;
			char **more = realloc(names, cap * sizeof(*names));
			if (!more)
				break;
			names = more;
		}
		names[n] = strdup(de->d_name);
		n += names[n] != NULL;
	}
	if (d)
		closedir(d);
	*ret_n = n;
	return names;
}

static void names_free(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

/* -ENXIO: it lives, in walls that we do not have. */
static int load(struct keeper *k, const char *id, int run_box, struct keeper_box *b)
{
	int r = box_table_load(run_box, b);
	if (r == 0 && strcmp(b->spec.id, id) != 0)
		r = -EBADMSG;
	if (r < 0)
		return r;
	b->in.walls = walls_find(&k->walls, view_of(b->spec.backend), NULL);
	if (!b->in.walls)
		return -ENXIO;
	if (b->in.walls->ops->adopt)
		r = b->in.walls->ops->adopt(b->in.walls, &b->in, run_box);
	return r < 0 ? r : adopt_watch(k, b);
}

/* Started halfway, or gone. Its walls are not known: each kind looks whether something of it lives. */
static void clear_away(struct keeper *k, const char *id, int run_box)
{
	for (unsigned i = 0; i < k->walls.n; i++) {
		struct walls *w = k->walls.all[i];
		w->ops->kill(w, &(struct walls_box){ .walls = w, .id = id, .pidfd = -1 });
	}
	if (run_box >= 0)
		sweep_tree(run_box);
	(void)unlinkat(k->run_boxes, id, AT_REMOVEDIR);
}

static void adopt_one(struct keeper *k, const char *id)
{
	_cleanup_(closep) int run_box =
		openat(k->run_boxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int r = run_box < 0 ? -errno : 0;
	struct keeper_box *b = calloc(1, sizeof(*b));
	if (b) {
		list_init(&b->gate_wait);
		b->in.pidfd = -1;
	}
	if (r == 0)
		r = b ? load(k, id, run_box, b) : -ENOMEM;
	if (r == 0) {
		gauges_box(k, b, b->started);
		copying_adopt(k, b, run_box);
		gate_box(k, b, NULL);
		return;
	}
	if (r == -ENXIO)
		log_warn("sandbox %s is left alone: this paddockd has no backend \"%s\"", id,
			 b->spec.backend);
	else if (r != -ESRCH && r != -ENOENT)
		log_warn("sandbox %s cannot be adopted: %s", id, strerror(-r));
	if (b)
		fd_close(b->in.pidfd);
	box_table_free(b);
	if (r != -ENXIO)
		clear_away(k, id, TAKE_FD(run_box));
}

void boxes_adopt(struct keeper *k)
{
	size_t n;
	char **names = names_in(k->run_boxes, &n);
	k->ahead.storage = -1;
	ahead_drop(k); /* an earlier keeper's */
	for (size_t i = 0; i < n; i++)
		adopt_one(k, names[i]);
	names_free(names, n);
	if (k->boxes.by_id.n)
		log_info("adopted %zu sandboxes", k->boxes.by_id.n);
	sweep_start(k);
	boxes_tidy_later(k); /* control groups without a box */
	boxes_refill_later(k);
}

static int compare(const void *a, const void *b)
{
	const struct view *x = a, *y = b;
	size_t n = MIN(x->n, y->n);
	int r = n ? memcmp(x->p, y->p, n) : 0;
	return r ? r : (x->n > y->n) - (x->n < y->n);
}

static void discard_when_gone(struct keeper *k, struct keeper_box *b)
{
	int r = boxes_discard(k, b->spec.id);
	if (r < 0)
		log_error("cannot remove the files of sandbox %s: %s", b->spec.id, strerror(-r));
}

unsigned boxes_keep_only(struct keeper *k, const struct view *ids, size_t n)
{
	unsigned removed = 0;
	struct view *sorted = malloc(n ? n * sizeof(*sorted) : 1);
	if (!sorted)
		return 0;
	if (n)
		memcpy(sorted, ids, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare);

	for (struct map_node *node = map_first(&k->boxes.by_id), *next; node; node = next) {
		next = map_next(&k->boxes.by_id, node);
		struct keeper_box *b = CONTAINER(node, struct keeper_box, node);
		if (!b->dying && !bsearch(&node->key, sorted, n, sizeof(*sorted), compare)) {
			boxes_end(k, b, discard_when_gone);
			removed++;
		}
	}
	size_t n_dirs;
	char **dirs = names_in(k->storage.boxes, &n_dirs);
	for (size_t i = 0; i < n_dirs; i++) {
		struct view id = view_of(dirs[i]);
		if (bsearch(&id, sorted, n, sizeof(*sorted), compare) || box_table_get(&k->boxes, id))
			continue;
		removed += boxes_discard(k, dirs[i]) == 0;
	}
	names_free(dirs, n_dirs);
	free(sorted);
	return removed;
}
