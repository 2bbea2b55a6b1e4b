/*
 * Where settings come from: see config_origins.h.
 */
#include "config_origins.h"

#include "poison.h"

#define PREFIX   "PADDOCK_"
#define TEXT_MAX (256u * 1024)
#define NAME_MAX 256

/* ---- gathering ---- */

static void put_names(struct json_out *o, const struct json *doc, struct view above)
{
	for (size_t i = 0; i < doc->n; i++) {
		const struct json_member *m = &doc->members[i];
		struct buf name = BUF_INIT(NAME_MAX);

		buf_add(&name, above);
		buf_puts(&name, above.n ? "." : "");
		buf_add(&name, m->key);
		if (m->value.type == JSON_OBJECT && m->value.n)
			put_names(o, &m->value, buf_view(&name));
		else
			json_out_str(o, buf_view(&name));
		buf_done(&name);
	}
}

static void put_environment(struct json_out *o, char *const *env)
{
	for (; env && *env; env++) {
		struct view value, name = view_split(view_of(*env), '=', &value);
		if (view_starts(name, PREFIX) && value.p)
			json_out_str(o, view_skip(name, strlen(PREFIX)));
	}
}

int config_origins_gather(struct arena *a, const struct json *doc, const char *file, char *const *env,
			  const struct config_flag *flags, size_t n_flags, const struct json **ret,
			  struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
	struct json *made;
	struct json_out o;

	json_out_init(&o, &text);
	json_out_object(&o);
	json_out_kz(&o, "file", file);
	json_out_key(&o, "in_file");
	json_out_array(&o);
	if (file)
		put_names(&o, doc, VIEW(""));
	json_out_end(&o, ']');
	json_out_key(&o, "environment");
	json_out_array(&o);
	put_environment(&o, env);
	json_out_end(&o, ']');
	json_out_key(&o, "flags");
	json_out_array(&o);
	for (size_t i = 0; i < n_flags; i++)
		json_out_str(&o, view_of(flags[i].variable));
	json_out_end(&o, ']');
	json_out_end(&o, '}');
	if (text.bad)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (json_parse(a, buf_view(&text), &made, e) < 0)
		return -1;
	*ret = made;
	return 0;
}

/* ---- asking ---- */

/* Whether the list has the name, or what it is a part of: `mark` stands between parts. */
static bool has(const struct json *list, struct view name, char mark)
{
	for (size_t i = 0; list && i < list->n; i++) {
		struct view one = list->items[i].text;
		if (name.n >= one.n && memcmp(name.p, one.p, one.n) == 0 &&
		    (name.n == one.n || name.p[one.n] == mark))
			return true;
	}
	return false;
}

void config_origins_of(const struct json *origins, struct view name, struct buf *out)
{
	const struct json *file = json_get(origins, "file");
	char variable[NAME_MAX];

	if (!origins || name.n >= sizeof(variable))
		return;
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		variable[i] = c == '.' ? '_' : c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
	}
	struct view as_variable = { variable, name.n };
	if (has(json_get(origins, "flags"), as_variable, '_'))
		buf_puts(out, "command line");
	else if (has(json_get(origins, "environment"), as_variable, '_'))
		buf_printf(out, PREFIX "%.*s", VIEW_ARG(as_variable));
	else if (file && file->type == JSON_STRING && has(json_get(origins, "in_file"), name, '.'))
		buf_add(out, file->text);
	else
		buf_puts(out, "default");
}
