/*
 * Finds the machine's configuration of package managers and puts the sets together:
 * see config_sets.h. Read by `paddock serve` and `paddock config`, with their user's
 * eyes; the daemons see the result in the configuration.
 */
#include "config_sets.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "config_sets_known.h"
#include "egress.h"
#include "fd.h"

#include "poison.h"

#define FILE_MAX  (1u << 20)
#define PATH_SIZE 4096

struct machine {
	struct arena *arena;
	const char *root;
	char *const *env;
};

static const char *variable(const struct machine *m, const char *name)
{
	size_t n = strlen(name);

	for (char *const *v = m->env; v && *v; v++)
		if (strncmp(*v, name, n) == 0 && (*v)[n] == '=')
			return *v + n + 1;
	return NULL;
}

/* The text of a file, empty when it cannot be read. `~` is the user's home. */
static bool slurp(const struct machine *m, const char *path, struct buf *out)
{
	const char *home = variable(m, "HOME");
	char full[PATH_SIZE];
	int n;

	buf_clear(out);
	if (path[0] == '~' && !home)
		return false;
	if (path[0] == '~')
		n = snprintf(full, sizeof(full), "%s%s%s", m->root, home, path + 1);
	else
		n = snprintf(full, sizeof(full), "%s%s", m->root, path);
	if (n < 0 || (size_t)n >= sizeof(full) || fd_slurp(AT_FDCWD, full, out) < 0) {
		buf_clear(out);
		return false;
	}
	return true;
}

static bool read_all(const struct machine *m, const char *const *paths, size_t n, struct config_hosts *h,
		     bool (*read)(struct config_hosts *, struct view))
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	bool said = false;

	for (size_t i = 0; i < n; i++)
		if (slurp(m, paths[i], &text) && read(h, buf_view(&text)))
			said = true;
	return said;
}

/* The first that is there. */
static void read_own(const struct machine *m, const char *const *paths, size_t n, struct config_hosts *h,
		     void (*read)(struct config_hosts *, struct view))
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX);

	for (size_t i = 0; i < n && !h->n; i++)
		if (slurp(m, paths[i], &text))
			read(h, buf_view(&text));
}

static void read_variable(const struct machine *m, struct config_hosts *h, const char *name)
{
	struct view v = view_of(variable(m, name));

	while (v.p && v.n)
		config_sets_url(h, view_split(v, ' ', &v));
}

/* Where a set comes from. */
enum { FROM_MACHINE = 1, FROM_TOOL = 2, FROM_KNOWN = 4 };

/* The machine's files, which the default image has as well, take the place of what the tool would use; those
 * of its administrator are none of a box's, and only add to it. */

static unsigned add_mirrors(struct config_hosts *h, const struct config_hosts *mirrors)
{
	unsigned from = (h->n ? FROM_TOOL : 0) | (mirrors->n ? FROM_MACHINE : 0);

	for (size_t i = 0; i < mirrors->n && h->n < ELEMS(h->items); i++)
		h->items[h->n++] = mirrors->items[i];
	return from;
}

static unsigned find_pip(const struct machine *m, struct config_hosts *h)
{
	static const char *const files[] = { "/etc/pip.conf" };
	static const char *const more[] = { "/etc/xdg/pip/pip.conf", "~/.config/pip/pip.conf",
					    "~/.pip/pip.conf" };
	static const char *const own[] = {
		"/usr/lib/python3/dist-packages/pip/_internal/models/index.py",
		"/usr/local/lib/python3/dist-packages/pip/_internal/models/index.py"
	};
	struct config_hosts mirrors = { .arena = m->arena };
	const char *file = variable(m, "PIP_CONFIG_FILE");
	bool index = read_all(m, files, ELEMS(files), &mirrors, config_sets_pip);

	read_all(m, more, ELEMS(more), &mirrors, config_sets_pip);
	if (file && file[0] == '/')
		read_all(m, &file, 1, &mirrors, config_sets_pip);
	read_variable(m, &mirrors, "PIP_INDEX_URL");
	read_variable(m, &mirrors, "PIP_EXTRA_INDEX_URL");
	if (!index)
		read_own(m, own, ELEMS(own), h, config_sets_pip_own);
	return add_mirrors(h, &mirrors);
}

