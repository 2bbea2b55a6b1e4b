/*
 * Metadata of secrets: see labels.h.
 */
#include "labels.h"

#include <errno.h>
#include <string.h>

#include "poison.h"

static int check(const struct json_strmap *m, struct err *e)
{
	size_t total = 0;

	if (m->n > LABELS_ENTRIES)
		return err_set(e, ERR_INVALID, "metadata has more than %d entries", LABELS_ENTRIES);
	for (size_t i = 0; i < m->n; i++) {
		if (m->keys[i].n < 1 || m->keys[i].n > LABELS_KEY || m->values[i].n > LABELS_VALUE)
			return err_set(e, ERR_INVALID,
				       "metadata: keys must have 1 to %d bytes and values at most %d",
				       LABELS_KEY, LABELS_VALUE);
		total += m->keys[i].n + m->values[i].n;
	}
	if (total > LABELS_TOTAL)
		return err_set(e, ERR_INVALID, "metadata has more than %d bytes", LABELS_TOTAL);
	return 0;
}

int labels_write(const struct json_strmap *m, struct buf *out, struct err *e)
{
	if (check(m, e) < 0)
		return -1;
	for (size_t i = 0; i < m->n; i++) { /* JSON's strings have no NUL here: json_read.c */
		buf_add(out, m->keys[i]);
		buf_putc(out, 0);
		buf_add(out, m->values[i]);
		buf_putc(out, 0);
	}
	return out->bad ? err_sys(e, ERR_INTERNAL, out->bad, "metadata") : 0;
}

/* Up to a NUL; p == NULL: there is none. */
static struct view take(struct view *rest)
{
	const char *end = rest->n ? memchr(rest->p, 0, rest->n) : NULL;
	struct view v = end ? (struct view){ rest->p, (size_t)(end - rest->p) } : VIEW_NONE;

	if (end)
		*rest = view_skip(*rest, v.n + 1);
	return v;
}

int labels_read(struct arena *a, struct view notes, struct json_strmap *ret)
{
	*ret = (struct json_strmap){ .keys = arena_array(a, LABELS_ENTRIES, sizeof(struct view)),
				     .values = arena_array(a, LABELS_ENTRIES, sizeof(struct view)) };
	if (!ret->keys || !ret->values)
		return -ENOMEM;
	while (notes.n) {
		struct view key = take(&notes), value = take(&notes);
		if (!value.p || ret->n == LABELS_ENTRIES)
			return -EBADMSG;
		ret->keys[ret->n] = key;
		ret->values[ret->n++] = value;
	}
	return 0;
}
