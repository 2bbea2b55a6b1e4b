/*
 * See spec.h and spec_workspaces.h.
 */
#include "spec_workspaces.h"

#include "config.h"
#include "spec_mounts.h"

#include "poison.h"

#define PATH_MOST 255

struct body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view name, path, mode;
};

#define AT(f) .offset = offsetof(struct body, f), .min = 1
static const struct json_field fields[] = {
	{ "name", JSON_F_STRING, AT(name), .required = true },
	{ "path", JSON_F_STRING, AT(path), .nullable = true },
	{ "mode", JSON_F_STRING, AT(mode), .nullable = true },
};
#undef AT
static const struct json_schema schema = { fields, ELEMS(fields) };

static struct spec_workspace_list room(struct arena *a, size_t n)
{
	return (struct spec_workspace_list){ .items = arena_array(a, n, sizeof(struct spec_workspace)) };
}

int spec_workspaces_read(struct arena *a, const struct json *j, struct spec_workspace_list *ret,
			 struct err *e)
{
	*ret = (struct spec_workspace_list){ 0 };
	int n = spec_mounts_count(j, "workspaces", SPEC_WORKSPACES_MAX, e);
	if (n <= 0)
		return n;
	*ret = room(a, j->n);
	if (!ret->items)
		return err_set(e, ERR_TOO_LARGE, "workspaces: too large");
	for (size_t i = 0; i < j->n; i++) {
		struct body b = { 0 };
		if (json_read(a, &j->items[i], &schema, &b, false, e) < 0 ||
		    spec_mounts_check_mode(b.mode, e) < 0)
			return err_wrap(e, "workspaces[%zu]", i);
		ret->items[ret->n++] = (struct spec_workspace){ b.name, b.path, view_is(b.mode, "ro") };
	}
	return 0;
}

/* What is mounted lies beside each other: nobody else's files are on the way to a mount point. */
static int check_place(const struct spec_workspace_list *l, const struct spec_mount_list *mounts,
		       struct view path, struct err *e)
{
	if (path.n > PATH_MOST || !config_is_path(path))
		return err_set(
			e, ERR_INVALID,
			"path must be an absolute path of at most %d bytes without \"..\", and not \"/\"",
			PATH_MOST);
	if (!config_is_mount_point(path))
		return err_set(e, ERR_INVALID, "path must not be in /proc, /sys, /dev or /run");
	for (size_t i = 0; i < l->n + mounts->n; i++) {
		struct view other = i < l->n ? l->items[i].path : mounts->items[i - l->n].path;
		if (view_eq(path, other))
			return err_set(e, ERR_INVALID, "something else is mounted at %.*s", VIEW_ARG(path));
		if (view_within(path, other) || view_within(other, path))
			return err_set(e, ERR_INVALID,
				       "%.*s and %.*s cannot both be mounted: one is in the other",
				       (int)MIN(path.n, 70u), path.p, (int)MIN(other.n, 70u), other.p);
	}
	return 0;
}

int spec_workspaces_make(struct arena *a, const struct box_wish *w, struct spec_workspace_list *ret,
			 struct err *e)
{
	size_t one = w->workspace.n ? 1 : 0, n = w->workspaces.n + one;

	*ret = (struct spec_workspace_list){ 0 };
	if (!n)
		return 0;
	if (n > SPEC_WORKSPACES_MAX)
		return err_set(e, ERR_INVALID, "workspaces: a sandbox can have at most %d",
			       SPEC_WORKSPACES_MAX);
	struct spec_workspace_list l = room(a, n);
	for (size_t i = 0; l.items && i < n; i++) {
		struct spec_workspace m =
			i < one ? (struct spec_workspace){ .name = w->workspace,
							   .readonly = w->workspace_readonly }
				: w->workspaces.items[i - one];
		m.name = arena_view(a, m.name);
		m.path = arena_view(a, m.path.n ? m.path : VIEW(SPEC_WORKSPACE_PATH));
		if (!m.name.p || !m.path.p)
			return err_set(e, ERR_TOO_LARGE, "workspaces: too large");
		if (check_place(&l, &w->mounts, m.path, e) < 0)
			return i < one ? err_wrap(e, "workspace") : err_wrap(e, "workspaces[%zu]", i - one);
		l.items[l.n++] = m;
	}
	if (!l.items)
		return err_set(e, ERR_TOO_LARGE, "workspaces: too large");
	*ret = l;
	return 0;
}

int spec_workspaces_load(struct arena *a, const struct spec_workspace *old, struct spec_workspace_list *ret,
			 struct err *e)
{
	*ret = room(a, 1);
	if (!ret->items)
		return err_set(e, ERR_TOO_LARGE, "workspaces: too large");
	ret->items[ret->n++] = *old;
	return 0;
}

void spec_workspaces_put(struct json_out *o, const struct spec_workspace_list *l)
{
	json_out_array(o);
	for (size_t i = 0; i < l->n; i++) {
		const struct spec_workspace *one = &l->items[i];
		spec_mounts_put_one(o, "name", one->name, one->path, one->readonly);
	}
	json_out_end(o, ']');
}

const struct spec_workspace *spec_workspace(const struct box_spec *s)
{
	for (size_t i = 0; i < s->workspaces.n; i++)
		if (view_is(s->workspaces.items[i].path, SPEC_WORKSPACE_PATH))
			return &s->workspaces.items[i];
	return NULL;
}
