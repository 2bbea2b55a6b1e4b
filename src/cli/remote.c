/*
 * See remote.h. Patterns are matched here, component by component, against listings
 * of directories: nothing in the sandbox is asked to interpret them.
 */
#include <fnmatch.h>
#include <stdlib.h>

#include "remote.h"
#include "text.h"

#include "poison.h"

#define MATCHES_MAX 100000

static int get(struct session *s, const char *box, const char *what, const char *path, const char *query,
	       struct json **ret, struct err *e)
{
	_cleanup_(buf_done) struct buf url = BUF_INIT(64u << 10);
	struct session_call call = { .method = "GET", .timeout_ms = SESSION_CALL_MS };

	buf_puts(&url, "/v1/sandboxes/");
	if (session_segment(&url, box, e) < 0)
		return -1;
	buf_puts(&url, what);
	text_percent(&url, view_of(path));
	buf_puts(&url, query);
	if (url.bad)
		return err_set(e, ERR_INVALID, "the path is too long");
	call.path = buf_view(&url);
	return session_call(s, &call, ret, e);
}

int remote_stat(struct session *s, const char *box, const char *path, struct remote_info *ret, struct err *e)
{
	struct err why = { 0 };
	struct json *answer;
	const struct json *size;
	struct view type;

	*ret = (struct remote_info){ REMOTE_NONE, 0 };
	if (get(s, box, "/fs/stat?path=", path, "", &answer, &why) < 0) {
		/* A path through a file is not there either. The sandbox itself must be. */
		if (why.code == ERR_NOT_FOUND && !strstr(why.msg, "sandbox"))
			return 0;
		if (e)
			*e = why;
		return -1;
	}
	type = session_text(answer, "type");
	size = answer ? json_get(answer, "size") : NULL;
	if (view_is(type, "symlink")) { /* what a reader would find */
		_cleanup_(buf_done) struct buf below = BUF_INIT(16u << 10);

		buf_printf(&below, "%s/.", path);
		buf_putc(&below, 0);
		if (!below.bad && !strstr(path, "/./") &&
		    get(s, box, "/fs/stat?path=", below.p, "", &answer, &why) == 0)
			type = session_text(answer, "type");
		else
			type = VIEW("file");
	}
	ret->type = view_is(type, "directory") || view_is(type, "dir") ? REMOTE_DIR
		    : view_is(type, "file")                            ? REMOTE_FILE
								       : REMOTE_OTHER;
	if (!size || json_to_u64(size, &ret->size) < 0)
		ret->size = 0;
	return 0;
}

bool remote_is_pattern(const char *path)
{
	return path[strcspn(path, "*?[")] != '\0';
}

struct matches {
	const char **items;
	size_t n;
};

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int add(struct session *s, struct matches *m, const char *dir, struct view name, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(16u << 10);

	buf_printf(&b, "%s/%.*s", strcmp(dir, "/") == 0 ? "" : dir, VIEW_ARG(name));
	if (!m->items)
		m->items = arena_array(s->arena, MATCHES_MAX, sizeof(*m->items));
	if (m->n == MATCHES_MAX || b.bad || !m->items)
		return err_set(e, ERR_TOO_LARGE, "the pattern fits too much");
	m->items[m->n] = arena_str(s->arena, buf_view(&b));
	return m->items[m->n++] ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
}

/* Entries of `dir` that fit the component; only directories where more of the path follows. */
static int match_in(struct session *s, const char *box, const char *dir, const char *component, bool more,
		    struct matches *m, struct err *e)
{
	const struct json *list;
	struct json *answer;
	struct err why = { 0 };

	if (get(s, box, "/files", dir, "?list=1", &answer, &why) < 0) {
		if (why.code == ERR_NOT_FOUND || why.code == ERR_FORBIDDEN || why.code == ERR_INVALID)
			return 0; /* not a directory, or not for us to read: as in a shell */
		*e = why;
		return -1;
	}
	list = answer ? json_get(answer, "entries") : NULL;
	for (size_t i = 0; list && list->type == JSON_ARRAY && i < list->n; i++) {
		struct view name = session_text(&list->items[i], "name");
		const char *text = arena_str(s->arena, name);

		if (!text || fnmatch(component, text, FNM_PERIOD) != 0)
			continue;
		if (more && view_is(session_text(&list->items[i], "type"), "file"))
			continue;
		if (add(s, m, dir, name, e) < 0)
			return -1;
	}
	return 0;
}

int remote_glob(struct session *s, const char *box, const char *pattern, const char ***ret, size_t *ret_n,
		struct err *e)
{
	struct matches at = { 0 };
	struct view rest = view_of(pattern + strspn(pattern, "/"));
	bool widened = false;

	if (add(s, &at, "/", VIEW(""), e) < 0)
		return -1;
	at.items[0] = "/";
	while (rest.p && rest.n) {
		struct view part = view_split(rest, '/', &rest);
		const char *component = arena_str(s->arena, part);
		struct matches next = { 0 };

		if (part.n == 0)
			continue;
		if (!component)
			return err_set(e, ERR_INTERNAL, "out of memory");
		for (size_t i = 0; i < at.n; i++) {
			int r = remote_is_pattern(component)
					? match_in(s, box, at.items[i], component, rest.n > 0, &next, e)
					: add(s, &next, at.items[i], part, e);
			struct remote_info info;

			/* Behind a pattern, what is not there does not fit. */
			if (r == 0 && widened && !remote_is_pattern(component)) {
				r = remote_stat(s, box, next.items[next.n - 1], &info, e);
				next.n -= r == 0 && info.type == REMOTE_NONE;
			}
			if (r < 0)
				return -1;
		}
		widened |= remote_is_pattern(component);
		at = next;
	}
	if (at.n == 0)
		return err_set(e, ERR_NOT_FOUND, "nothing in the sandbox fits %.120s", pattern);
	qsort(at.items, at.n, sizeof(*at.items), compare);
	*ret = at.items;
	*ret_n = at.n;
	return 0;
}
