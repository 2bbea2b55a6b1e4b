/*
 * Starting a program: see launch.h.
 *
 * The child is made by clone(CLONE_VM): no page table is copied, PID 1 stands
 * still until the child has executed (or given up), and the child reports its
 * failure through memory that both see. It runs on a stack of its own, makes raw
 * system calls (libc's setuid family would look for threads) and allocates
 * nothing. While it has the user's ids but PID 1's memory, nobody in the box can
 * attach to it: PID 1 is not dumpable, and the memory is the same.
 *
 * It is not CLONE_VFORK, whose wait has no end: programs of the same user can stop
 * the child before it has executed (kill(-1, SIGSTOP)), or hold a lease on what it
 * executes. What vfork waits for the kernel also does to the word of
 * CLONE_CHILD_CLEARTID: it is cleared when the memory is left, by exec or exit. After
 * WAIT_MS the child is killed, and another is made with a copy of the memory, for
 * which PID 1 does not wait at all.
 */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "clock.h"
#include "cpus.h"
#include "fd.h"
#include "wire_gen.h"
#include "poison.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define WAIT_MS      200
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

enum stage { STAGE_SETUP, STAGE_USER, STAGE_CWD, STAGE_EXEC };

struct child {
	struct launch *plan;
	bool alone; /* nobody waits: it has a copy of the memory */
	enum stage stage;
	int error; /* positive errno; 0 while nothing has failed */
};

/* ---- the child -------------------------------------------------------- */

/* PID 1 ignores some signals, and what is ignored stays so across exec. By the raw
 * call: libc keeps 32 to 34 to itself, and whoever started us may have ignored them. */
static void reset_signals(void)
{
	const struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} dfl = { 0 };
	for (int i = 1; i <= 64; i++)
		(void)syscall(SYS_rt_sigaction, i, &dfl, NULL, sizeof(dfl.mask));
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* All of ours are O_CLOEXEC; this is for one that ever is not. */
static int close_from(unsigned first, unsigned last)
{
	return syscall(SYS_close_range, first, last, 0u) < 0 && errno != ENOSYS ? -1 : 0;
}

static int set_fds(const struct launch *s)
{
	for (int i = 0; i < 3; i++)
		if (s->fds[i] >= 0 && dup2(s->fds[i], i) < 0)
			return -1;
	if (s->terminal && ioctl(0, TIOCSCTTY, 0) < 0)
		return -1;
	if (s->control[0] < 0)
		return close_from(3, ~0u);
	if (dup2(s->control[0], LAUNCH_CONTROL_IN) < 0 || dup2(s->control[1], LAUNCH_CONTROL_OUT) < 0)
		return -1;
	return close_from(3, LAUNCH_CONTROL_IN - 1) < 0 ? -1 : close_from(LAUNCH_FREE, ~0u);
}

/* Root keeps what PID 1 has as inheritable; everybody else has nothing. */
static int set_user(const struct user *u)
{
	if (syscall(SYS_setgroups, (size_t)u->n_groups, u->groups) < 0 ||
	    syscall(SYS_setresgid, u->gid, u->gid, u->gid) < 0 ||
	    syscall(SYS_setresuid, u->uid, u->uid, u->uid) < 0)
		return -1;
	if (u->uid == 0)
		return 0;
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return (int)syscall(SYS_capset, &head, none);
}

static int set_cwd(const struct launch *s)
{
	if (s->cwd_fd || chdir(s->cwd) == 0)
		return 0;
	return s->cwd_optional && errno == ENOENT ? chdir("/") : -1;
}

/* As execvpe: the first that runs; a refusal counts when nothing else is found. */
static int exec_any(struct launch *s)
{
	int error = ENOENT;
	for (char **path = s->paths; *path; path++) {
		execve(*path, s->argv, s->envp);
		if (errno == ENOEXEC) {
			s->sh_argv[1] = *path;
			execve(s->sh_argv[0], s->sh_argv, s->envp);
			return ENOEXEC;
		}
		if (errno == EACCES)
			error = EACCES;
		else if (errno != ENOENT && errno != ENOTDIR)
			return errno;
	}
	return error;
}

