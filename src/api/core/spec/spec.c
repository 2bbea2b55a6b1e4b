/*
 * From wish to spec, and the store's JSON of it: see spec.h.
 */
#include "spec.h"

#include <errno.h>

#include "egress.h"
#include "feature.h"
#include "num.h"
#include "spec_make.h"
#include "zones.h"
#include "poison.h"

static const char *const on_end_names[] = {
	[SPEC_END_DELETE] = "delete",
	[SPEC_END_STOP] = "stop",
	[SPEC_END_PAUSE] = "pause",
};

const char *spec_on_end_name(enum spec_on_end v)
{
	return on_end_names[v];
}

/* ---- checks ---- */

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool spec_is_name(struct view v)
{
	if (v.n < 1 || v.n > SPEC_NAME_MAX || !is_alnum(v.p[0]))
		return false;
	for (size_t i = 1; i < v.n; i++)
		if (!is_alnum(v.p[i]) && v.p[i] != '.' && v.p[i] != '_' && v.p[i] != '-')
			return false;
	return true;
}

int spec_check_user(struct view v, const char *field, struct err *e)
{
	bool ok = v.n >= 1 && v.n <= SPEC_USER_MAX && (is_alnum(v.p[0]) || v.p[0] == '_');
	for (size_t i = 1; ok && i < v.n; i++)
		ok = is_alnum(v.p[i]) || v.p[i] == '_' || v.p[i] == '-' || v.p[i] == '.';
	if (!ok)
		return err_set(e, ERR_INVALID,
			       "%s must be the name or the number of a user, at most %d characters", field,
			       SPEC_USER_MAX);
	return 0;
}

int spec_check_workdir(struct view v, const char *field, struct err *e)
{
	if (v.n < 1 || v.n >= SPEC_PATH_MAX || v.p[0] != '/' || memchr(v.p, 0, v.n))
		return err_set(e, ERR_INVALID, "%s must be an absolute path of less than %d bytes", field,
			       SPEC_PATH_MAX);
	return 0;
}

int spec_check_env(const struct json_strmap *m, const char *field, struct err *e)
{
	size_t bytes = 0;

	if (m->n > SPEC_ENV_MAX)
		return err_set(e, ERR_INVALID, "%s has more than %d variables", field, SPEC_ENV_MAX);
	for (size_t i = 0; i < m->n; i++) {
		struct view k = m->keys[i];
		if (k.n == 0 || memchr(k.p, '=', k.n) || memchr(k.p, 0, k.n) ||
		    (m->values[i].n && memchr(m->values[i].p, 0, m->values[i].n)))
			return err_set(e, ERR_INVALID, "%s: a variable's name must not be empty or hold '='",
				       field);
		bytes += k.n + m->values[i].n + 2;
	}
	if (bytes > SPEC_ENV_BYTES)
		return err_set(e, ERR_INVALID, "%s is larger than %u bytes", field, SPEC_ENV_BYTES);
	return 0;
}

/* It becomes a header of ours: nothing but a host, a port and the placeholder. */
static int check_mask_host(struct view v, struct err *e)
{
	bool ok = v.n <= SPEC_HOST_MAX;
	for (size_t i = 0; ok && i < v.n; i++)
		ok = is_alnum(v.p[i]) || memchr(".-_:${}[]", v.p[i], 9);
	return ok ? 0
		  : err_set(e, ERR_INVALID, "mask_host must be a host of at most %d characters",
			    SPEC_HOST_MAX);
}

static int check_metadata(const struct json_strmap *m, struct err *e)
{
	if (m->n > SPEC_METADATA_MAX)
		return err_set(e, ERR_INVALID, "metadata has more than %d entries", SPEC_METADATA_MAX);
	for (size_t i = 0; i < m->n; i++)
		if (m->keys[i].n == 0 || m->keys[i].n > SPEC_METADATA_KEY ||
		    m->values[i].n > SPEC_METADATA_VALUE)
			return err_set(e, ERR_INVALID,
				       "metadata: keys must have 1 to %d bytes and values at most %d",
				       SPEC_METADATA_KEY, SPEC_METADATA_VALUE);
	return 0;
}

