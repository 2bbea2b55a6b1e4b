/*
 * From wish to spec: see spec.h.
 */
#include "spec.h"

#include <errno.h>

#include "egress.h"
#include "feature.h"
#include "num.h"
#include "spec_make.h"
#include "zones.h"
#include "poison.h"

const char *const spec_on_end_names[SPEC_ENDS] = {
	[SPEC_END_DELETE] = "delete",
	[SPEC_END_STOP] = "stop",
	[SPEC_END_PAUSE] = "pause",
};

const char *spec_on_end_name(enum spec_on_end v)
{
	return spec_on_end_names[v];
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
	bool ok = v.n <= BOX_FIELD_HOST_MAX;
	for (size_t i = 0; ok && i < v.n; i++)
		ok = is_alnum(v.p[i]) || memchr(".-_:${}[]", v.p[i], 9);
	return ok ? 0
		  : err_set(e, ERR_INVALID, "mask_host must be a host of at most %d characters",
			    BOX_FIELD_HOST_MAX);
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
	for (size_t i = 0; i < ELEMS(spec_on_end_names); i++)
		if (view_is(wished, spec_on_end_names[i])) {
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

#define TWIN_COPIED(name) .name = s->name,
#define TWIN_OWN(name)

void spec_to_wish(const struct box_spec *s, struct box_wish *ret)
{
	*ret = (struct box_wish){
		.image = s->image,
		.backend = view_of(s->backend),
#define FIELD(kind, name, json, shown, wire, twin, ...) TWIN_##twin(name)
#include "box_fields.def"
#undef FIELD
		.env = s->env,
		.metadata = s->metadata,
		.has_ttl = s->ttl_seconds > 0,
		.ttl_seconds = s->ttl_seconds,
		.on_end = view_of(spec_on_end_names[s->on_end]),
		.require = s->require,
		.workspaces = s->workspaces,
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
	spec_put_features(o, require);
}

void spec_put_features(struct json_out *o, uint32_t require)
{
	json_out_array(o);
	for (unsigned f = 0; f < FEATURES; f++)
		if (require & FEATURE_BIT(f))
			json_out_str(o, view_of(feature_texts[f].name));
	json_out_end(o, ']');
}

static int too_large(struct err *e)
{
	return err_set(e, ERR_TOO_LARGE, "the sandbox's description is too large");
}

static int copy_policy(struct arena *a, const struct egress_policy *from, const struct egress_policy **to)
{
	struct egress_policy *p = from ? arena_array(a, 1, sizeof(*p)) : NULL;

	*to = p;
	return !from ? 0 : p ? egress_copy(a, from, p) : -ENOMEM;
}

#define TAKE_BOOL(name)    s->name = w->name;
#define TAKE_NOT           TAKE_BOOL
#define TAKE_SECONDS(name) TAKE_BOOL(name) if (box_fields_check_seconds(w->name, #name, e) < 0) return -1;
#define TAKE_TEXT(name)                                                                                      \
	if (copy_view(a, w->name, &s->name) < 0)                                                             \
		return too_large(e);
#define TAKE_ZONE TAKE_TEXT
#define TAKE_HOST TAKE_TEXT

/* As they were wished. Defaults, and what a text may be, are the caller's. */
static int take_fields(const struct box_wish *w, struct arena *a, struct box_spec *s, struct err *e)
{
#define FIELD(kind, name, ...) TAKE_##kind(name)
#include "box_fields.def"
#undef FIELD
	return 0;
}

int spec_make(const struct box_wish *w, const struct config *c, struct arena *a, struct box_spec *ret,
	      struct err *e)
{
	struct box_spec s = { .require = w->require };

	if (take_fields(w, a, &s, e) < 0)
		return -1;
	s.no_sudo = s.no_sudo || !c->defaults.sudo;
	if (w->name.n && !spec_is_name(w->name))
		return err_set(e, ERR_INVALID,
			       "name must be 1 to %d of [A-Za-z0-9._-] and begin with a letter or digit",
			       SPEC_NAME_MAX);
	if (view_to_str(w->backend, s.backend, sizeof(s.backend)) < 0)
		return err_set(e, ERR_INVALID, "backend must be a name of at most %d characters",
			       SPEC_BACKEND_MAX);
	if (w->snapshot.n && w->image.n)
		return err_set(e, ERR_INVALID, "image and snapshot cannot both be given");
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
	if (copy_view(a, w->name, &s.name) < 0 ||
	    copy_view(a, or_default(w->image, c->defaults.image), &s.image) < 0 ||
	    copy_view(a, w->snapshot, &s.snapshot) < 0 || copy_policy(a, w->egress, &s.egress) < 0 ||
	    copy_view(a, w->ai, &s.ai) < 0 ||
	    copy_view(a, or_default(w->user, c->defaults.user), &s.user) < 0 ||
	    copy_view(a, or_default(w->workdir, c->defaults.workdir), &s.workdir) < 0 ||
	    copy_view(a, or_default(w->timezone, w->snapshot.n ? VIEW("") : c->defaults.timezone),
		      &s.timezone) < 0 ||
	    copy_map(a, &w->env, &s.env) < 0 || spec_secrets_copy(a, &w->secrets, &s.secrets) < 0 ||
	    spec_mounts_copy(a, &w->mounts, &s.mounts) < 0 || copy_map(a, &w->metadata, &s.metadata) < 0)
		return too_large(e);
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
