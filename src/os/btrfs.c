/*
 * btrfs: see btrfs.h.
 */
#include "btrfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>

#include "fd.h"
#include "poison.h"

#define QUOTA_ENABLE_SIMPLE 4 /* newer than the headers */

bool btrfs_is(int fd)
{
	struct statfs s;
	return fstatfs(fd, &s) == 0 && (unsigned long)s.f_type == BTRFS_SUPER_MAGIC;
}

static int set_name(char *dst, size_t size, const char *name)
{
	return snprintf(dst, size, "%s", name) >= (int)size ? -ENAMETOOLONG : 0;
}

int btrfs_create(int dir, const char *name)
{
	struct btrfs_ioctl_vol_args_v2 a = { 0 };
	int r = set_name(a.name, sizeof(a.name), name);
	return r < 0 ? r : ioctl(dir, BTRFS_IOC_SUBVOL_CREATE_V2, &a) < 0 ? -errno : 0;
}

int btrfs_snapshot(int from, int dir, const char *name, bool readonly)
{
	struct btrfs_ioctl_vol_args_v2 a = { .fd = from, .flags = readonly ? BTRFS_SUBVOL_RDONLY : 0 };
	int r = set_name(a.name, sizeof(a.name), name);
	return r < 0 ? r : ioctl(dir, BTRFS_IOC_SNAP_CREATE_V2, &a) < 0 ? -errno : 0;
}

int btrfs_destroy(int dir, const char *name)
{
	struct btrfs_ioctl_vol_args a = { 0 };
	int r = set_name(a.name, sizeof(a.name), name);
	return r < 0 ? r : ioctl(dir, BTRFS_IOC_SNAP_DESTROY, &a) < 0 ? -errno : 0;
}

int btrfs_quota_enable(int fd)
{
	struct btrfs_ioctl_quota_ctl_args a = { .cmd = QUOTA_ENABLE_SIMPLE };
	if (ioctl(fd, BTRFS_IOC_QUOTA_CTL, &a) == 0 || errno == EEXIST)
		return 0;
	a.cmd = BTRFS_QUOTA_CTL_ENABLE;
	return ioctl(fd, BTRFS_IOC_QUOTA_CTL, &a) < 0 && errno != EEXIST ? -errno : 0;
}

bool btrfs_quota_simple(int fd)
{
	struct btrfs_ioctl_fs_info_args info = { 0 };
	char path[96], uuid[40];
	if (ioctl(fd, BTRFS_IOC_FS_INFO, &info) < 0)
		return false;
	size_t n = 0;
	for (size_t i = 0; i < sizeof(info.fsid); i++)
		n += (size_t)snprintf(uuid + n, sizeof(uuid) - n, "%s%02x",
				      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", info.fsid[i]);
	snprintf(path, sizeof(path), "/sys/fs/btrfs/%s/qgroups/mode", uuid);
	struct buf mode = BUF_INIT(64);
	bool simple = fd_slurp(AT_FDCWD, path, &mode) == 0 && view_starts(buf_view(&mode), "squota");
	buf_done(&mode);
	return simple;
}

static int subvolume_id(int fd, uint64_t *ret)
{
	struct btrfs_ioctl_ino_lookup_args a = { .treeid = 0, .objectid = BTRFS_FIRST_FREE_OBJECTID };
	if (ioctl(fd, BTRFS_IOC_INO_LOOKUP, &a) < 0)
		return -errno;
	*ret = a.treeid;
	return 0;
}

int btrfs_limit(int subvolume, uint64_t bytes)
{
	struct btrfs_ioctl_qgroup_limit_args a = { .lim = { .flags = BTRFS_QGROUP_LIMIT_MAX_RFER,
							    .max_rfer = bytes ? bytes : UINT64_MAX } };
	uint64_t id;
	int r = subvolume_id(subvolume, &id);
	if (r < 0)
		return r;
	a.qgroupid = id;
	return ioctl(subvolume, BTRFS_IOC_QGROUP_LIMIT, &a) < 0 ? -errno : 0;
}

/* The item of the quota tree with our subvolume's id. */
static int quota_item(int fd, uint64_t id, uint32_t type, void *dst, size_t size)
{
	struct btrfs_ioctl_search_args a = { .key = { .tree_id = BTRFS_QUOTA_TREE_OBJECTID,
						      .min_type = type,
						      .max_type = type,
						      .min_offset = id,
						      .max_offset = id,
						      .max_transid = UINT64_MAX,
						      .nr_items = 1 } };
	if (ioctl(fd, BTRFS_IOC_TREE_SEARCH, &a) < 0)
		return -errno;
	struct btrfs_ioctl_search_header h;
	if (a.key.nr_items == 0)
		return -ENODATA;
	memcpy(&h, a.buf, sizeof(h));
	if (h.len < size || h.len > sizeof(a.buf) - sizeof(h))
		return -EBADMSG;
	memcpy(dst, a.buf + sizeof(h), size);
	return 0;
}

int btrfs_usage(int subvolume, uint64_t *ret_bytes, uint64_t *ret_limit)
{
	struct btrfs_qgroup_info_item info;
	struct btrfs_qgroup_limit_item limit;
	uint64_t id;
	int r = subvolume_id(subvolume, &id);
	if (r == 0)
		r = quota_item(subvolume, id, BTRFS_QGROUP_INFO_KEY, &info, sizeof(info));
	if (r < 0)
		return r;
	*ret_bytes = info.rfer;
	*ret_limit = 0;
	if (quota_item(subvolume, id, BTRFS_QGROUP_LIMIT_KEY, &limit, sizeof(limit)) == 0 &&
	    limit.max_rfer != UINT64_MAX)
		*ret_limit = limit.max_rfer;
	return 0;
}

int btrfs_grow(int fd)
{
	struct btrfs_ioctl_vol_args a = { .name = "max" };
	return ioctl(fd, BTRFS_IOC_RESIZE, &a) < 0 ? -errno : 0;
}
