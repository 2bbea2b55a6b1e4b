/*
 * Starting and watching our own programs: see child.h.
 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boxes.h"
#include "calls.h"
#include "clock.h"
#include "clone.h"
#include "fd.h"
#include "flush.h"
#include "log.h"
#include "spawn.h"
#include "survey.h"
#include "vault.h"
#include "poison.h"

#define FIRST_FD  3
#define ENV_MAX   8
#define AGAIN_MS  200 /* an api that dies at once is not started in a tight loop */
#define STEADY_MS 2000

int child_find_bin(char *dst, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", dst, size - 1);
	if (n < 0)
		return -errno;
	dst[n] = 0;
	char *slash = strrchr(dst, '/');
	if (!slash)
		return -ENOENT;
	*slash = 0;
	return 0;
}

struct exec_args {
	const char *path;
	char *const *argv, *const *envp;
	const int *fds;
	size_t n;
	int error;
};

/* Between clone and exec, in our memory. */
static int exec_child(void *arg)
{
	struct exec_args *a = arg;
	/* First out of the way of the numbers that are wanted, then into place. */
	int high[16];
	for (size_t i = 0; i < a->n; i++) {
		high[i] = fcntl(a->fds[i], F_DUPFD_CLOEXEC, FIRST_FD + 32);
		if (high[i] < 0)
			goto fail;
	}
	for (size_t i = 0; i < a->n; i++)
		if (dup3(high[i], FIRST_FD + (int)i, 0) < 0)
			goto fail;
	if (syscall(SYS_close_range, FIRST_FD + (unsigned)a->n, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */) < 0)
		goto fail;
	/* Until the program has changed its user, which undoes it: see confine_identity(). */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		goto fail;
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(a->path, a->argv, a->envp);
fail:
	a->error = errno;
	return 127;
}

int child_exec(struct keeper *k, const char *program, char *const argv[], char *const envp[], const int *fds,
	       size_t n, pid_t *ret_pid, int *ret_pidfd)
{
	char path[640];
	assert(n <= 16);
	snprintf(path, sizeof(path), "%s/%s", k->bin_path, program);
	/* Symbols at the start: a function that is looked up when it is first called costs a copy of all
	 * vector registers on the stack, and memcpy has left in those what it copied last, secrets too. */
	char now[] = "LD_BIND_NOW=1", *all[ENV_MAX + 2] = { now };
	for (size_t i = 0; envp && envp[i]; i++) {
		assert(i < ENV_MAX);
		all[i + 1] = envp[i];
	}
	struct exec_args a = { .path = path, .argv = argv, .envp = all, .fds = fds, .n = n };
	pid_t pid;
	int pidfd;
	int r = spawn_vfork(&(struct spawn){ .cgroup = -1, .fn = exec_child, .arg = &a }, &pid, &pidfd);
	if (r < 0)
		return r;
	if (a.error) {
		(void)waitpid(pid, NULL, 0);
		fd_close(pidfd);
		return -a.error;
	}
	*ret_pid = pid;
	*ret_pidfd = pidfd;
	return 0;
}

static void on_again(struct loop_timer *t)
{
	child_start_api(CONTAINER(t, struct keeper, api_again));
}

static void on_api_exit(struct loop_io *io, uint32_t events)
{
	(void)events;
	struct keeper *k = CONTAINER(io, struct keeper, api_exit);
	int fd = io->fd, status = 0;
	loop_io_stop(io);
	fd_close(fd);
	(void)waitpid(k->api_pid, &status, 0);
	link_stop(&k->api);
	k->api_pid = 0;
	k->api_ready = false;
	boxes_forget_calls(k);
	flush_forget_calls(k);
	clone_forget_calls(k);
	survey_forget_calls(k);
	if (k->stopping) {
		loop_stop(k->loop, 0);
		return;
	}
	if (WIFSIGNALED(status))
		log_warn("paddock-api ended by signal %d, starting it again", WTERMSIG(status));
	else
		log_warn("paddock-api ended with %d, starting it again", WEXITSTATUS(status));
	if (!k->announced) {
		log_error("paddock-api ended before it was ready");
		loop_stop(k->loop, 1);
		return;
	}
	bool steady = clock_mono_ms() - k->api_started_ms > STEADY_MS;
	loop_timer_start(k->loop, &k->api_again, steady ? 0 : AGAIN_MS, on_again);
}

static int start_api(struct keeper *k)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	_cleanup_(closep) int ours = pair[0];
	_cleanup_(closep) int theirs = pair[1];
	_cleanup_(closep) int store =
		openat(k->data, "store", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (store < 0)
		return -errno;
	int fds[3 + ELEMS(k->listeners)] = { theirs, k->config_fd, store };
	for (unsigned i = 0; i < k->n_listeners; i++)
		fds[3 + i] = k->listeners[i];
	char count[48], hash[96], disk[48];
	snprintf(count, sizeof(count), "PADDOCK_LISTEN_FDS=%u", k->n_listeners);
	snprintf(hash, sizeof(hash), "PADDOCK_ADMIN_HASH=%s", k->admin_hash);
	char *const argv[] = { (char[]){ "paddock-api" }, NULL };
	snprintf(disk, sizeof(disk), "PADDOCK_DISK_MB=%llu", (unsigned long long)k->standard_disk_mb);
	char *const envp[] = { count, hash, disk, NULL };
	int pidfd;
	int r = child_exec(k, "paddock-api", argv, envp, fds, 3 + k->n_listeners, &k->api_pid, &pidfd);
	if (r < 0)
		return r;
	r = loop_io_start(k->loop, &k->api_exit, pidfd, EPOLLIN, on_api_exit);
	if (r == 0)
		r = link_start(&k->api, k->loop, TAKE_FD(ours), true, &calls_ops);
	if (r == 0)
		room_tell(k);
	return r;
}

