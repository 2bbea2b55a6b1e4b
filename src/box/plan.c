/*
 * The plan of a box: see plan.h.
 */
#include "plan.h"

#include <linux/capability.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "poison.h"

#define CAP(c) (1ull << (c))
#define QUIET  (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* What programs ask for: processors, memory, load, file systems, settings. Left out are the machine's devices
 * and disks, and whatever takes a lock that others wait for (locks, zoneinfo, diskstats, consoles, crypto).
 */
static const char *const plan_proc[] = {
	"cgroups", "cpuinfo", "devices", "filesystems", "loadavg",     "meminfo", "mounts",  "net",    "self",
	"stat",    "swaps",   "sys",     "sysvipc",     "thread-self", "uptime",  "version", "vmstat", NULL,
};

const char *const plan_readonly[] = { "sys", NULL };

bool plan_proc_hidden(const char *name)
{
	if (name[0] == '.' || (name[0] >= '0' && name[0] <= '9'))
		return false;
	for (unsigned i = 0; plan_proc[i]; i++)
		if (strcmp(name, plan_proc[i]) == 0)
			return false;
	return true;
}

static void add_dir(struct plan *p, const char *prefix, int number, unsigned mode, uint32_t owner)
{
	struct plan_dir *d = &p->dirs[p->n_dirs++];
	if (number < 0)
		snprintf(d->name, sizeof(d->name), "%s", prefix);
	else
		snprintf(d->name, sizeof(d->name), "%s%d", prefix, number);
	d->mode = mode;
	d->owner = owner;
}

static void add_mount(struct plan *p, struct plan_mount m)
{
	assert(p->n_mounts < ELEMS(p->mounts));
	p->mounts[p->n_mounts++] = m;
}

static void add_rlimit(struct plan *p, int resource, const char *name, uint64_t value)
{
	assert(p->n_rlimits < ELEMS(p->rlimits));
	p->rlimits[p->n_rlimits++] = (struct plan_rlimit){ resource, name, value };
}

static void plan_workspaces(struct plan *p)
{
	const struct spec_workspaces *w = p->spec.workspaces;
	bool own = true;
	for (unsigned i = 0; w && i < w->n; i++)
		own = own && strcmp(w->items[i].path, SPEC_WORKSPACE) != 0;
	/* First: others may lie in it. */
	if (own)
		add_mount(p, (struct plan_mount){ .kind = PLAN_STORE,
						  .target = SPEC_WORKSPACE,
						  .source = "workspace",
						  .attr = QUIET });
	for (unsigned i = 0; w && i < w->n; i++)
		add_mount(p, (struct plan_mount){ .kind = PLAN_WORKSPACE,
						  .target = w->items[i].path,
						  .layer = i,
						  .attr = QUIET |
							  (w->items[i].readonly ? MOUNT_ATTR_RDONLY : 0) });
}

static void plan_files(struct plan *p, const struct plan_image *image)
{
	for (unsigned i = 0; i < image->n; i++) {
		add_mount(p, (struct plan_mount){ .kind = PLAN_LAYER,
						  .target = image->layers[i].at,
						  .layer = i,
						  .attr = QUIET |
							  (p->spec.readonly_root ? MOUNT_ATTR_RDONLY : 0) });
		if (!p->spec.readonly_root) {
			add_dir(p, "upper", (int)i, 0755, 0);
			add_dir(p, "work", (int)i, 0700, 0);
		}
	}
	add_dir(p, "tmp", -1, 01777, 0);
	add_dir(p, "workspace", -1, 0755, PLAN_USER);

	/* Memory file systems count as the box's memory; together they stay well below it. */
	uint64_t memory = p->spec.limits.memory_mb << 20;
	add_mount(p, (struct plan_mount){
			     .kind = PLAN_PROC, .target = "/proc", .attr = QUIET | MOUNT_ATTR_NOEXEC });
	add_mount(p,
		  (struct plan_mount){ .kind = PLAN_DEV,
				       .target = "/dev",
				       .attr = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY });
	add_mount(p, (struct plan_mount){ .kind = PLAN_DEVPTS,
					  .target = "/dev/pts",
					  .attr = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC });
	add_mount(p, (struct plan_mount){ .kind = PLAN_TMPFS,
					  .target = "/dev/shm",
					  .size = memory / 2,
					  .mode = "1777",
					  .attr = QUIET | MOUNT_ATTR_NOEXEC });
	add_mount(p, (struct plan_mount){ .kind = PLAN_TMPFS,
					  .target = "/run",
					  .size = MIN(memory / 8, 16ull << 20),
					  .mode = "755",
					  .attr = QUIET });
	add_mount(p, (struct plan_mount){
			     .kind = PLAN_STORE, .target = "/tmp", .source = "tmp", .attr = QUIET });
	plan_workspaces(p);
	for (unsigned i = 0; p->spec.mounts && i < p->spec.mounts->n; i++)
		add_mount(p, (struct plan_mount){
				     .kind = PLAN_HOST,
				     .target = p->spec.mounts->items[i].target,
				     .layer = i,
				     .attr = QUIET |
					     (p->spec.mounts->items[i].readonly ? MOUNT_ATTR_RDONLY : 0) });
}

int plan_make(const struct spec *s, const struct plan_image *image, uint32_t slot, uint32_t uids_base,
	      struct plan *ret, struct err *e)
{
	if (image->n == 0 || image->n > PLAN_LAYERS || !view_is(view_of(image->layers[0].at), "/"))
		return err_set(e, ERR_INTERNAL, "the image has no root layer");
	uint64_t base = (uint64_t)uids_base + (uint64_t)slot * PLAN_STRIDE;
	if (uids_base < 100000 || base + PLAN_IDS >= UINT32_MAX)
		return err_set(e, ERR_INTERNAL, "the uid range of slot %u does not exist", slot);
	struct plan p = { .spec = *s, .uid_base = (uint32_t)base };
	plan_files(&p, image);

	add_rlimit(&p, RLIMIT_NOFILE, "nofile", s->limits.nofile);
	add_rlimit(&p, RLIMIT_CORE, "core", 0);
	add_rlimit(&p, RLIMIT_MEMLOCK, "memlock", 64 << 10);
	add_rlimit(&p, RLIMIT_MSGQUEUE, "msgqueue", 800 << 10);
	add_rlimit(&p, RLIMIT_RTPRIO, "rtprio", 0);
	add_rlimit(&p, RLIMIT_NICE, "nice", 0);

	/* Enough to own files, change identity and bind low ports: what package managers
	 * and services need. Over mounts, devices, the network or the kernel it has nothing:
	 * those namespaces belong to the host's user namespace. */
	p.root_caps = CAP(CAP_CHOWN) | CAP(CAP_DAC_OVERRIDE) | CAP(CAP_FOWNER) | CAP(CAP_FSETID) |
		      CAP(CAP_KILL) | CAP(CAP_SETGID) | CAP(CAP_SETUID) | CAP(CAP_NET_BIND_SERVICE);
	*ret = p;
	return 0;
}
