/*
 * The sweeper: see sweep.h.
 *
 * Role: removes trees that boxes filled. Peers: none (its parent waits for its
 * end). Holds: fd 3, the trash directory. Runs as root with CAP_DAC_OVERRIDE,
 * CAP_DAC_READ_SEARCH and CAP_FOWNER only, Landlock confines it to the trash. The trees are hostile but
 * dead: nobody changes them any more.
 */
#include "sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "caps.h"
#include "child.h"
#include "clock.h"
#include "fd.h"
#include "keeper.h"
#include "landlock.h"
#include "log.h"
#include "poison.h"

#define DEEP     100
#define SWEEP_MS 250 /* one sweeper for a burst of deletions */

static int sweep_names(DIR *d, unsigned depth, int top);

/* A directory that is deeper than we have fds for is moved up to the top and done from there. */
static void remove_dir(int parent, const char *name, unsigned depth, int top)
{
	if (depth >= DEEP) {
		char to[NAME_MAX + 1];
		static unsigned long n;
		snprintf(to, sizeof(to), "deep-%d-%lu", getpid(), n++);
		(void)renameat(parent, name, top, to);
		return;
	}
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		fd_close(fd);
		return;
	}
	/* Removing while reading may skip entries: again until nothing is found. */
	while (sweep_names(d, depth, top) > 0)
		rewinddir(d);
	closedir(d);
	(void)unlinkat(parent, name, AT_REMOVEDIR);
}

static int sweep_names(DIR *d, unsigned depth, int top)
{
	int found = 0;
	for (struct dirent *de; (de = readdir(d));) {
		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(d), de->d_name, 0) == 0)
			found++;
		else if (errno == EISDIR || errno == EPERM) {
			remove_dir(dirfd(d), de->d_name, depth + 1, top);
			struct stat st;
			found += fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0;
		}
	}
	return found;
}

void sweep_tree(int dir)
{
	DIR *d = fdopendir(dir);
	if (!d) {
		fd_close(dir);
		return;
	}
	/* The fd's position may be shared with the keeper's, and so with earlier sweepers. */
	do
		rewinddir(d);
	while (sweep_names(d, 0, dirfd(d)) > 0);
	closedir(d);
}

int sweep_main(void)
{
	const uint64_t keep = CAPS(CAP_DAC_OVERRIDE) | CAPS(CAP_FOWNER) | CAPS(CAP_DAC_READ_SEARCH);
	log_setup("paddock-sweep", LOG_LEVEL_INFO);
	int r = caps_bound(0);
	if (r == 0)
		r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
	/* The next keeper goes on with what is left. */
	if (r == 0)
		r = prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ? -errno : 0;
	if (r == 0)
		r = landlock_only(&(struct landlock_rule){ 3, LANDLOCK_WRITE }, 1);
	if (r == 0)
		r = caps_set(&(struct caps){ .effective = keep, .permitted = keep });
	if (r < 0) {
		log_error("cannot drop privileges: %s", strerror(-r));
		return 1;
	}
	(void)setpriority(PRIO_PROCESS, 0, 10);
	sweep_tree(3);
	return 0;
}

static void on_sweep_exit(struct loop_io *io, uint32_t events)
{
	(void)events;
	struct keeper *k = CONTAINER(io, struct keeper, sweep_exit);
	int fd = io->fd;
	loop_io_stop(io);
	fd_close(fd);
	(void)waitpid(k->sweep_pid, NULL, 0);
	k->sweep_pid = 0;
	if (k->sweep_again)
		sweep_start(k);
}

static void on_sweep_time(struct loop_timer *t)
{
	struct keeper *k = CONTAINER(t, struct keeper, sweep_timer);
	const int fds[] = { k->storage.trash };
	char *const argv[] = { (char[]){ "paddockd" }, (char[]){ "sweep" }, NULL }, *const envp[] = { NULL };
	int pidfd = -1;
	int r = child_exec(k, "paddockd", argv, envp, fds, ELEMS(fds), &k->sweep_pid, &pidfd);
	if (r == 0) {
		r = loop_io_start(k->loop, &k->sweep_exit, pidfd, EPOLLIN, on_sweep_exit);
		if (r < 0)
			fd_close(pidfd);
	}
	if (r < 0)
		log_error("cannot start the sweeper: %s", strerror(-r));
}

void sweep_start(struct keeper *k)
{
	k->removed_ms = clock_mono_ms();
	k->sweep_again = k->sweep_pid != 0;
	if (!k->sweep_pid && !loop_timer_active(&k->sweep_timer))
		loop_timer_start(k->loop, &k->sweep_timer, SWEEP_MS, on_sweep_time);
}
