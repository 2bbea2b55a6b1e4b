/*
 * See image_config.h.
 */
#include "image_config.h"

#include <errno.h>

#include "core_base.h"
#include "spec_make.h"
#include "poison.h"

#define THEIRS_MAX (1u << 20)
#define OURS_MAX   (64u << 10)

/* ---- theirs ---- */

static struct view text_of(const struct json *j, const char *key)
{
	const struct json *v = j ? json_get(j, key) : NULL;

	return v && v->type == JSON_STRING ? v->text : VIEW("");
}

static void put_list(struct json_out *o, const char *key, const struct json *list)
{
	if (!list || list->type != JSON_ARRAY || !list->n)
		return;
	json_out_key(o, key);
	json_out_array(o);
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].type == JSON_STRING)
			json_out_str(o, list->items[i].text);
	json_out_end(o, ']');
}

static bool given_later(const struct json *list, size_t at, struct view name)
{
	for (size_t k = at + 1; k < list->n; k++) {
		struct view value;
		if (list->items[k].type == JSON_STRING &&
		    view_eq(view_split(list->items[k].text, '=', &value), name))
			return true;
	}
	return false;
}

/* ["A=b", …] as an object; the last of a name counts. */
static void put_env(struct json_out *o, const struct json *list)
{
	json_out_key(o, "env");
	json_out_object(o);
	for (size_t i = 0; list && list->type == JSON_ARRAY && i < list->n && i < SPEC_ENV_MAX; i++) {
		struct view value, name = list->items[i].type == JSON_STRING
						  ? view_split(list->items[i].text, '=', &value)
						  : VIEW("");
		if (!name.n || !value.p || given_later(list, i, name))
			continue;
		json_out_key_view(o, name);
		json_out_str(o, value);
	}
	json_out_end(o, '}');
}

int image_config_take(struct view theirs, struct buf *ret)
{
	struct arena a = ARENA_INIT(THEIRS_MAX * 8);
	struct json *doc;
	struct json_out o;
	struct err e = { 0 };
	struct view rest, user;

	if (theirs.n > THEIRS_MAX || json_parse(&a, theirs, &doc, &e) < 0) {
		arena_done(&a);
		return -EINVAL;
	}
	const struct json *c = json_get(doc, "config");
	user = view_split(text_of(c, "User"), ':', &rest); /* groups are those of the user */
	*ret = BUF_INIT(OURS_MAX);
	json_out_init(&o, ret);
	json_out_object(&o);
	if (user.n && spec_check_user(user, "user", &e) >= 0)
		json_out_kstr(&o, "user", user);
	if (text_of(c, "WorkingDir").n && spec_check_workdir(text_of(c, "WorkingDir"), "workdir", &e) >= 0)
		json_out_kstr(&o, "workdir", text_of(c, "WorkingDir"));
	put_env(&o, c ? json_get(c, "Env") : NULL);
	put_list(&o, "entrypoint", c ? json_get(c, "Entrypoint") : NULL);
	put_list(&o, "cmd", c ? json_get(c, "Cmd") : NULL);
	json_out_end(&o, '}');
	arena_done(&a);
	return ret->bad;
}

/* ---- ours ---- */

struct ours {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view user, workdir;
	struct json_strmap env;
	struct json_strlist entrypoint, cmd;
};

#define AT(f) .offset = offsetof(struct ours, f)
static const struct json_field fields[] = {
	{ "user", JSON_F_STRING, AT(user) }, { "workdir", JSON_F_STRING, AT(workdir) },
	{ "env", JSON_F_STRMAP, AT(env) },   { "entrypoint", JSON_F_STRLIST, AT(entrypoint) },
	{ "cmd", JSON_F_STRLIST, AT(cmd) },
};
#undef AT
static const struct json_schema schema = { fields, ELEMS(fields) };

void image_config_read(struct arena *a, struct view ours, struct image *ret)
{
	struct ours o = { 0 };
	struct json *doc;
	struct err e = { 0 };

	if (!ours.n || json_parse(a, ours, &doc, &e) < 0 || json_read(a, doc, &schema, &o, false, &e) < 0)
		return;
	ret->user = o.user;
	ret->workdir = o.workdir;
	ret->env = o.env;
	ret->entrypoint = o.entrypoint;
	ret->cmd = o.cmd;
}

/* ---- boxes ---- */

static int merge_env(struct arena *a, const struct json_strmap *image, struct json_strmap *env)
{
	struct json_strmap all = { .keys = arena_array(a, image->n + env->n, sizeof(struct view)),
				   .values = arena_array(a, image->n + env->n, sizeof(struct view)) };

	if (!all.keys || !all.values)
		return -ENOMEM;
	for (size_t i = 0; i < image->n; i++) {
		if (spec_map_get(env, image->keys[i]).p)
			continue;
		all.keys[all.n] = arena_view(a, image->keys[i]);
		all.values[all.n] = arena_view(a, image->values[i]);
		if (!all.keys[all.n].p || !all.values[all.n].p)
			return -ENOMEM;
		all.n++;
	}
	for (size_t i = 0; i < env->n; i++) {
		all.keys[all.n] = env->keys[i];
		all.values[all.n++] = env->values[i];
	}
	*env = all;
	return 0;
}

int image_config_apply(struct core *c, struct arena *a, struct box_spec *s, struct err *e)
{
	const struct image *i = s->snapshot.n ? NULL : images_find(c, s->image);

	if (!i)
		return 0;
	if (i->user.n && view_eq(s->user, c->config->defaults.user))
		s->user = arena_view(a, i->user);
	if (i->workdir.n && view_eq(s->workdir, c->config->defaults.workdir))
		s->workdir = arena_view(a, i->workdir);
	if (!s->user.p || !s->workdir.p || (i->env.n && merge_env(a, &i->env, &s->env) < 0))
		return err_sys(e, ERR_INTERNAL, ENOMEM, "sandbox");
	return spec_check_env(&s->env, "env", e);
}
