/*
 * What a daemon serves where, as it says itself (GET /v1/dialects), for people: a paragraph for each
 * listener, a line for each dialect, and its paths below.
 */
#include "dialects.h"

#include <unistd.h>

#include "call.h"
#include "poison.h"

#define TEXT_MAX (1u << 20)
#define COLUMNS  100
#define INDENT   4

static bool is_true(const struct json *object, const char *key)
{
	const struct json *j = json_get(object, key);
	return j && j->type == JSON_BOOL && j->boolean;
}

static unsigned port_of(const struct json *object)
{
	const struct json *j = json_get(object, "port");
	int64_t n = 0;
	return j && json_to_i64(j, &n) >= 0 ? (unsigned)n : 0;
}

/* Words between spaces, broken into lines. */
static void put_words(struct buf *b, const struct json *list)
{
	size_t column = 0; /* 0: nothing was written */

	for (size_t i = 0; list && list->type == JSON_ARRAY && i < list->n; i++) {
		const struct json *word = &list->items[i];
		if (word->type != JSON_STRING)
			continue;
		if (!column || column + 1 + word->text.n > COLUMNS) {
			buf_printf(b, "%s%*s", column ? "\n" : "", INDENT, "");
			column = INDENT;
		} else {
			buf_putc(b, ' ');
			column++;
		}
		show_clean(b, word->text);
		column += word->text.n;
	}
	if (column)
		buf_putc(b, '\n');
}

static void put_off(struct buf *b, const struct json *list)
{
	for (size_t i = 0; list && list->type == JSON_ARRAY && i < list->n; i++) {
		buf_printf(b, "%*soff: ", INDENT, "");
		show_clean(b, session_text(&list->items[i], "what"));
		buf_puts(b, " (");
		show_clean(b, session_text(&list->items[i], "why"));
		buf_puts(b, ")\n");
	}
}

static void put_dialect(struct buf *b, const struct json *d)
{
	struct view alias = session_text(d, "alias");

	buf_puts(b, "  ");
	show_clean(b, session_text(d, "name"));
	buf_puts(b, ": version ");
	show_clean(b, session_text(d, "version"));
	if (alias.n) {
		buf_puts(b, "; also below ");
		show_clean(b, alias);
	}
	buf_putc(b, '\n');
	put_words(b, json_get(d, "paths"));
	put_off(b, json_get(d, "disabled"));
}

static void put_listener(struct buf *b, const struct json *l)
{
	struct view address = session_text(l, "address"), dialect = session_text(l, "dialect"),
		    sandbox = session_text(l, "sandbox");
	bool six = memchr(address.p ? address.p : "", ':', address.n) != NULL;
	const struct json *all = json_get(l, "dialects");

	buf_printf(b, "%s://%s", is_true(l, "tls") ? "https" : "http", six ? "[" : "");
	show_clean(b, address);
	buf_printf(b, "%s:%u: ", six ? "]" : "", port_of(l));
	if (dialect.n) {
		show_clean(b, dialect);
		buf_puts(b, all && all->n > 1 ? " and what belongs to it" : " only");
	} else {
		buf_puts(b, "every dialect");
	}
	if (sandbox.n) {
		buf_puts(b, "; for the sandbox ");
		show_clean(b, sandbox);
	}
	buf_puts(b, is_true(l, "anonymous") ? "; without a key\n" : "; with a key\n");
	for (size_t i = 0; all && all->type == JSON_ARRAY && i < all->n; i++)
		put_dialect(b, &all->items[i]);
	buf_putc(b, '\n');
}

static void put_ports(struct buf *b, const struct json *all)
{
	buf_puts(b, "Ports of every sandbox that the daemon answers itself:\n");
	for (size_t i = 0; all && all->type == JSON_ARRAY && i < all->n; i++) {
		buf_printf(b, "  %u: ", port_of(&all->items[i]));
		show_clean(b, session_text(&all->items[i], "dialect"));
		buf_putc(b, '\n');
		put_words(b, json_get(&all->items[i], "paths"));
	}
}

int dialects_show(struct cmd_ctx *ctx, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
	struct json *said;

	if (call_once(ctx, &(struct cli_call){ .method = "GET", .prefix = "dialects" }, &said, e) < 0)
		return -1;
	if (ctx->json)
		return show_json(said, e);
	const struct json *listeners = json_get(said, "listeners");
	for (size_t i = 0; listeners && listeners->type == JSON_ARRAY && i < listeners->n; i++)
		put_listener(&text, &listeners->items[i]);
	put_ports(&text, json_get(said, "ports"));
	return text.bad ? err_set(e, ERR_INTERNAL, "out of memory")
			: show_bytes(STDOUT_FILENO, buf_view(&text), e);
}