/* To whoever reads the program's output: the call that asked for it has its answer already. */
static void say(const struct child *c)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "paddock-init: cannot execute '%.200s': %s\n", c->plan->argv[0],
			 strerror(c->error));
	ssize_t r = n > 0 ? write(2, text, MIN((size_t)n, sizeof(text) - 1)) : 0;
	(void)r;
}

static int child_main(void *arg)
{
	struct child *c = arg;
	struct launch *s = c->plan;
	c->error = 0;
	c->stage = STAGE_SETUP;
	/* Before the descriptors are closed, and with PID 1's rights, as one would be inherited. */
	if (setsid() < 0 || (s->cwd_fd && fchdir(*s->cwd_fd) < 0) || set_fds(s) < 0)
		goto failed;
	c->stage = STAGE_USER;
	if (set_user(s->user) < 0)
		goto failed;
	c->stage = STAGE_CWD;
	if (set_cwd(s) < 0)
		goto failed;
	c->stage = STAGE_EXEC;
	cpus_take();
	reset_signals();
	errno = exec_any(s);
failed:
	c->error = errno;
	if (c->alone)
		say(c);
	_exit(127);
}

/* ---- the parent ------------------------------------------------------- */

static enum err_code exec_code(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return ERR_NOT_FOUND;
	case EACCES:
	case EPERM:
		return ERR_FORBIDDEN;
	case E2BIG:
		return ERR_TOO_LARGE;
	case EAGAIN:
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		return ERR_UNAVAILABLE;
	default:
		return ERR_INVALID;
	}
}

static int explain(const struct child *c, struct err *e)
{
	const struct launch *s = c->plan;
	switch (c->stage) {
	case STAGE_SETUP:
		break;
	case STAGE_USER:
		return err_sys(e, ERR_INVALID, c->error, "user %u cannot be taken on", s->user->uid);
	case STAGE_CWD:
		if (c->error == ENOENT)
			return err_set(e, ERR_INVALID, "cwd '%.100s' does not exist", s->cwd);
		if (c->error == ENOTDIR)
			return err_set(e, ERR_INVALID, "cwd '%.100s' is not a directory", s->cwd);
		return err_sys(e, exec_code(c->error), c->error, "cwd '%.100s'", s->cwd);
	case STAGE_EXEC:
		return err_sys(e, exec_code(c->error), c->error, "cannot execute '%.100s'", s->argv[0]);
	}
	return err_sys(e, exec_code(c->error), c->error, "cannot set up a process");
}

static void collect(pid_t pid)
{
	int status;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
}

/* Whether the child has left our memory in time. The kernel's wake-up is not a private one. */
static bool wait_gone(int *word)
{
	uint64_t now = clock_mono_ns(), until = now + WAIT_MS * 1000000ull;
	for (; now < until; now = clock_mono_ns()) {
		if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0)
			return true;
		struct timespec left = { .tv_sec = (time_t)((until - now) / 1000000000u),
					 .tv_nsec = (long)((until - now) % 1000000000u) };
		(void)syscall(SYS_futex, word, FUTEX_WAIT, 1, &left, NULL, 0);
	}
	return __atomic_load_n(word, __ATOMIC_ACQUIRE) == 0;
}

int launch_run(struct launch *s, pid_t *ret_pid, struct err *e)
{
	static char stack[32768] __attribute__((aligned(16)));
	struct child c = { .plan = s };
	int word = 1;
	pid_t pid = clone(child_main, stack + sizeof(stack), CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD, &c,
			  NULL, NULL, &word);
	if (pid >= 0 && !wait_gone(&word)) {
		/* Stopped or waiting, it dies at once. Had it just executed, the program would begin twice.
		 */
		(void)kill(pid, SIGKILL);
		collect(pid);
		c = (struct child){ .plan = s, .alone = true };
		pid = clone(child_main, stack + sizeof(stack), SIGCHLD, &c);
	}
	if (pid < 0)
		return err_sys(e, ERR_UNAVAILABLE, errno, "the box has no room for another process");
	if (c.error) {
		collect(pid);
		return explain(&c, e);
	}
	*ret_pid = pid;
	return 0;
}

/* ---- preparation ------------------------------------------------------ */

static bool has_nul(struct view v)
{
	return v.n && memchr(v.p, 0, v.n);
}

static int no_memory(struct err *e)
{
	return err_set(e, ERR_TOO_LARGE, "arguments and environment are too large");
}