int spec_take_disk(bool has, uint64_t wished, const struct config *c, const char *field, uint64_t *ret,
		   struct err *e)
{
	const struct box_limits_wish w = { .disk_mb = wished, .has_disk_mb = has };

	return box_limits_take_one(BOX_LIMIT_AT_disk_mb, &w, &c->defaults.limits, &c->max.limits, field, ret,
				   e);
}

int spec_take_limits(const struct box_limits_wish *w, const struct config *c, struct box_limits *ret,
		     struct err *e)
{
	return box_limits_take(w, &c->defaults.limits, &c->max.limits, ret, e);
}

int spec_take_ttl(uint64_t wished, const struct config *c, uint64_t *ret, struct err *e)
{
	uint64_t max = c->max.ttl_seconds ? c->max.ttl_seconds : INT32_MAX, min = c->max.ttl_seconds ? 1 : 0;

	if (wished < min || wished > max)
		return err_set(e, ERR_INVALID, "ttl_seconds must be between %llu and %llu",
			       (unsigned long long)min, (unsigned long long)max);
	*ret = wished;
	return 0;
}

static int take_ttl(const struct box_wish *w, const struct config *c, uint64_t *ret, struct err *e)
{
	uint64_t max = c->max.ttl_seconds, ttl = c->defaults.ttl_seconds;

	if (w->has_ttl)
		return spec_take_ttl(w->ttl_seconds, c, ret, e);
	/* No end was asked for, but boxes here must have one. */
	if (max && (ttl == 0 || ttl > max))
		ttl = max;
	*ret = MIN(ttl, (uint64_t)INT32_MAX);
	return 0;
}

int spec_take_on_end(struct view wished, enum spec_on_end *ret, struct err *e)
{
	for (size_t i = 0; i < ELEMS(on_end_names); i++)
		if (view_is(wished, on_end_names[i])) {
			*ret = (enum spec_on_end)i;
			return 0;
		}
	return err_set(e, ERR_INVALID, "on_end must be delete, stop or pause");
}

/* ---- completing ---- */

static int copy_view(struct arena *a, struct view from, struct view *to)
{
	*to = arena_view(a, from);
	return to->p ? 0 : -ENOMEM;
}

static int copy_map(struct arena *a, const struct json_strmap *from, struct json_strmap *to)
{
	to->n = from->n;
	to->keys = arena_array(a, from->n, sizeof(*to->keys));
	to->values = arena_array(a, from->n, sizeof(*to->values));
	if (!to->keys || !to->values)
		return -ENOMEM;
	for (size_t i = 0; i < from->n; i++)
		if (copy_view(a, from->keys[i], &to->keys[i]) < 0 ||
		    copy_view(a, from->values[i], &to->values[i]) < 0)
			return -ENOMEM;
	return 0;
}

static struct view or_default(struct view v, struct view standard)
{
	return v.n ? v : standard;
}

int spec_take_metadata(const struct json_strmap *wished, struct arena *a, struct json_strmap *ret,
		       struct err *e)
{
	if (check_metadata(wished, e) < 0)
		return -1;
	return copy_map(a, wished, ret) < 0 ? err_set(e, ERR_TOO_LARGE, "the metadata are too large") : 0;
}

void spec_to_wish(const struct box_spec *s, struct box_wish *ret)
{
	*ret = (struct box_wish){
		.image = s->image,
		.backend = view_of(s->backend),
		.user = s->user,
		.workdir = s->workdir,
		.timezone = s->timezone,
		.env = s->env,
		.metadata = s->metadata,
		.has_ttl = s->ttl_seconds > 0,
		.ttl_seconds = s->ttl_seconds,
		.idle_seconds = s->idle_seconds,
		.on_end = view_of(on_end_names[s->on_end]),
		.auto_resume = s->auto_resume,
		.readonly_root = s->readonly_root,
		.no_sudo = s->no_sudo,
		.require = s->require,
		.workspaces = s->workspaces,
		.ports_public = s->ports_public,
		.mask_host = s->mask_host,
		.egress = s->egress,
		.ai = s->ai,
	};
	box_limits_to_wish(&s->limits, &ret->limits);
}

