/*
 * Starting a native box: see native.h. The parent's half: everything that can be
 * made ahead is made here, detached, and handed to the child as fds.
 */
#include "native.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "fd.h"
#include "native_mounts.h"
#include "native_space.h"
#include "spawn.h"
#include "poison.h"

#define HURRY 100 /* times the weight of a box that runs */

static void child_init(struct native_child *c, const struct native *n, const struct plan *p, int listener)
{
	*c = (struct native_child){
		.native = n, .plan = p, .listener = listener, .userns = -1, .v2 = -1, .net = -1
	};
	memset(c->mounts, 0xff, sizeof(c->mounts));
	memset(c->figures, 0xff, sizeof(c->figures));
}

static void child_done(struct native_child *c)
{
	for (unsigned i = 0; i < ELEMS(c->mounts); i++)
		fd_close(c->mounts[i]);
	for (unsigned i = 0; i < c->n_views; i++)
		fd_close(c->views[i].fd);
	for (unsigned i = 0; i < c->n_tasks; i++)
		fd_close(c->tasks[i]);
	native_space_close(c);
	fd_close(c->v2);
	fd_close(c->userns);
	fd_close(c->net);
}

/* The box's own files are in the way. */
static int point_error(const struct native_child *c, struct err *e)
{
	const char *why = c->failed_errno == ELOOP     ? "the way leads through a link"
			  : c->failed_errno == ENOTDIR ? "something there is no directory"
			  : c->failed_errno == EROFS   ? "it does not exist, and the root is read-only"
						       : NULL;
	if (why)
		return err_set(e, ERR_INVALID, "nothing can be mounted at %.100s: %s", c->failed_point, why);
	return err_sys(e, ERR_INVALID, c->failed_errno, "nothing can be mounted at %.100s", c->failed_point);
}

static int run_child(struct native_child *c, struct native_box *ret, struct err *e)
{
	const struct spawn s = {
		.flags = CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | (c->net < 0 ? CLONE_NEWNET : 0),
		.cgroup = c->v2,
		.fn = native_child_main,
		.arg = c,
	};
	struct native_box b = { .pidfd = -1, .gate = NETNS_GATE_NONE };
	int r = spawn_vfork(&s, &b.pid, &b.pidfd);
	if (r < 0)
		return err_sys(e, ERR_WALLS, r, "new namespaces");
	if (c->failed_step) {
		while (waitpid(b.pid, NULL, 0) < 0 && errno == EINTR)
			;
		fd_close(b.pidfd);
		return c->failed_point ? point_error(c, e)
				       : err_sys(e, ERR_WALLS, c->failed_errno, "%s", c->failed_step);
	}
	*ret = b;
	return 0;
}

/* The keeper waits for the child until it is PID 1, and so do all other creates: among busy sandboxes it
 * comes first until then. It runs nothing of its own yet. */
static int start_child(struct native *n, const char *id, struct native_child *c, struct native_box *ret,
		       struct err *e)
{
	int r = cgroup_weigh(&n->cgroups, id, HURRY);
	if (r < 0)
		return err_sys(e, ERR_WALLS, r, "cannot set the weight of the control group");
	if (run_child(c, ret, e) < 0)
		return -1;
	r = cgroup_weigh(&n->cgroups, id, 1);
	if (r == 0)
		return 0;
	(void)!kill(ret->pid, SIGKILL);
	while (waitpid(ret->pid, NULL, 0) < 0 && errno == EINTR)
		;
	fd_close(ret->pidfd);
	return err_sys(e, ERR_WALLS, r, "cannot set the weight of the control group");
}

