/*
 * paddock egress log, egress sets: what a box tried to reach, and what the names of sets
 * mean for it.
 */
#include <poll.h>
#include <stdio.h>

#include "call.h"
#include "show.h"

#include "poison.h"

#define PAGE       256
#define PAGE_BYTES (16u << 20)
#define FOLLOW_MS  500

/* ---- log ---- */

struct log_flags {
	bool denied, follow;
	uint64_t after;
};

static const struct opt LOG_OPTS[] = {
	{ "denied", 0, OPT_FLAG, offsetof(struct log_flags, denied), NULL, "only what was not let through" },
	{ "after", 0, OPT_COUNT, offsetof(struct log_flags, after), "ID", "only what came behind this one" },
	{ "follow", 'f', OPT_FLAG, offsetof(struct log_flags, follow), NULL,
	  "go on with what comes, until it is interrupted" },
};

static struct view text_of(const struct json *object, const char *key)
{
	const struct json *j = json_get(object, key);

	return j && (j->type == JSON_STRING || j->type == JSON_NUMBER) ? j->text : VIEW("-");
}

/* "GET example.org:443/path", as far as it is known. */
static struct view what(struct arena *a, const struct json *v)
{
	struct buf b = BUF_INIT(2048);
	struct view method = session_text(v, "method"), host = session_text(v, "host");
	struct view address = session_text(v, "address");

	if (method.n)
		buf_printf(&b, "%.*s ", VIEW_ARG(method));
	buf_add(&b, host.n ? host : address);
	buf_printf(&b, ":%.*s%.*s", VIEW_ARG(text_of(v, "port")), VIEW_ARG(session_text(v, "path")));
	struct view ret = arena_view(a, buf_view(&b));
	buf_done(&b);
	return ret;
}

/* A page, with the titles above it or without; *after is where the next begins. */
static int show_page(struct cmd_ctx *ctx, const char *box, bool denied, bool titled, uint64_t *after,
		     size_t *ret_n, struct err *e)
{
	static const char *const titles[] = { "ID",     "AT",       "TIMES", "VERDICT",
					      "REASON", "PROTOCOL", "WHAT",  "WOULD_ALLOW" };
	_cleanup_(show_table_done) struct show_table t;
	struct json *answer = NULL;
	char rest[128];

	snprintf(rest, sizeof(rest), "/egress/log?limit=%d&after=%llu%s", PAGE, (unsigned long long)*after,
		 denied ? "&verdict=deny" : "");
	show_table_init(&t, titles, ELEMS(titles));
	t.n_rows = titled;
	if (call_once(ctx, &(struct cli_call){ "GET", "sandboxes", box, rest }, &answer, e) < 0)
		return -1;
	const struct json *rows = answer ? json_get(answer, "verdicts") : NULL,
			  *next = answer ? json_get(answer, "next") : NULL;
	if (!rows || rows->type != JSON_ARRAY || !next || json_to_u64(next, after) < 0)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no list of verdicts");
	*ret_n = rows->n;
	if (ctx->json)
		return show_json(rows, e);
	for (size_t i = 0; i < rows->n; i++) {
		const struct json *v = &rows->items[i];
		struct view cells[] = {
			text_of(v, "id"),      text_of(v, "at"),          text_of(v, "count"),
			text_of(v, "verdict"), text_of(v, "reason"),      text_of(v, "protocol"),
			what(&ctx->arena, v),  text_of(v, "would_allow"),
		};
		show_table_add(&t, cells);
	}
	*ret_n = rows->n;
	return t.n_rows ? show_table_print(&t, e) : 0;
}

static int run_log(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	const struct log_flags *f = flags;
	uint64_t after = f->after;
	bool titled = true;
	size_t shown = 0;
	int r;

	do {
		/* Each page in memory of its own: this may go on for days. */
		struct cmd_ctx page = { .arena = ARENA_INIT(PAGE_BYTES),
					.session = ctx->session,
					.json = ctx->json };

		r = show_page(&page, operands[0], f->denied, titled, &after, &shown, e);
		arena_done(&page.arena);
		titled = false;
		if (r >= 0 && f->follow && shown < PAGE)
			(void)poll(NULL, 0, FOLLOW_MS);
	} while (r >= 0 && f->follow);
	return r;
}

/* ---- sets ---- */

static void put_words(struct buf *b, const struct json *list)
{
	for (size_t i = 0; list && list->type == JSON_ARRAY && i < list->n; i++) {
		if (i)
			buf_putc(b, ' ');
		buf_add(b, list->items[i].text);
	}
}

static struct view words(struct arena *a, const struct json *list)
{
	struct buf b = BUF_INIT(1u << 20);

	put_words(&b, list);
	struct view v = arena_view(a, buf_view(&b));
	buf_done(&b);
	return v.n ? v : VIEW("-");
}

static int run_sets(struct cmd_ctx *ctx, const void *flags _unused_, size_t n, char **operands, struct err *e)
{
	static const char *const titles[] = { "SET", "FROM", "TARGETS" };
	_cleanup_(show_table_done) struct show_table t;
	struct json *answer = NULL;
	char name[64];

	show_table_init(&t, titles, ELEMS(titles));
	if (call_once(ctx,
		      n ? &(struct cli_call){ "GET", "sandboxes", operands[0], "/egress/sets" }
			: &(struct cli_call){ "GET", "egress/sets" },
		      &answer, e) < 0)
		return -1;
	const struct json *sets = answer ? json_get(answer, "sets") : NULL,
			  *from = answer ? json_get(answer, "sources") : NULL;
	if (!sets || sets->type != JSON_OBJECT)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no sets");
	if (ctx->json)
		return show_json(answer, e);
	for (size_t i = 0; i < sets->n; i++) {
		const struct json_member *m = &sets->members[i];
		bool named = from && view_to_str(m->key, name, sizeof(name)) >= 0;
		struct view cells[] = { m->key, words(&ctx->arena, named ? json_get(from, name) : NULL),
					words(&ctx->arena, &m->value) };

		show_table_add(&t, cells);
	}
	return show_table_print(&t, e);
}

const struct cmd cmd_egress_log = {
	.name = "egress log",
	.operands = "SANDBOX",
	.summary = "show what a sandbox tried to reach, and what would allow it",
	.opts = LOG_OPTS,
	.n_opts = ELEMS(LOG_OPTS),
	.flags_size = sizeof(struct log_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_log,
};

const struct cmd cmd_egress_sets = {
	.name = "egress sets",
	.operands = "[SANDBOX]",
	.summary = "show what the names of sets mean, on this machine or for a sandbox, and who says so",
	.lead = OPTS_ANYWHERE,
	.min = 0,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_sets,
};
