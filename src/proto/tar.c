/*
 * See tar.h.
 */
#include "tar.h"

#include <errno.h>

#include "num.h"
#include "poison.h"

/* Where the fields of a header are. */
enum {
	AT_NAME = 0,
	AT_MODE = 100,
	AT_UID = 108,
	AT_GID = 116,
	AT_SIZE = 124,
	AT_MTIME = 136,
	AT_SUM = 148,
	AT_TYPE = 156,
	AT_LINK = 157,
	AT_MAGIC = 257,
	AT_PREFIX = 345,
	NAME_SIZE = 100,
	PREFIX_SIZE = 155,
};

static unsigned checksum(const char *block)
{
	unsigned sum = 0;
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= AT_SUM && i < AT_SUM + 8 ? ' ' : (unsigned char)block[i];
	return sum;
}

/* ---- writing ---------------------------------------------------------- */

/* Digits and a NUL. False when it does not fit. */
static bool put_octal(char *dst, size_t size, uint64_t v)
{
	for (size_t i = size - 1; i-- > 0; v >>= 3)
		dst[i] = (char)('0' + (v & 7));
	dst[size - 1] = 0;
	return v == 0;
}

/* Into name and prefix, split at a slash. */
static bool put_path(char *block, struct view path)
{
	if (path.n <= NAME_SIZE) {
		memcpy(block + AT_NAME, path.p, path.n);
		return true;
	}
	for (size_t i = path.n - NAME_SIZE - 1; i <= PREFIX_SIZE && i < path.n - 1; i++)
		if (path.p[i] == '/' && i > 0) {
			memcpy(block + AT_PREFIX, path.p, i);
			memcpy(block + AT_NAME, path.p + i + 1, path.n - i - 1);
			return true;
		}
	memcpy(block + AT_NAME, path.p, NAME_SIZE); /* a pax header has the whole */
	return false;
}

static bool put_target(char *block, struct view target)
{
	memcpy(block + AT_LINK, target.p ? target.p : "", MIN(target.n, NAME_SIZE));
	return target.n <= NAME_SIZE;
}

static void put_block(struct buf *out, char *block)
{
	memcpy(block + AT_MAGIC,
	       "ustar\0"
	       "00",
	       8);
	put_octal(block + AT_SUM, 7, checksum(block));
	block[AT_SUM + 7] = ' ';
	(void)buf_append(out, block, TAR_BLOCK);
}

/* "LENGTH key=value\n", where LENGTH counts its own digits. */
static void put_record(struct buf *out, const char *key, struct view value)
{
	size_t rest = strlen(key) + value.n + 3, n = rest + 1;
	for (size_t digits = 1, power = 10; n >= power; digits++, power *= 10)
		n = rest + digits + 1;
	(void)buf_printf(out, "%zu %s=", n, key);
	(void)buf_add(out, value);
	(void)buf_putc(out, '\n');
}

static void put_number(struct buf *out, const char *key, int64_t v)
{
	struct buf text = BUF_INIT(32);
	(void)buf_printf(&text, "%lld", (long long)v);
	put_record(out, key, buf_view(&text));
	buf_done(&text);
}

static void put_zeros(struct buf *out, size_t n)
{
	static const char zeros[TAR_BLOCK];
	(void)buf_append(out, zeros, n);
}

static void put_pax(struct buf *out, struct view records)
{
	char block[TAR_BLOCK] = { 0 };
	memcpy(block + AT_NAME, "pax", 3);
	put_octal(block + AT_MODE, 8, 0644);
	put_octal(block + AT_UID, 8, 0);
	put_octal(block + AT_GID, 8, 0);
	put_octal(block + AT_SIZE, 12, records.n);
	put_octal(block + AT_MTIME, 12, 0);
	block[AT_TYPE] = 'x';
	put_block(out, block);
	(void)buf_add(out, records);
	put_zeros(out, (size_t)tar_padding(records.n));
}

int tar_put(struct buf *out, const struct tar_entry *en)
{
	char block[TAR_BLOCK] = { 0 };
	_cleanup_(buf_done) struct buf path = BUF_INIT(2 * PATH_MAX), pax = BUF_INIT(TAR_META_MAX);
	(void)buf_add(&path, en->path);
	if (en->type == TAR_DIRECTORY)
		(void)buf_putc(&path, '/');
	if (path.bad)
		return path.bad;
	if (!put_path(block, buf_view(&path)))
		put_record(&pax, "path", buf_view(&path));
	if (!put_target(block, en->target))
		put_record(&pax, "linkpath", en->target);
	if (!put_octal(block + AT_SIZE, 12, en->size)) {
		put_number(&pax, "size", (int64_t)en->size);
		put_octal(block + AT_SIZE, 12, 0);
	}
	if (en->mtime < 0 || !put_octal(block + AT_MTIME, 12, (uint64_t)en->mtime)) {
		put_number(&pax, "mtime", en->mtime);
		put_octal(block + AT_MTIME, 12, 0);
	}
	if (!put_octal(block + AT_UID, 8, en->uid))
		put_number(&pax, "uid", en->uid);
	if (!put_octal(block + AT_GID, 8, en->gid))
		put_number(&pax, "gid", en->gid);
	put_octal(block + AT_MODE, 8, en->mode & 07777);
	block[AT_TYPE] = (char)en->type;
	if (pax.bad)
		return pax.bad;
	if (buf_len(&pax))
		put_pax(out, buf_view(&pax));
	put_block(out, block);
	return out->bad;
}