static int join_cpuset(const struct native *n, struct native_child *c, struct err *e)
{
	if (n->cpuset_tasks < 0 || c->n_tasks == ELEMS(c->tasks))
		return 0;
	int fd = fcntl(n->cpuset_tasks, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return err_sys(e, ERR_WALLS, errno, "the control group of processors");
	c->tasks[c->n_tasks++] = fd;
	return 0;
}

static struct cgroup_limits limits_of(const struct plan *p)
{
	return (struct cgroup_limits){ .memory_bytes = p->spec.limits.memory_mb << 20,
				       .cpu_milli = p->spec.limits.cpu_milli,
				       .pids = p->spec.limits.pids };
}

/* The way into the groups of that name, and their view from within. */
static int open_groups(struct native *n, struct native_child *c, const char *name, struct err *e)
{
	if (cgroup_task_fds(&n->cgroups, name, c->tasks, &c->n_tasks, e) < 0 || join_cpuset(n, c, e) < 0)
		return -1;
	int r = native_sys_views(n, c->plan, name, c->views, &c->n_views);
	return r < 0 ? err_sys(e, ERR_WALLS, r, "the sandbox's view of its limits") : 0;
}

/* What takes longest and needs neither the box's name nor its groups. */
static int open_world(struct native *n, struct native_child *c, const struct plan_image *image,
		      const struct native_files *files, struct err *e)
{
	native_space_open(c, files);
	int r = spawn_userns(c->plan->uid_base, PLAN_IDS, &c->userns);
	if (r < 0)
		return err_sys(e, ERR_WALLS, r, "user namespace");
	return native_mounts(n, c->plan, image, files, c, e);
}

/* ---- ahead ---- */

void native_forget(struct native *n)
{
	if (!n->next)
		return;
	child_done(&n->next->child);
	free(n->next);
	n->next = NULL;
	if (cgroup_renames(&n->cgroups))
		(void)!cgroup_remove(&n->cgroups, NATIVE_NEXT);
}

int native_prepare(struct native *n, const struct plan *p, const struct plan_image *image,
		   const struct native_files *files, struct err *e)
{
	const struct cgroup_limits limits = limits_of(p);
	native_forget(n);
	if (cgroup_renames(&n->cgroups) && cgroup_make_ahead(&n->cgroups, NATIVE_NEXT, &limits, e) < 0)
		return -1;
	n->next = calloc(1, sizeof(*n->next));
	if (!n->next) {
		(void)!cgroup_remove(&n->cgroups, NATIVE_NEXT);
		return err_sys(e, ERR_INTERNAL, ENOMEM, "the next sandbox");
	}
	n->next->plan = *p;
	struct native_child *c = &n->next->child;
	child_init(c, n, &n->next->plan, -1);
	int r = open_world(n, c, image, files, e);
	if (r == 0 && cgroup_renames(&n->cgroups))
		r = open_groups(n, c, NATIVE_NEXT, e);
	spawn_collect();
	if (r < 0)
		native_forget(n);
	return r;
}

/* The groups of a box that begins with what was made ahead. */
static int take_groups(struct native *n, struct native_child *c, const char *id,
		       const struct cgroup_limits *limits, struct err *e)
{
	if (cgroup_renames(&n->cgroups))
		return cgroup_take(&n->cgroups, NATIVE_NEXT, id, limits, e);
	if (cgroup_make(&n->cgroups, id, limits, e) < 0)
		return -1;
	if (open_groups(n, c, id, e) == 0)
		return 0;
	(void)!cgroup_remove(&n->cgroups, id);
	return -1;
}

static int take_next(struct native *n, const struct plan *p, const struct native_files *files,
		     struct native_child *c, struct err *e)
{
	const struct cgroup_limits limits = limits_of(p);
	if (!n->next)
		return err_set(e, ERR_INTERNAL, "nothing was made ahead");
	*c = n->next->child;
	free(n->next);
	n->next = NULL;
	c->plan = p;
	c->listener = files->listener;
	int r = take_groups(n, c, p->spec.id, &limits, e);
	if (r < 0)
		child_done(c);
	return r;
}

/* ---- at once ---- */

static int make_all(struct native *n, const struct plan *p, const struct plan_image *image,
		    const struct native_files *files, struct native_child *c, struct err *e)
{
	const struct cgroup_limits limits = limits_of(p);
	child_init(c, n, p, files->listener);
	if (cgroup_make(&n->cgroups, p->spec.id, &limits, e) < 0)
		return -1;
	if (open_world(n, c, image, files, e) == 0 && open_groups(n, c, p->spec.id, e) == 0)
		return 0;
	child_done(c);
	spawn_collect();
	(void)!cgroup_remove(&n->cgroups, p->spec.id);
	return -1;
}

int native_start(struct native *n, const struct plan *p, const struct plan_image *image,
		 const struct native_files *files, struct native_box *ret, struct err *e)
{
	struct native_child c;
	int r = files->prepared ? take_next(n, p, files, &c, e) : make_all(n, p, image, files, &c, e);
	if (r < 0)
		return r;
	struct netns_gate gate = NETNS_GATE_NONE;
	if (n->n_nets) {
		const struct native_net *net = &n->nets[--n->n_nets];
		c.net = net->ns;
		gate = net->gate;
	}
	r = cgroup_unified_fd(&n->cgroups, p->spec.id, &c.v2, e);
	if (r == 0)
		r = start_child(n, p->spec.id, &c, ret, e);
	child_done(&c);
	spawn_collect();
	if (r < 0) {
		netns_gate_close(&gate);
		(void)!cgroup_remove(&n->cgroups, p->spec.id);
		return r;
	}
	ret->gate = gate;
	return 0;
}
