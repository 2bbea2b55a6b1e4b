/*
 * The secrets on disk: see shelf.h.
 */
#include "shelf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "fd.h"
#include "log.h"
#include "num.h"
#include "sha256.h"
#include "text.h"
#include "poison.h"

#define HASH_BYTES 20
#define FILE_NAME  (2 * HASH_BYTES + 12)

bool shelf_is_name(struct view v)
{
	for (size_t i = 0; i < v.n; i++) {
		char c = v.p[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
		if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '.' || c == '-')))
			return false;
	}
	return v.n >= 1 && v.n <= SEAL_NAME;
}

/* ---- names ---- */

static int make_key(char dst[3 * SEAL_NAME + 3], struct view tenant, struct view box, struct view name,
		    size_t *ret_n)
{
	const struct view parts[] = { tenant, box, name };
	size_t n = 0;

	for (size_t i = 0; i < ELEMS(parts); i++) {
		if (parts[i].n > SEAL_NAME || (parts[i].n && memchr(parts[i].p, 0, parts[i].n)))
			return -EINVAL;
		if (parts[i].n)
			memcpy(dst + n, parts[i].p, parts[i].n);
		n += parts[i].n;
		dst[n++] = 0;
	}
	*ret_n = n;
	return 0;
}

static void file_name(const struct shelf_secret *s, uint32_t version, char dst[FILE_NAME])
{
	uint8_t hash[SHA256_SIZE];
	char hex[2 * HASH_BYTES + 1];

	sha256_of(s->node.key, hash);
	text_hex(hash, HASH_BYTES, hex);
	snprintf(dst, FILE_NAME, "%s.%u", hex, version);
}

const struct shelf_secret *shelf_find(const struct shelf *s, struct view tenant, struct view box,
				      struct view name)
{
	char key[3 * SEAL_NAME + 3];
	size_t n;
	struct map_node *node = make_key(key, tenant, box, name, &n) == 0
					? map_get(&s->secrets, (struct view){ key, n })
					: NULL;

	return node ? CONTAINER(node, struct shelf_secret, node) : NULL;
}

static struct shelf_secret *add(struct shelf *s, struct view tenant, struct view box, struct view name)
{
	struct shelf_secret *x = calloc(1, sizeof(*x));
	size_t n;

	if (!x || make_key(x->key, tenant, box, name, &n) < 0 ||
	    map_put(&s->secrets, &x->node, (struct view){ x->key, n }) < 0) {
		free(x);
		return NULL;
	}
	x->tenant = (struct view){ x->key, tenant.n };
	x->box = (struct view){ x->key + tenant.n + 1, box.n };
	x->name = (struct view){ x->key + tenant.n + box.n + 2, name.n };
	x->notes = BUF_INIT(SEAL_NOTES);
	list_append(&s->all, &x->link);
	return x;
}

static void forget(struct shelf *s, struct shelf_secret *x)
{
	map_del(&s->secrets, &x->node);
	list_del(&x->link);
	buf_done(&x->notes);
	free(x);
}

/* ---- files ---- */

static const struct seal_key *key_for(const struct shelf_keys *keys, const struct sealed *s)
{
	for (unsigned i = 0; i < keys->n; i++)
		if (memcmp(keys->key[i].id, s->key_id.p, SEAL_KEY_ID) == 0)
			return &keys->key[i];
	return NULL;
}

static bool same_label(const struct seal_label *a, const struct seal_label *b)
{
	return view_eq(a->tenant, b->tenant) && view_eq(a->box, b->box) && view_eq(a->name, b->name) &&
	       a->version == b->version;
}

int shelf_open_file(int dir, const char *path, const struct shelf_keys *keys, const struct seal_label *want,
		    struct buf *out)
{
	_cleanup_(buf_done) struct buf file = BUF_INIT(SEAL_FILE);
	struct sealed s;
	int r = fd_slurp(dir, path, &file);

	if (r == 0)
		r = seal_parse(buf_view(&file), &s);
	if (r < 0)
		return r == -EFBIG ? -EBADMSG : r;
	if (!same_label(&s.label, want))
		return -EBADMSG;
	const struct seal_key *k = key_for(keys, &s);
	return k ? seal_open(k, &s, out) : -ENOKEY;
}