static unsigned find_npm(const struct machine *m, struct config_hosts *h)
{
	static const char *const files[] = { "/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc" };
	static const char *const more[] = { "~/.npmrc" };
#define DEFINITIONS "/@npmcli/config/lib/definitions/definitions.js"
	static const char *const own[] = { "/usr/lib/node_modules/npm/node_modules" DEFINITIONS,
					   "/usr/local/lib/node_modules/npm/node_modules" DEFINITIONS,
					   "/usr/share/nodejs" DEFINITIONS,
					   "/usr/share/nodejs/npm/node_modules" DEFINITIONS };
	struct config_hosts mirrors = { .arena = m->arena };
	bool index = read_all(m, files, ELEMS(files), &mirrors, config_sets_npm);

	read_all(m, more, ELEMS(more), &mirrors, config_sets_npm);
	read_variable(m, &mirrors, "npm_config_registry");
	read_variable(m, &mirrors, "NPM_CONFIG_REGISTRY");
	if (!index)
		read_own(m, own, ELEMS(own), h, config_sets_npm_own);
	return add_mirrors(h, &mirrors);
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), k = strlen(end);

	return n > k && strcmp(name + n - k, end) == 0;
}

static void find_apt(const struct machine *m, struct config_hosts *h)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	char path[PATH_SIZE];

	if (slurp(m, "/etc/apt/sources.list", &text))
		config_sets_apt_list(h, buf_view(&text));
	snprintf(path, sizeof(path), "%s/etc/apt/sources.list.d", m->root);
	struct dirent **names = NULL;
	int n = scandir(path, &names, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;
		bool list = ends_with(name, ".list"), sources = ends_with(name, ".sources");

		snprintf(path, sizeof(path), "/etc/apt/sources.list.d/%s", name);
		if ((list || sources) && slurp(m, path, &text)) {
			if (list)
				config_sets_apt_list(h, buf_view(&text));
			else
				config_sets_apt_deb822(h, buf_view(&text));
		}
		free(names[i]);
	}
	free(names);
}

/* ---- into the document ---- */

/* The member's value, made where it is missing; NULL without memory. */
static struct json *member(struct arena *a, struct json *object, struct view name)
{
	for (size_t i = 0; i < object->n; i++)
		if (view_eq(object->members[i].key, name))
			return &object->members[i].value;
	struct json_member *grown = arena_array(a, object->n + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	if (object->n)
		memcpy(grown, object->members, object->n * sizeof(*grown));
	grown[object->n].key = name;
	grown[object->n].value = (struct json){ .type = JSON_NULL };
	object->members = grown;
	return &grown[object->n++].value;
}

static int put_list(struct arena *a, struct json *object, struct view name, const struct view *list, size_t n)
{
	struct json *at = member(a, object, name), *items = at ? arena_array(a, n, sizeof(*items)) : NULL;

	if (!items)
		return -1;
	for (size_t i = 0; i < n; i++)
		items[i] = (struct json){ .type = JSON_STRING, .text = list[i] };
	*at = (struct json){ .type = JSON_ARRAY, .n = n, .items = items };
	return 0;
}

struct sets {
	struct json *sets, *sources;
};

static int put_set(struct arena *a, const struct sets *to, struct view name, const struct config_hosts *h,
		   unsigned from)
{
	static const struct view names[] = { VIEW("machine"), VIEW("tool"), VIEW("known") };
	struct view sources[ELEMS(names)];
	size_t n = 0;

	if (!h->n || json_get(to->sets, arena_str(a, name)))
		return 0; /* nothing is known, or the administrator knows better */
	for (size_t i = 0; i < ELEMS(names); i++)
		if (from & 1u << i)
			sources[n++] = names[i];
	if (put_list(a, to->sets, name, h->items, h->n) < 0)
		return -1;
	return put_list(a, to->sources, name, sources, n);
}

/* The set of the distribution is called as the distribution: "debian". */
static struct view distribution(const struct machine *m)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX);

	return slurp(m, "/etc/os-release", &text) ? config_sets_distribution(m->arena, buf_view(&text))
						  : VIEW_NONE;
}

