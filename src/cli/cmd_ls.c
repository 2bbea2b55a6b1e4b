/*
 * paddock ls: the sandboxes, page by page until the daemon has no more.
 */
#include <fnmatch.h>
#include <unistd.h>

#include "call.h"
#include "ref.h"
#include "text.h"

#include "poison.h"

struct ls_flags {
	bool quiet;
	const char *status, *name, *image;
	struct opt_list metadata;
};

#define AT(member) offsetof(struct ls_flags, member)
static const struct opt OPTS[] = {
	{ "quiet", 'q', OPT_FLAG, AT(quiet), NULL, "print ids only" },
	{ "status", 0, OPT_TEXT, AT(status), "STATUS", "only these: creating, running, paused or stopped" },
	{ "metadata", 0, OPT_PAIRS, AT(metadata), "KEY=VALUE",
	  "only those with this label; may be repeated" },
	{ "name", 0, OPT_TEXT, AT(name), "PATTERN", "only those whose name fits, such as 'web-*'" },
	{ "image", 0, OPT_TEXT, AT(image), "PATTERN", "only those whose image's name fits" },
};
#undef AT

static const char *const TITLES[] = { "ID", "NAME", "STATUS", "IMAGE", "CREATED", "EXPIRES" };
static const char *const FIELDS[] = { "id", "name", "status", "image", "created_at", "expires_at" };
static_assert(ELEMS(TITLES) == ELEMS(FIELDS) && ELEMS(TITLES) <= SHOW_COLUMNS, "a field for each title");

static int make_query(struct buf *b, const struct ls_flags *f, struct err *e)
{
	if (f->status) {
		buf_puts(b, "status=");
		text_percent_all(b, view_of(f->status));
	}
	for (size_t i = 0; i < f->metadata.n; i++) {
		struct view value, key = view_split(view_of(f->metadata.items[i]), '=', &value);

		buf_printf(b, "%smetadata.", buf_len(b) ? "&" : "");
		text_percent_all(b, key);
		buf_putc(b, '=');
		text_percent_all(b, value);
	}
	buf_putc(b, 0);
	return b->bad ? err_set(e, ERR_TOO_LARGE, "the filters are too long") : 0;
}

static bool fits(struct arena *a, const struct json *box, const char *member, const char *pattern)
{
	const char *text = pattern ? arena_str(a, session_text(box, member)) : NULL;

	return !pattern || (text && fnmatch(pattern, text, 0) == 0);
}

/* The boxes of all pages that the daemon cannot filter by itself. */
static int choose(struct arena *a, const struct ref_page *pages, size_t n, const struct ls_flags *f,
		  struct json *ret, struct err *e)
{
	*ret = (struct json){ .type = JSON_ARRAY, .items = arena_array(a, n + 1, sizeof(struct json)) };
	if (!ret->items)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (; pages; pages = pages->next)
		for (size_t i = 0; i < pages->boxes->n; i++)
			if (fits(a, &pages->boxes->items[i], "name", f->name) &&
			    fits(a, &pages->boxes->items[i], "image", f->image))
				ret->items[ret->n++] = pages->boxes->items[i];
	return 0;
}

static int print_ids(const struct json *boxes, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(64u << 20);

	for (size_t i = 0; i < boxes->n; i++) {
		show_clean(&b, session_text(&boxes->items[i], "id"));
		buf_putc(&b, '\n');
	}
	return show_bytes(STDOUT_FILENO, buf_view(&b), e);
}

static int print_table(const struct json *boxes, struct err *e)
{
	_cleanup_(show_table_done) struct show_table t;

	show_table_init(&t, TITLES, ELEMS(TITLES));
	for (size_t i = 0; i < boxes->n; i++)
		show_table_object(&t, &boxes->items[i], FIELDS);
	return show_table_print(&t, e);
}

static int run(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
	       struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	_cleanup_(buf_done) struct buf query = BUF_INIT(32u << 10);
	const struct ls_flags *f = flags;
	struct ref_page *pages = NULL;
	struct json boxes;
	size_t count = 0;

	if (make_query(&query, f, e) < 0 || session_open(&s, &ctx->session, &ctx->arena, e) < 0 ||
	    ref_list(&s, buf_view(&query).p, &pages, &count, e) < 0 ||
	    choose(&ctx->arena, pages, count, f, &boxes, e) < 0)
		return -1;
	if (ctx->json)
		return show_json(&boxes, e);
	return f->quiet ? print_ids(&boxes, e) : print_table(&boxes, e);
}

const struct cmd cmd_ls = {
	.name = "ls",
	.operands = "",
	.summary = "list sandboxes",
	.opts = OPTS,
	.n_opts = ELEMS(OPTS),
	.flags_size = sizeof(struct ls_flags),
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.run = run,
};
