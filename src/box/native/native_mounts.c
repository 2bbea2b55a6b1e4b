/*
 * The mounts of a box that do not need its namespaces: see native_mounts.h.
 */
#include "native_mounts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "fd.h"
#include "feature.h"
#include "mnt.h"
#include "spawn.h"
#include "poison.h"

#define NO_ID (UINT32_MAX - 1) /* that nobody has */
#define PTYS  "64" /* a box's share of kernel.pty.max, which all boxes and the host have together */

static void close_late(struct native *n, int *fd)
{
	if (*fd >= 0 && n->n_late < ELEMS(n->late))
		n->late[n->n_late++] = *fd;
	else
		fd_close(*fd);
	*fd = -EBADF;
}

void native_tidy(struct native *n, unsigned leave)
{
	while (n->n_late > leave)
		fd_close(n->late[--n->n_late]);
}

/* A box that began with the files of another shows them, also where it cannot change them. */
static bool has_files(int storage, const char *name)
{
	int fd = openat(storage, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	bool found = false;
	if (!d) {
		fd_close(fd);
		return false;
	}
	for (struct dirent *de; !found && (de = readdir(d));)
		found = strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0;
	closedir(d);
	return found;
}

/* Where the tools go: over the layer that has /usr/bin, unless that is no plain directory there. What a
 * set-uid sudo of the image would do cannot work in a box, so that ours hides it. */
static bool wants_tools(const struct native *n, const struct plan *p, const struct plan_mount *m,
			const struct plan_image *image)
{
	bool split = image->n > 1 && strcmp(image->layers[1].at, "/usr") == 0;
	if (!p->spec.sudo || n->tools < 0 || m->layer != (split ? 1u : 0u))
		return false;
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	_cleanup_(closep) int bin = (int)syscall(SYS_openat2, image->layers[m->layer].dir,
						 split ? "bin" : "usr/bin", &how, sizeof(how));
	return bin >= 0 || errno == ENOENT;
}

/* `store`: the mount of the storage that the layers share, made by the first that needs it. */
static int layer_mount(struct native *n, const struct plan *p, const struct plan_mount *m,
		       const struct plan_image *image, int storage, int userns, int *store)
{
	const uint64_t quiet = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID;
	int lower = mnt_tree(image->layers[m->layer].dir, "", quiet | MOUNT_ATTR_RDONLY, userns);
	char upper[16], work[16];
	snprintf(upper, sizeof(upper), "upper%u", m->layer);
	snprintf(work, sizeof(work), "work%u", m->layer);
	bool bare = p->spec.readonly_root && !has_files(storage, upper), tooled = wants_tools(n, p, m, image);
	if (lower < 0 || (bare && !tooled))
		return lower;
	if (!bare && *store < 0)
		*store = mnt_tree(storage, "", quiet, userns);
	int tools =
		tooled ? mnt_tree(n->tools, m->layer ? "usr" : "", quiet | MOUNT_ATTR_RDONLY, userns) : -1;
	int r = *store < 0 && !bare ? *store : tooled && tools < 0 ? tools : 0;
	if (r == 0)
		r = mnt_overlay(
			&(struct mnt_overlay){ .lower = lower,
					       .store = bare ? -1 : *store,
					       .over = tooled ? &tools : NULL,
					       .upper = bare ? NULL : upper,
					       .work = work,
					       .owner = p->uid_base,
					       .scratch = n->scratch,
					       .attach = n->without & FEATURE_BIT(FEATURE_DETACHED_LAYERS) });
	close_late(n, &lower);
	if (mnt_attached && *store >= 0) /* it was unmounted again, and is of no more use */
		close_late(n, store);
	if (tools >= 0)
		close_late(n, &tools);
	if (r >= 0 && p->spec.readonly_root) {
		int set = mnt_set_attr(r, MOUNT_ATTR_RDONLY);
		if (set < 0) {
			fd_close(r);
			return set;
		}
	}
	return r;
}

static int tmpfs_mount(const struct plan *p, const struct plan_mount *m)
{
	char size[24], id[16];
	snprintf(size, sizeof(size), "%llu", (unsigned long long)m->size);
	snprintf(id, sizeof(id), "%u", p->uid_base);
	const struct mnt_option options[] = {
		{ "size", size }, { "mode", m->mode }, { "uid", id }, { "gid", id }, { "nr_inodes", "65536" }
	};
	return mnt_fs("tmpfs", options, ELEMS(options), m->attr);
}

static int devpts_mount(const struct plan *p, const struct plan_mount *m)
{
	char gid[16];
	snprintf(gid, sizeof(gid), "%u", p->uid_base + 5); /* tty */
	const struct mnt_option options[] = { { "newinstance", NULL },
					      { "ptmxmode", "0666" },
					      { "mode", "0620" },
					      { "gid", gid },
					      { "max", PTYS } };
	return mnt_fs("devpts", options, ELEMS(options), m->attr);
}

/* The owner of the directory is the box's user, and nobody else on the disk is anybody in the box: neither
 * its root nor another can be made the owner of anything there. A directory of root's has no owner in the
 * box. */
static int host_mount(const struct plan *p, const struct plan_mount *m, int dir)
{
	struct stat st;
	if (fstat(dir, &st) < 0)
		return -errno;
	bool writable = !(m->attr & MOUNT_ATTR_RDONLY);
	if (writable && (st.st_uid == 0 || st.st_gid == 0)) {
		snprintf(mnt_why, sizeof(mnt_why),
			 "it belongs to root: mount it read-only, or give it to a user");
		return -EPERM;
	}
	uint32_t user = p->uid_base + PLAN_USER;
	const struct spawn_map uid = { st.st_uid ? st.st_uid : NO_ID, user, 1 },
			       gid = { st.st_gid ? st.st_gid : NO_ID, user, 1 };
	_cleanup_(closep) int ns = -EBADF;
	int r = spawn_userns_mapped(p->uid_base, &uid, &gid, &ns);
	if (r < 0)
		return r;
	r = mnt_tree(dir, "", m->attr, ns);
	if (r == -EINVAL)
		snprintf(mnt_why, sizeof(mnt_why), "this kernel cannot map the owners of %s", mnt_type(dir));
	return r;
}

static int one_mount(struct native *n, const struct plan *p, const struct plan_mount *m,
		     const struct plan_image *image, const struct native_files *files, int userns, int *store)
{
	switch (m->kind) {
	case PLAN_LAYER:
		return layer_mount(n, p, m, image, files->storage, userns, store);
	case PLAN_STORE:
		return mnt_tree(files->storage, m->source, m->attr, userns);
	case PLAN_WORKSPACE:
		return mnt_tree(files->workspaces[m->layer], "", m->attr, userns);
	case PLAN_HOST:
		return host_mount(p, m, files->hosts[m->layer]);
	case PLAN_DEV:
		return native_dev(m->attr);
	case PLAN_DEVPTS:
		return devpts_mount(p, m);
	case PLAN_TMPFS:
		return tmpfs_mount(p, m);
	case PLAN_PROC:
		break; /* belongs to the child's pid namespace: the child makes it */
	}
	return -1;
}

int native_mounts(struct native *n, const struct plan *p, const struct plan_image *image,
		  const struct native_files *files, struct native_child *c, struct err *e)
{
	int store = -1;
	for (unsigned i = 0; i < p->n_mounts; i++) {
		const struct plan_mount *m = &p->mounts[i];
		if (m->kind == PLAN_PROC)
			continue;
		mnt_why[0] = 0;
		c->mounts[i] = one_mount(n, p, m, image, files, c->userns, &store);
		if (c->mounts[i] < 0) {
			fd_close(store);
			return err_sys(e, m->kind == PLAN_HOST ? ERR_INVALID : ERR_WALLS, c->mounts[i],
				       "mount of %s%s%s", m->target, mnt_why[0] ? ": " : "", mnt_why);
		}
	}
	if (store >= 0)
		close_late(n, &store);
	return 0;
}