int spec_take_require(const struct json_strlist *names, uint32_t *ret, struct err *e)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < names->n; i++) {
		enum feature f = feature_named(names->items[i]);
		if (f == FEATURES)
			return err_set(e, ERR_INVALID,
				       "require: no feature of the walls has this name (GET /v1/posture "
				       "names them)");
		bits |= FEATURE_BIT(f);
	}
	*ret = bits;
	return 0;
}

void spec_put_require(struct json_out *o, uint32_t require)
{
	json_out_key(o, "require");
	json_out_array(o);
	for (unsigned f = 0; f < FEATURES; f++)
		if (require & FEATURE_BIT(f))
			json_out_str(o, view_of(feature_texts[f].name));
	json_out_end(o, ']');
}

static int copy_policy(struct arena *a, const struct egress_policy *from, const struct egress_policy **to)
{
	struct egress_policy *p = from ? arena_array(a, 1, sizeof(*p)) : NULL;

	*to = p;
	return !from ? 0 : p ? egress_copy(a, from, p) : -ENOMEM;
}

int spec_make(const struct box_wish *w, const struct config *c, struct arena *a, struct box_spec *ret,
	      struct err *e)
{
	struct box_spec s = { .readonly_root = w->readonly_root,
			      .no_sudo = w->no_sudo || !c->defaults.sudo,
			      .require = w->require,
			      .auto_resume = w->auto_resume,
			      .idle_seconds = w->idle_seconds,
			      .ports_public = w->ports_public,
			      .tied = w->tied };

	if (w->name.n && !spec_is_name(w->name))
		return err_set(e, ERR_INVALID,
			       "name must be 1 to %d of [A-Za-z0-9._-] and begin with a letter or digit",
			       SPEC_NAME_MAX);
	if (view_to_str(w->backend, s.backend, sizeof(s.backend)) < 0)
		return err_set(e, ERR_INVALID, "backend must be a name of at most %d characters",
			       SPEC_BACKEND_MAX);
	if (w->snapshot.n && w->image.n)
		return err_set(e, ERR_INVALID, "image and snapshot cannot both be given");
	if (w->idle_seconds > INT32_MAX)
		return err_set(e, ERR_INVALID, "idle_seconds must be between 0 and %d", INT32_MAX);
	if (w->on_end.n && spec_take_on_end(w->on_end, &s.on_end, e) < 0)
		return -1;
	if ((w->user.n && spec_check_user(w->user, "user", e) < 0) ||
	    (w->workdir.n && spec_check_workdir(w->workdir, "workdir", e) < 0) ||
	    spec_check_env(&w->env, "env", e) < 0 || check_metadata(&w->metadata, e) < 0 ||
	    spec_take_limits(&w->limits, c, &s.limits, e) < 0 || take_ttl(w, c, &s.ttl_seconds, e) < 0)
		return -1;
	if (w->timezone.n && zones_check(w->timezone, "timezone", e) < 0)
		return -1;
	if (w->mask_host.n && check_mask_host(w->mask_host, e) < 0)
		return -1;
	if (copy_view(a, w->name, &s.name) < 0 || copy_view(a, w->mask_host, &s.mask_host) < 0 ||
	    copy_view(a, or_default(w->image, c->defaults.image), &s.image) < 0 ||
	    copy_view(a, w->snapshot, &s.snapshot) < 0 || copy_policy(a, w->egress, &s.egress) < 0 ||
	    copy_view(a, w->ai, &s.ai) < 0 ||
	    copy_view(a, or_default(w->user, c->defaults.user), &s.user) < 0 ||
	    copy_view(a, or_default(w->workdir, c->defaults.workdir), &s.workdir) < 0 ||
	    copy_view(a, or_default(w->timezone, w->snapshot.n ? VIEW("") : c->defaults.timezone),
		      &s.timezone) < 0 ||
	    copy_map(a, &w->env, &s.env) < 0 || spec_secrets_copy(a, &w->secrets, &s.secrets) < 0 ||
	    spec_mounts_copy(a, &w->mounts, &s.mounts) < 0 || copy_map(a, &w->metadata, &s.metadata) < 0)
		return err_set(e, ERR_TOO_LARGE, "the sandbox's description is too large");
	if (spec_workspaces_make(a, w, &s.workspaces, e) < 0)
		return -1;
	*ret = s;
	return 0;
}

