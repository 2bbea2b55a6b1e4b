/*
 * Starting processes: see spawn.h.
 */
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p))
#endif

#include "fd.h"
#include "num.h"
#include "poison.h"

#define STACK_SIZE (128u * 1024)

/*
 * clone3 with a stack of its own cannot return through a C frame: the child
 * calls fn from here and exits with what it returned.
 */
static long clone3_call(struct clone_args *args, size_t size, int (*fn)(void *), void *arg)
{
#if defined(__x86_64__)
	register int (*r12)(void *) __asm__("r12") = fn;
	register void *r13 __asm__("r13") = arg;
	long ret;
	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%r13, %%rdi\n\t"
			 "call *%%r12\n\t"
			 "mov %%eax, %%edi\n\t"
			 "mov $60, %%eax\n\t"
			 "syscall\n\t"
			 "hlt\n"
			 "1:"
			 : "=a"(ret)
			 : "0"(SYS_clone3), "D"(args), "S"(size), "r"(r12), "r"(r13)
			 : "rcx", "r11", "memory");
	return ret;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = SYS_clone3;
	register long x0 __asm__("x0") = (long)args;
	register long x1 __asm__("x1") = (long)size;
	register int (*x20)(void *) __asm__("x20") = fn;
	register void *x21 __asm__("x21") = arg;
	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, xzr\n\t"
			 "mov x0, x21\n\t"
			 "blr x20\n\t"
			 "mov x8, #93\n\t"
			 "svc #0\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x1), "r"(x8), "r"(x20), "r"(x21)
			 : "x30", "memory");
	return x0;
#else
#error "clone3_call is not written for this architecture"
#endif
}

/*
 * *stack is made at the first use. A page below it cannot be written: a child that needs more dies there,
 * instead of writing into what else is ours. The child before leaves in the middle of its functions, by exec,
 * so that ASan takes the places between their variables for out of bounds until it is told otherwise.
 */
static int stack_ready(void **stack)
{
	if (!*stack) {
		size_t guard = (size_t)sysconf(_SC_PAGESIZE);
		char *p = mmap(NULL, guard + STACK_SIZE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
		if (p == MAP_FAILED)
			return -ENOMEM;
		if (mprotect(p, guard, PROT_NONE) < 0) {
			munmap(p, guard + STACK_SIZE);
			return -ENOMEM;
		}
		*stack = p + guard;
	}
	ASAN_UNPOISON_MEMORY_REGION(*stack, STACK_SIZE);
	return 0;
}

int spawn_vfork(const struct spawn *s, pid_t *ret_pid, int *ret_pidfd)
{
	static void *stack;
	if (stack_ready(&stack) < 0)
		return -ENOMEM;
	int pidfd = -1;
	struct clone_args args = {
		.flags = s->flags | CLONE_VM | CLONE_VFORK | CLONE_PIDFD |
			 (s->cgroup >= 0 ? CLONE_INTO_CGROUP : 0),
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
		.stack = (uint64_t)(uintptr_t)stack,
		.stack_size = STACK_SIZE,
		.cgroup = s->cgroup >= 0 ? (uint64_t)s->cgroup : 0,
	};
	/* A signal must not be handled in the child, on our memory. */
	sigset_t all, old;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	long r = clone3_call(&args, sizeof(args), s->fn, s->arg);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (r < 0)
		return (int)r;
	*ret_pid = (pid_t)r;
	*ret_pidfd = pidfd;
	return 0;
}

static int write_map(pid_t pid, const char *which, const struct spawn_map *m)
{
	char path[48], map[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, which);
	snprintf(map, sizeof(map), "%u %u %u\n", m->inside, m->outside, m->n);
	return fd_put(AT_FDCWD, path, map);
}

/* The process that holds a new user namespace until it has its maps. */
static pid_t holder_pid;

/* Lives until the parent closes the other end. Shares the parent's memory while
 * the parent runs: no errno, nothing but its own stack. */
static int holder(void *arg)
{
	const int *p = arg;
	char c;
	close(p[1]); /* our copy would keep the read from ending */
	ssize_t r = read(p[0], &c, 1);
	(void)r;
	return 0;
}

void spawn_collect(void)
{
	while (holder_pid && waitpid(holder_pid, NULL, 0) < 0 && errno == EINTR)
		;
	holder_pid = 0;
}

int spawn_userns(uint32_t base, uint32_t size, int *ret_fd)
{
	const struct spawn_map m = { 0, base, size };
	return spawn_userns_mapped(base, &m, &m, ret_fd);
}

int spawn_userns_mapped(uint32_t base, const struct spawn_map *uids, const struct spawn_map *gids,
			int *ret_fd)
{
	static void *stack;
	static int p[2]; /* outlives this call, as the holder may */
	spawn_collect(); /* its stack is needed again */
	if (stack_ready(&stack) < 0)
		return -ENOMEM;
	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	_cleanup_(closep) _unused_ int rd = p[0];
	_cleanup_(closep) _unused_ int wr = p[1];
	struct clone_args args = { .flags = CLONE_NEWUSER | CLONE_VM,
				   .exit_signal = SIGCHLD,
				   .stack = (uint64_t)(uintptr_t)stack,
				   .stack_size = STACK_SIZE };
	/* The namespace's owner is the effective uid of its maker. */
	long pid = -EPERM;
	if (syscall(SYS_setresgid, -1, base, -1) == 0 && syscall(SYS_setresuid, -1, base, -1) == 0)
		pid = clone3_call(&args, sizeof(args), holder, p);
	if (syscall(SYS_setresuid, -1, 0, -1) < 0 || syscall(SYS_setresgid, -1, 0, -1) < 0)
		abort(); /* going on as somebody else would be worse than ending */
	if (pid < 0)
		return (int)pid;
	holder_pid = (pid_t)pid;
	int fd = -1, r = write_map((pid_t)pid, "uid_map", uids);
	if (r == 0)
		r = write_map((pid_t)pid, "gid_map", gids);
	if (r == 0) {
		char path[48];
		snprintf(path, sizeof(path), "/proc/%ld/ns/user", pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
	}
	if (r == 0)
		*ret_fd = fd;
	return r; /* closing `wr` ends the holder */
}

int spawn_start_time(pid_t pid, uint64_t *ret)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	struct buf b = BUF_INIT(4096);
	int r = fd_slurp(AT_FDCWD, path, &b);
	struct view v = buf_view(&b);
	/* The name is in parentheses and may hold anything: count from the last one. */
	const char *end = r == 0 ? memrchr(v.p, ')', v.n) : NULL;
	if (r == 0 && !end)
		r = -EINVAL;
	if (r == 0) {
		struct view rest = view_skip(v, (size_t)(end - v.p) + 2), field = VIEW_NONE;
		for (int i = 3; i <= 22; i++)
			field = view_split(rest, ' ', &rest);
		r = num_u64(field, ret);
	}
	buf_done(&b);
	return r;
}
