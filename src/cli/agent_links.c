/*
 * See agent_links.h. The order of the entries does not matter, nor which of several with one name wins:
 * whatever is a symbolic link anywhere in the archive counts as one.
 */
#include "agent_links.h"

#include <stdlib.h>

#include "poison.h"

struct agent_link {
	const char *path;
	struct view target;
	bool hard;
};

void agent_links_done(struct agent_links *l)
{
	buf_done(&l->all);
	arena_done(&l->arena);
}

bool agent_links_add(struct agent_links *l, const char *path, struct view target, bool hard)
{
	struct agent_link one = { .path = arena_str(&l->arena, view_of(path)),
				  .target = arena_view(&l->arena, target),
				  .hard = hard };

	return one.path && one.target.p && buf_append(&l->all, &one, sizeof(one)) >= 0;
}

/* Symbolic ones first, by their paths. */
static int compare(const void *a, const void *b)
{
	const struct agent_link *x = a, *y = b;

	return x->hard != y->hard ? x->hard - y->hard : strcmp(x->path, y->path);
}

struct sorted {
	const struct agent_link *all;
	size_t n;
};

/* Whether the path, or a directory on its way, is a symbolic link. */
static bool passes_link(const struct sorted *s, struct buf *path)
{
	struct view v = buf_view(path);

	for (size_t i = 1; i <= v.n; i++) {
		if (i < v.n && v.p[i] != '/')
			continue;
		char *end = path->p + path->head + i, was = *end;
		const struct agent_link key = { .path = path->p + path->head };
		*end = '\0';
		bool found = bsearch(&key, s->all, s->n, sizeof(key), compare) != NULL;
		*end = was;
		if (found)
			return true;
	}
	return false;
}

/* Drops the last part. */
static void go_up(struct buf *path)
{
	struct view v = buf_view(path);
	const char *slash = v.n ? memrchr(v.p, '/', v.n) : NULL;

	path->n = path->head + (slash ? (size_t)(slash - v.p) : 0);
}

static void go_down(struct buf *path, struct view part)
{
	if (buf_len(path))
		buf_putc(path, '/');
	buf_add(path, part);
}

static bool is_bad(const struct sorted *s, const struct agent_link *link, struct buf *at)
{
	struct view rest = link->target;

	buf_clear(at);
	if (link->hard) {
		buf_add(at, rest);
		buf_putc(at, '\0'); /* room for the end */
		at->n--;
		return at->bad || passes_link(s, at);
	}
	buf_puts(at, link->path);
	buf_putc(at, '\0');
	at->n--;
	go_up(at);
	while (rest.p && !at->bad) {
		struct view part = view_split(rest, '/', &rest);

		if (part.n == 0 || view_is(part, "."))
			continue;
		if (!view_is(part, "..")) {
			go_down(at, part);
			continue;
		}
		buf_putc(at, '\0');
		at->n--;
		if (passes_link(s, at))
			return true;
		go_up(at);
	}
	return at->bad;
}

const char *agent_links_find_bad(struct agent_links *l)
{
	_cleanup_(buf_done) struct buf at = BUF_INIT(64u << 10);
	struct agent_link *all = (struct agent_link *)(void *)l->all.p;
	struct sorted symbolic = { all, 0 };
	size_t n = buf_len(&l->all) / sizeof(*all);

	if (n)
		qsort(all, n, sizeof(*all), compare);
	while (symbolic.n < n && !all[symbolic.n].hard)
		symbolic.n++;
	for (size_t i = 0; i < n; i++)
		if (is_bad(&symbolic, &all[i], &at))
			return all[i].path;
	return NULL;
}
