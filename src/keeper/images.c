/*
 * The image store: see images.h.
 */
#include "images.h"

#include <dirent.h>
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
#include "log.h"
#include "rnd.h"
#include "sha256.h"
#include "survey.h"
#include "sweep.h"
#include "text.h"
#include "poison.h"

#define RECORD "sets.json"
#define STAGED ".new-" /* begins the names of images that are being made */

bool images_digest_ok(struct view d)
{
	if (d.n != IMAGES_DIGEST - 1 || !view_starts(d, "sha256:"))
		return false;
	for (size_t i = 7; i < d.n; i++)
		if (!((d.p[i] >= '0' && d.p[i] <= '9') || (d.p[i] >= 'a' && d.p[i] <= 'f')))
			return false;
	return true;
}

bool images_name_ok(struct view name)
{
	if (name.n == 0 || name.n >= IMAGES_NAME || name.p[0] == '.' || name.p[0] == '-')
		return false;
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("._-", c))))
			return false;
	}
	return true;
}

static const char *hex_of(const char *digest)
{
	return digest + 7;
}

/* ---- reading the store ---- */

static int read_manifest(int dir, const char *hex, struct image *i)
{
	char path[96];
	snprintf(path, sizeof(path), "%s/manifest.json", hex);
	struct buf text = BUF_INIT(65536);
	struct arena a = ARENA_INIT(1u << 20);
	struct json *doc = NULL;
	struct err e = { 0 };
	int r = fd_slurp(dir, path, &text);
	if (r == 0 && json_parse(&a, buf_view(&text), &doc, &e) < 0)
		r = -EBADMSG;
	const struct json *created = r == 0 ? json_get(doc, "created_ms") : NULL;
	const struct json *machine = r == 0 ? json_get(doc, "machine") : NULL;
	if (r == 0 && (!created || json_to_u64(created, &i->created_ms) < 0 || !machine || machine->type != JSON_BOOL))
		r = -EBADMSG;
	if (r == 0)
		i->machine = machine->boolean;
	const struct json *base = r == 0 ? json_get(doc, "base") : NULL;
	if (base && (base->type != JSON_STRING || !images_digest_ok(base->text) ||
		     view_to_str(base->text, i->base, sizeof(i->base)) < 0))
		r = -EBADMSG;
	arena_done(&a);
	buf_done(&text);
	return r;
}

/* Not ours to understand: what the survey wrote goes to the api as it is. */
static int set_record(struct image *i, struct view record)
{
	char *copy = malloc(record.n + 1);
	if (!copy)
		return -ENOMEM;
	if (record.n)
		memcpy(copy, record.p, record.n);
	free(i->record);
	i->record = copy;
	i->record_size = record.n;
	return 0;
}

static void read_record(int dir, const char *hex, struct image *i)
{
	char path[96];
	snprintf(path, sizeof(path), "%s/" RECORD, hex);
	struct buf text = BUF_INIT(SURVEY_MAX);
	if (fd_slurp(dir, path, &text) == 0 && buf_len(&text))
		(void)!set_record(i, buf_view(&text));
	buf_done(&text);
}

int images_keep_record(struct images *im, struct view digest, struct view record)
{
	struct image *i = (struct image *)images_find(im, digest);
	char path[96];
	if (!i)
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/" RECORD, hex_of(i->digest));
	int r = fd_replace(im->dir, path, record.p, record.n, 0644, false);
	return r < 0 ? r : set_record(i, record);
}

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

static struct image *add_image(struct images *im, const struct image *like)
{
	struct image *i = malloc(sizeof(*i));
	if (!i)
		return NULL;
	*i = *like;
	i->next = im->all;
	im->all = i;
	return i;
}

static void load_image(void *arg, const char *name)
{
	struct images *im = arg;
	struct image i = { 0 };
	if (snprintf(i.digest, sizeof(i.digest), "sha256:%s", name) >= (int)sizeof(i.digest) ||
	    !images_digest_ok(view_of(i.digest)))
		return;
	struct image *have = read_manifest(im->dir, name, &i) < 0 ? NULL : add_image(im, &i);
	if (have)
		read_record(im->dir, name, have);
	else
		log_warn("image %s has no usable manifest, it is left alone", name);
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

static void load_name(void *arg, const char *name)
{
	struct images *im = arg;
	struct buf b = BUF_INIT(IMAGES_DIGEST);
	struct image_name *n = NULL;
	if (!images_name_ok(view_of(name)) || fd_slurp(im->names_dir, name, &b) < 0 || !images_find(im, buf_view(&b)))
		goto out;
	n = calloc(1, sizeof(*n));
	if (n) {
		snprintf(n->name, sizeof(n->name), "%s", name);
		(void)!view_to_str(buf_view(&b), n->digest, sizeof(n->digest));
		n->next = im->names;
		im->names = n;
	}
out:
	buf_done(&b);
}

/* Calls fn for each name; those of images that were not finished begin with a dot. */
static int each_entry(int dir, bool unfinished, void (*fn)(void *, const char *), void *arg)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		int r = -errno;
		fd_close(fd);
		return r;
	}
	for (struct dirent *de; (de = readdir(d));)
		if (unfinished ? strncmp(de->d_name, STAGED, strlen(STAGED)) == 0 : de->d_name[0] != '.')
			fn(arg, de->d_name);
	closedir(d);
	return 0;
}

