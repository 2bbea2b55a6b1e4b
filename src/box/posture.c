/*
 * Probing the machine: see posture.h.
 */
#include "posture.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fd.h"
#include "kernel.h"
#include "landlock.h"
#include "seccomp.h"
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

void posture_feature(struct posture *p, enum feature f, bool have, uint32_t without, const char *detail)
{
	const struct feature_text *t = &feature_texts[f];
	bool left_out = have && without & FEATURE_BIT(f);
	if (have && !left_out)
		p->features |= FEATURE_BIT(f);
	if (left_out)
		posture_add(p, t->name, false, false, "left out by posture.without: %s", t->lacks);
	else if (detail || have)
		posture_add(p, t->name, have, false, "%s", detail ? detail : t->gives);
	else
		posture_add(p, t->name, false, false, "%s; needs %s", t->lacks, t->needs);
}

/* In a child, so that this process stays where it is. 0, an errno, or -1. */
static int in_child(int (*fn)(void *arg), void *arg)
{
	pid_t pid = fork();
	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(fn(arg));
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return !WIFEXITED(status) ? EIO : WEXITSTATUS(status) == 0xff ? -1 : WEXITSTATUS(status);
}

static int unshared(void *arg)
{
	return unshare(*(const int *)arg) < 0 ? errno : 0;
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
		int flag = kinds[i].flag, r = in_child(unshared, &flag);
		posture_add(p, kinds[i].name, r == 0, true, "%s", r ? strerror(r) : "available");
	}
}

/* Before 6.3 an exec does not enter the time namespace that was unshared, and the kernel refuses
 * clone(CLONE_VM) as long as children would be in another one: PID 1 could start nothing. */
static void probe_time(struct posture *p, uint32_t without)
{
	int flag = CLONE_NEWTIME;
	posture_feature(p, FEATURE_OWN_UPTIME, kernel_at_least(6, 3) && in_child(unshared, &flag) == 0,
			without, NULL);
}

/* PID 1 answers two calls for the kernel: src/init/space.h. */
static void probe_calls(struct posture *p, uint32_t without)
{
	posture_feature(p, FEATURE_OWN_CALLS, seccomp_can_ask(), without, NULL);
}

static void probe_cgroups(struct posture *p, const struct cgroup_host *h, uint32_t without)
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
	bool v2 = h->unified >= 0;
	posture_feature(p, FEATURE_CGROUP_KILL, v2, without, NULL);
	posture_feature(p, FEATURE_FREEZER, v2, without, NULL);
	posture_feature(p, FEATURE_SOCKET_MEMORY, h->socket_limit, 0, NULL);
}

/* ---- Landlock ---- */

unsigned posture_landlock(uint32_t without)
{
	return LANDLOCK_PARTS &
	       ~((without & FEATURE_BIT(FEATURE_LANDLOCK_TRUNCATE) ? LANDLOCK_TRUNCATE : 0u) |
		 (without & FEATURE_BIT(FEATURE_LANDLOCK_IOCTL_DEV) ? LANDLOCK_IOCTL_DEV : 0u) |
		 (without & FEATURE_BIT(FEATURE_LANDLOCK_SCOPES) ? LANDLOCK_SCOPES : 0u));
}

/* In a child: confined as a box is, but for the directory that it may reach, it must not reach any file; and
 * with the scopes no process outside. An errno, or -1 where Landlock was loaded and does not hold. */
static int confined(void *arg)
{
	unsigned parts = posture_landlock(*(const uint32_t *)arg);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return errno;
	int r = landlock_only_with(parts, NULL, 0);
	if (r < 0)
		return -r;
	if (open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) >= 0 || errno != EACCES)
		return -1;
	bool scoped = kill(getppid(), 0) < 0 && errno == EPERM;
	return parts & landlock_parts(landlock_abi()) & LANDLOCK_SCOPES && !scoped ? -1 : 0;
}

static void probe_landlock(struct posture *p, uint32_t without)
{
	int abi = landlock_abi(), r = abi < 0 ? -abi : in_child(confined, &without);
	if (r)
		posture_add(p, "landlock", false, true, "%s",
			    r > 0 ? strerror(r) : "it was loaded and does not hold");
	else
		posture_add(p, "landlock", true, true, "ABI %d, files outside a sandbox are out of reach",
			    abi);
	unsigned parts = r ? 0 : landlock_parts(abi);
	posture_feature(p, FEATURE_LANDLOCK_TRUNCATE, parts & LANDLOCK_TRUNCATE, without, NULL);
	posture_feature(p, FEATURE_LANDLOCK_IOCTL_DEV, parts & LANDLOCK_IOCTL_DEV, without, NULL);
	posture_feature(p, FEATURE_LANDLOCK_SCOPES, parts & LANDLOCK_SCOPES, without, NULL);
}

/* ---- seccomp ---- */

/* The very filter of boxes, in a child; a call that it refuses must be refused. */
static int filtered(void *arg)
{
	struct seccomp_filter f;
	uint8_t rules[SECCOMP_CALLS];
	(void)arg;
	seccomp_box(rules);
	int r = seccomp_compile(rules, &f);
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	if (r == 0)
		r = seccomp_load(&f);
	if (r < 0)
		return -r;
	return unshare(CLONE_NEWUTS) == 0 || errno != EPERM ? -1 : 0;
}