static int make_argv(struct launch *s, const struct wire_start *msg, struct arena *a, struct err *e)
{
	size_t n = msg->argv.n;
	if (n == 0 || msg->argv.items[0].n == 0)
		return err_set(e, ERR_INVALID, "argv is empty");
	s->argv = arena_array(a, n + 1, sizeof(char *));
	s->sh_argv = arena_array(a, n + 2, sizeof(char *));
	if (!s->argv || !s->sh_argv)
		return no_memory(e);
	for (size_t i = 0; i < n; i++) {
		if (has_nul(msg->argv.items[i]))
			return err_set(e, ERR_INVALID, "argv[%zu] has a NUL byte", i);
		s->argv[i] = arena_str(a, msg->argv.items[i]);
		if (!s->argv[i])
			return no_memory(e);
	}
	s->sh_argv[0] = (char *)"/bin/sh";
	memcpy(s->sh_argv + 2, s->argv + 1, (n - 1) * sizeof(char *));
	return 0;
}

static int make_env(struct launch *s, const struct wire_start *msg, struct arena *a, struct err *e)
{
	s->envp = arena_array(a, msg->env.n + 1, sizeof(char *));
	if (!s->envp)
		return no_memory(e);
	for (size_t i = 0; i < msg->env.n; i++) {
		struct view name = msg->env.items[i].name, value = msg->env.items[i].value;
		if (name.n == 0 || has_nul(name) || memchr(name.p, '=', name.n) || has_nul(value))
			return err_set(e, ERR_INVALID,
				       "environment variable %zu has a bad name or a NUL byte", i);
		char *p = arena_alloc(a, name.n + value.n + 2);
		if (!p)
			return no_memory(e);
		memcpy(p, name.p, name.n);
		p[name.n] = '=';
		if (value.n)
			memcpy(p + name.n + 1, value.p, value.n);
		s->envp[i] = p;
	}
	return 0;
}

static struct view path_of(char **envp)
{
	for (; *envp; envp++)
		if (strncmp(*envp, "PATH=", 5) == 0)
			return view_of(*envp + 5);
	return VIEW(DEFAULT_PATH);
}

/* The places to try, so that the child need not put paths together. */
static int make_paths(struct launch *s, struct arena *a, struct err *e)
{
	const char *file = s->argv[0];
	struct view dirs = path_of(s->envp);
	size_t n = 1;
	for (size_t i = 0; i < dirs.n; i++)
		n += dirs.p[i] == ':';
	s->paths = arena_array(a, n + 1, sizeof(char *));
	if (!s->paths)
		return no_memory(e);
	if (strchr(file, '/')) {
		s->paths[0] = s->argv[0];
		return 0;
	}
	size_t file_n = strlen(file);
	for (size_t i = 0; i < n; i++) {
		struct view dir = view_split(dirs, ':', &dirs);
		if (dir.n == 0)
			dir = VIEW("."); /* as every shell has it */
		char *p = arena_alloc(a, dir.n + file_n + 2);
		if (!p)
			return no_memory(e);
		memcpy(p, dir.p, dir.n);
		p[dir.n] = '/';
		memcpy(p + dir.n + 1, file, file_n);
		s->paths[i] = p;
	}
	return 0;
}

int launch_prepare(struct launch *s, const struct wire_start *msg, struct arena *a, struct err *e)
{
	if (make_argv(s, msg, a, e) < 0 || make_env(s, msg, a, e) < 0 || make_paths(s, a, e) < 0)
		return -1;
	if (has_nul(msg->cwd))
		return err_set(e, ERR_INVALID, "cwd has a NUL byte");
	s->cwd_optional = msg->cwd.n == 0;
	s->cwd = s->cwd_optional ? s->user->home : arena_str(a, msg->cwd);
	if (s->cwd && s->cwd[0] != '/') { /* from the home, as paths of files are */
		struct buf b = BUF_INIT(msg->cwd.n + USER_HOME + 2);
		buf_puts(&b, s->user->home);
		buf_putc(&b, '/');
		buf_add(&b, msg->cwd);
		s->cwd = arena_str(a, buf_view(&b));
		buf_done(&b);
	}
	return s->cwd ? 0 : no_memory(e);
}
