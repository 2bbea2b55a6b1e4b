/*
 * Probing the machine: see posture.h.
 */
#include "posture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fd.h"
#include "landlock.h"
#include "poison.h"

void posture_add(struct posture *p, const char *name, bool ok, bool required, const char *fmt, ...)
{
	if (required && !ok)
		p->ok = false; /* also when there is no room to say why */
	if (p->n == POSTURE_PARTS)
		return;
	struct posture_part *part = &p->parts[p->n++];
	*part = (struct posture_part){ .name = name, .ok = ok, .required = required };
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(part->detail, sizeof(part->detail), fmt, ap);
	va_end(ap);
}

/* In a child, so that this process stays where it is. 0 or an errno. */
static int try_unshare(int flags)
{
	pid_t pid = fork();
	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(unshare(flags) < 0 ? errno : 0);
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

static void probe_namespaces(struct posture *p)
{
	static const struct {
		const char *name;
		int flag;
	} kinds[] = { { "namespace.user", CLONE_NEWUSER },    { "namespace.pid", CLONE_NEWPID },
		      { "namespace.mount", CLONE_NEWNS },     { "namespace.net", CLONE_NEWNET },
		      { "namespace.ipc", CLONE_NEWIPC },      { "namespace.uts", CLONE_NEWUTS },
		      { "namespace.cgroup", CLONE_NEWCGROUP } };
	for (size_t i = 0; i < ELEMS(kinds); i++) {
		int r = try_unshare(kinds[i].flag);
		posture_add(p, kinds[i].name, r == 0, true, "%s", r ? strerror(r) : "available");
	}
}

static void probe_cgroups(struct posture *p, const struct cgroup_host *h)
{
	static const struct {
		const char *name;
		enum cgroup_controller c;
		bool required;
	} kinds[] = { { "limit.memory", CGROUP_MEMORY, true },
		      { "limit.cpu", CGROUP_CPU, true },
		      { "limit.pids", CGROUP_PIDS, true },
		      { "usage.cpu", CGROUP_CPUACCT, false } };
	for (size_t i = 0; i < ELEMS(kinds); i++) {
		const struct cgroup_tree *t = NULL;
		for (unsigned k = 0; k < h->n; k++)
			if (h->trees[k].controllers & 1u << kinds[i].c)
				t = &h->trees[k];
		posture_add(p, kinds[i].name, t != NULL, kinds[i].required, "%s%.90s",
			    t ? t->v2 ? "cgroup v2 at " : "cgroup v1 at " : "",
			    t ? t->path : h->why[kinds[i].c]);
	}
	posture_add(p, "limit.swap", h->swap_limit, true, "%s",
		    h->swap_limit ? "limited with memory, or the machine has none"
				  : "swap exists and cannot be limited");
	posture_add(p, "cgroup.kill", h->unified >= 0, false, "%s",
		    h->unified >= 0 ? "whole boxes are killed at once"
				    : "no v2 tree: boxes are killed by their PID 1");
}

void posture_probe(struct posture *p, const struct cgroup_host *h)
{
	*p = (struct posture){ .ok = true };
	struct utsname u;
	uname(&u);
	posture_add(p, "kernel", true, false, "%.60s %.30s", u.release, u.machine);
	posture_add(p, "root", geteuid() == 0, true, "%s",
		    geteuid() == 0 ? "running as root" : "must run as root");
	probe_namespaces(p);
	int abi = landlock_abi();
	posture_add(p, "landlock", abi >= 1, true, abi >= 1 ? "ABI %d" : "not available (errno %d)",
		    abi < 0 ? -abi : abi);
	uint32_t action = SECCOMP_RET_ERRNO;
	bool seccomp = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
	posture_add(p, "seccomp", seccomp, true, "%s", seccomp ? "filters available" : strerror(errno));
	_cleanup_(closep) int fs = (int)syscall(SYS_fsopen, "overlay", 1u);
	posture_add(p, "overlay", fs >= 0, true, "%s", fs >= 0 ? "available" : strerror(errno));
	probe_cgroups(p, h);
	struct rlimit rl;
	getrlimit(RLIMIT_NOFILE, &rl);
	posture_add(p, "nofile", rl.rlim_max >= 4096, true, "hard limit %llu",
		    (unsigned long long)rl.rlim_max);
}
