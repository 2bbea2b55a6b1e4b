/*
 * Merges an image's sets with the machine's: see config_sets.h. The record was written by a process
 * that read untrusted files, so nothing in it is trusted.
 */
#include "config_sets.h"
#include "egress.h"

#include "poison.h"

#define SETS_MOST (EGRESS_SETS_MAX + 64)

struct merged {
	struct view name;
	const struct json *was;    /* NULL: the machine has no such set */
	struct config_hosts hosts; /* used where `changed` */
	bool in_place, changed;
};

struct merge {
	struct arena *arena;
	struct config_sets base;
	struct merged *sets;
	size_t n;
};

/* A host, or an address that everybody may reach: others need a rule that names them. */
static void add_host(struct config_hosts *h, struct view text)
{
	struct egress_rule r;

	if (h->n == ELEMS(h->items) || !text.n || memchr(text.p, '*', text.n) ||
	    memchr(text.p, '/', text.n) || config_sets_has(h, text) ||
	    egress_target(h->arena, text, NULL, &r, NULL) < 0 || egress_rule_is_private(&r))
		return;
	h->items[h->n++] = text;
}

static const struct json *source_of(const struct merge *m, struct view name)
{
	for (size_t i = 0; m->base.sources && m->base.sources->type == JSON_OBJECT && i < m->base.sources->n;
	     i++)
		if (view_eq(m->base.sources->members[i].key, name) &&
		    m->base.sources->members[i].value.type == JSON_ARRAY)
			return &m->base.sources->members[i].value;
	return NULL;
}

static bool has_source(const struct json *sources, const char *name)
{
	for (size_t i = 0; sources && i < sources->n; i++)
		if (view_is(sources->items[i].text, name))
			return true;
	return false;
}

/* The place of a set that an image may say something about; NULL: it may not. */
static struct merged *place(struct merge *m, struct view name, bool in_place)
{
	struct merged *s = NULL;

	for (size_t i = 0; i < m->n && !s; i++)
		if (view_eq(m->sets[i].name, name))
			s = &m->sets[i];
	const struct json *sources = s && s->was ? source_of(m, name) : NULL;
	if (s && s->was && (!sources || (in_place && has_source(sources, "known"))))
		return NULL; /* the administrator's, or one that only grows */
	if (!s) {
		if (!egress_is_set_name(name) || m->n == SETS_MOST)
			return NULL;
		s = &m->sets[m->n++];
		*s = (struct merged){ .name = name };
	}
	s->hosts.arena = m->arena;
	s->in_place |= in_place;
	return s;
}

static void add_sets(struct merge *m, const struct json *sets, bool in_place)
{
	for (size_t i = 0; sets && sets->type == JSON_OBJECT && i < sets->n; i++) {
		const struct json_member *k = &sets->members[i];
		struct config_hosts h = { .arena = m->arena };

		for (size_t n = 0; k->value.type == JSON_ARRAY && n < k->value.n; n++)
			if (k->value.items[n].type == JSON_STRING)
				add_host(&h, k->value.items[n].text);
		struct merged *s = h.n ? place(m, k->key, in_place) : NULL;
		for (size_t n = 0; s && n < h.n; n++)
			add_host(&s->hosts, h.items[n]);
		if (s)
			s->changed = true;
	}
}

static const struct {
	const char *variable, *set;
	bool in_place;
} variables[] = {
	{ "PIP_INDEX_URL", "pypi", true },
	{ "PIP_EXTRA_INDEX_URL", "pypi", false },
	{ "UV_INDEX_URL", "pypi", true },
	{ "UV_DEFAULT_INDEX", "pypi", true },
	{ "npm_config_registry", "npm", true },
	{ "NPM_CONFIG_REGISTRY", "npm", true },
	{ "YARN_NPM_REGISTRY_SERVER", "npm", true },
};

