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
#define NESTED_DEEP         2048
#define NESTED_ROUNDS       8192 /* of a few microseconds each */

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

int btrfs_quota_enable(int fd)
{
	struct btrfs_ioctl_quota_ctl_args a = { .cmd = QUOTA_ENABLE_SIMPLE };
	if (ioctl(fd, BTRFS_IOC_QUOTA_CTL, &a) == 0 || errno == EEXIST)
		return 0;
	a.cmd = BTRFS_QUOTA_CTL_ENABLE;
	return ioctl(fd, BTRFS_IOC_QUOTA_CTL, &a) < 0 && errno != EEXIST ? -errno : 0;
}

#define SYS_PATH 128

/* Where sysfs has the quota groups of fd's file system, and a `name` there. */
static int sys_path(int fd, const char *name, char ret[SYS_PATH])
{
	struct btrfs_ioctl_fs_info_args info = { 0 };
	char uuid[40];
	if (ioctl(fd, BTRFS_IOC_FS_INFO, &info) < 0)
		return -errno;
	size_t n = 0;
	for (size_t i = 0; i < sizeof(info.fsid); i++)
		n += (size_t)snprintf(uuid + n, sizeof(uuid) - n, "%s%02x",
				      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", info.fsid[i]);
	snprintf(ret, SYS_PATH, "/sys/fs/btrfs/%s/qgroups/%s", uuid, name);
	return 0;
}

bool btrfs_quota_simple(int fd)
{
	char path[SYS_PATH];
	if (sys_path(fd, "mode", path) < 0)
		return false;
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

/* ---- subvolumes within subvolumes ---- */

/* A subvolume's entry in another: in which directory, by which name. */
struct entry {
	uint64_t id, dir;
	char name[256];
};

/* The first subvolume that lies in subvolume `id`; fd is any of the file system. */
static int first_child(int fd, uint64_t id, struct entry *ret)
{
	struct btrfs_ioctl_search_args a = { .key = { .tree_id = BTRFS_ROOT_TREE_OBJECTID,
						      .min_objectid = id,
						      .max_objectid = id,
						      .min_type = BTRFS_ROOT_REF_KEY,
						      .max_type = BTRFS_ROOT_REF_KEY,
						      .max_offset = UINT64_MAX,
						      .max_transid = UINT64_MAX,
						      .nr_items = 1 } };
	struct btrfs_ioctl_search_header h;
	struct btrfs_root_ref ref;
	if (ioctl(fd, BTRFS_IOC_TREE_SEARCH, &a) < 0)
		return -errno;
	if (a.key.nr_items == 0)
		return -ENOENT;
	memcpy(&h, a.buf, sizeof(h));
	memcpy(&ref, a.buf + sizeof(h), sizeof(ref));
	if (h.len < sizeof(ref) || h.len - sizeof(ref) >= sizeof(ret->name))
		return -EBADMSG;
	*ret = (struct entry){ .id = h.offset, .dir = ref.dirid };
	memcpy(ret->name, a.buf + sizeof(h) + sizeof(ref), h.len - sizeof(ref));
	return 0;
}

int btrfs_nested(int subvolume)
{
	uint64_t id;
	struct entry child;
	int r = subvolume_id(subvolume, &id);
	if (r == 0)
		r = first_child(subvolume, id, &child);
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

/* A directory by its number: the path to it may be longer than any call takes. */
static int open_inode(int fd, uint64_t subvolume, uint64_t inode)
{
	struct {
		struct file_handle head;
		struct __attribute__((packed)) {
			uint64_t inode, root;
			uint32_t generation; /* 0: any */
		} btrfs;
	} h = { .head = { .handle_bytes = sizeof(h.btrfs),
			  .handle_type = 0x4d /* FILEID_BTRFS_WITHOUT_PARENT */ },
		.btrfs = { .inode = inode, .root = subvolume } };
	int r = open_by_handle_at(fd, &h.head, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return r < 0 ? -errno : r;
}

/* What lies in a read-only subvolume cannot be removed from it. */
static int make_writable(int fd, uint64_t id)
{
	_cleanup_(closep) int subvolume = open_inode(fd, id, BTRFS_FIRST_FREE_OBJECTID);
	uint64_t flags = 0;
	return subvolume < 0                                             ? subvolume
	       : ioctl(subvolume, BTRFS_IOC_SUBVOL_SETFLAGS, &flags) < 0 ? -errno
									 : 0;
}

static int destroy_first_child(int fd, uint64_t parent)
{
	struct btrfs_ioctl_vol_args a = { 0 };
	struct entry child;
	int r = first_child(fd, parent, &child);
	if (r < 0)
		return r;
	_cleanup_(closep) int dir = open_inode(fd, parent, child.dir);
	if (dir < 0)
		return dir;
	memcpy(a.name, child.name, sizeof(child.name));
	if (ioctl(dir, BTRFS_IOC_SNAP_DESTROY, &a) == 0)
		return 0;
	r = errno == EROFS ? make_writable(fd, parent) : -errno;
	return r < 0 ? r : ioctl(dir, BTRFS_IOC_SNAP_DESTROY, &a) < 0 ? -errno : 0;
}

/* From the innermost out, without recursion: how deep they lie is up to whoever made them. */
static int destroy_nested(int top)
{
	uint64_t path[NESTED_DEEP] = { 0 }; /* a ring: of a deeper path the innermost are remembered */
	size_t n = 1, known = 1;
	int r = subvolume_id(top, &path[0]);
	for (unsigned round = 0; r == 0 && round < NESTED_ROUNDS; round++) {
		struct entry child;
		r = first_child(top, path[(n - 1) % NESTED_DEEP], &child);
		if (r == 0) {
			path[n++ % NESTED_DEEP] = child.id;
			known = MIN(known + 1, NESTED_DEEP);
		} else if (r == -ENOENT && n == 1) {
			return 0;
		} else if (r == -ENOENT && known == 1) {
			return -EBUSY; /* its parent is forgotten: from the top again */
		} else if (r == -ENOENT) {
			r = destroy_first_child(top, path[(n - 2) % NESTED_DEEP]);
			n--;
			known--;
		}
	}
	return r < 0 ? r : -EBUSY;
}

int btrfs_destroy(int dir, const char *name)
{
	struct btrfs_ioctl_vol_args a = { 0 };
	int r = set_name(a.name, sizeof(a.name), name);
	if (r < 0 || ioctl(dir, BTRFS_IOC_SNAP_DESTROY, &a) == 0)
		return r;
	if (errno != ENOTEMPTY)
		return -errno;
	_cleanup_(closep) int top = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	r = top < 0 ? -errno : destroy_nested(top);
	return r < 0 ? r : ioctl(dir, BTRFS_IOC_SNAP_DESTROY, &a) < 0 ? -errno : 0;
}

/* ---- quotas ---- */

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

int btrfs_figures(int subvolume, int ret[BTRFS_FIGURES])
{
	static const char *const names[] = {
		[BTRFS_LIMIT] = "max_referenced", [BTRFS_USED] = "referenced", [BTRFS_RESERVED] = "rsv_data"
	};
	char group[32], path[SYS_PATH];
	uint64_t id;
	int r = subvolume_id(subvolume, &id);
	if (r < 0)
		return r;
	snprintf(group, sizeof(group), "0_%llu", (unsigned long long)id);
	r = sys_path(subvolume, group, path);
	_cleanup_(closep) int dir = r < 0 ? r : open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return r < 0 ? r : -errno;
	for (unsigned i = 0; i < BTRFS_FIGURES; i++) {
		ret[i] = openat(dir, names[i], O_RDONLY | O_CLOEXEC);
		if (ret[i] < 0) {
			r = -errno;
			while (i)
				fd_close(ret[--i]);
			return r;
		}
	}
	return 0;
}

int btrfs_grow(int fd)
{
	struct btrfs_ioctl_vol_args a = { .name = "max" };
	return ioctl(fd, BTRFS_IOC_RESIZE, &a) < 0 ? -errno : 0;
}

void btrfs_sync(int fd)
{
	uint64_t transid;
	(void)ioctl(fd, BTRFS_IOC_SYNC, &transid);
}
