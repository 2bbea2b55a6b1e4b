/*
 * What an image says about where packages come from: see config_sets.h. Its files are a
 * stranger's; how they are reached is the caller's business, what they say is read here,
 * bounded in every direction. `paddockd survey` runs this, the fuzzer too.
 */
#include <stdio.h>
#include <stdlib.h>

#include "config_sets.h"
#include "config_sets_known.h"
#include "egress.h"

#include "poison.h"

#define FILE_MOST  (256u * 1024)
#define NAMES_MOST 64
#define HOMES_MOST 16
#define HOSTS_MOST 16 /* of one set: a record with all of them fits */
#define HOST_MOST  100
#define LISTS_MOST 4 /* of mirrors, which apt's sources name */
#define PATH_SIZE  (2 * CONFIG_TREE_NAME + 128)

struct survey {
	const struct config_tree *tree;
	struct arena *arena;
	struct buf text; /* of the file that is being read */
	char homes[HOMES_MOST][CONFIG_TREE_NAME + 8];
	size_t n_homes;
	struct json_out *out; /* `sets` */
	struct json_out *more;
};

struct names {
	char items[NAMES_MOST][CONFIG_TREE_NAME];
	size_t n;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void list(const struct survey *s, const char *path, struct names *ret)
{
	ret->n = s->tree->list(s->tree, path, ret->items, NAMES_MOST);
	qsort(ret->items, ret->n, sizeof(ret->items[0]), by_name);
}

static bool slurp(struct survey *s, const char *path)
{
	buf_clear(&s->text);
	return s->tree->read(s->tree, path, &s->text);
}

static void find_homes(struct survey *s)
{
	struct names found;

	list(s, "home", &found);
	snprintf(s->homes[s->n_homes++], sizeof(s->homes[0]), "root");
	for (size_t i = 0; i < found.n && s->n_homes < HOMES_MOST; i++)
		snprintf(s->homes[s->n_homes++], sizeof(s->homes[0]), "home/%s", found.items[i]);
}

typedef bool reader(struct config_hosts *h, struct view text);

/* A path that begins with ~ is one of every user's. */
static bool read_file(struct survey *s, const char *path, struct config_hosts *h, reader *read)
{
	char full[PATH_SIZE];
	bool said = false;

	if (path[0] != '~')
		return slurp(s, path) && read(h, buf_view(&s->text));
	for (size_t i = 0; i < s->n_homes; i++) {
		snprintf(full, sizeof(full), "%s%s", s->homes[i], path + 1);
		if (slurp(s, full) && read(h, buf_view(&s->text)))
			said = true;
	}
	return said;
}

/* ---- the record ---- */

static void put_hosts(struct json_out *o, struct view name, const struct config_hosts *h)
{
	if (!h->n)
		return;
	json_out_key_view(o, name);
	json_out_array(o);
	for (size_t i = 0, n = 0; i < h->n && n < HOSTS_MOST; i++)
		if (h->items[i].n <= HOST_MOST) {
			json_out_str(o, h->items[i]);
			n++;
		}
	json_out_end(o, ']');
}

/* ---- tools ---- */

static void add_all(struct config_hosts *to, const struct config_hosts *from)
{
	for (size_t i = 0; i < from->n && to->n < ELEMS(to->items); i++)
		if (!config_sets_has(to, from->items[i]))
			to->items[to->n++] = from->items[i];
}

static void find_pip_own(struct survey *s, struct config_hosts *h)
{
	static const char *const libraries[] = { "usr/lib", "usr/local/lib" };
	static const char *const packages[] = { "dist-packages", "site-packages" };
	char path[PATH_SIZE];
	struct names found;

	for (size_t i = 0; i < ELEMS(libraries); i++) {
		list(s, libraries[i], &found);
		for (size_t k = 0; k < found.n * ELEMS(packages) && !h->n; k++) {
			const char *name = found.items[k / ELEMS(packages)];

			if (strncmp(name, "python3", 7) != 0)
				continue;
			snprintf(path, sizeof(path), "%s/%s/%s/pip/_internal/models/index.py", libraries[i],
				 name, packages[k % ELEMS(packages)]);
			if (slurp(s, path))
				config_sets_pip_own(h, buf_view(&s->text));
		}
	}
}

static void survey_pip(struct survey *s)
{
	static const char *const files[] = {
		"etc/pip.conf",       "etc/xdg/pip/pip.conf",   "usr/pip.conf",
		"usr/local/pip.conf", "~/.config/pip/pip.conf", "~/.pip/pip.conf"
	};
	struct config_hosts h = { .arena = s->arena }, own = h;
	bool said = false;

	for (size_t i = 0; i < ELEMS(files); i++)
		said = read_file(s, files[i], &h, config_sets_pip) || said;
	if (!said)
		find_pip_own(s, &own);
	add_all(&h, &own);
	put_hosts(said ? s->out : s->more, VIEW("pypi"), &h);
}

static void survey_npm(struct survey *s)
{
	static const struct {
		const char *path;
		reader *read;
	} files[] = {
		{ "etc/npmrc", config_sets_npm },           { "usr/etc/npmrc", config_sets_npm },
		{ "usr/local/etc/npmrc", config_sets_npm }, { "~/.npmrc", config_sets_npm },
		{ "~/.config/pnpm/rc", config_sets_npm },   { "~/.yarnrc", config_sets_yarn },
		{ "~/.yarnrc.yml", config_sets_yarn },
	};
#define DEFINITIONS "/@npmcli/config/lib/definitions/definitions.js"
	static const char *const definitions[] = { "usr/lib/node_modules/npm/node_modules" DEFINITIONS,
						   "usr/local/lib/node_modules/npm/node_modules" DEFINITIONS,
						   "usr/share/nodejs" DEFINITIONS,
						   "usr/share/nodejs/npm/node_modules" DEFINITIONS };
	struct config_hosts h = { .arena = s->arena }, own = h;
	bool said = false;

	for (size_t i = 0; i < ELEMS(files); i++)
		said = read_file(s, files[i].path, &h, files[i].read) || said;
	for (size_t i = 0; i < ELEMS(definitions) && !said && !own.n; i++)
		if (slurp(s, definitions[i]))
			config_sets_npm_own(&own, buf_view(&s->text));
	add_all(&h, &own);
	put_hosts(said ? s->out : s->more, VIEW("npm"), &h);
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), k = strlen(end);