static void add_variables(struct merge *m, const struct json_strmap *env)
{
	for (size_t i = 0; env && i < env->n; i++)
		for (size_t k = 0; k < ELEMS(variables); k++) {
			struct config_hosts h = { .arena = m->arena };
			struct merged *s;

			if (!view_is(env->keys[i], variables[k].variable))
				continue;
			for (struct view rest = env->values[i]; rest.p && rest.n;)
				config_sets_url(&h, view_split(rest, ' ', &rest));
			s = h.n ? place(m, view_of(variables[k].set), variables[k].in_place) : NULL;
			for (size_t n = 0; s && n < h.n; n++)
				add_host(&s->hosts, h.items[n]);
			if (s)
				s->changed |= s->hosts.n > 0;
		}
}

/* ---- the result ---- */

static struct json *strings(struct arena *a, const struct json *first, const struct view *more, size_t n)
{
	size_t room = (first ? first->n : 0) + n, k = 0;
	struct json *list = arena_alloc(a, sizeof(*list)),
		    *items = list ? arena_array(a, room, sizeof(*items)) : NULL;

	if (!items)
		return NULL;
	for (size_t i = 0; first && i < first->n; i++)
		items[k++] = first->items[i];
	for (size_t i = 0; i < n; i++)
		items[k++] = (struct json){ .type = JSON_STRING, .text = more[i] };
	*list = (struct json){ .type = JSON_ARRAY, .n = k, .items = items };
	return list;
}

static int put(struct merge *m, const struct merged *s, struct view source, struct json *sets,
	       struct json *sources)
{
	bool fresh = s->changed && (s->in_place || !s->was);
	const struct json *from = source_of(m, s->name), *list = s->was, *origin = from;

	if (s->changed) {
		list = strings(m->arena, fresh ? NULL : s->was, s->hosts.items, s->hosts.n);
		origin = strings(m->arena, fresh ? NULL : from, &source, 1);
		if (!list || !origin)
			return -1;
	}
	sets->members[sets->n++] = (struct json_member){ s->name, *list };
	if (origin)
		sources->members[sources->n++] = (struct json_member){ s->name, *origin };
	return 0;
}

static int write(struct merge *m, struct view source, struct config_sets *ret)
{
	struct json *sets = arena_alloc(m->arena, sizeof(*sets)),
		    *sources = arena_alloc(m->arena, sizeof(*sources));

	if (!sets || !sources)
		return -1;
	*sets = (struct json){ .type = JSON_OBJECT,
			       .members = arena_array(m->arena, m->n, sizeof(*sets->members)) };
	*sources = (struct json){ .type = JSON_OBJECT,
				  .members = arena_array(m->arena, m->n, sizeof(*sets->members)) };
	if (!sets->members || !sources->members)
		return -1;
	for (size_t i = 0; i < m->n; i++)
		if ((m->sets[i].was || m->sets[i].changed) && put(m, &m->sets[i], source, sets, sources) < 0)
			return -1;
	*ret = (struct config_sets){ sets, sources };
	return 0;
}

int config_sets_merge(struct arena *a, const struct config_sets *base, struct view record,
		      const struct json_strmap *env, const char *source, struct config_sets *ret,
		      struct err *e)
{
	struct arena tmp =
		ARENA_INIT(4u << 20); /* its hosts are views of the document, which is the caller's */
	struct merge m = { .arena = a, .base = *base };
	struct json *doc = NULL;
	int r = 0;

	if (record.n > CONFIG_SETS_RECORD)
		return err_set(e, ERR_INVALID, "the record of an image is larger than %u bytes",
			       CONFIG_SETS_RECORD);
	if (record.n && json_parse(a, record, &doc, e) < 0)
		return err_wrap(e, "the record of an image");
	m.sets = arena_array(&tmp, SETS_MOST, sizeof(*m.sets));
	if (!m.sets)
		r = -1;
	for (size_t i = 0; m.sets && base->sets && i < base->sets->n && m.n < SETS_MOST; i++)
		m.sets[m.n++] = (struct merged){ .name = base->sets->members[i].key,
						 .was = &base->sets->members[i].value };
	if (r >= 0) {
		add_sets(&m, doc ? json_get(doc, "sets") : NULL, true);
		add_sets(&m, doc ? json_get(doc, "more") : NULL, false);
		add_variables(&m, env);
		r = write(&m, view_of(source), ret);
	}
	arena_done(&tmp);
	return r < 0 ? err_set(e, ERR_TOO_LARGE, "the sets of an image take more memory than is allowed") : 0;
}