static void probe_seccomp(struct posture *p)
{
	int r = in_child(filtered, NULL);
	posture_add(p, "seccomp", r == 0, true, "%s",
		    r == 0  ? "the filter of sandboxes loads and holds"
		    : r > 0 ? strerror(r)
			    : "it was loaded and does not hold");
}

/* ---- privilege ---- */

static const struct {
	uint64_t bit;
	const char *name;
} cap_names[] = {
	{ CAPS(CAP_SYS_ADMIN), "sys_admin" },
	{ CAPS(CAP_NET_ADMIN), "net_admin" },
	{ CAPS(CAP_MKNOD), "mknod" },
	{ CAPS(CAP_SYS_PTRACE), "sys_ptrace" },
	{ CAPS(CAP_SYS_CHROOT), "sys_chroot" },
	{ CAPS(CAP_SETPCAP), "setpcap" },
	{ CAPS(CAP_DAC_READ_SEARCH), "dac_read_search" },
	{ CAPS(CAP_SETUID), "setuid" },
	{ CAPS(CAP_SETGID), "setgid" },
	{ CAPS(CAP_CHOWN), "chown" },
	{ CAPS(CAP_DAC_OVERRIDE), "dac_override" },
	{ CAPS(CAP_FOWNER), "fowner" },
	{ CAPS(CAP_FSETID), "fsetid" },
	{ CAPS(CAP_KILL), "kill" },
};

/* The initial user namespace maps every id to itself. */
static bool is_initial(struct view map)
{
	static const char *const want[] = { "0", "0", "4294967295" };
	for (size_t i = 0; i < ELEMS(want); i++) {
		while (map.n && (map.p[0] == ' ' || map.p[0] == '\t'))
			map = view_skip(map, 1);
		size_t n = 0;
		while (n < map.n && map.p[n] >= '0' && map.p[n] <= '9')
			n++;
		if (!view_is(view_head(map, n), want[i]))
			return false;
		map = view_skip(map, n);
	}
	return true;
}

int posture_judge(struct view uid_map, unsigned uid, uint64_t permitted, struct err *e)
{
	uint64_t missing = POSTURE_CAPS & ~permitted;
	if (uid != 0)
		return err_set(e, ERR_FORBIDDEN, "must run as root");
	if (!is_initial(uid_map))
		return err_set(e, ERR_FORBIDDEN,
			       "root of a user namespace (a rootless container?) cannot make sandboxes: run "
			       "paddockd "
			       "as root of the machine, or in a privileged container");
	if (!missing)
		return 0;
	char names[96] = "";
	size_t n = 0;
	for (size_t i = 0; i < ELEMS(cap_names); i++)
		if (missing & cap_names[i].bit && n < sizeof(names) - 20)
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "",
					      cap_names[i].name);
	return err_set(e, ERR_FORBIDDEN,
		       "root lacks capabilities (%s): run paddockd on the machine itself, or in a privileged "
		       "container",
		       names);
}

int posture_privilege(struct err *e)
{
	struct buf map = BUF_INIT(4096);
	struct caps c = { 0 };
	int r = fd_slurp(AT_FDCWD, "/proc/self/uid_map", &map);
	if (r == 0)
		r = caps_get(&c);
	r = r < 0 ? err_sys(e, ERR_INTERNAL, r, "cannot tell our privileges")
		  : posture_judge(buf_view(&map), geteuid(), c.permitted, e);
	buf_done(&map);
	return r;
}

/* ---- all of it ---- */

static void probe_kernel(struct posture *p)
{
	struct err e = { 0 };
	struct utsname u;
	uname(&u);
	if (kernel_check(u.release, &e) < 0)
		posture_add(p, "kernel", false, true, "%s", e.msg);
	else
		posture_add(p, "kernel", true, true, "%.60s %.30s", u.release, u.machine);
}

void posture_probe(struct posture *p, const struct cgroup_host *h, uint32_t without)
{
	*p = (struct posture){ .ok = true };
	struct err e = { 0 };
	probe_kernel(p);
	bool root = posture_privilege(&e) == 0;
	posture_add(p, "root", root, true, "%s", root ? "running as root" : e.msg);
	posture_lsm(p);
	probe_namespaces(p);
	probe_time(p, without);
	probe_calls(p, without);
	probe_landlock(p, without);
	probe_seccomp(p);
	probe_cgroups(p, h, without);
	struct rlimit rl;
	getrlimit(RLIMIT_NOFILE, &rl);
	posture_add(p, "nofile", rl.rlim_max >= 4096, true, "hard limit %llu",
		    (unsigned long long)rl.rlim_max);
}

const struct posture_part *posture_find(const struct posture *p, const char *name)
{
	for (unsigned i = 0; i < p->n; i++)
		if (strcmp(p->parts[i].name, name) == 0)
			return &p->parts[i];
	return NULL;
}

const struct posture_part *posture_failed(const struct posture *p)
{
	for (unsigned i = 0; i < p->n; i++)
		if (p->parts[i].required && !p->parts[i].ok)
			return &p->parts[i];
	return NULL;
}

int posture_require(const struct posture *p, uint32_t features, struct err *e)
{
	for (unsigned f = 0; f < FEATURES; f++) {
		if (!(features & ~p->features & FEATURE_BIT(f)))
			continue;
		const struct posture_part *part = posture_find(p, feature_texts[f].name);
		return err_set(e, ERR_WALLS, "%s is required and not to be had here: %s",
			       feature_texts[f].name, part ? part->detail : feature_texts[f].lacks);
	}
	return 0;
}