int shelf_reseal_file(int dir, const char *path, const struct shelf_keys *keys)
{
	_cleanup_(buf_done) struct buf file = BUF_INIT(SEAL_FILE), fresh = BUF_INIT(SEAL_FILE);
	_cleanup_(buf_done) struct buf value = { .max = SEAL_VALUE, .secret = true };
	struct sealed s;
	int r = fd_slurp(dir, path, &file);

	if (r == 0)
		r = seal_parse(buf_view(&file), &s);
	if (r < 0)
		return r;
	const struct seal_key *k = key_for(keys, &s);
	if (k == &keys->key[0])
		return 0;
	r = k ? seal_open(k, &s, &value) : -ENOKEY;
	if (r == 0)
		r = seal_close(&keys->key[0], &s.label, buf_view(&value), &fresh);
	if (r == 0)
		r = fd_replace(dir, path, buf_view(&fresh).p, buf_len(&fresh), 0600, true);
	return r < 0 ? r : 1;
}

static int sync_dir(int dir)
{
	return fsync(dir) < 0 ? -errno : 0;
}

int shelf_read(const struct shelf *s, const struct shelf_secret *x, uint32_t version, struct buf *out,
	       struct err *e)
{
	struct seal_label want = { x->tenant, x->box, x->name, version ? version : x->versions[0].version,
				   0 };
	char path[FILE_NAME];
	bool known = false;

	for (unsigned i = 0; i < x->n; i++)
		known = known || x->versions[i].version == want.version;
	if (!known)
		return err_set(e, ERR_NOT_FOUND, "the secret has no version %u", version);
	file_name(x, want.version, path);
	int r = shelf_open_file(s->dir, path, s->keys, &want, out);
	if (r == -ENOKEY)
		return err_set(e, ERR_UNAVAILABLE, "the secret %.*s was sealed with another master key",
			       VIEW_ARG(x->name));
	if (r == -EBADMSG)
		return err_set(e, ERR_INTERNAL, "the file of the secret %.*s is damaged", VIEW_ARG(x->name));
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "the secret %.*s", VIEW_ARG(x->name)) : 0;
}

struct shelf_total shelf_total(const struct shelf *s, struct view tenant)
{
	struct shelf_total all = { 0 };

	LIST_EACH (it, &s->all) {
		const struct shelf_secret *x = CONTAINER(it, struct shelf_secret, link);
		if (!view_eq(x->tenant, tenant))
			continue;
		all.secrets++;
		all.notes += buf_len(&x->notes);
		for (unsigned i = 0; i < x->n; i++)
			all.bytes += x->versions[i].bytes;
	}
	return all;
}

/* Whether the tenant may have another version; x: the secret, where there is one. */
static int check_room(const struct shelf *s, const struct shelf_new *w, const struct shelf_secret *x,
		      const struct shelf_total *most, struct err *e)
{
	struct shelf_total has = shelf_total(s, w->tenant);
	size_t bytes = w->value.n + (w->notes ? w->notes->n : x ? buf_len(&x->notes) : 0);
	uint64_t n = most->secrets ? MIN(most->secrets, (uint64_t)SHELF_OF_TENANT) : SHELF_OF_TENANT;

	if (!x && has.secrets >= n)
		return err_set(e, ERR_QUOTA, "the tenant's quota of secrets is used up: %llu of %llu",
			       (unsigned long long)has.secrets, (unsigned long long)n);
	if (x && x->n == SHELF_VERSIONS) /* the oldest makes room */
		has.bytes -= x->versions[SHELF_VERSIONS - 1].bytes;
	if (most->bytes && has.bytes + bytes > most->bytes)
		return err_set(e, ERR_QUOTA,
			       "the tenant's quota of secrets' files is used up: %llu of %llu KiB",
			       (unsigned long long)has.bytes >> 10, (unsigned long long)most->bytes >> 10);
	if (w->notes && w->notes->n && has.notes - (x ? buf_len(&x->notes) : 0) + w->notes->n > SHELF_NOTES)
		return err_set(e, ERR_QUOTA, "the metadata of the tenant's secrets have more than %u KiB",
			       SHELF_NOTES >> 10);
	return 0;
}

