/*
 * Copies of units: see clone.h.
 *
 * Role of "copy": copies a tree. Peers: none (its parent waits for its end). Holds:
 * fd 3, the tree, which nobody writes to; fd 4, the directory that is filled. Runs as
 * root with what it takes to give files their owners, kinds and attributes; Landlock
 * lets it write below fd 4 and nowhere else.
 */
#include "clone.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "caps.h"
#include "child.h"
#include "fd.h"
#include "keeper.h"
#include "landlock.h"
#include "log.h"
#include "rnd.h"
#include "sweep.h"
#include "poison.h"

#define HALF ".copy-" /* begins the names of copies that are not complete */

static void half_name(const char *name, char dst[SPEC_ID + 16])
{
	snprintf(dst, SPEC_ID + 16, HALF "%s", name);
}

int clone_main(void)
{
	/* SYS_ADMIN: the overlay's own attributes are "trusted". */
	const uint64_t keep = CAPS(CAP_CHOWN) | CAPS(CAP_DAC_OVERRIDE) | CAPS(CAP_DAC_READ_SEARCH) |
			      CAPS(CAP_FOWNER) | CAPS(CAP_FSETID) | CAPS(CAP_MKNOD) | CAPS(CAP_SYS_ADMIN);
	log_setup("paddock-copy", LOG_LEVEL_INFO);
	_cleanup_(closep) int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = root < 0 ? -errno : caps_bound(keep);
	if (r == 0)
		r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
				    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0
			    ? -errno
			    : 0;
	if (r == 0)
		r = landlock_only((struct landlock_rule[]){ { root, LANDLOCK_RUN }, { 4, LANDLOCK_ALL } }, 2);
	if (r == 0)
		r = caps_set(&(struct caps){ .effective = keep, .permitted = keep });
	if (r < 0) {
		log_error("cannot drop privileges: %s", strerror(-r));
		return 1;
	}
	(void)setpriority(PRIO_PROCESS, 0, 5);
	execl("/bin/cp", "cp", "--archive", "--reflink=auto", "--no-target-directory", "--",
	      "/proc/self/fd/3/.", "/proc/self/fd/4/.", (char *)NULL);
	log_error("cannot start /bin/cp: %s", strerror(errno));
	return 1;
}

static void discard(const struct clone *c, const char *half)
{
	char to[64], tail[9];
	rnd_name(tail, 8);
	snprintf(to, sizeof(to), "copy-%s", tail);
	if (renameat(c->dir, half, c->k->storage.trash, to) == 0)
		sweep_start(c->k);
}

static void on_exit_of(struct loop_io *io, uint32_t events)
{
	(void)events;
	struct clone *c = CONTAINER(io, struct clone, exit);
	int fd = io->fd, status = 0;
	char half[SPEC_ID + 16];
	half_name(c->name, half);
	loop_io_stop(io);
	fd_close(fd);
	(void)waitpid(c->pid, &status, 0);
	list_del(&c->node);
	int r = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
	if (r == 0 && renameat(c->dir, half, c->dir, c->name) < 0)
		r = -errno;
	if (r < 0)
		discard(c, half);
	fd_close(c->dir);
	c->done(c, r);
}

static int start(struct keeper *k, int from, const char *half, struct clone *c)
{
	char *const argv[] = { (char[]){ "paddockd" }, (char[]){ "copy" }, NULL }, *const envp[] = { NULL };
	if (mkdirat(c->dir, half, 0700) < 0)
		return -errno;
	_cleanup_(closep) int to = openat(c->dir, half, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int pidfd = -1,
	    r = to < 0 ? -errno
		       : child_exec(k, "paddockd", argv, envp, (const int[]){ from, to }, 2, &c->pid, &pidfd);
	if (r == 0)
		r = loop_io_start(k->loop, &c->exit, pidfd, EPOLLIN, on_exit_of);
	if (r < 0)
		fd_close(pidfd); /* a child that was started ends by itself */
	return r;
}

int clone_start(struct keeper *k, int from, int dir, struct clone *c)
{
	char half[SPEC_ID + 16];
	half_name(c->name, half);
	c->k = k;
	c->dir = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	int r = c->dir < 0 ? -errno : start(k, from, half, c);
	if (r < 0) {
		if (r != -EEXIST && c->dir >= 0)
			discard(c, half);
		fd_close(c->dir);
		return r;
	}
	list_append(&k->clones, &c->node);
	return 0;
}

void clone_clear(int dir, int trash)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		fd_close(fd);
		return;
	}
	for (struct dirent *de; (de = readdir(d));)
		if (strncmp(de->d_name, HALF, strlen(HALF)) == 0)
			(void)renameat(dir, de->d_name, trash, de->d_name);
	closedir(d);
}

void clone_forget_calls(struct keeper *k)
{
	LIST_EACH (it, &k->clones)
		CONTAINER(it, struct clone, node)->stream = 0;
}
