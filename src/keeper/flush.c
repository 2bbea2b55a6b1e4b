/*
 * The flusher: see flush.h.
 *
 * Role: has the kernel write out a file system. Peers: none (its parent waits for
 * its end). Holds: fd 3, a directory of it. Runs as root without capabilities.
 */
#include "flush.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "caps.h"
#include "child.h"
#include "fd.h"
#include "keeper.h"
#include "log.h"
#include "num.h"
#include "poison.h"

#define WORTHWHILE_KB 16384 /* what a disk takes in the time that a flusher costs */

struct flush {
	struct keeper *k;
	struct list node;
	struct loop_io exit;
	pid_t pid;
	struct flush_wish wish;
	void (*done)(struct keeper *k, const struct flush_wish *w);
};

int flush_main(void)
{
	log_setup("paddock-flush", LOG_LEVEL_INFO);
	int r = caps_bound(0);
	if (r == 0)
		r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
	if (r == 0)
		r = caps_set(&(struct caps){ 0 });
	if (r == 0)
		r = syncfs(3) < 0 ? -errno : 0;
	if (r < 0)
		log_error("cannot flush: %s", strerror(-r));
	return r < 0;
}

bool flush_worthwhile(void)
{
	struct buf b = BUF_INIT(16384);
	uint64_t kb = UINT64_MAX;
	bool read = fd_slurp(AT_FDCWD, "/proc/meminfo", &b) == 0;
	for (struct view rest = buf_view(&b); read && rest.n;) {
		struct view value, line = view_split(rest, '\n', &rest);
		if (!view_is(view_split(line, ':', &value), "Dirty"))
			continue;
		value = view_trim(value);
		if (num_u64(view_split(value, ' ', &value), &kb) < 0)
			kb = UINT64_MAX;
		break;
	}
	buf_done(&b);
	return kb >= WORTHWHILE_KB;
}

static void on_exit_of(struct loop_io *io, uint32_t events)
{
	(void)events;
	struct flush *f = CONTAINER(io, struct flush, exit);
	int fd = io->fd;
	loop_io_stop(io);
	fd_close(fd);
	(void)waitpid(f->pid, NULL, 0);
	list_del(&f->node);
	if (f->wish.stream)
		f->done(f->k, &f->wish);
	free(f);
}

int flush_start(struct keeper *k, int dir, const struct flush_wish *w,
		void (*done)(struct keeper *k, const struct flush_wish *w))
{
	char *const argv[] = { (char[]){ "paddockd" }, (char[]){ "flush" }, NULL }, *const envp[] = { NULL };
	struct flush *f = calloc(1, sizeof(*f));
	int pidfd = -1;
	if (!f)
		return -ENOMEM;
	*f = (struct flush){ .k = k, .wish = *w, .done = done };
	int r = child_exec(k, "paddockd", argv, envp, &dir, 1, &f->pid, &pidfd);
	if (r == 0)
		r = loop_io_start(k->loop, &f->exit, pidfd, EPOLLIN, on_exit_of);
	if (r < 0) {
		fd_close(pidfd); /* a child that was started ends by itself, and is collected with the others
				  */
		free(f);
		return r;
	}
	list_append(&k->flushes, &f->node);
	return 0;
}

void flush_forget_calls(struct keeper *k)
{
	LIST_EACH (it, &k->flushes)
		CONTAINER(it, struct flush, node)->wish.stream = 0;
}