static void drop_version(const struct shelf *s, const struct shelf_secret *x, uint32_t version)
{
	char path[FILE_NAME];

	file_name(x, version, path);
	if (unlinkat(s->dir, path, 0) < 0 && errno != ENOENT)
		log_error("cannot remove an old version of a secret: %s", strerror(errno));
}

static void add_version(struct shelf_secret *x, struct shelf_version v)
{
	unsigned at = 0;

	while (at < x->n && x->versions[at].version > v.version)
		at++;
	if (at == SHELF_VERSIONS)
		return;
	x->n = MIN(x->n + 1, (unsigned)SHELF_VERSIONS);
	memmove(x->versions + at + 1, x->versions + at, (x->n - at - 1) * sizeof(v));
	x->versions[at] = v;
}

static int write_version(const struct shelf *s, const struct shelf_secret *x, struct shelf_version *v,
			 struct view value, struct view notes)
{
	_cleanup_(buf_done) struct buf file = BUF_INIT(SEAL_FILE);
	const struct seal_label label = { x->tenant, x->box, x->name, v->version, v->created_ms, notes };
	char path[FILE_NAME];
	int r = seal_close(&s->keys->key[0], &label, value, &file);

	file_name(x, v->version, path);
	v->bytes = (uint32_t)buf_len(&file);
	if (r == 0)
		r = fd_replace(s->dir, path, buf_view(&file).p, buf_len(&file), 0600, true);
	return r == 0 ? sync_dir(s->dir) : r;
}

static void swap_notes(struct shelf_secret *x, struct buf *notes)
{
	struct buf old = x->notes;

	x->notes = *notes;
	*notes = old;
}

const struct shelf_secret *shelf_put(struct shelf *s, const struct shelf_new *w,
				     const struct shelf_total *most, struct err *e)
{
	struct shelf_secret *x = (struct shelf_secret *)shelf_find(s, w->tenant, w->box, w->name);
	bool fresh = !x;

	if (w->notes && w->notes->n > SEAL_NOTES) {
		err_set(e, ERR_INVALID, "the metadata of a secret have more than %d bytes", SEAL_NOTES);
		return NULL;
	}
	if (!shelf_is_name(w->name) || w->value.n < 1 || w->value.n > SEAL_VALUE) {
		err_set(e, ERR_INVALID, "a secret has a name of [A-Za-z0-9_.-] and 1 to %u bytes",
			SEAL_VALUE);
		return NULL;
	}
	if (check_room(s, w, x, most, e) < 0)
		return NULL;
	x = fresh ? add(s, w->tenant, w->box, w->name) : x;
	if (!x) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "secret");
		return NULL;
	}
	_cleanup_(buf_done) struct buf notes = BUF_INIT(SEAL_NOTES);
	struct shelf_version v = { x->n ? x->versions[0].version + 1 : 1, clock_wall_ms(), 0 };
	buf_add(&notes, w->notes ? *w->notes : buf_view(&x->notes));
	int r = notes.bad ? notes.bad : write_version(s, x, &v, w->value, buf_view(&notes));
	if (r < 0) {
		err_sys(e, r == -ENOSPC ? ERR_STORAGE : ERR_INTERNAL, r, "the secret cannot be written");
		if (fresh)
			forget(s, x);
		return NULL;
	}
	swap_notes(x, &notes);
	if (x->n == SHELF_VERSIONS)
		drop_version(s, x, x->versions[SHELF_VERSIONS - 1].version);
	add_version(x, v);
	return x;
}

