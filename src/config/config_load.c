/*
 * Gathers the configuration's sources onto one document (config_override does
 * the laying over) and has config_from_doc judge the result.
 */
#include <errno.h>
#include <fcntl.h>

#include "config_load.h"
#include "config_origins.h"
#include "config_sandkasten.h"
#include "config_sets.h"
#include "config_yaml.h"
#include "fd.h"

#include "poison.h"

#define PREFIX "PADDOCK_"

/* What the command line's client half reads; not the daemon's business. */
static const char *const CLIENT_VARIABLES[] = { "URL", "API_KEY", "KEY_FILE" };

static int read_file(struct arena *a, const char *path, bool must_exist, struct json **doc, bool *ret_read,
		     struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(CONFIG_YAML_MAX + 1);
	int r = fd_slurp(AT_FDCWD, path, &text);

	*ret_read = false;
	if (r == -ENOENT && !must_exist)
		return 0;
	if (r < 0)
		return err_sys(e, ERR_INVALID, r, "%s: cannot read the configuration", path);
	if (config_yaml_parse(a, buf_view(&text), doc, e) < 0)
		return err_wrap(e, "%s", path);
	if ((*doc)->type != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "%s: line %u: expected keys and values, not %s", path,
			       (*doc)->line, json_type_name((*doc)->type));
	*ret_read = true;
	return 0;
}

static bool is_client_variable(struct view name)
{
	for (size_t i = 0; i < ELEMS(CLIENT_VARIABLES); i++)
		if (view_is(name, CLIENT_VARIABLES[i]))
			return true;
	return false;
}

static int apply_variable(struct arena *a, struct json *doc, const char *assignment, struct err *e)
{
	struct view value, name = view_split(view_of(assignment), '=', &value);
	char variable[96];

	if (!view_starts(name, PREFIX))
		return 0;
	name = view_skip(name, strlen(PREFIX));
	if (!value.p || is_client_variable(name))
		return 0;
	if (view_to_str(name, variable, sizeof(variable)) < 0)
		return err_set(e, ERR_INVALID, PREFIX "%.40s…: no such setting", name.p);
	if (config_override(a, doc, variable, value, e) < 0)
		return err_wrap(e, PREFIX "%s", variable);
	return 0;
}

static bool is_flag(struct view variable, const struct config_flag *flags, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (view_is(variable, flags[i].variable))
			return true;
	return false;
}

/* "max.boxes: …" without a line may be the fault of PADDOCK_MAX_BOXES: then it says so. */
static void blame_variable(char *const *env, const struct config_flag *flags, size_t n_flags, struct err *e)
{
	struct view rest, path = view_split(view_of(e->msg), ':', &rest);
	char name[96];

	if (!rest.p || view_to_str(path, name, sizeof(name)) < 0)
		return;
	for (char *p = name; *p; p++)
		*p = *p == '.' ? '_' : *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
	if (is_flag(view_of(name), flags, n_flags))
		return;
	for (; env && *env; env++) {
		struct view value, variable = view_split(view_of(*env), '=', &value);

		if (view_starts(variable, PREFIX) && view_is(view_skip(variable, strlen(PREFIX)), name)) {
			err_wrap(e, PREFIX "%s", name);
			return;
		}
	}
}

int config_load(struct arena *a, const char *path, char *const *env, const struct config_flag *flags,
		size_t n_flags, struct config *ret, const char **ret_path, struct err *e)
{
	const char *file = path ? path : CONFIG_LOAD_DEFAULT;
	struct json *doc = arena_alloc(a, sizeof(*doc));
	struct view notes = VIEW("");
	bool was_read, foreign = false;
	const struct json *origins;

	if (!doc)
		return err_set(e, ERR_INTERNAL, "out of memory");
	doc->type = JSON_OBJECT;
	if (read_file(a, file, path != NULL, &doc, &was_read, e) < 0)
		return -1;
	if (was_read && config_sandkasten_is(doc)) {
		_cleanup_(buf_done) struct buf text = BUF_INIT(CONFIG_YAML_MAX);
		if (config_sandkasten_translate(a, doc, env, &doc, &text, e) < 0)
			return err_wrap(e, "%s", file);
		notes = arena_view(a, buf_view(&text));
		was_read = false; /* its lines are not those of what is judged below */
		foreign = true;
	}
	if (config_origins_gather(a, doc, was_read || foreign ? file : NULL, env, flags, n_flags, &origins,
				  e) < 0)
		return -1;
	for (char *const *v = env; v && *v; v++)
		if (apply_variable(a, doc, *v, e) < 0)
			return -1;
	for (size_t i = 0; i < n_flags; i++)
		if (config_override(a, doc, flags[i].variable, view_of(flags[i].value), e) < 0)
			return -1;
	if (config_sets_add(a, doc, "", env, e) < 0)
		return -1;
	if (config_from_doc(a, doc, was_read, ret, e) < 0) {
		/* What has no line was not written in the file. */
		if (e && strncmp(e->msg, "line ", 5) == 0)
			err_wrap(e, "%s", file);
		else if (e)
			blame_variable(env, flags, n_flags, e);
		return -1;
	}
	ret->notes = notes;
	ret->origins = origins;
	if (ret_path)
		*ret_path = was_read || foreign ? file : NULL;
	return 0;
}
