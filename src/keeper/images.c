/*
 * The image store: reading it, finding in it, removing from it. See images.h; images_add.c adds.
 */
#include "images_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "json.h"
#include "log.h"
#include "rnd.h"
#include "survey.h"
#include "poison.h"

#define RECORD "sets.json"

bool images_digest_ok(struct view d)
{
	if (d.n != IMAGES_DIGEST - 1 || !view_starts(d, "sha256:"))
		return false;
	for (size_t i = 7; i < d.n; i++)
		if (!((d.p[i] >= '0' && d.p[i] <= '9') || (d.p[i] >= 'a' && d.p[i] <= 'f')))
			return false;
	return true;
}

static bool is_name(struct view v, bool upper)
{
	if (v.n == 0 || v.p[0] == '.' || v.p[0] == '-')
		return false;
	for (size_t i = 0; i < v.n; i++) {
		char c = v.p[i];
		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("._-", c)) ||
		      (upper && c >= 'A' && c <= 'Z')))
			return false;
	}
	return true;
}

/* NAME or NAME:TAG, and nothing that looks like a digest. */
bool images_name_ok(struct view name)
{
	struct view tag, bare = view_split(name, ':', &tag);

	return name.n < IMAGES_NAME && is_name(bare, false) && (!tag.p || is_name(tag, true)) &&
	       !(tag.p && view_is(bare, "sha256"));
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
	if (r == 0 &&
	    (!created || json_to_u64(created, &i->created_ms) < 0 || !machine || machine->type != JSON_BOOL))
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
	snprintf(path, sizeof(path), "%s/" RECORD, images_hex(i->digest));
	int r = fd_replace(im->dir, path, record.p, record.n, 0644, false);
	return r < 0 ? r : set_record(i, record);
}

#define CONFIG "config.json"

static int set_config(struct image *i, struct view config)
{
	char *copy = malloc(config.n + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, config.p, config.n);
	free(i->config);
	i->config = copy;
	i->config_size = config.n;
	return 0;
}

static void read_config(int dir, const char *hex, struct image *i)
{
	char path[96];
	snprintf(path, sizeof(path), "%s/" CONFIG, hex);
	struct buf text = BUF_INIT(IMAGES_CONFIG);
	if (fd_slurp(dir, path, &text) == 0 && buf_len(&text))
		(void)!set_config(i, buf_view(&text));
	buf_done(&text);
}

int images_keep_config(struct images *im, struct view digest, struct view config)
{
	struct image *i = (struct image *)images_find(im, digest);
	char path[96];
	if (!i)
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/" CONFIG, images_hex(i->digest));
	int r = fd_replace(im->dir, path, config.p, config.n, 0644, true);
	return r < 0 ? r : set_config(i, config);
}

struct image *images_insert(struct images *im, const struct image *like)
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
	struct image *have = read_manifest(im->dir, name, &i) < 0 ? NULL : images_insert(im, &i);
	if (have) {
		read_record(im->dir, name, have);
		read_config(im->dir, name, have);
	}
	if (!have)
		log_warn("image %s has no usable manifest, it is left alone", name);
}

static void load_name(void *arg, const char *name)
{
	struct images *im = arg;
	struct buf b = BUF_INIT(IMAGES_DIGEST);
	struct image_name *n = NULL;
	if (!images_name_ok(view_of(name)) || fd_slurp(im->names_dir, name, &b) < 0 ||
	    !images_find(im, buf_view(&b)))
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
		if (unfinished ? strncmp(de->d_name, IMAGES_STAGED, strlen(IMAGES_STAGED)) == 0
			       : de->d_name[0] != '.')
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
		free(i->config);
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

const struct image *images_named(const struct images *im, struct view name)
{
	for (const struct image_name *n = im->names; n; n = n->next)
		if (view_is(name, n->name))
			return images_find(im, view_of(n->digest));
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
		snprintf(path, sizeof(path), "%s/%s", images_hex(i->digest), roots[k]);
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
	snprintf(path, sizeof(path), "%s/unit", images_hex(i->digest));
	int fd = openat(im->dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

void images_release(struct plan_image *p)
{
	for (unsigned i = 0; i < p->n; i++)
		fd_close(p->layers[i].dir);
	p->n = 0;
}

/* ---- removing ---- */

void images_drop_unit(struct images *im, const struct disk *d, const char *name)
{
	_cleanup_(closep) int dir = openat(im->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir >= 0 && d->btrfs)
		(void)!disk_remove(d, dir, "unit", -1);
}

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
	snprintf(to, sizeof(to), "image-%.40s-%s", images_hex(digest), tail);
	images_drop_unit(im, d, images_hex(digest));
	if (renameat(im->dir, images_hex(digest), trash, to) < 0)
		return err_sys(e, ERR_STORAGE, errno, "cannot remove the image");
	for (struct image **at = &im->all; *at; at = &(*at)->next)
		if (strcmp((*at)->digest, digest) == 0) {
			struct image *gone = *at;
			*at = gone->next;
			free(gone->record);
			free(gone->config);
			free(gone);
			break;
		}
	return 0;
}
