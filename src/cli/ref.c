/*
 * See ref.h.
 */
#include "ref.h"
#include "text.h"

#include "poison.h"

#define PREFIX      "/v1/sandboxes/"
#define ID_SIZE     20
#define SHORTEST    3
#define UNKNOWN_BOX "no such sandbox"

/* The reference in a path. */
static struct view segment(struct view path)
{
	struct view rest = view_skip(path, strlen(PREFIX));
	size_t n = 0;

	if (!view_starts(path, PREFIX))
		return VIEW_NONE;
	while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?')
		n++;
	return view_head(rest, n);
}

static bool could_begin_id(struct view v)
{
	if (v.n < SHORTEST || v.n >= ID_SIZE)
		return false;
	for (size_t i = 0; i < v.n; i++)
		if ((v.p[i] < 'a' || v.p[i] > 'z') && (v.p[i] < '0' || v.p[i] > '9'))
			return false;
	return true;
}

bool ref_is_unknown(struct view path, const struct err *e)
{
	return e->code == ERR_NOT_FOUND && segment(path).n && strcmp(e->msg, UNKNOWN_BOX) == 0;
}

int ref_explain(struct view path, struct err *e)
{
	struct view ref = segment(path);

	if (!ref_is_unknown(path, e))
		return -1; /* it says more than that */
	return err_set(e, ERR_NOT_FOUND, "there is no sandbox \"%.*s\"; `paddock ls` lists them",
		       (int)MIN(ref.n, 64u), ref.p);
}

int ref_list(struct session *s, const char *query, struct ref_page **ret, size_t *ret_n, struct err *e)
{
	struct ref_page *first = NULL, **tail = &first;
	struct view cursor = VIEW_NONE;
	size_t n = 0;

	do {
		_cleanup_(buf_done) struct buf path = BUF_INIT(64u << 10);
		struct session_call call = { .method = "GET", .timeout_ms = SESSION_CALL_MS };
		struct ref_page *page = arena_alloc(s->arena, sizeof(*page));
		struct json *answer;

		buf_printf(&path, "/v1/sandboxes?limit=1000%s%s", *query ? "&" : "", query);
		if (cursor.n) {
			buf_puts(&path, "&cursor=");
			text_percent(&path, cursor);
		}
		if (!page || path.bad)
			return err_set(e, ERR_INTERNAL, "out of memory");
		call.path = buf_view(&path);
		if (session_call(s, &call, &answer, e) < 0)
			return -1;
		page->boxes = answer ? json_get(answer, "sandboxes") : NULL;
		if (!page->boxes || page->boxes->type != JSON_ARRAY)
			return err_set(e, ERR_INTERNAL, "the daemon's answer has no list of sandboxes");
		if (page->boxes->n == 0)
			break; /* whatever it says about a next page */
		*tail = page;
		tail = &page->next;
		n += page->boxes->n;
		cursor = session_text(answer, "next");
	} while (cursor.n);
	*ret = first;
	*ret_n = n;
	return 0;
}

int ref_resolve(struct session *s, struct view path, struct err *e)
{
	struct view ref = segment(path), found = VIEW_NONE;
	struct ref_page *pages = NULL;
	struct err listing = { 0 };
	size_t n;

	if (!could_begin_id(ref) || ref_list(s, "", &pages, &n, &listing) < 0)
		return -1;
	for (; pages; pages = pages->next)
		for (size_t i = 0; i < pages->boxes->n; i++) {
			struct view id = session_text(&pages->boxes->items[i], "id");

			if (id.n < ref.n || !view_eq(view_head(id, ref.n), ref))
				continue;
			if (found.p)
				return err_set(
					e, ERR_INVALID,
					"\"%.*s\" begins the ids of several sandboxes (%.*s, %.*s); give "
					"more of it",
					VIEW_ARG(ref), VIEW_ARG(found), VIEW_ARG(id));
			found = id;
		}
	if (!found.p || view_to_str(ref, s->ref, sizeof(s->ref)) < 0 ||
	    view_to_str(found, s->ref_id, sizeof(s->ref_id)) < 0)
		return -1;
	return 0;
}

const char *ref_id(const struct session *s, const char *ref)
{
	return s->ref[0] && strcmp(ref, s->ref) == 0 ? s->ref_id : ref;
}

struct view ref_known(const struct session *s, struct view path, struct buf *room)
{
	struct view ref = segment(path);

	if (!s->ref[0] || !view_is(ref, s->ref))
		return path;
	buf_clear(room);
	buf_puts(room, PREFIX);
	buf_puts(room, s->ref_id);
	buf_add(room, view_skip(path, strlen(PREFIX) + ref.n));
	return room->bad ? path : buf_view(room);
}
