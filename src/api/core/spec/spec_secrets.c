/*
 * Wishes of mounted secrets: see spec_secrets.h.
 */
#include "spec_secrets.h"

#include <errno.h>

#include "poison.h"

#define NAME_MAX_ 64

struct body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view name, file, env;
	uint64_t version;
};

#define AT(f) .offset = offsetof(struct body, f)
static const struct json_field fields[] = {
	{ "name", JSON_F_STRING, AT(name), .min = 1, .max = NAME_MAX_, .required = true },
	{ "file", JSON_F_STRING, AT(file), .min = 1, .max = NAME_MAX_, .nullable = true },
	{ "env", JSON_F_STRING, AT(env), .min = 1, .max = NAME_MAX_, .nullable = true },
	{ "version", JSON_F_U64, AT(version), .min = 1, .max = UINT32_MAX, .nullable = true },
};
#undef AT
static const struct json_schema schema = { fields, ELEMS(fields) };

bool spec_secrets_is_name(struct view v)
{
	for (size_t i = 0; i < v.n; i++) {
		char c = v.p[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
		if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '.' || c == '-')))
			return false;
	}
	return v.n >= 1 && v.n <= NAME_MAX_;
}

static bool is_variable(struct view v)
{
	return spec_secrets_is_name(v) && !memchr(v.p, '.', v.n) && !memchr(v.p, '-', v.n);
}

static int check(const struct body *b, bool files, struct err *e)
{
	if (!spec_secrets_is_name(b->name))
		return err_set(e, ERR_INVALID, "name is not the name of a secret");
	if ((b->file.n > 0) == (b->env.n > 0))
		return err_set(e, ERR_INVALID, "exactly one of file and env must be given");
	if (b->file.n && !files)
		return err_set(e, ERR_INVALID, "file is for sandboxes, not for one command");
	if (b->file.n && !spec_secrets_is_name(b->file))
		return err_set(e, ERR_INVALID, "file must be a plain name; it is put below /run/secrets");
	if (b->env.n && !is_variable(b->env))
		return err_set(e, ERR_INVALID, "env must be the name of a variable");
	return 0;
}

static bool taken(const struct spec_secrets *s, const struct spec_secret *x)
{
	for (size_t i = 0; i < s->n; i++)
		if ((x->file.n && view_eq(s->items[i].file, x->file)) ||
		    (x->env.n && view_eq(s->items[i].env, x->env)))
			return true;
	return false;
}

int spec_secrets_read(struct arena *a, const struct json *j, bool files, struct spec_secrets *ret,
		      struct err *e)
{
	*ret = (struct spec_secrets){ 0 };
	if (!j || j->type == JSON_NULL)
		return 0;
	if (j->type != JSON_ARRAY || j->n > SPEC_SECRETS_MAX)
		return err_set(e, ERR_INVALID, "secrets must be an array of at most %d objects",
			       SPEC_SECRETS_MAX);
	ret->items = arena_array(a, j->n, sizeof(*ret->items));
	if (!ret->items)
		return err_set(e, ERR_TOO_LARGE, "secrets: too large");
	for (size_t i = 0; i < j->n; i++) {
		struct body b = { 0 };
		if (json_read(a, &j->items[i], &schema, &b, false, e) < 0 || check(&b, files, e) < 0)
			return err_wrap(e, "secrets[%zu]", i);
		const struct spec_secret x = { b.name, b.file, b.env, (uint32_t)b.version };
		if (taken(ret, &x))
			return err_set(e, ERR_INVALID, "secrets[%zu]: the same file or variable twice", i);
		ret->items[ret->n++] = x;
	}
	return 0;
}

int spec_secrets_copy(struct arena *a, const struct spec_secrets *from, struct spec_secrets *to)
{
	*to = (struct spec_secrets){ .items = arena_array(a, from->n, sizeof(*to->items)) };
	if (!to->items)
		return -ENOMEM;
	for (; to->n < from->n; to->n++) {
		struct spec_secret *x = &to->items[to->n];
		*x = from->items[to->n];
		x->name = arena_view(a, x->name);
		x->file = arena_view(a, x->file);
		x->env = arena_view(a, x->env);
		if (!x->name.p || !x->file.p || !x->env.p)
			return -ENOMEM;
	}
	return 0;
}

void spec_secrets_put(struct json_out *o, const struct spec_secrets *s)
{
	json_out_array(o);
	for (size_t i = 0; i < s->n; i++) {
		const struct spec_secret *x = &s->items[i];
		json_out_object(o);
		json_out_kstr(o, "name", x->name);
		json_out_kstr(o, x->file.n ? "file" : "env", x->file.n ? x->file : x->env);
		if (x->version)
			json_out_ku64(o, "version", x->version);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}