struct clearing {
	int dir, data;
};

/* A keeper that was killed while it added an image left it half made. */
static void clear_unfinished(void *arg, const char *name)
{
	const struct clearing *c = arg;
	char to[300];
	snprintf(to, sizeof(to), "trash/%s", name);
	if (renameat(c->dir, name, c->data, to) < 0)
		log_warn("cannot clear away the unfinished image %s", log_quoted(view_of(name)));
}

static int open_made(int dir, const char *name, unsigned mode)
{
	if (mkdirat(dir, name, mode) < 0 && errno != EEXIST)
		return -errno;
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

int images_open(struct images *im, int data, struct err *e)
{
	*im = (struct images){ .dir = -1, .names_dir = -1 };
	im->dir = open_made(data, "images", 0700);
	im->names_dir = im->dir < 0 ? im->dir : open_made(im->dir, "names", 0700);
	if (im->names_dir < 0)
		return err_sys(e, ERR_STORAGE, im->names_dir, "cannot open the image store");
	int r = each_entry(im->dir, true, clear_unfinished, &(struct clearing){ im->dir, data });
	if (r == 0)
		r = each_entry(im->dir, false, load_image, im);
	if (r == 0)
		r = each_entry(im->names_dir, false, load_name, im);
	return r < 0 ? err_sys(e, ERR_STORAGE, r, "cannot read the image store") : 0;
}

void images_close(struct images *im)
{
	for (struct image *i = im->all, *next; i; i = next) {
		next = i->next;
		free(i->record);
		free(i);
	}
	for (struct image_name *n = im->names, *next; n; n = next) {
		next = n->next;
		free(n);
	}
	fd_close(im->dir);
	fd_close(im->names_dir);
	*im = (struct images){ .dir = -1, .names_dir = -1 };
}

const struct image *images_find(const struct images *im, struct view digest)
{
	for (const struct image *i = im->all; i; i = i->next)
		if (view_is(digest, i->digest))
			return i;
	return NULL;
}

int images_layers(const struct images *im, const struct image *i, struct plan_image *ret, struct err *e)
{
	struct plan_image p = { .n = 1 };
	static const char *const roots[] = { "rootfs", "unit/workspace" };
	char path[96];
	if (i->base[0])
		i = images_find(im, view_of(i->base));
	if (!i)
		return err_set(e, ERR_NOT_FOUND, "the image below this one is gone");
	snprintf(p.layers[0].at, sizeof(p.layers[0].at), "/");
	p.layers[0].dir = -1;
	for (size_t k = 0; k < ELEMS(roots) && p.layers[0].dir < 0; k++) {
		snprintf(path, sizeof(path), "%s/%s", hex_of(i->digest), roots[k]);
		p.layers[0].dir = openat(im->dir, path, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	}
	if (p.layers[0].dir < 0)
		return err_sys(e, ERR_STORAGE, errno, "cannot open the image %s", i->digest);
	if (i->machine) {
		snprintf(p.layers[1].at, sizeof(p.layers[1].at), "/usr");
		p.layers[1].dir = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (p.layers[1].dir < 0) {
			fd_close(p.layers[0].dir);
			return err_sys(e, ERR_STORAGE, errno, "cannot open /usr");
		}
		p.n = 2;
	}
	*ret = p;
	return 0;
}

int images_unit(const struct images *im, const struct image *i)
{
	char path[96];
	if (!i->base[0])
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/unit", hex_of(i->digest));
	int fd = openat(im->dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

void images_release(struct plan_image *p)
{
	for (unsigned i = 0; i < p->n; i++)
		fd_close(p->layers[i].dir);
	p->n = 0;
}

/* ---- adding ---- */

static int open_in(int root, const char *path, uint64_t flags, unsigned mode)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .mode = flags & O_CREAT ? mode : 0,
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

/* Gives a finished tree its place: images/.new-X is renamed to images/HEX. */
static int publish(struct images *im, const char *staged, struct image *i, const struct image **ret, struct err *e)
{
	_cleanup_(closep) int dir = openat(im->dir, staged, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 ? -errno : write_manifest(dir, i);
	if (r == 0 && renameat(im->dir, staged, im->dir, hex_of(i->digest)) < 0)
		r = -errno;
	if (r < 0)
		return err_sys(e, ERR_STORAGE, r, "cannot add the image");
	*ret = add_image(im, i);
	return *ret ? 0 : err_sys(e, ERR_INTERNAL, ENOMEM, "cannot add the image");
}

static int stage(struct images *im, char staged[32], struct err *e)
{
	char tail[13];
	rnd_name(tail, 12);
	snprintf(staged, 32, STAGED "%s", tail);
	if (mkdirat(im->dir, staged, 0700) < 0)
		return err_sys(e, ERR_STORAGE, errno, "cannot add an image");
	return 0;
}

/* btrfs: a directory cannot leave its subvolume, so the image is a snapshot of the unit
 * that holds it: HEX/unit/workspace. `tree` is UNIT/workspace. */
static int snapshot_unit(struct images *im, const struct disk *d, int dir, const char *tree, const char *staged)
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

static void drop_unit(struct images *im, const struct disk *d, const char *name)
{
	_cleanup_(closep) int dir = openat(im->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir >= 0 && d->btrfs)
		(void)!disk_remove(d, dir, "unit", -1);
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
	int r = d->btrfs ? snapshot_unit(im, d, dir, tree, staged) : renameat(dir, tree, im->dir, to) < 0 ? -errno : 0;
	if (r < 0) {
		r = err_sys(e, ERR_STORAGE, r, "cannot take the unpacked files");
	} else if (publish(im, staged, i, ret, e) < 0) {
		if (d->btrfs)
			drop_unit(im, d, staged);
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
		return err_set(e, ERR_INVALID, "an image's name is 1 to %d of a-z, 0-9, '.', '_' and '-'", IMAGES_NAME - 1);
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
	drop_unit(im, d, staged);
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
		_cleanup_(closep) int root = openat(dir, tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
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
			return root < 0 ? err_sys(e, ERR_STORAGE, errno, "cannot make the machine's image") : -1;
	}
	int r = set_name(im, VIEW(IMAGES_MACHINE), have->digest);
	return r < 0 ? err_sys(e, ERR_STORAGE, r, "cannot name the machine's image") : 0;
}

/* ---- removing ---- */

static void drop_names(struct images *im, const char *digest, struct view only)
{
	for (struct image_name **at = &im->names; *at;) {
		struct image_name *n = *at;
		if (only.n ? view_is(only, n->name) : strcmp(n->digest, digest) == 0) {
			(void)unlinkat(im->names_dir, n->name, 0);
			*at = n->next;
			free(n);
		} else {
			at = &n->next;
		}
	}
}

/* Whether it would go, with this name or all, and is below another. */
static bool is_needed(const struct images *im, const char *digest, struct view only)
{
	for (const struct image_name *n = im->names; only.n && n; n = n->next)
		if (!view_is(only, n->name) && strcmp(n->digest, digest) == 0)
			return false;
	for (const struct image *i = im->all; i; i = i->next)
		if (strcmp(i->base, digest) == 0)
			return true;
	return false;
}

int images_remove(struct images *im, const struct disk *d, struct view which, int trash, struct err *e)
{
	char digest[IMAGES_DIGEST] = "";
	bool by_name = false;
	for (struct image_name *n = im->names; n; n = n->next)
		if (view_is(which, n->name)) {
			memcpy(digest, n->digest, sizeof(digest));
			by_name = true;
		}
	if (!by_name && images_find(im, which))
		(void)!view_to_str(which, digest, sizeof(digest));
	if (!digest[0])
		return err_set(e, ERR_NOT_FOUND, "no such image");
	/* An outdated one has lost the name to its successor and may go. */
	for (struct image_name *n = im->names; n; n = n->next)
		if (strcmp(n->name, IMAGES_MACHINE) == 0 && strcmp(n->digest, digest) == 0)
			return err_set(e, ERR_STATE, "the machine's own image cannot be removed");
	if (is_needed(im, digest, by_name ? which : VIEW_NONE))
		return err_set(e, ERR_STATE, "an image of a snapshot is made on this one");
	drop_names(im, digest, by_name ? which : VIEW_NONE);
	for (struct image_name *n = im->names; n; n = n->next)
		if (strcmp(n->digest, digest) == 0)
			return 0; /* another name keeps it */
	char to[96], tail[9];
	rnd_name(tail, 8);
	snprintf(to, sizeof(to), "image-%.40s-%s", hex_of(digest), tail);
	drop_unit(im, d, hex_of(digest));
	if (renameat(im->dir, hex_of(digest), trash, to) < 0)
		return err_sys(e, ERR_STORAGE, errno, "cannot remove the image");
	for (struct image **at = &im->all; *at; at = &(*at)->next)
		if (strcmp((*at)->digest, digest) == 0) {
			struct image *gone = *at;
			*at = gone->next;
			free(gone->record);
			free(gone);
			break;
		}
	return 0;
}