struct view spec_map_get(const struct json_strmap *m, struct view key)
{
	for (size_t i = 0; i < m->n; i++)
		if (view_eq(m->keys[i], key))
			return m->values[i];
	return VIEW_NONE;
}

/* ---- the store's columns ---- */

static void put_map(struct json_out *o, const struct json_strmap *m)
{
	json_out_object(o);
	for (size_t i = 0; i < m->n; i++) {
		json_out_key_view(o, m->keys[i]);
		json_out_str(o, m->values[i]);
	}
	json_out_end(o, '}');
}

static void put_links(struct json_out *o, const struct box_spec *s)
{
	json_out_array(o);
	for (size_t i = 0; i < s->n_links; i++) {
		json_out_object(o);
		json_out_kz(o, "id", s->links[i].id);
		json_out_kz(o, "to", s->links[i].to);
		json_out_ku64(o, "port", s->links[i].port);
		json_out_ku64(o, "listen", s->links[i].listen);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

/* As text in a string: rows have it so. */
static int put_policy(struct json_out *o, const struct egress_policy *p)
{
	struct buf text = BUF_INIT(EGRESS_TEXT_MAX);
	int r = egress_write(p, &text);

	if (r >= 0)
		json_out_kstr(o, "egress", buf_view(&text));
	buf_done(&text);
	return r;
}

int spec_to_json(const struct box_spec *s, struct buf *out)
{
	struct json_out o;

	json_out_init(&o, out);
	json_out_object(&o);
	json_out_kstr(&o, "user", s->user);
	json_out_kstr(&o, "workdir", s->workdir);
	json_out_kmap(&o, "env", &s->env);
	for (unsigned i = 0; i < BOX_LIMITS; i++)
		json_out_ku64(&o, box_limits_rows[i].kept, box_limits_get(&s->limits, i));
	json_out_ku64(&o, "ttl_seconds", s->ttl_seconds);
	json_out_ku64(&o, "idle_seconds", s->idle_seconds);
	json_out_kz(&o, "on_end", on_end_names[s->on_end]);
	json_out_kbool(&o, "auto_resume", s->auto_resume);
	json_out_kbool(&o, "readonly_root", s->readonly_root);
	json_out_kbool(&o, "no_sudo", s->no_sudo);
	if (s->timezone.n)
		json_out_kstr(&o, "timezone", s->timezone);
	if (s->require)
		spec_put_require(&o, s->require);
	json_out_kstr(&o, "snapshot", s->snapshot);
	json_out_kstr(&o, "origin", s->origin);
	if (s->workspaces.n) {
		json_out_key(&o, "workspaces");
		spec_workspaces_put(&o, &s->workspaces);
	}
	if (s->secrets.n) {
		json_out_key(&o, "secrets");
		spec_secrets_put(&o, &s->secrets);
	}
	if (s->mounts.n) {
		json_out_key(&o, "mounts");
		spec_mounts_put(&o, &s->mounts);
	}
	if (s->tied)
		json_out_kbool(&o, "tied", true);
	if (s->farewell)
		json_out_kbool(&o, "farewell", true);
	json_out_kbool(&o, "ports_public", s->ports_public);
	json_out_kstr(&o, "mask_host", s->mask_host);
	json_out_key(&o, "links");
	put_links(&o, s);
	if (s->egress && put_policy(&o, s->egress) < 0)
		return -ENOSPC;
	if (s->ai.n)
		json_out_kstr(&o, "ai", s->ai);
	if (s->ai_token) {
		json_out_ku64(&o, "ai_token", s->ai_token);
		json_out_ki64(&o, "ai_token_ends_ms", s->ai_token_ends_ms);
	}
	json_out_end(&o, '}');
	return out->bad;
}

int spec_metadata_to_json(const struct box_spec *s, struct buf *out)
{
	struct json_out o;
	json_out_init(&o, out);
	put_map(&o, &s->metadata);
	return out->bad;
}

struct columns {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view user, workdir, on_end, snapshot, origin, workspace, mask_host, timezone;
	struct json_strmap env;
	struct box_limits limits;
	uint64_t ttl_seconds, idle_seconds;
	bool readonly_root, no_sudo, auto_resume, workspace_readonly, ports_public, tied, farewell;
	struct json_strlist require;
	struct view egress, ai;
	uint64_t ai_token, ai_token_ends_ms;
	const struct json *secrets, *mounts, *workspaces;
	const struct json *links;
};

#define AT(f) .offset = offsetof(struct columns, f)
#define COLUMN(f, kind, ...)                                                                                 \
	{                                                                                                    \
#f, kind, AT(limits.f), .max = UINT32_MAX, __VA_ARGS__                                       \
	}
#define COLUMN_CPU(f)    COLUMN(f, JSON_F_U32, .required = true)
#define COLUMN_MEMORY(f) COLUMN(f, JSON_F_U64, .required = true)
#define COLUMN_COUNT     COLUMN_MEMORY
#define COLUMN_DISK(f)   COLUMN(f, JSON_F_U64) /* absent in older rows */
static const struct json_field column_fields[] = {
	{ "user", JSON_F_STRING, AT(user), .required = true },
	{ "workdir", JSON_F_STRING, AT(workdir), .required = true },
	{ "env", JSON_F_STRMAP, AT(env) },
#define LIMIT(kind, name, member, ...) COLUMN_##kind(member),
#include "box_limits.def"
#undef LIMIT
	{ "ttl_seconds", JSON_F_U64, AT(ttl_seconds), .max = INT32_MAX },
	{ "idle_seconds", JSON_F_U64, AT(idle_seconds), .max = INT32_MAX },
	{ "on_end", JSON_F_STRING, AT(on_end) },
	{ "auto_resume", JSON_F_BOOL, AT(auto_resume) },
	{ "readonly_root", JSON_F_BOOL, AT(readonly_root) },
	{ "no_sudo", JSON_F_BOOL, AT(no_sudo) },
	{ "timezone", JSON_F_STRING, AT(timezone) },
	{ "require", JSON_F_STRLIST, AT(require) },
	{ "snapshot", JSON_F_STRING, AT(snapshot) },
	{ "origin", JSON_F_STRING, AT(origin) },
	{ "workspaces", JSON_F_ANY, AT(workspaces) },
	{ "workspace", JSON_F_STRING, AT(workspace) }, /* of older rows */
	{ "workspace_readonly", JSON_F_BOOL, AT(workspace_readonly) },
	{ "secrets", JSON_F_ANY, AT(secrets) },
	{ "mounts", JSON_F_ANY, AT(mounts) },
	{ "ports_public", JSON_F_BOOL, AT(ports_public) },
	{ "tied", JSON_F_BOOL, AT(tied) },
	{ "farewell", JSON_F_BOOL, AT(farewell) },
	{ "mask_host", JSON_F_STRING, AT(mask_host) },
	{ "links", JSON_F_ANY, AT(links), .nullable = true },
	{ "egress", JSON_F_STRING, AT(egress) },
	{ "ai", JSON_F_STRING, AT(ai) },
	{ "ai_token", JSON_F_U64, AT(ai_token), .max = UINT64_MAX },
	{ "ai_token_ends_ms", JSON_F_U64, AT(ai_token_ends_ms), .max = INT64_MAX },
};
#undef AT
static const struct json_schema column_schema = { column_fields, ELEMS(column_fields) };

static int read_metadata(struct arena *a, const struct json *j, struct json_strmap *ret, struct err *e)
{
	if (j->type != JSON_OBJECT)
		return err_set(e, ERR_INTERNAL, "the metadata are not an object");
	ret->keys = arena_array(a, j->n, sizeof(*ret->keys));
	ret->values = arena_array(a, j->n, sizeof(*ret->values));
	if (!ret->keys || !ret->values)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "metadata");
	for (ret->n = 0; ret->n < j->n; ret->n++) {
		const struct json_member *m = &j->members[ret->n];
		if (m->value.type != JSON_STRING)
			return err_set(e, ERR_INTERNAL, "the metadata hold something that is not a string");
		ret->keys[ret->n] = m->key;
		ret->values[ret->n] = m->value.text;
	}
	return 0;
}

static int read_links(const struct json *list, struct box_spec *s, struct err *e)
{
	size_t n = list && list->type == JSON_ARRAY ? list->n : 0; /* absent in older rows */

	for (size_t i = 0; i < n && s->n_links < SPEC_LINKS_MAX; i++) {
		const struct json *id = json_get(&list->items[i], "id"),
				  *to = json_get(&list->items[i], "to"),
				  *port = json_get(&list->items[i], "port"),
				  *listen = json_get(&list->items[i], "listen");
		struct spec_link *l = &s->links[s->n_links];
		uint64_t p, at;
		if (!id || !to || !port || !listen || view_to_str(id->text, l->id, sizeof(l->id)) < 0 ||
		    view_to_str(to->text, l->to, sizeof(l->to)) < 0 || json_to_u64(port, &p) < 0 ||
		    json_to_u64(listen, &at) < 0 || p > UINT16_MAX || at > UINT16_MAX)
			return err_set(e, ERR_INTERNAL, "the links are malformed");
		l->port = (uint16_t)p;
		l->listen = (uint16_t)at;
		s->n_links++;
	}
	return 0;
}

/* What was judged before is not refused for a set that is gone since. */
static int read_policy(struct arena *a, struct view text, const struct egress_policy **ret, struct err *e)
{
	struct egress_policy *p = text.n ? arena_array(a, 1, sizeof(*p)) : NULL;

	*ret = p;
	if (!text.n)
		return 0;
	if (!p)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "egress");
	return egress_parse(a, text, &egress_any_set, p, e) < 0 ? err_wrap(e, "egress") : 0;
}

