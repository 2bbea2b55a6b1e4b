/*
 * paddock ls: the boxes, page by page until the daemon has no more.
 */
#include "cmd.h"
#include "show.h"
#include "text.h"

#include "poison.h"

struct ls_flags {
	bool json;
};

static const struct opt OPTS[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct ls_flags, json), NULL,
	  "print a JSON array instead of a table" },
};

static const char *const TITLES[] = { "ID", "NAME", "STATUS", "IMAGE", "CREATED", "EXPIRES" };
static const char *const FIELDS[] = { "id", "name", "status", "image", "created_at", "expires_at" };
static_assert(ELEMS(TITLES) == ELEMS(FIELDS) && ELEMS(TITLES) <= SHOW_COLUMNS, "a field for each title");

struct page {
	struct page *next;
	const struct json *boxes;
};

/* All pages, oldest request first; returns the number of boxes. */
static int fetch(struct session *s, struct page **ret, size_t *ret_n, struct err *e)
{
	struct page *first = NULL, **tail = &first;
	struct view cursor = VIEW_NONE;
	size_t n = 0;

	do {
		_cleanup_(buf_done) struct buf path = BUF_INIT(8192);
		struct session_call call = { .method = "GET", .timeout_ms = SESSION_CALL_MS };
		struct page *page = arena_alloc(s->arena, sizeof(*page));
		struct json *answer;

		buf_puts(&path, "/v1/sandboxes?limit=100");
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
			return err_set(e, ERR_INTERNAL, "the daemon's answer has no list of boxes");
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

static int print_json(struct arena *a, const struct page *pages, size_t n, struct err *e)
{
	struct json all = { .type = JSON_ARRAY, .n = n, .items = arena_array(a, n + 1, sizeof(struct json)) };
	size_t at = 0;

	if (!all.items)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (; pages; pages = pages->next)
		for (size_t i = 0; i < pages->boxes->n; i++)
			all.items[at++] = pages->boxes->items[i];
	return show_json(&all, e);
}

static int print_table(const struct page *pages, struct err *e)
{
	_cleanup_(show_table_done) struct show_table t;

	show_table_init(&t, TITLES, ELEMS(TITLES));
	for (; pages; pages = pages->next) {
		for (size_t i = 0; i < pages->boxes->n; i++)
			show_table_object(&t, &pages->boxes->items[i], FIELDS);
	}
	return show_table_print(&t, e);
}

static int run(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
	       struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	const struct ls_flags *f = flags;
	struct page *pages = NULL;
	size_t count = 0;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0 || fetch(&s, &pages, &count, e) < 0)
		return -1;
	return f->json ? print_json(&ctx->arena, pages, count, e) : print_table(pages, e);
}

const struct cmd cmd_ls = {
	.name = "ls",
	.operands = "",
	.summary = "list the boxes",
	.opts = OPTS,
	.n_opts = ELEMS(OPTS),
	.flags_size = sizeof(struct ls_flags),
	.lead = OPTS_ANYWHERE,
	.client = true,
	.run = run,
};