int tar_put_end(struct buf *out)
{
	put_zeros(out, TAR_BLOCK);
	put_zeros(out, TAR_BLOCK);
	return out->bad;
}

/* ---- reading ---------------------------------------------------------- */

void tar_reader_init(struct tar_reader *t)
{
	*t = (struct tar_reader){ 0 };
	buf_init(&t->meta, TAR_META_MAX);
	buf_init(&t->path, TAR_META_MAX);
	buf_init(&t->target, TAR_META_MAX);
}

void tar_reader_done(struct tar_reader *t)
{
	buf_done(&t->meta);
	buf_done(&t->path);
	buf_done(&t->target);
}

static int bad(struct tar_reader *t, const char *why)
{
	t->why = why;
	return -EBADMSG;
}

/* Octal with spaces around it, or GNU's base-256; not negative, below 2^63. */
static bool get_number(const char *p, size_t n, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;
	if ((unsigned char)p[0] & 0x80) {
		if (p[0] != (char)0x80)
			return false; /* negative, or larger than anything */
		for (i = 1; i < n; i++) {
			if (v >> 55)
				return false;
			v = v << 8 | (unsigned char)p[i];
		}
		*ret = v;
		return v <= INT64_MAX;
	}
	while (i < n && p[i] == ' ')
		i++;
	for (; i < n && p[i] >= '0' && p[i] <= '7'; i++) {
		if (v >> 60)
			return false;
		v = v << 3 | (uint64_t)(p[i] - '0');
	}
	*ret = v;
	return i == n || p[i] == 0 || p[i] == ' ';
}

static struct view get_text(const char *p, size_t size)
{
	return (struct view){ p, strnlen(p, size) };
}

static bool keep(struct buf *b, struct view v, bool *has)
{
	buf_clear(b);
	*has = buf_add(b, v) == 0 && v.n && !memchr(v.p, 0, v.n);
	return *has;
}

/* Seconds; a fraction is cut. */
static bool get_time(struct view v, int64_t *ret)
{
	struct view fraction;
	return num_i64(view_split(v, '.', &fraction), ret) == 0;
}

static int take_record(struct tar_reader *t, struct view key, struct view value)
{
	if (view_is(key, "path") && !keep(&t->path, value, &t->has_path))
		return bad(t, "a path that is empty or holds a NUL");
	if (view_is(key, "linkpath") && !keep(&t->target, value, &t->has_target))
		return bad(t, "a link that is empty or holds a NUL");
	if (view_is(key, "size")) {
		if (num_u64(value, &t->size) < 0 || t->size > INT64_MAX)
			return bad(t, "a size that is no number");
		t->has_size = true;
	}
	if (view_is(key, "mtime"))
		t->has_mtime = get_time(value, &t->mtime);
	if (view_starts(key, "GNU.sparse."))
		t->sparse = true;
	return 0;
}

static int take_pax(struct tar_reader *t, struct view v)
{
	while (v.n) {
		struct view rest;
		uint64_t n;
		if (num_u64(view_split(v, ' ', &rest), &n) < 0 || !rest.p || n > v.n)
			return bad(t, "a malformed pax record");
		size_t digits = v.n - rest.n;
		if (n < digits + 3 || v.p[n - 1] != '\n')
			return bad(t, "a malformed pax record");
		struct view value, record = view_head(rest, (size_t)n - digits - 1);
		struct view key = view_split(record, '=', &value);
		if (!value.p)
			return bad(t, "a malformed pax record");
		int r = take_record(t, key, value);
		if (r < 0)
			return r;
		v = view_skip(v, (size_t)n);
	}
	return 0;
}

/* A pax header or a long name is complete. */
static int take_meta(struct tar_reader *t)
{
	struct view v = buf_view(&t->meta);
	switch (t->meta_type) {
	case 'x':
		return take_pax(t, v);
	case 'L':
	case 'K':
		v = get_text(v.p, v.n);
		if (t->meta_type == 'L' ? keep(&t->path, v, &t->has_path)
					: keep(&t->target, v, &t->has_target))
			return 0;
		return bad(t, "an empty long name");
	default:
		return 0; /* for all entries ("g"): nothing that we use */
	}
}

static enum tar_type type_of(char c)
{
	switch (c) {
	case 0:
	case '0':
	case '7':
		return TAR_FILE;
	case '1':
	case '2':
	case '3':
	case '4':
	case '5':
	case '6':
		return (enum tar_type)c;
	default:
		return TAR_OTHER;
	}
}