int spec_from_json(struct arena *a, struct view spec, struct view metadata, struct box_spec *ret,
		   struct err *e)
{
	struct json *doc, *meta;
	struct columns c = { 0 };
	struct box_spec s = { 0 };

	if (json_parse(a, spec, &doc, e) < 0 || json_read(a, doc, &column_schema, &c, false, e) < 0)
		return -1;
	const struct spec_workspace old = { c.workspace, VIEW(SPEC_WORKSPACE_PATH), c.workspace_readonly };
	if (json_parse(a, metadata, &meta, e) < 0 || read_metadata(a, meta, &s.metadata, e) < 0 ||
	    spec_secrets_read(a, c.secrets, true, &s.secrets, e) < 0 ||
	    spec_mounts_read(a, c.mounts, &s.mounts, e) < 0 ||
	    spec_workspaces_load(a, c.workspaces, &old, &s.workspaces, e) < 0 ||
	    (c.on_end.n && spec_take_on_end(c.on_end, &s.on_end, e) < 0)) /* absent in older rows */
		return -1;
	if (read_links(c.links, &s, e) < 0 || read_policy(a, c.egress, &s.egress, e) < 0 ||
	    spec_take_require(&c.require, &s.require, e) < 0)
		return -1;
	s.user = c.user;
	s.workdir = c.workdir;
	s.timezone = c.timezone;
	s.env = c.env;
	s.limits = c.limits;
	s.ttl_seconds = c.ttl_seconds;
	s.idle_seconds = c.idle_seconds;
	s.auto_resume = c.auto_resume;
	s.snapshot = c.snapshot;
	s.origin = c.origin;
	s.ports_public = c.ports_public;
	s.tied = c.tied;
	s.farewell = c.farewell;
	s.mask_host = c.mask_host;
	s.ai = c.ai;
	s.ai_token = c.ai_token;
	s.ai_token_ends_ms = (int64_t)c.ai_token_ends_ms;
	s.readonly_root = c.readonly_root;
	s.no_sudo = c.no_sudo;
	*ret = s;
	return 0;
}
