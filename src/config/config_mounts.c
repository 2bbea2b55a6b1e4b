/*
 * mounts.allow: which directories of the machine may be mounted. The api and the keeper judge by it; config.c
 * reads it.
 */
#include "config.h"

#include <string.h>

#include "poison.h"

bool config_is_path(struct view path)
{
	if (path.n < 2 || path.p[0] != '/' || memchr(path.p, 0, path.n))
		return false;
	for (struct view rest = view_skip(path, 1); rest.p;) {
		struct view part = view_split(rest, '/', &rest);
		if (!part.n || view_is(part, ".") || view_is(part, ".."))
			return false;
	}
	return true;
}

/* Whatever is ours in a box, and whatever holds the box together. */
bool config_is_mount_point(struct view path)
{
	static const char *const places[] = { "/proc", "/sys", "/dev", "/run" };

	for (size_t i = 0; i < ELEMS(places); i++)
		if (view_within(path, view_of(places[i])))
			return false;
	return config_is_path(path);
}

const struct config_mount *config_mount(const struct config *c, struct view path)
{
	const struct config_mount *best = NULL;

	for (size_t i = 0; i < c->n_mounts; i++) {
		const struct config_mount *m = &c->mount_list[i];
		if (view_within(path, m->path) && (!best || m->path.n > best->path.n))
			best = m;
	}
	return best;
}
