/*
 * See contexts.h. The file is written beside and renamed, so that two commands at
 * once leave one of the two versions.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "contexts.h"
#include "fd.h"
#include "json.h"
#include "nearest.h"

#include "poison.h"

#define FILE_MAX   (256u << 10)
#define PATH_BYTES 1024

/* The directory, then "/contexts.json"; "" where there is no home. */
static void put_directory(char ret[PATH_BYTES])
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n = -1;

	if (xdg && xdg[0] == '/')
		n = snprintf(ret, PATH_BYTES, "%s/paddock", xdg);
	else if (home && home[0] == '/')
		n = snprintf(ret, PATH_BYTES, "%s/.config/paddock", home);
	if (n < 0 || n >= PATH_BYTES - 32)
		ret[0] = '\0';
}

static const char *text_of(struct arena *a, const struct json *j, const char *key)
{
	const struct json *v = json_get(j, key);

	return v && v->type == JSON_STRING && v->text.n ? arena_str(a, v->text) : NULL;
}

static int read_entries(struct arena *a, const struct json *doc, struct contexts *ret, struct err *e)
{
	const struct json *all = json_get(doc, "contexts");

	for (size_t i = 0; all && all->type == JSON_OBJECT && i < all->n; i++) {
		struct contexts_entry one = { .name = arena_str(a, all->members[i].key),
					      .url = text_of(a, &all->members[i].value, "url"),
					      .key = text_of(a, &all->members[i].value, "key"),
					      .ca = text_of(a, &all->members[i].value, "ca") };

		if (ret->n == CONTEXTS_MAX)
			return err_set(e, ERR_INVALID, "there are more than %d contexts", CONTEXTS_MAX);
		if (!one.name || !one.url || !one.key)
			return err_set(e, ERR_INVALID, "a context without an address or a key");
		ret->items[ret->n++] = one;
	}
	ret->current = text_of(a, doc, "current");
	return 0;
}

static int check_private(int fd, const char *path, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "%.120s", path);
	if (!S_ISREG(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & 077))
		return err_set(e, ERR_FORBIDDEN,
			       "%.120s holds keys and must be yours alone: run `chmod 600` on it", path);
	return 0;
}

int contexts_load(struct arena *a, struct contexts *ret, struct err *e)
{
	_cleanup_(buf_done) struct buf text = { .max = FILE_MAX, .secret = true };
	_cleanup_(closep) int fd = -EBADF;
	char path[PATH_BYTES];
	struct json *doc;
	int r;

	*ret = (struct contexts){ 0 };
	put_directory(path);
	if (!path[0])
		return 0;
	strncat(path, "/contexts.json", sizeof(path) - strlen(path) - 1);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0
							   : err_sys(e, ERR_FORBIDDEN, errno, "%.120s", path);
	if (check_private(fd, path, e) < 0)
		return -1;
	r = fd_slurp(AT_FDCWD, path, &text);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "%.120s", path);
	if (json_parse(a, buf_view(&text), &doc, e) < 0 || read_entries(a, doc, ret, e) < 0)
		return err_wrap(e, "%.120s", path);
	return 0;
}

static int make_directory(const char *path)
{
	char upper[PATH_BYTES];
	char *slash;

	snprintf(upper, sizeof(upper), "%s", path);
	slash = strrchr(upper, '/');
	if (slash)
		*slash = '\0';
	if (mkdir(upper, 0700) < 0 && errno != EEXIST)
		return -errno;
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

int contexts_open_directory(int *ret_fd, struct err *e)
{
	char path[PATH_BYTES];

	put_directory(path);
	if (!path[0])
		return err_set(e, ERR_INVALID, "HOME is not set: there is no place for what is remembered");
	int r = make_directory(path), dir = r < 0 ? r : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_sys(e, ERR_INTERNAL, r < 0 ? r : errno, "%.120s", path);
	*ret_fd = dir;
	return 0;
}

int contexts_save(const struct contexts *c, struct err *e)
{
	_cleanup_(buf_done) struct buf b = { .max = FILE_MAX, .secret = true };
	_cleanup_(closep) int dir = -EBADF;
	struct json_out o;
	int r;

	if (contexts_open_directory(&dir, e) < 0)
		return -1;
	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_kz(&o, "current", c->current);
	json_out_key(&o, "contexts");
	json_out_object(&o);
	for (size_t i = 0; i < c->n; i++) {
		json_out_key(&o, c->items[i].name);
		json_out_object(&o);
		json_out_kz(&o, "url", c->items[i].url);
		json_out_kz(&o, "key", c->items[i].key);
		if (c->items[i].ca)
			json_out_kz(&o, "ca", c->items[i].ca);
		json_out_end(&o, '}');
	}
	json_out_end(&o, '}');
	json_out_end(&o, '}');
	buf_putc(&b, '\n');
	r = b.bad ? b.bad : fd_replace(dir, "contexts.json", b.p, b.n, 0600, false);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "contexts.json") : 0;
}

struct contexts_entry *contexts_get(struct contexts *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->items[i].name, name) == 0)
			return &c->items[i];
	return NULL;
}

int contexts_find(struct arena *a, const char *name, struct contexts_entry *ret, struct err *e)
{
	struct contexts all;
	const struct contexts_entry *found;

	*ret = (struct contexts_entry){ 0 };
	if (contexts_load(a, &all, e) < 0)
		return -1;
	if (!name && !all.current)
		return 0;
	found = contexts_get(&all, name ? name : all.current);
	if (!found) {
		struct nearest near = NEAREST(view_of(name));

		for (size_t i = 0; i < all.n; i++)
			nearest_try(&near, all.items[i].name);
		return err_set(e, ERR_NOT_FOUND,
			       "there is no context \"%.60s\"%s%s%s; `paddock context ls` lists them",
			       name ? name : all.current, near.best ? " (did you mean \"" : "",
			       near.best ? near.best : "", near.best ? "\"?)" : "");
	}
	*ret = *found;
	return 0;
}
