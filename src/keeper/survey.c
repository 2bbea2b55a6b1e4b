/*
 * Reading images' configuration of package managers: see survey.h.
 *
 * Role of "survey": reads a few named files of an image. Peers: its parent, by a pipe that
 * takes one record. Holds: fd 3, that pipe; fd 4 and perhaps 5, mounts of the image's own,
 * read-only, without devices, attached nowhere. Runs as root with nothing but the right to
 * read and search; Landlock lets it reach those mounts alone. A path is resolved by the kernel within
 * its mount (openat2, RESOLVE_IN_ROOT), whatever links the image has.
 */
#include "survey.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "caps.h"
#include "child.h"
#include "fd.h"
#include "landlock.h"
#include "log.h"
#include "mnt.h"
#include "wire_gen.h"
#include "poison.h"

#define SURVEY_MS    10000
#define SURVEYS_MOST 16 /* at once */
#define ARENA_MOST   (16u << 20)
enum { FD_OUT = 3, FD_ROOT, FD_USR };

/* ---- the reader ---- */

struct tree {
	struct config_tree tree;
	bool usr; /* /usr is another mount */
};

static int open_in(const struct config_tree *t, const char *path, int flags)
{
	const struct tree *own = CONTAINER(t, struct tree, tree);
	bool usr = own->usr && strncmp(path, "usr/", 4) == 0;
	struct open_how how = { .flags = (uint64_t)flags | O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };
	return (int)syscall(SYS_openat2, usr ? FD_USR : FD_ROOT, usr ? path + 4 : path, &how, sizeof(how));
}

static bool read_text(const struct config_tree *t, const char *path, struct buf *out)
{
	_cleanup_(closep) int fd = open_in(t, path, 0);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < 1 ||
	    (uint64_t)st.st_size > out->max)
		return false;
	char *room = buf_reserve(out, (size_t)st.st_size);
	if (!room || fd_read_all(fd, room, (size_t)st.st_size) < 0)
		return false;
	buf_commit(out, (size_t)st.st_size);
	return true;
}

static size_t list_names(const struct config_tree *t, const char *path, char (*names)[CONFIG_TREE_NAME],
			 size_t room)
{
	int fd = open_in(t, path, O_DIRECTORY);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	size_t n = 0;
	if (!d) {
		fd_close(fd);
		return 0;
	}
	for (struct dirent *de; n < room && (de = readdir(d));)
		if (de->d_name[0] != '.')
			snprintf(names[n++], CONFIG_TREE_NAME, "%s", de->d_name);
	closedir(d);
	return n;
}

static int confine(bool usr)
{
	const uint64_t keep = CAPS(CAP_DAC_READ_SEARCH);
	const struct landlock_rule rules[] = { { FD_ROOT, LANDLOCK_READ }, { FD_USR, LANDLOCK_READ } };
	const struct rlimit none = { 0, 0 };
	int r = caps_bound(0);
	if (r == 0)
		r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
				    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0
			    ? -errno
			    : 0;
	if (r == 0)
		r = landlock_only(rules, usr ? 2 : 1);
	if (r == 0)
		r = caps_set(&(struct caps){ .effective = keep, .permitted = keep });
	return r == 0 && setrlimit(RLIMIT_NPROC, &none) < 0 ? -errno : r;
}

int survey_main(void)
{
	struct tree t = { .tree = { read_text, list_names }, .usr = fcntl(FD_USR, F_GETFD) >= 0 };
	struct arena a = ARENA_INIT(ARENA_MOST);
	struct buf out = BUF_INIT(SURVEY_MAX);
	log_setup("paddock-survey", LOG_LEVEL_INFO);
	int r = confine(t.usr);
	if (r < 0) {
		log_error("cannot drop privileges: %s", strerror(-r));
		return 1;
	}
	config_sets_survey(&a, &t.tree, &out);
	r = out.bad ? out.bad : fd_write_all(FD_OUT, out.p, out.n);
	arena_done(&a);
	buf_done(&out);
	return r < 0;
}

/* ---- the keeper's side ---- */

struct survey {
	struct keeper *k;
	struct list node;
	uint32_t stream; /* 0: nobody waits any more */
	bool keep;       /* it is an image's own */
	char digest[IMAGES_DIGEST];
	struct loop_io exit;
	struct loop_timer timer;
	pid_t pid;
	int pipe;
};

static void survey_free(struct survey *s)
{
	loop_timer_stop(&s->timer);
	list_del(&s->node);
	fd_close(s->pipe);
	free(s);
}

/* What fits into the pipe's buffer, and nothing that is larger than a record. */
static int take_record(int fd, struct buf *out)
{
	char *room = buf_reserve(out, SURVEY_MAX + 1);
	ssize_t n = room ? read(fd, room, SURVEY_MAX + 1) : -1;
	if (n <= 0 || n > (ssize_t)SURVEY_MAX)
		return n < 0 ? -EIO : -EBADMSG;
	buf_commit(out, (size_t)n);
	return 0;
}