void child_start_api(struct keeper *k)
{
	k->api_started_ms = clock_mono_ms();
	int r = start_api(k);
	if (r < 0) {
		log_error("cannot start paddock-api: %s", strerror(-r));
		loop_stop(k->loop, 1);
	}
}

/* ---- paddock-hook, paddock-ai ---- */

static void end_outward(pid_t *pid, struct loop_io *exit)
{
	int fd = exit->fd;

	if (!*pid)
		return;
	loop_io_stop(exit);
	fd_close(fd);
	(void)waitpid(*pid, NULL, 0);
	*pid = 0;
}

/* Nobody starts them again here: the api asks for one when it has something to send. */
static void on_hook_exit(struct loop_io *io, uint32_t events)
{
	(void)events;
	end_outward(&CONTAINER(io, struct keeper, hook_exit)->hook_pid, io);
}

static void on_ai_exit(struct loop_io *io, uint32_t events)
{
	struct keeper *k = CONTAINER(io, struct keeper, ai_exit);

	(void)events;
	end_outward(&k->ai_pid, io);
	link_stop(&k->ai);
}

/* more: an fd beside the api's, or -1. */
static int start_outward(struct keeper *k, const char *program, char *const envp[], int more, pid_t *pid,
			 struct loop_io *exit, void (*on_exit)(struct loop_io *, uint32_t), int *ret_fd)
{
	int pair[2], pidfd;
	char name[32];
	if (*pid) {
		(void)kill(*pid, SIGKILL);
		end_outward(pid, exit);
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	_cleanup_(closep) int ours = pair[0];
	_cleanup_(closep) int theirs = pair[1];
	snprintf(name, sizeof(name), "%s", program);
	char *const argv[] = { name, NULL };
	const int fds[] = { theirs, more };
	int r = child_exec(k, program, argv, envp, fds, more < 0 ? 1 : 2, pid, &pidfd);
	if (r < 0) {
		*pid = 0;
		return r;
	}
	r = loop_io_start(k->loop, exit, pidfd, EPOLLIN, on_exit);
	if (r < 0) {
		(void)kill(*pid, SIGKILL);
		(void)waitpid(*pid, NULL, 0);
		*pid = 0;
		fd_close(pidfd);
		return r;
	}
	*ret_fd = TAKE_FD(ours);
	return 0;
}

int child_start_hook(struct keeper *k, int *ret_fd)
{
	char uid[48], refuse[64], ca_file[PATH_MAX + 32];
	snprintf(uid, sizeof(uid), "PADDOCK_HOOK_UID=%llu", (unsigned long long)k->config->uids.hook);
	snprintf(refuse, sizeof(refuse), "PADDOCK_HOOK_REFUSE=%.*s", VIEW_ARG(k->config->webhooks.refuse));
	snprintf(ca_file, sizeof(ca_file), "PADDOCK_HOOK_CA_FILE=%.*s",
		 VIEW_ARG(k->config->webhooks.ca_file));
	char *const envp[] = { uid, refuse, ca_file, NULL };
	return start_outward(k, "paddock-hook", envp, -1, &k->hook_pid, &k->hook_exit, on_hook_exit, ret_fd);
}

static void on_ai_frame(struct link *l, const struct frame *f, int fd)
{
	(void)l;
	(void)f;
	fd_close(fd); /* it has nothing to say to us */
}

static void on_ai_closed(struct link *l, int error)
{
	(void)error;
	link_stop(l); /* its end is noticed by its pidfd */
}

static const struct link_ops ai_ops = { .on_frame = on_ai_frame, .on_closed = on_ai_closed };

int child_start_ai(struct keeper *k, int *ret_fd)
{
	int pair[2];
	char uid[48], ca_file[PATH_MAX + 32];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	_cleanup_(closep) int ours = pair[0];
	_cleanup_(closep) int theirs = pair[1];
	snprintf(uid, sizeof(uid), "PADDOCK_AI_UID=%llu", (unsigned long long)k->config->uids.ai);
	snprintf(ca_file, sizeof(ca_file), "PADDOCK_AI_CA_FILE=%.*s", VIEW_ARG(k->config->ai.ca_file));
	char *const envp[] = { uid, ca_file, NULL };
	link_stop(&k->ai); /* of the one that there may be */
	int r = start_outward(k, "paddock-ai", envp, theirs, &k->ai_pid, &k->ai_exit, on_ai_exit, ret_fd);
	if (r < 0)
		return r;
	r = link_start(&k->ai, k->loop, TAKE_FD(ours), true, &ai_ops);
	if (r < 0) { /* it ends with its channels */
		fd_close(*ret_fd);
		return r;
	}
	vault_join_ai(k); /* before the api has anything to send */
	return 0;
}

void child_stop_api(struct keeper *k)
{
	k->stopping = true;
	if (k->api_pid)
		(void)kill(k->api_pid, SIGTERM);
	else
		loop_stop(k->loop, 0);
}