static int add_known(const struct machine *m, const struct sets *to, struct err *e)
{
	static const char *const files[] = { "/etc/gitconfig", "~/.gitconfig", "~/.config/git/config" };
	_cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	struct json *known;

	if (json_parse(m->arena, (struct view){ config_sets_known, config_sets_known_size }, &known, e) < 0)
		return err_wrap(e, "the well-known sets");
	for (size_t i = 0; i < known->n; i++) {
		const struct json_member *k = &known->members[i];
		struct config_hosts h = { .arena = m->arena };

		for (size_t n = 0; n < k->value.n && n < ELEMS(h.items); n++)
			h.items[h.n++] = k->value.items[n].text;
		size_t plain = h.n;
		for (size_t f = 0; f < ELEMS(files); f++)
			if (slurp(m, files[f], &text))
				config_sets_git(&h, buf_view(&text), &k->value);
		if (put_set(m->arena, to, k->key, &h, FROM_KNOWN | (h.n > plain ? FROM_MACHINE : 0)) < 0)
			return err_set(e, ERR_TOO_LARGE,
				       "the configuration takes more memory than is allowed");
	}
	return 0;
}

static int add_found(const struct machine *m, const struct sets *to)
{
	struct config_hosts pip = { .arena = m->arena }, npm = pip, apt = pip;
	struct view distro = distribution(m);
	unsigned pip_from = find_pip(m, &pip), npm_from = find_npm(m, &npm);

	find_apt(m, &apt);
	if (put_set(m->arena, to, VIEW("pypi"), &pip, pip_from) < 0 ||
	    put_set(m->arena, to, VIEW("npm"), &npm, npm_from) < 0 ||
	    put_set(m->arena, to, VIEW("apt"), &apt, FROM_MACHINE) < 0)
		return -1;
	return distro.n ? put_set(m->arena, to, distro, &apt, FROM_MACHINE) : 0;
}

int config_sets_add(struct arena *a, struct json *doc, const char *root, char *const *env, struct err *e)
{
	const struct machine m = { .arena = a, .root = root, .env = env };
	struct json *egress = member(a, doc, VIEW("egress"));

	if (egress && egress->type == JSON_NULL)
		egress->type = JSON_OBJECT;
	if (egress && egress->type != JSON_OBJECT)
		return 0; /* the schema says what is wrong with it */
	const struct json *detect = egress ? json_get(egress, "detect") : NULL;
	if (detect && detect->type == JSON_BOOL && !detect->boolean)
		return 0;
	struct json *sources = egress ? member(a, egress, VIEW("sources")) : NULL;
	struct json *sets = sources ? member(a, egress, VIEW("sets")) : NULL;
	if (sets && sets->type == JSON_NULL)
		sets->type = JSON_OBJECT;
	if (sets && sets->type != JSON_OBJECT)
		return 0;
	/* Gathered apart: what is added to `egress` moves its members. */
	struct json said = sets ? *sets : (struct json){ .type = JSON_OBJECT },
		    from = { .type = JSON_OBJECT };
	const struct sets to = { &said, &from };
	if (!sets || add_found(&m, &to) < 0)
		return err_set(e, ERR_TOO_LARGE, "the configuration takes more memory than is allowed");
	if (add_known(&m, &to, e) < 0)
		return -1;
	*sets = said;
	*member(a, egress, VIEW("sources")) = from;
	return 0;
}
