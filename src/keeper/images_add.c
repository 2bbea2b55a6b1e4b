/*
 * Adding to the image store: a tree that was unpacked in a box, a snapshot over another
 * image, the machine's own. What is not finished has a name of its own (IMAGES_STAGED) and is
 * cleared away by the next start. A tree is hostile: nothing in it is followed.
 */
#include "images_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "fd.h"
#include "json.h"
#include "rnd.h"
#include "poison.h"

/* ---- a tree from elsewhere ---- */

static int open_in(int root, const char *path, uint64_t flags, unsigned mode)
{
	struct open_how how = { .flags = flags | O_CLOEXEC,
				.mode = flags & O_CREAT ? mode : 0,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

/* A box needs these to mount on; what an archive put there instead is refused. */
static int ensure_points(int root, struct err *e)
{
	static const char *const points[] = { "dev", "proc", "sys", "tmp", "run", "workspace" };
	for (size_t i = 0; i < ELEMS(points); i++) {
		if (mkdirat(root, points[i], 0755) < 0 && errno != EEXIST)
			return err_sys(e, ERR_STORAGE, errno, "cannot make /%s in the image", points[i]);
		int fd = open_in(root, points[i], O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		if (fd < 0)
			return err_set(e, ERR_INVALID, "/%s of the image is not a directory", points[i]);
		fd_close(fd);
	}
	return 0;
}

/* Images from elsewhere do not know our default user; uid 1000 gets a name. */
static int ensure_user(int root)
{
	_cleanup_(closep) int fd = open_in(root, "etc/passwd", O_RDWR | O_APPEND, 0);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	struct buf text = BUF_INIT(65536);
	struct stat st;
	int r = fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size >= 65536 ? -EINVAL : 0;
	char *p = r == 0 ? buf_reserve(&text, (size_t)st.st_size + 1) : NULL;
	if (p)
		r = fd_read_all(fd, p, (size_t)st.st_size);
	if (p && r == 0) {
		p[st.st_size] = 0;
		bool named = strncmp(p, "user:", 5) == 0 || strstr(p, "\nuser:");
		if (!named && !strstr(p, ":1000:")) {
			static const char line[] = "user:x:1000:1000:user:/home/user:/bin/sh\n";
			bool cut = st.st_size && p[st.st_size - 1] != '\n';
			r = cut ? fd_write_all(fd, "\n", 1) : 0;
			if (r == 0)
				r = fd_write_all(fd, line, strlen(line));
			int home = open_in(root, "home", O_PATH | O_DIRECTORY, 0);
			if (home >= 0 && mkdirat(home, "user", 0755) == 0)
				(void)!fchownat(home, "user", PLAN_USER, PLAN_USER, AT_SYMLINK_NOFOLLOW);
			fd_close(home);
		}
	}
	buf_done(&text);
	return r;
}

/* ---- its place, and its name ---- */

static int write_manifest(int dir, const struct image *i)
{
	struct buf b = BUF_INIT(1024);
	struct json_out o;
	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_kz(&o, "digest", i->digest);
	json_out_ku64(&o, "created_ms", i->created_ms);
	json_out_kbool(&o, "machine", i->machine);
	if (i->base[0])
		json_out_kz(&o, "base", i->base);
	json_out_end(&o, '}');
	int r = b.bad ? b.bad : fd_replace(dir, "manifest.json", b.p, b.n, 0644, true);
	buf_done(&b);
	return r;
}

static int set_name(struct images *im, struct view name, const char *digest)
{
	char z[IMAGES_NAME];
	int r = view_to_str(name, z, sizeof(z));
	if (r == 0)
		r = fd_replace(im->names_dir, z, digest, strlen(digest), 0644, true);
	if (r < 0)
		return r;
	struct image_name *n = im->names;
	while (n && !view_is(name, n->name))
		n = n->next;
	if (!n) {
		n = calloc(1, sizeof(*n));
		if (!n)
			return -ENOMEM;
		memcpy(n->name, z, sizeof(z));
		n->next = im->names;
		im->names = n;
	}
	snprintf(n->digest, sizeof(n->digest), "%s", digest);
	return 0;
}

/* Gives a finished tree its place: images/.new-X is renamed to images/HEX. */
static int publish(struct images *im, const char *staged, struct image *i, const struct image **ret,
		   struct err *e)
{
	_cleanup_(closep) int dir = openat(im->dir, staged, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 ? -errno : write_manifest(dir, i);
	if (r == 0 && renameat(im->dir, staged, im->dir, images_hex(i->digest)) < 0)
		r = -errno;
	if (r < 0)
		return err_sys(e, ERR_STORAGE, r, "cannot add the image");
	*ret = images_insert(im, i);
	return *ret ? 0 : err_sys(e, ERR_INTERNAL, ENOMEM, "cannot add the image");
}

static int stage(struct images *im, char staged[32], struct err *e)
{
	char tail[13];
	rnd_name(tail, 12);
	snprintf(staged, 32, IMAGES_STAGED "%s", tail);
	if (mkdirat(im->dir, staged, 0700) < 0)
		return err_sys(e, ERR_STORAGE, errno, "cannot add an image");
	return 0;
}

/* btrfs: a directory cannot leave its subvolume, so the image is a snapshot of the unit
 * that holds it: HEX/unit/workspace. `tree` is UNIT/workspace. */
static int snapshot_unit(struct images *im, const struct disk *d, int dir, const char *tree,
			 const char *staged)
{
	char unit[64];
	snprintf(unit, sizeof(unit), "%.*s", (int)strcspn(tree, "/"), tree);
	_cleanup_(closep) int from = openat(dir, unit, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_(closep) int to = openat(im->dir, staged, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (from < 0 || to < 0)
		return -errno;
	if (d->btrfs)
		return disk_snapshot(d, from, to, "unit", false);
	return renameat(dir, unit, to, "unit") < 0 ? -errno : 0; /* the caller has made the copy */
}

/* Moves a checked tree into the store. On failure it is where it was, for the caller to clear away. */
static int take_tree(struct images *im, const struct disk *d, int dir, const char *tree, struct image *i,
		     const struct image **ret, struct err *e)
{
	char staged[32], to[48], manifest[48];
	if (stage(im, staged, e) < 0)
		return -1;
	snprintf(to, sizeof(to), "%s/rootfs", staged);
	snprintf(manifest, sizeof(manifest), "%s/manifest.json", staged);
	int r = d->btrfs                               ? snapshot_unit(im, d, dir, tree, staged)
		: renameat(dir, tree, im->dir, to) < 0 ? -errno
						       : 0;
	if (r < 0) {
		r = disk_snapshot_error(r, "image", e);
	} else if (publish(im, staged, i, ret, e) < 0) {
		if (d->btrfs)
			images_drop_unit(im, d, staged);
		else
			(void)renameat(im->dir, to, dir, tree);
		(void)unlinkat(im->dir, manifest, 0);
		r = -1;
	}
	if (r < 0)
		(void)unlinkat(im->dir, staged, AT_REMOVEDIR);
	return r;
}

static int check_new(struct view name, struct view digest, struct err *e)
{
	if (!images_name_ok(name))
		return err_set(
			e, ERR_INVALID,
			"an image's name is NAME or NAME:TAG, of a-z, 0-9, '.', '_' and '-', with at most "
			"%d characters",
			IMAGES_NAME - 1);
	if (view_is(name, IMAGES_MACHINE))
		return err_set(e, ERR_INVALID, "the name '%s' is the machine's own image", IMAGES_MACHINE);
	return images_digest_ok(digest) ? 0 : err_set(e, ERR_INVALID, "not a digest");
}

static int give_name(struct images *im, struct view name, const struct image *have, const struct image **ret,
		     struct err *e)
{
	int r = set_name(im, name, have->digest);
	if (r < 0)
		return err_sys(e, ERR_STORAGE, r, "cannot name the image");
	*ret = have;
	return 0;
}

int images_seed(struct images *im, const struct disk *d, int dir, const char *snapshot, struct view base,
		struct view name, struct view digest, const struct image **ret, struct err *e)
{
	if (check_new(name, digest, e) < 0)
		return -1;
	const struct image *below = images_find(im, base), *have = images_find(im, digest);
	if (!below)
		return err_set(e, ERR_NOT_FOUND, "the image that the snapshot was taken of is gone");
	if (have)
		return give_name(im, name, have, ret, e);
	struct image i = { .created_ms = (uint64_t)clock_wall_ms() };
	char staged[32];
	(void)!view_to_str(digest, i.digest, sizeof(i.digest));
	memcpy(i.base, below->base[0] ? below->base : below->digest, sizeof(i.base));
	if (stage(im, staged, e) < 0)
		return -1;
	int r = snapshot_unit(im, d, dir, snapshot, staged);
	if (r < 0)
		err_sys(e, r == -ENOENT ? ERR_NOT_FOUND : ERR_STORAGE, r, "cannot take the snapshot");
	else if (publish(im, staged, &i, &have, e) == 0)
		return give_name(im, name, have, ret, e);
	images_drop_unit(im, d, staged);
	char manifest[48];
	snprintf(manifest, sizeof(manifest), "%s/manifest.json", staged);
	(void)unlinkat(im->dir, manifest, 0);
	(void)unlinkat(im->dir, staged, AT_REMOVEDIR);
	return -1;
}

int images_commit(struct images *im, const struct disk *d, int dir, const char *tree, struct view name,
		  struct view digest, const struct image **ret, struct err *e)
{
	if (check_new(name, digest, e) < 0)
		return -1;
	const struct image *have = images_find(im, digest);
	if (!have) {
		struct image i = { .created_ms = (uint64_t)clock_wall_ms() };
		(void)!view_to_str(digest, i.digest, sizeof(i.digest));
		_cleanup_(closep) int root =
			openat(dir, tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (root < 0 || fchown(root, 0, 0) < 0 || fchmod(root, 0755) < 0)
			return err_sys(e, ERR_STORAGE, errno, "cannot take the unpacked files");
		if (ensure_points(root, e) < 0)
			return -1;
		int r = ensure_user(root);
		if (r < 0)
			return err_sys(e, ERR_INVALID, r, "/etc/passwd of the image cannot be used");
		if (take_tree(im, d, dir, tree, &i, &have, e) < 0)
			return -1;
	}
	return give_name(im, name, have, ret, e);
}

int images_add_machine(struct images *im, struct err *e)
{
	struct image i = { .created_ms = (uint64_t)clock_wall_ms(), .machine = true };
	char hex[65];
	if (machine_key(hex, e) < 0)
		return -1;
	snprintf(i.digest, sizeof(i.digest), "sha256:%s", hex);
	const struct image *have = images_find(im, view_of(i.digest));
	if (!have) {
		char staged[32], to[48];
		if (stage(im, staged, e) < 0)
			return -1;
		snprintf(to, sizeof(to), "%s/rootfs", staged);
		if (mkdirat(im->dir, to, 0755) < 0)
			return err_sys(e, ERR_STORAGE, errno, "cannot make the machine's image");
		_cleanup_(closep) int root = openat(im->dir, to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (root < 0 || machine_build(root, e) < 0 || publish(im, staged, &i, &have, e) < 0)
			return root < 0 ? err_sys(e, ERR_STORAGE, errno, "cannot make the machine's image")
					: -1;
	}
	const struct image *named = images_named(im, VIEW(IMAGES_MACHINE));
	int r = named == have ? 0 : set_name(im, VIEW(IMAGES_MACHINE), have->digest);
	return r < 0 ? err_sys(e, ERR_STORAGE, r, "cannot name the machine's image") : 0;
}