static void on_exit_of(struct loop_io *io, uint32_t events)
{
	(void)events;
	struct survey *s = CONTAINER(io, struct survey, exit);
	struct keeper_call c = { .k = s->k, .type = WIRE_TYPE_SURVEY, .stream = s->stream };
	struct buf record = BUF_INIT(SURVEY_MAX + 1);
	struct err e = { 0 };
	int fd = io->fd, status = 0;
	loop_io_stop(io);
	fd_close(fd);
	(void)waitpid(s->pid, &status, 0);
	int r = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? take_record(s->pipe, &record) : -EIO;
	if (r == 0 && s->keep)
		r = images_keep_record(&s->k->images, view_of(s->digest), buf_view(&record));
	if (r < 0)
		err_sys(&e, ERR_STORAGE, r, "the image cannot be surveyed");
	if (s->stream && r < 0)
		calls_fail(&c, &e);
	else if (s->stream)
		calls_reply(&c, &wire_surveyed_msg, &(struct wire_surveyed){ .record = buf_view(&record) });
	buf_done(&record);
	survey_free(s);
}

static void on_late(struct loop_timer *t)
{
	(void)kill(CONTAINER(t, struct survey, timer)->pid, SIGKILL);
}

/* The mounts that are read: a layer by itself, or with what the unit has over it. */
static int open_roots(const struct plan_image *layers, int unit, int roots[2], struct err *e)
{
	const uint64_t quiet = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
	for (unsigned i = 0; i < layers->n; i++) {
		char name[16];
		snprintf(name, sizeof(name), "upper%u", i);
		_cleanup_(closep) int upper =
			unit < 0 ? -1 : openat(unit, name, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		roots[i] = upper < 0 ? mnt_tree(layers->layers[i].dir, "", quiet | MOUNT_ATTR_RDONLY, -1)
				     : mnt_merged(upper, layers->layers[i].dir, quiet);
		if (roots[i] < 0)
			return err_sys(e, ERR_STORAGE, roots[i], "the image cannot be opened to be read");
	}
	return 0;
}

static int start(struct survey *s, const int roots[2], struct err *e)
{
	char *const argv[] = { (char[]){ "paddockd" }, (char[]){ "survey" }, NULL }, *const envp[] = { NULL };
	int pair[2], pidfd = -1;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "a pipe");
	s->pipe = pair[0];
	_cleanup_(closep) int theirs = pair[1];
	const int fds[] = { theirs, roots[0], roots[1] };
	int r = fd_nonblock(s->pipe, true);
	if (r == 0)
		r = child_exec(s->k, "paddockd", argv, envp, fds, roots[1] < 0 ? 2 : 3, &s->pid, &pidfd);
	if (r == 0)
		r = loop_io_start(s->k->loop, &s->exit, pidfd, EPOLLIN, on_exit_of);
	if (r < 0) {
		fd_close(pidfd); /* a child that was started ends by itself */
		return err_sys(e, ERR_INTERNAL, r, "cannot start the survey");
	}
	loop_timer_start(s->k->loop, &s->timer, SURVEY_MS, on_late);
	return 0;
}

static int open_unit(const struct keeper *k, const struct image *i, struct view snapshot, int *ret,
		     struct err *e)
{
	char id[SPEC_ID + 1];
	int fd = -ENOENT;
	if (!snapshot.n)
		fd = images_unit(&k->images, i);
	else if (!spec_id_ok(snapshot) || view_to_str(snapshot, id, sizeof(id)) < 0)
		return err_set(e, ERR_INVALID, "not the id of a snapshot");
	else
		fd = storage_open_snapshot(&k->storage, id);
	if (fd < 0 && (snapshot.n || fd != -ENOENT))
		return err_sys(e, ERR_STORAGE, fd, "the snapshot's files");
	*ret = fd;
	return 0;
}

int survey_call(struct keeper_call *c, const void *msg, struct err *e)
{
	const struct wire_survey *m = msg;
	const struct image *i = images_find(&c->k->images, m->image);
	_cleanup_(closep) int unit = -1;
	_cleanup_(closep) int root = -1;
	_cleanup_(closep) int usr = -1;
	struct plan_image layers;
	size_t n = 0;
	LIST_EACH (it, &c->k->surveys)
		n++;
	if (!i)
		return err_set(e, ERR_NOT_FOUND, "no such image");
	if (n >= SURVEYS_MOST)
		return err_set(e, ERR_UNAVAILABLE, "too many images are being surveyed");
	if (open_unit(c->k, i, m->snapshot, &unit, e) < 0 || images_layers(&c->k->images, i, &layers, e) < 0)
		return -1;
	int roots[2] = { -1, -1 }, r = open_roots(&layers, unit, roots, e);
	root = roots[0];
	usr = roots[1];
	images_release(&layers);
	struct survey *s = r < 0 ? NULL : calloc(1, sizeof(*s));
	if (!s)
		return r < 0 ? -1 : err_sys(e, ERR_INTERNAL, ENOMEM, "a survey");
	*s = (struct survey){ .k = c->k, .stream = c->stream, .keep = !m->snapshot.n, .pipe = -1 };
	memcpy(s->digest, i->digest, sizeof(s->digest));
	list_append(&c->k->surveys, &s->node);
	if (start(s, roots, e) < 0) {
		survey_free(s);
		return -1;
	}
	return 0;
}

void survey_forget_calls(struct keeper *k)
{
	LIST_EACH (it, &k->surveys)
		CONTAINER(it, struct survey, node)->stream = 0;
}
