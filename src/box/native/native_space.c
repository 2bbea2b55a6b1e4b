/*
 * See native_space.h. A mount is named by its id, which every process of the machine sees alike and which the
 * box cannot give to another.
 */
#include "native_space.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "fd.h"
#include "poison.h"

void native_space_open(struct native_child *c, const struct native_files *files)
{
	const int units[NATIVE_DISKS] = { [NATIVE_OWN] = files->storage, [NATIVE_NAMED] = files->workspace };
	memset(c->figures, 0xff, sizeof(c->figures));
	for (unsigned i = 0; c->native->asks && i < NATIVE_DISKS; i++)
		if (units[i] >= 0 && btrfs_figures(units[i], c->figures[i]) < 0)
			memset(c->figures[i], 0xff, sizeof(c->figures[i]));
}

void native_space_close(struct native_child *c)
{
	for (unsigned i = 0; i < NATIVE_DISKS; i++)
		for (unsigned j = 0; j < BTRFS_FIGURES; j++)
			fd_close(c->figures[i][j]);
}

static bool is_on(const struct native_child *c, const struct plan_mount *m, enum native_disk disk)
{
	if (m->kind == PLAN_WORKSPACE)
		return disk == NATIVE_NAMED;
	bool own = m->kind == PLAN_STORE || (m->kind == PLAN_LAYER && !c->plan->spec.readonly_root);
	return own && disk == NATIVE_OWN;
}

/* disk=LISTENER,LIMIT,USED,RESERVED,MOUNT... */
static int describe(const struct native_child *c, enum native_disk disk, int listener,
		    char line[NATIVE_SPACE_LINE])
{
	const int *f = c->figures[disk];
	size_t n = (size_t)snprintf(line, NATIVE_SPACE_LINE, "disk=%d,%d,%d,%d", listener, f[BTRFS_LIMIT],
				    f[BTRFS_USED], f[BTRFS_RESERVED]);
	for (unsigned i = 0; i < BTRFS_FIGURES; i++)
		if (fcntl(f[i], F_SETFD, 0) < 0)
			return -errno;
	for (unsigned i = 0; i < c->plan->n_mounts; i++) {
		uint64_t id;
		if (!is_on(c, &c->plan->mounts[i], disk))
			continue;
		int r = fd_mount(c->mounts[i], &id);
		if (r < 0)
			return r;
		n += (size_t)snprintf(line + n, NATIVE_SPACE_LINE - n, ",%llu", (unsigned long long)id);
		if (n >= NATIVE_SPACE_LINE)
			return -E2BIG;
	}
	return 0;
}

int native_space_load(const struct native_child *c, char lines[NATIVE_DISKS][NATIVE_SPACE_LINE])
{
	bool any = false;
	for (unsigned i = 0; i < NATIVE_DISKS; i++) {
		lines[i][0] = 0;
		any |= c->figures[i][0] >= 0;
	}
	if (!any)
		return seccomp_load(&c->native->filter);
	int fd = seccomp_load_asking(&c->native->filter_asking);
	if (fd < 0 || fcntl(fd, F_SETFD, 0) < 0)
		return fd < 0 ? fd : -errno;
	int r = 0;
	for (unsigned i = 0; r == 0 && i < NATIVE_DISKS; i++)
		if (c->figures[i][0] >= 0)
			r = describe(c, (enum native_disk)i, fd, lines[i]);
	return r;
}
