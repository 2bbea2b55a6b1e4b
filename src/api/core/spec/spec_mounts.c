/*
 * See spec.h and spec_mounts.h.
 */
#include "spec_mounts.h"

#include <errno.h>

#include "config.h"
#include "poison.h"

#define PATH_MOST 255

struct body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view source, path, mode;
};

#define AT(f) .offset = offsetof(struct body, f)
static const struct json_field fields[] = {
	{ "source", JSON_F_STRING, AT(source), .min = 1, .max = PATH_MOST, .required = true },
	{ "path", JSON_F_STRING, AT(path), .min = 1, .max = PATH_MOST, .required = true },
	{ "mode", JSON_F_STRING, AT(mode), .min = 1, .nullable = true },
};
#undef AT
static const struct json_schema schema = { fields, ELEMS(fields) };

int spec_mounts_count(const struct json *j, const char *what, size_t most, struct err *e)
{
	if (!j || j->type == JSON_NULL)
		return 0;
	if (j->type != JSON_ARRAY || j->n > most)
		return err_set(e, ERR_INVALID, "%s must be an array of at most %zu objects", what, most);
	return (int)j->n;
}

int spec_mounts_check_mode(struct view mode, struct err *e)
{
	if (mode.n && !view_is(mode, "rw") && !view_is(mode, "ro"))
		return err_set(e, ERR_INVALID, "mode must be rw or ro");
	return 0;
}

void spec_mounts_put_one(struct json_out *o, const char *key, struct view value, struct view path,
			 bool readonly)
{
	json_out_object(o);
	json_out_kstr(o, key, value);
	json_out_kstr(o, "path", path);
	json_out_kz(o, "mode", readonly ? "ro" : "rw");
	json_out_end(o, '}');
}

static int check(const struct body *b, struct err *e)
{
	if (!config_is_path(b->source))
		return err_set(e, ERR_INVALID, "source must be an absolute path without \"..\"");
	if (!config_is_path(b->path))
		return err_set(e, ERR_INVALID, "path must be an absolute path without \"..\", and not \"/\"");
	if (!config_is_mount_point(b->path))
		return err_set(e, ERR_INVALID, "path must not be in /proc, /sys, /dev or /run");
	return spec_mounts_check_mode(b->mode, e);
}

int spec_mounts_read(struct arena *a, const struct json *j, struct spec_mount_list *ret, struct err *e)
{
	*ret = (struct spec_mount_list){ 0 };
	int n = spec_mounts_count(j, "mounts", SPEC_MOUNTS_MAX, e);
	if (n <= 0)
		return n;
	ret->items = arena_array(a, j->n, sizeof(*ret->items));
	if (!ret->items)
		return err_set(e, ERR_TOO_LARGE, "mounts: too large");
	for (size_t i = 0; i < j->n; i++) {
		struct body b = { 0 };
		if (json_read(a, &j->items[i], &schema, &b, false, e) < 0 || check(&b, e) < 0)
			return err_wrap(e, "mounts[%zu]", i);
		for (size_t k = 0; k < ret->n; k++)
			if (view_eq(ret->items[k].path, b.path))
				return err_set(e, ERR_INVALID, "mounts[%zu]: the same path twice", i);
		ret->items[ret->n++] = (struct spec_mount){ b.source, b.path, !view_is(b.mode, "rw") };
	}
	return 0;
}

int spec_mounts_copy(struct arena *a, const struct spec_mount_list *from, struct spec_mount_list *to)
{
	*to = (struct spec_mount_list){ .items = arena_array(a, from->n, sizeof(*to->items)) };
	if (!to->items)
		return -ENOMEM;
	for (; to->n < from->n; to->n++) {
		struct spec_mount *m = &to->items[to->n];
		*m = from->items[to->n];
		m->source = arena_view(a, m->source);
		m->path = arena_view(a, m->path);
		if (!m->source.p || !m->path.p)
			return -ENOMEM;
	}
	return 0;
}

void spec_mounts_put(struct json_out *o, const struct spec_mount_list *m)
{
	json_out_array(o);
	for (size_t i = 0; i < m->n; i++) {
		const struct spec_mount *one = &m->items[i];
		spec_mounts_put_one(o, "source", one->source, one->path, one->readonly);
	}
	json_out_end(o, ']');
}
