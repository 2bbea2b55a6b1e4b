/*
 * See stamp.h.
 */
#include "stamp.h"

#include "poison.h"

struct stamp stamp_take(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return (struct stamp){ 0 };
	return (struct stamp){ st.st_dev, st.st_ino, st.st_mode, st.st_size, st.st_ctim };
}

struct stamp stamp_take_place(const char *path)
{
	struct stamp s = stamp_take(path);

	return (struct stamp){ .dev = s.dev, .ino = s.ino };
}

bool stamp_same(const struct stamp *a, const struct stamp *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->mode == b->mode && a->size == b->size &&
	       a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}
