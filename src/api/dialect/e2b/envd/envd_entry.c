/*
 * Paths and entries as this dialect's clients know them: paths are absolute and
 * clean, a symlink counts as what it leads to, permissions are spelled out.
 */
#include <stdio.h>

#include "envd_gen.h"
#include "envd_impl.h"
#include "text.h"
#include "poison.h"

#define PERMISSIONS    16
#define DIRECTORY_SIZE 4096

struct view envd_clean(struct arena *a, struct view path)
{
	bool absolute = path.n && path.p[0] == '/';
	char *out = arena_alloc(a, path.n + 2);
	size_t n = 0, floor = 0; /* what ".." cannot take away */

	if (!out)
		return VIEW_NONE;
	if (absolute)
		out[n++] = '/';
	floor = n;
	for (struct view rest = path; rest.p && rest.n;) {
		struct view part = view_split(rest, '/', &rest);
		if (part.n == 0 || view_is(part, "."))
			continue;
		if (view_is(part, "..") && n > floor) {
			while (n > floor && out[n - 1] != '/')
				n--;
			if (n > floor)
				n--;
			continue;
		}
		if (view_is(part, "..") && absolute)
			continue;
		if (n && out[n - 1] != '/')
			out[n++] = '/';
		memcpy(out + n, part.p, part.n);
		n += part.n;
		if (view_is(part, ".."))
			floor = n;
	}
	if (n == 0)
		out[n++] = '.';
	return (struct view){ out, n };
}

int envd_path(struct arena *a, struct view raw, struct view *ret, struct err *e)
{
	if (raw.n && raw.p[0] == '~') {
		if (raw.n > 1 && raw.p[1] != '/')
			return err_set(e, ERR_INVALID, "the home of another user cannot be named by ~");
		raw = view_skip(raw, 2);
		while (raw.n && raw.p[0] == '/')
			raw = view_skip(raw, 1);
	}
	*ret = envd_clean(a, raw);
	return ret->p ? 0 : err_set(e, ERR_TOO_LARGE, "the path is too long");
}

struct view envd_base(struct view path)
{
	const char *slash = path.n ? memrchr(path.p, '/', path.n) : NULL;
	return slash && path.n > 1 ? view_skip(path, (size_t)(slash + 1 - path.p)) : path;
}

/* Protobuf's strings are UTF-8; names of files are bytes. */
static struct view utf8(struct arena *a, struct view v)
{
	if (text_is_utf8(v))
		return v;
	char *out = arena_alloc(a, 3 * v.n + 1);
	size_t n = 0;
	while (out && v.n) {
		size_t good = text_utf8_prefix(v);
		memcpy(out + n, v.p, good);
		n += good;
		v = view_skip(v, good);
		if (v.n) {
			memcpy(out + n, "\xef\xbf\xbd", 3);
			n += 3;
			v = view_skip(v, 1);
		}
	}
	return (struct view){ out, n };
}

/* "-rw-r--r--", "drwxr-xr-x", "Lrwxrwxrwx", "dtrwxrwxrwx": letters of kind, then nine of rights. */
static struct view permissions(struct arena *a, const struct file_info *info)
{
	static const char *const kinds[] = {
		[FILE_TYPE_DIRECTORY] = "d", [FILE_TYPE_SYMLINK] = "L", [FILE_TYPE_FIFO] = "p",
		[FILE_TYPE_SOCKET] = "S",    [FILE_TYPE_DEVICE] = "D",
	};
	bool known = info->type > 0 && (size_t)info->type < ELEMS(kinds) && kinds[info->type];
	char text[PERMISSIONS + 16];
	int n = snprintf(text, sizeof(text), "%s%s%s%s", known ? kinds[info->type] : "",
			 info->mode & 04000 ? "u" : "", info->mode & 02000 ? "g" : "",
			 info->mode & 01000 ? "t" : "");

	if (n == 0)
		text[n++] = '-';
	for (int i = 8; i >= 0; i--)
		text[n++] = info->mode & 1u << i ? "xwr"[i % 3] : '-';
	return arena_view(a, (struct view){ text, (size_t)n });
}

static int32_t type_of(const struct file_info *info)
{
	bool link = info->type == FILE_TYPE_SYMLINK;

	if (link && !info->resolved.n)
		return ENVD_FILE_TYPE_SYMLINK; /* leads nowhere */
	enum file_type type = link ? info->resolved_type : info->type;
	return type == FILE_TYPE_FILE        ? ENVD_FILE_TYPE_FILE
	       : type == FILE_TYPE_DIRECTORY ? ENVD_FILE_TYPE_DIRECTORY
					     : ENVD_FILE_TYPE_UNSPECIFIED;
}

static int put_metadata(struct arena *a, const struct file_info *info, struct envd_entry_info *to)
{
	to->metadata.items = arena_array(a, info->metadata.n + 1, sizeof(*to->metadata.items));
	if (!to->metadata.items)
		return -1;
	for (size_t i = 0; i < info->metadata.n; i++) {
		to->metadata.items[i].key = utf8(a, arena_view(a, info->metadata.keys[i]));
		to->metadata.items[i].value = utf8(a, arena_view(a, info->metadata.values[i]));
	}
	to->metadata.n = info->metadata.n;
	return 0;
}

static struct view copy(struct arena *a, struct view v)
{
	return utf8(a, arena_view(a, v));
}

struct envd_entry_info *envd_entry(struct arena *a, const struct file_info *info, struct view path)
{
	bool link = info->type == FILE_TYPE_SYMLINK;
	struct envd_entry_info *to = arena_alloc(a, sizeof(*to));
	struct envd_timestamp *time = arena_alloc(a, sizeof(*time));
	int64_t ms = info->mtime_ms;

	if (!to || !time || put_metadata(a, info, to) < 0)
		return NULL;
	time->seconds = ms / 1000 - (ms % 1000 < 0);
	time->nanos = (int32_t)((ms % 1000 + 1000) % 1000 * 1000000);
	to->path = copy(a, envd_clean(a, path));
	to->name = envd_base(to->path);
	to->type = type_of(info);
	/* Some file systems give directories no size; the original's do. */
	to->size = (int64_t)(info->size || info->type != FILE_TYPE_DIRECTORY ? info->size : DIRECTORY_SIZE);
	to->mode = (link ? info->resolved_mode : info->mode) & 0777;
	to->permissions = permissions(a, info);
	to->owner = copy(a, info->owner);
	to->group = copy(a, info->group);
	to->modified_time = time;
	to->has_symlink_target = link;
	if (link)
		to->symlink_target = info->resolved.n ? copy(a, info->resolved) : to->path;
	return to;
}