int shelf_remove(struct shelf *s, const struct shelf_secret *secret, struct err *e)
{
	struct shelf_secret *x = (struct shelf_secret *)secret;
	char path[FILE_NAME];

	/* The oldest first: what a crash leaves is what there was, with a shorter past. */
	while (x->n) {
		file_name(x, x->versions[x->n - 1].version, path);
		if (unlinkat(s->dir, path, 0) < 0 && errno != ENOENT)
			return err_sys(e, ERR_INTERNAL, errno, "the secret cannot be removed");
		x->n--;
	}
	forget(s, x);
	int r = sync_dir(s->dir);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "the secret cannot be removed") : 0;
}

void shelf_remove_box(struct shelf *s, struct view box)
{
	struct err e = { 0 };

	if (!box.n)
		return;
	LIST_EACH (it, &s->all) {
		const struct shelf_secret *x = CONTAINER(it, struct shelf_secret, link);
		if (view_eq(x->box, box) && shelf_remove(s, x, &e) < 0)
			log_error("sandbox %.*s: %s", VIEW_ARG(box), e.msg);
	}
}

int shelf_reseal(struct shelf *s)
{
	int count = 0, failed = 0;

	LIST_EACH (it, &s->all) {
		const struct shelf_secret *x = CONTAINER(it, struct shelf_secret, link);
		for (unsigned i = 0; i < x->n; i++) {
			char path[FILE_NAME];
			file_name(x, x->versions[i].version, path);
			int r = shelf_reseal_file(s->dir, path, s->keys);
			count += r > 0;
			failed = r < 0 && !failed ? r : failed;
		}
	}
	int r = sync_dir(s->dir);
	return failed ? failed : r < 0 ? r : count;
}

/* ---- loading ---- */

/* What a write that was cut off left: HASH.VERSION.TAIL. */
static bool is_leftover(struct view name)
{
	struct view rest;

	view_split(name, '.', &rest);
	if (rest.p)
		view_split(rest, '.', &rest);
	return rest.p != NULL;
}

static int load_file(struct shelf *s, const char *path)
{
	_cleanup_(buf_done) struct buf file = BUF_INIT(SEAL_FILE);
	struct sealed f;
	char right[FILE_NAME];
	int r = fd_slurp(s->dir, path, &file);

	if (r == 0)
		r = seal_parse(buf_view(&file), &f);
	if (r < 0)
		return r;
	struct shelf_secret *x =
		(struct shelf_secret *)shelf_find(s, f.label.tenant, f.label.box, f.label.name);
	bool fresh = !x;
	x = x ? x : add(s, f.label.tenant, f.label.box, f.label.name);
	if (!x)
		return -ENOMEM;
	file_name(x, f.label.version, right);
	if (strcmp(right, path) != 0) {
		if (fresh)
			forget(s, x);
		return -EBADMSG;
	}
	_cleanup_(buf_done) struct buf notes = BUF_INIT(SEAL_NOTES);
	buf_add(&notes, f.label.notes);
	if (notes.bad)
		return notes.bad;
	if (!x->n || f.label.version > x->versions[0].version)
		swap_notes(x, &notes);
	add_version(x,
		    (struct shelf_version){ f.label.version, f.label.created_ms, (uint32_t)buf_len(&file) });
	return 0;
}

static int load(struct shelf *s)
{
	int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d) {
		int r = -errno;
		fd_close(fd);
		return r;
	}
	for (struct dirent *entry; (entry = readdir(d));) {
		if (entry->d_name[0] == '.')
			continue;
		if (is_leftover(view_of(entry->d_name))) {
			(void)unlinkat(s->dir, entry->d_name, 0);
			continue;
		}
		int r = load_file(s, entry->d_name);
		if (r < 0)
			log_error("the sealed file %.60s cannot be used: %s", entry->d_name, strerror(-r));
	}
	closedir(d);
	return 0;
}

int shelf_open(struct shelf *s, int dir, const struct shelf_keys *keys, struct err *e)
{
	*s = (struct shelf){ .dir = dir, .keys = keys };
	map_init(&s->secrets);
	list_init(&s->all);
	int r = load(s);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "the secrets cannot be read") : 0;
}

void shelf_close(struct shelf *s)
{
	if (!s->all.next)
		return;
	LIST_EACH (it, &s->all)
		forget(s, CONTAINER(it, struct shelf_secret, link));
	map_done(&s->secrets);
}
