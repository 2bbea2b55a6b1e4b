/*
 * See feed.h. Texts are the agents' or made from what they asked for: they are cut to a length, and control
 * characters become spaces. Whoever shows them must still take them for text and not for markup.
 */
#include "feed.h"

#include "text.h"
#include "poison.h"

/* ---- events ---- */

bool feed_changed(struct buf *lines)
{
	bool changed = false;
	const char *end;

	for (;;) {
		struct view rest = buf_view(lines), line;

		end = rest.n ? memchr(rest.p, '\n', rest.n) : NULL;
		if (!end)
			return changed;
		line = view_head(rest, (size_t)(end - rest.p));
		if (view_starts(line, "event:")) {
			struct view type = view_trim(view_skip(line, 6));

			if (type.n && type.p[type.n - 1] == '\r')
				type.n--;
			changed |= view_starts(type, "transaction.") || view_is(type, "lost");
		}
		buf_consume(lines, line.n + 1);
	}
}

/* ---- the list ---- */

/* Cut between characters, on one line. */
static void put_text(const struct json *object, const char *key, char *ret, size_t size)
{
	const struct json *j = json_get(object, key);
	struct view text = j && j->type == JSON_STRING ? j->text : VIEW("");

	if (text.n >= size)
		text.n = text_utf8_prefix(view_head(text, size - 1));
	for (size_t i = 0; i < text.n; i++)
		ret[i] = (unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f ? ' ' : text.p[i];
	ret[text.n] = '\0';
}

static bool knows(const struct feed *f, const char *id)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->ids[i], id) == 0)
			return true;
	return false;
}

static void put_request(const struct json *t, struct feed_request *r)
{
	put_text(t, "id", r->id, sizeof(r->id));
	put_text(t, "summary", r->summary, sizeof(r->summary));
	put_text(t, "agent_name", r->agent, sizeof(r->agent));
	if (!r->agent[0])
		put_text(t, "agent", r->agent, sizeof(r->agent));
	put_text(t, "chain_name", r->chain, sizeof(r->chain));
	if (!r->chain[0])
		put_text(t, "chain", r->chain, sizeof(r->chain));
}

int feed_update(struct feed *f, const struct json *answer, struct feed_request *new, size_t max,
		size_t *ret_new, struct err *e)
{
	const struct json *list = answer ? json_get(answer, "transactions") : NULL;
	struct feed now = { 0 };
	size_t fresh = 0;

	if (!list || list->type != JSON_ARRAY || list->n > INT32_MAX)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no list of transactions");
	for (size_t i = 0; i < list->n && now.n < FEED_MAX; i++) {
		struct feed_request r;

		put_request(&list->items[i], &r);
		if (!r.id[0])
			continue;
		memcpy(now.ids[now.n++], r.id, sizeof(r.id));
		if (knows(f, r.id))
			continue;
		if (fresh < max)
			new[fresh] = r;
		fresh++;
	}
	*f = now;
	*ret_new = fresh;
	return (int)list->n;
}