	return n > k && strcmp(name + n - k, end) == 0;
}

/* mirror+file:/etc/apt/mirrors.txt: the hosts are in that file. `text` is what is being read, so the paths
 * are taken from it before they are opened. */
static void read_mirror_lists(struct survey *s, struct config_hosts *h)
{
	static const char mark[] = "mirror+file:";
	char paths[LISTS_MOST][PATH_SIZE];
	struct view rest = buf_view(&s->text);
	size_t n = 0;

	for (const char *at;
	     n < LISTS_MOST && rest.n && (at = memmem(rest.p, rest.n, mark, sizeof(mark) - 1));) {
		size_t k = 0;

		rest = view_skip(rest, (size_t)(at - rest.p) + sizeof(mark) - 1);
		while (k < rest.n && !strchr(" \t\r\n", rest.p[k]))
			k++; /* a NUL ends it too: strchr finds that */
		if (k > 1 && rest.p[0] == '/' &&
		    view_to_str(view_head(rest, k), paths[n], sizeof(paths[n])) >= 0)
			n++;
	}
	for (size_t i = 0; i < n; i++)
		if (slurp(s, paths[i] + 1))
			config_sets_lines(h, buf_view(&s->text));
}

static void read_sources(struct survey *s, const char *path, struct config_hosts *h)
{
	if (!slurp(s, path))
		return;
	if (ends_with(path, ".sources"))
		config_sets_apt_deb822(h, buf_view(&s->text));
	else
		config_sets_apt_list(h, buf_view(&s->text));
	read_mirror_lists(s, h);
}

