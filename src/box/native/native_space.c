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

static void open_figures(struct native_child *c, unsigned disk, int unit)
{
	if (unit >= 0 && btrfs_figures(unit, c->figures[disk]) < 0)
		memset(c->figures[disk], 0xff, sizeof(c->figures[disk]));
}

void native_space_open(struct native_child *c, const struct native_files *files)
{
	const struct spec_workspaces *named = c->plan->spec.workspaces;
	memset(c->figures, 0xff, sizeof(c->figures));
	if (!c->native->asks)
		return;
	open_figures(c, NATIVE_OWN, files->storage);
	for (unsigned i = 0; named && i < named->n; i++)
		open_figures(c, NATIVE_NAMED + i, files->workspaces[i]);
}

void native_space_close(struct native_child *c)
{
	for (unsigned i = 0; i < NATIVE_DISKS; i++)
		for (unsigned j = 0; j < BTRFS_FIGURES; j++)
			fd_close(c->figures[i][j]);
}

static bool is_on(const struct native_child *c, const struct plan_mount *m, unsigned disk)
{
	if (m->kind == PLAN_WORKSPACE)
		return disk == NATIVE_NAMED + m->layer;
	bool own = m->kind == PLAN_STORE || (m->kind == PLAN_LAYER && !c->plan->spec.readonly_root);
	return own && disk == NATIVE_OWN;
}

/* disk=LIMIT,USED,RESERVED,MOUNT... */
static int describe(const struct native_child *c, unsigned disk, char line[NATIVE_SPACE_LINE])
{
	const int *f = c->figures[disk];
	size_t n = (size_t)snprintf(line, NATIVE_SPACE_LINE, "disk=%d,%d,%d", f[BTRFS_LIMIT], f[BTRFS_USED],
				    f[BTRFS_RESERVED]);
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

int native_space_load(const struct native_child *c, char lines[NATIVE_SPACE_LINES][NATIVE_SPACE_LINE])
{
	for (unsigned i = 0; i < NATIVE_SPACE_LINES; i++)
		lines[i][0] = 0;
	if (!c->native->asks)
		return seccomp_load(&c->native->filter);
	int fd = seccomp_load_asking(&c->native->filter_asking);
	if (fd < 0 || fcntl(fd, F_SETFD, 0) < 0)
		return fd < 0 ? fd : -errno;
	snprintf(lines[NATIVE_DISKS], NATIVE_SPACE_LINE, "ask=%d", fd);
	int r = 0;
	for (unsigned i = 0; r == 0 && i < NATIVE_DISKS; i++)
		if (c->figures[i][0] >= 0)
			r = describe(c, i, lines[i]);
	return r;
}
