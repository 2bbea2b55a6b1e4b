/*
 * Metadata of secrets: see labels.h.
 */
#include "labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core_state.h"
#include "poison.h"

#define PREFIX "secret.metadata/"

struct labels {
	struct map_node node; /* by the setting's name */
	struct view json;
	char bytes[];
};

static struct labels *find(const struct core *c, struct view key)
{
	struct map_node *n = map_get(&c->labels, key);
	return n ? CONTAINER(n, struct labels, node) : NULL;
}

static void make_key(struct buf *b, struct view tenant, struct view name)
{
	buf_puts(b, PREFIX);
	buf_add(b, tenant);
	buf_putc(b, '/');
	buf_add(b, name);
}

int labels_check(const struct json_strmap *m, struct err *e)
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

struct view labels_of(const struct core *c, struct view tenant, struct view name)
{
	_cleanup_(buf_done) struct buf key = BUF_INIT(1024);

	make_key(&key, tenant, name);
	const struct labels *l = key.bad ? NULL : find(c, buf_view(&key));
	return l ? l->json : VIEW("{}");
}

static int replace(struct core *c, struct view key, struct view json)
{
	struct labels *old = find(c, key), *l = NULL;

	if (json.n && !(l = malloc(sizeof(*l) + key.n + json.n)))
		return -ENOMEM;
	if (old) {
		map_del(&c->labels, &old->node);
		free(old);
	}
	if (!l)
		return 0;
	memcpy(l->bytes, key.p, key.n);
	memcpy(l->bytes + key.n, json.p, json.n);
	l->json = (struct view){ l->bytes + key.n, json.n };
	int r = map_put(&c->labels, &l->node, (struct view){ l->bytes, key.n });
	if (r < 0)
		free(l);
	return r;
}

int labels_set(struct core *c, struct view tenant, struct view name, struct view json)
{
	_cleanup_(buf_done) struct buf key = BUF_INIT(1024);

	make_key(&key, tenant, name);
	if (key.bad)
		return key.bad;
	if (!json.n && !find(c, buf_view(&key)))
		return 0;
	int r = replace(c, buf_view(&key), json);
	if (r < 0)
		return r;
	if (json.n)
		store_setting_put(c->store, &(struct store_setting){ buf_view(&key), json }, core_store_done,
				  c);
	else
		store_setting_delete(c->store, buf_view(&key), core_store_done, c);
	return 0;
}

int labels_load(struct core *c, const struct store_setting *s)
{
	return view_starts(s->name, PREFIX) ? replace(c, s->name, s->value) : 0;
}

void labels_done(struct core *c)
{
	struct map_node *n;

	while ((n = map_first(&c->labels))) {
		map_del(&c->labels, n);
		free(CONTAINER(n, struct labels, node));
	}
	map_done(&c->labels);
}