static void find_apt(struct survey *s, struct config_hosts *h)
{
	char path[PATH_SIZE];
	struct names found;

	read_sources(s, "etc/apt/sources.list", h);
	list(s, "etc/apt/sources.list.d", &found);
	for (size_t i = 0; i < found.n; i++) {
		snprintf(path, sizeof(path), "etc/apt/sources.list.d/%s", found.items[i]);
		if (ends_with(path, ".list") || ends_with(path, ".sources"))
			read_sources(s, path, h);
	}
	if (!h->n)
		return; /* a proxy alone says nothing about where packages come from */
	if (slurp(s, "etc/apt/apt.conf"))
		config_sets_apt_proxy(h, buf_view(&s->text));
	list(s, "etc/apt/apt.conf.d", &found);
	for (size_t i = 0; i < found.n; i++) {
		snprintf(path, sizeof(path), "etc/apt/apt.conf.d/%s", found.items[i]);
		if (slurp(s, path))
			config_sets_apt_proxy(h, buf_view(&s->text));
	}
}

/* The set of the distribution is called as the distribution. */
static struct view distribution(struct survey *s)
{
	if (!slurp(s, "etc/os-release") && !slurp(s, "usr/lib/os-release"))
		return VIEW_NONE;
	return config_sets_distribution(s->arena, buf_view(&s->text));
}

static void survey_system(struct survey *s)
{
	static const char *const ours[] = { "pypi", "npm", "apt", "apk" };
	struct config_hosts apt = { .arena = s->arena }, apk = apt;
	struct view distro = distribution(s);
	bool taken = false;

	find_apt(s, &apt);
	if (slurp(s, "etc/apk/repositories"))
		config_sets_lines(&apk, buf_view(&s->text));
	put_hosts(s->out, VIEW("apt"), &apt);
	put_hosts(s->out, VIEW("apk"), &apk);
	for (size_t i = 0; i < ELEMS(ours); i++)
		taken |= view_is(distro, ours[i]);
	if (distro.n && !taken)
		put_hosts(s->out, distro, apt.n ? &apt : &apk);
}

/* Each file once, for all the sets that it may say something about. */
static void read_git(struct survey *s, const char *path, const struct json *known, struct config_hosts *found)
{
	if (!slurp(s, path))
		return;
	for (size_t i = 0; i < known->n; i++)
		config_sets_git(&found[i], buf_view(&s->text), &known->members[i].value);
}

static void survey_git(struct survey *s)
{
	static const char *const files[] = { "/.gitconfig", "/.config/git/config" };
	struct config_hosts *found;
	char path[PATH_SIZE];
	struct json *known;
	struct err e;

	if (json_parse(s->arena, (struct view){ config_sets_known, config_sets_known_size }, &known, &e) <
		    0 ||
	    !(found = arena_array(s->arena, known->n, sizeof(*found))))
		return;
	for (size_t i = 0; i < known->n; i++)
		found[i].arena = s->arena;
	read_git(s, "etc/gitconfig", known, found);
	for (size_t i = 0; i < s->n_homes * ELEMS(files); i++) {
		snprintf(path, sizeof(path), "%s%s", s->homes[i / ELEMS(files)], files[i % ELEMS(files)]);
		read_git(s, path, known, found);
	}
	for (size_t i = 0; i < known->n; i++)
		put_hosts(s->more, known->members[i].key, &found[i]);
}

void config_sets_survey(struct arena *a, const struct config_tree *t, struct buf *out)
{
	struct buf sets = BUF_INIT(CONFIG_SETS_RECORD / 2 - 16), more = BUF_INIT(CONFIG_SETS_RECORD / 2 - 16);
	struct json_out in_place, beside;
	struct survey s = {
		.tree = t, .arena = a, .text = BUF_INIT(FILE_MOST), .out = &in_place, .more = &beside
	};

	json_out_init(&in_place, &sets);
	json_out_init(&beside, &more);
	json_out_object(&in_place);
	json_out_object(&beside);
	find_homes(&s);
	survey_pip(&s);
	survey_npm(&s);
	survey_system(&s);
	survey_git(&s);
	json_out_end(&in_place, '}');
	json_out_end(&beside, '}');
	buf_printf(out, "{\"sets\":%.*s,\"more\":%.*s}", sets.bad ? 2 : (int)buf_len(&sets),
		   sets.bad ? "{}" : sets.p, more.bad ? 2 : (int)buf_len(&more), more.bad ? "{}" : more.p);
	buf_done(&sets);
	buf_done(&more);
	buf_done(&s.text);
}