static struct view get_path(struct tar_reader *t)
{
	if (t->has_path)
		return buf_view(&t->path);
	struct buf b = { .p = t->name, .cap = sizeof(t->name), .max = sizeof(t->name) };
	struct view prefix = VIEW_NONE;
	if (memcmp(t->block + AT_MAGIC, "ustar\0", 6) == 0) /* GNU has other things there */
		prefix = get_text(t->block + AT_PREFIX, PREFIX_SIZE);
	(void)buf_add(&b, prefix);
	if (prefix.n)
		(void)buf_putc(&b, '/');
	(void)buf_add(&b, get_text(t->block + AT_NAME, NAME_SIZE));
	return buf_view(&b);
}

static struct view get_target(struct tar_reader *t)
{
	if (t->has_target)
		return buf_view(&t->target);
	struct view v = get_text(t->block + AT_LINK, NAME_SIZE);
	memcpy(t->link, v.p, v.n);
	return (struct view){ t->link, v.n };
}

static int fill_entry(struct tar_reader *t, uint64_t size, struct tar_entry *en)
{
	uint64_t mode, uid, gid, mtime = 0;
	const char *b = t->block;
	if (!get_number(b + AT_MODE, 8, &mode) || !get_number(b + AT_UID, 8, &uid) ||
	    !get_number(b + AT_GID, 8, &gid))
		return bad(t, "a malformed number in a header");
	if (!get_number(b + AT_MTIME, 12, &mtime))
		mtime = 0; /* before 1970 */
	*en = (struct tar_entry){
		.type = t->sparse ? TAR_OTHER : type_of(b[AT_TYPE]),
		.path = get_path(t),
		.target = get_target(t),
		.size = t->has_size ? t->size : size,
		.mode = (uint32_t)(mode & 07777),
		.uid = (uint32_t)MIN(uid, UINT32_MAX - 1),
		.gid = (uint32_t)MIN(gid, UINT32_MAX - 1),
		.mtime = t->has_mtime ? t->mtime : (int64_t)mtime,
	};
	/* Before there were directories they were files with a slash at the end. */
	if (en->type == TAR_FILE && en->path.n && en->path.p[en->path.n - 1] == '/')
		en->type = TAR_DIRECTORY;
	while (en->path.n > 1 && en->path.p[en->path.n - 1] == '/')
		en->path.n--;
	/* Links and directories have no bytes, whatever some writers say of the former. */
	if (en->type == TAR_LINK || en->type == TAR_SYMLINK || en->type == TAR_DIRECTORY ||
	    en->type == TAR_FIFO || en->type == TAR_CHAR || en->type == TAR_BLOCK_DEVICE)
		en->size = 0;
	t->has_path = t->has_target = t->has_size = t->has_mtime = t->sparse = false;
	return 1;
}

static bool is_zero(const char *block)
{
	for (size_t i = 0; i < TAR_BLOCK; i++)
		if (block[i])
			return false;
	return true;
}

/* 1: an entry, 0: something else was in it. */
static int take_block(struct tar_reader *t, struct tar_entry *ret)
{
	uint64_t sum, size;
	if (is_zero(t->block)) {
		t->ended = ++t->zeros == 2;
		return 0;
	}
	t->zeros = 0;
	if (!get_number(t->block + AT_SUM, 8, &sum) || sum != checksum(t->block))
		return bad(t, "a header with a wrong checksum");
	if (!get_number(t->block + AT_SIZE, 12, &size))
		return bad(t, "a malformed size");
	char type = t->block[AT_TYPE];
	if (type != 'x' && type != 'g' && type != 'L' && type != 'K')
		return fill_entry(t, size, ret);
	if (size > TAR_META_MAX)
		return bad(t, "an extended header that is too large");
	t->meta_type = type;
	t->meta_left = size;
	t->pad_left = tar_padding(size);
	buf_clear(&t->meta);
	return size ? 0 : take_meta(t);
}

static void take(struct view *in, size_t n, struct buf *to)
{
	if (to)
		(void)buf_add(to, view_head(*in, n));
	*in = view_skip(*in, n);
}

int tar_read(struct tar_reader *t, struct view *in, struct tar_entry *ret)
{
	while (in->n) {
		int r = 0;
		if (t->ended) {
			*in = view_skip(*in, in->n);
		} else if (t->meta_left) {
			size_t n = (size_t)MIN(t->meta_left, (uint64_t)in->n);
			take(in, n, &t->meta);
			t->meta_left -= n;
			r = t->meta.bad ? t->meta.bad : t->meta_left ? 0 : take_meta(t);
		} else if (t->pad_left) {
			size_t n = (size_t)MIN(t->pad_left, (uint64_t)in->n);
			take(in, n, NULL);
			t->pad_left -= n;
		} else {
			size_t n = MIN(TAR_BLOCK - t->have, in->n);
			memcpy(t->block + t->have, in->p, n);
			take(in, n, NULL);
			t->have += n;
			if (t->have == TAR_BLOCK) {
				t->have = 0;
				r = take_block(t, ret);
			}
		}
		if (r != 0)
			return r;
	}
	return 0;
}

bool tar_may_end(const struct tar_reader *t)
{
	return t->ended || (t->have == 0 && t->meta_left == 0 && t->pad_left == 0 && !t->has_path &&
			    !t->has_target && !t->has_size);
}
