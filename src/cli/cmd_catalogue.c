/*
 * paddock agent search, index, publish, key: catalogues of agents. See catalogue.h.
 */
#include "cmd_catalogue.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent_files.h"
#include "call.h"
#include "clock.h"
#include "fd.h"
#include "show.h"

#include "poison.h"

#define PLACES_MOST 16
#define DAY_MS      (24ull * 3600 * 1000)
#define DAYS        365
#define DAYS_MOST   3650

/* ---- which catalogues ---- */

struct places {
	struct catalogue_place items[PLACES_MOST];
	size_t n;
};

static int add_place(struct places *p, struct view name, struct view where, struct view key, struct err *e)
{
	struct catalogue_place *one = &p->items[p->n];

	if (p->n == PLACES_MOST)
		return err_set(e, ERR_TOO_LARGE, "there are more than %d catalogues", PLACES_MOST);
	*one = (struct catalogue_place){ .name = name, .where = where };
	if (!catalogue_hex(key, one->key, CATALOGUE_KEY))
		return err_set(e, ERR_INVALID, "a catalogue's key must be 64 hexadecimal digits");
	p->n++;
	return 0;
}

static int find_places(struct cmd_ctx *ctx, const struct cmd_catalogue_choice *c, struct places *ret,
		       struct err *e)
{
	struct json *answer = NULL;

	*ret = (struct places){ 0 };
	if (c->key) {
		struct view where = view_of(c->catalogue ? c->catalogue : "");
		return where.n ? add_place(ret, where, where, view_of(c->key), e)
			       : err_set(e, ERR_INVALID, "--catalogue-key is for --catalogue DIR or URL");
	}
	if (call_once(ctx, &(struct cli_call){ "GET", "catalogues" }, &answer, e) < 0)
		return -1;
	const struct json *all = answer ? json_get(answer, "catalogues") : NULL;
	for (size_t i = 0; all && all->type == JSON_ARRAY && i < all->n; i++) {
		struct view url = session_text(&all->items[i], "url"),
			    name = session_text(&all->items[i], "name");
		if (c->catalogue && !view_is(name, c->catalogue))
			continue;
		if (add_place(ret, name, url.n ? url : session_text(&all->items[i], "path"),
			      session_text(&all->items[i], "key"), e) < 0)
			return -1;
	}
	if (ret->n == 0 && c->catalogue)
		return err_set(e, ERR_NOT_FOUND,
			       "no catalogue %.60s is configured; for another one add --catalogue-key",
			       c->catalogue);
	if (ret->n == 0)
		return err_set(e, ERR_NOT_FOUND,
			       "no catalogue is configured: see agents.catalogues in paddock.yaml(5)");
	return 0;
}

int cmd_catalogue_get(struct cmd_ctx *ctx, const struct cmd_catalogue_choice *choice, const char *ref,
		      struct catalogue_agent *ret, int *ret_fd, struct err *e)
{
	struct view version, name = view_split(view_of(ref), '@', &version);
	const struct catalogue_place *from = NULL;
	struct places all;

	if (!catalogue_is_name(name) || (version.p && !catalogue_is_version(version)))
		return err_set(e, ERR_INVALID,
			       "%.80s is neither a file here nor the name of an agent, such as monitor@1.0.0",
			       ref);
	if (find_places(ctx, choice, &all, e) < 0)
		return -1;
	for (size_t i = 0; i < all.n; i++) {
		struct catalogue c;
		const struct catalogue_agent *one;

		if (catalogue_open(&ctx->arena, &all.items[i], &c, e) < 0)
			return -1;
		one = catalogue_find(&c, name, version);
		if (one && from)
			return err_set(e, ERR_CONFLICT,
				       "%.60s is in two catalogues, %.*s and %.*s: say --catalogue", ref,
				       VIEW_ARG(view_head(from->name, 60)),
				       VIEW_ARG(view_head(all.items[i].name, 60)));
		if (one) {
			*ret = *one;
			from = &all.items[i];
		}
	}
	return from ? catalogue_fetch(from, ret, ret_fd, e)
		    : err_set(e, ERR_NOT_FOUND, "no catalogue has %.80s", ref);
}

/* ---- search ---- */

struct search_flags {
	struct cmd_catalogue_choice from;
};

static const struct opt SEARCH_OPTS[] = { CMD_CATALOGUE_OPTS(struct search_flags, from) };

static bool has_word(struct view text, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= text.n; i++)
		if (view_eq_nocase((struct view){ text.p + i, n }, view_of(word)))
			return true;
	return n == 0;
}

static bool fits(const struct catalogue_agent *a, size_t n, char **words)
{
	for (size_t i = 0; i < n; i++)
		if (!has_word(a->name, words[i]) && !has_word(session_text(a->manifest, "name"), words[i]) &&
		    !has_word(session_text(a->manifest, "description"), words[i]) &&
		    !has_word(session_text(a->manifest, "author"), words[i]))
			return false;
	return true;
}

static void put_found(struct json_out *o, const struct catalogue_place *p, const struct catalogue_agent *a)
{
	json_out_object(o);
	json_out_kstr(o, "name", a->name);
	json_out_kstr(o, "version", a->version);
	json_out_kstr(o, "catalogue", p->name);
	json_out_ku64(o, "size", a->size);
	json_out_key(o, "manifest");
	json_out_value(o, a->manifest);
	json_out_end(o, '}');
}

static int run_search(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e)
{
	static const char *const titles[] = { "NAME", "VERSION", "RUNTIME", "CATALOGUE", "DESCRIPTION" };
	_cleanup_(buf_done) struct buf found = BUF_INIT(32u << 20);
	_cleanup_(show_table_done) struct show_table t = { 0 };
	const struct search_flags *f = flags;
	struct places all;
	struct json_out o;

	if (find_places(ctx, &f->from, &all, e) < 0)
		return -1;
	show_table_init(&t, titles, ELEMS(titles));
	json_out_init(&o, &found);
	json_out_array(&o);
	for (size_t i = 0; i < all.n; i++) {
		struct catalogue c;

		if (catalogue_open(&ctx->arena, &all.items[i], &c, e) < 0)
			return -1;
		for (size_t k = 0; k < c.n; k++) {
			const struct catalogue_agent *a = &c.agents[k];
			if (!fits(a, n, operands))
				continue;
			put_found(&o, &all.items[i], a);
			show_table_add(&t, (struct view[]){ a->name, a->version,
							    session_text(a->manifest, "runtime"),
							    all.items[i].name,
							    session_text(a->manifest, "description") });
		}
	}
	json_out_end(&o, ']');
	if (!ctx->json)
		return show_table_print(&t, e);
	struct json *doc;
	return json_parse(&ctx->arena, buf_view(&found), &doc, e) < 0 ? -1 : show_json(doc, e);
}

const struct cmd cmd_agent_search = {
	.name = "agent search",
	.operands = "[WORD…]",
	.summary = "list the agents of catalogues that have all of these words",
	.opts = SEARCH_OPTS,
	.n_opts = ELEMS(SEARCH_OPTS),
	.flags_size = sizeof(struct search_flags),
	.lead = OPTS_ANYWHERE,
	.max = SIZE_MAX,
	.client = true,
	.json = true,
	.run = run_search,
};

/* ---- index ---- */

struct index_flags {
	const char *key;
	uint64_t days;
};

static const struct opt INDEX_OPTS[] = {
	{ "key", 0, OPT_TEXT, offsetof(struct index_flags, key), "FILE",
	  "the private key that signs: see paddock agent key" },
	{ "days", 0, OPT_COUNT, offsetof(struct index_flags, days), "N",
	  "how long the index is valid (default: 365)" },
};

static int hash_file(int fd, struct catalogue_agent *a, struct err *e)
{
	struct sha256 h;
	char piece[64 * 1024];
	ssize_t n;

	sha256_init(&h);
	while ((n = read(fd, piece, sizeof(piece))) > 0) {
		sha256_add(&h, piece, (size_t)n);
		a->size += (uint64_t)n;
	}
	sha256_end(&h, a->sha256);
	if (n < 0)
		return err_sys(e, ERR_INTERNAL, errno, "reading");
	return a->size && a->size <= CATALOGUE_ARCHIVE_MAX
		       ? 0
		       : err_set(e, ERR_TOO_LARGE, "an archive has 1 to %u bytes", CATALOGUE_ARCHIVE_MAX);
}

/* What the index says of one archive. */
static int take_archive(struct arena *arena, int dir, const char *file, struct catalogue_agent *ret,
			struct err *e)
{
	_cleanup_(closep) int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	_cleanup_(buf_done) struct buf text = BUF_INIT(AGENT_FILES_MANIFEST_MAX);
	struct json *manifest;
	char name[64];

	*ret = (struct catalogue_agent){ .archive = arena_view(arena, view_of(file)) };
	if (fd < 0)
		return err_sys(e, ERR_INVALID, errno, "%.120s", file);
	if (hash_file(fd, ret, e) < 0 || agent_files_manifest_fd(fd, file, &text, e) < 0 ||
	    json_parse(arena, buf_view(&text), &manifest, e) < 0)
		return err_wrap(e, "%.100s", file);
	ret->manifest = manifest;
	ret->version = session_text(manifest, "version");
	if (!catalogue_name(session_text(manifest, "name"), name) || !catalogue_is_version(ret->version))
		return err_set(e, ERR_INVALID, "%.100s: its manifest has no name or no version such as 1.0.0",
			       file);
	ret->name = arena_view(arena, view_of(name));
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct catalogue_agent *x = a, *y = b;
	int r = memcmp(x->name.p, y->name.p, MIN(x->name.n, y->name.n));

	r = r ? r : x->name.n < y->name.n ? -1 : x->name.n > y->name.n;
	return r ? r : catalogue_compare(x->version, y->version);
}

static int take_all(struct arena *arena, int dir, struct catalogue *c, struct err *e)
{
	int again = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	DIR *d = again >= 0 ? fdopendir(again) : NULL;
	struct dirent *it;
	int r = 0;

	if (!d) {
		fd_close(again);
		return err_sys(e, ERR_INTERNAL, errno, "the directory");
	}
	rewinddir(d);
	c->agents = arena_array(arena, CATALOGUE_AGENTS_MAX, sizeof(*c->agents));
	while (r >= 0 && c->agents && (it = readdir(d))) {
		if (it->d_name[0] == '.' || !agent_files_is_archive(it->d_name))
			continue;
		if (c->n == CATALOGUE_AGENTS_MAX)
			r = err_set(e, ERR_TOO_LARGE, "a catalogue has at most %d agents",
				    CATALOGUE_AGENTS_MAX);
		else
			r = take_archive(arena, dir, it->d_name, &c->agents[c->n++], e);
	}
	closedir(d);
	if (!c->agents)
		return err_set(e, ERR_TOO_LARGE, "out of memory");
	if (r >= 0)
		qsort(c->agents, c->n, sizeof(*c->agents), by_name);
	return r;
}

/* The number of the index that is there; one of another key is not replaced. */
static int read_before(struct arena *arena, int dir, const uint8_t key[CATALOGUE_KEY], uint64_t *ret,
		       struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(CATALOGUE_INDEX_MAX);
	struct catalogue c;
	int r = fd_slurp(dir, CATALOGUE_INDEX, &text);

	*ret = 0;
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, CATALOGUE_INDEX);
	if (catalogue_read(arena, buf_view(&text), key, 0, &c, e) < 0)
		return err_wrap(e, CATALOGUE_INDEX " is there already");
	*ret = c.serial;
	return 0;
}

static int write_index(struct cmd_ctx *ctx, int dir, const struct index_flags *f, struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(CATALOGUE_INDEX_MAX),
				       file = BUF_INIT(CATALOGUE_INDEX_MAX + 256);
	uint8_t signature[CATALOGUE_SIGNATURE], key[CATALOGUE_KEY];
	struct catalogue c = { .created_ms = (uint64_t)clock_wall_ms() }, check;
	uint64_t before;

	if (!f->key)
		return err_set(e, ERR_INVALID, "--key FILE is needed: `paddock agent key FILE` makes one");
	if (f->days > DAYS_MOST)
		return err_set(e, ERR_INVALID, "--days must be 1 to %d", DAYS_MOST);
	c.expires_ms = c.created_ms + (f->days ? f->days : DAYS) * DAY_MS;
	if (catalogue_sign(f->key, VIEW(""), signature, key, e) < 0 ||
	    read_before(&ctx->arena, dir, key, &before, e) < 0 || take_all(&ctx->arena, dir, &c, e) < 0)
		return -1;
	c.serial = before + 1;
	buf_puts(&body, "paddock-catalogue-1\n");
	if (catalogue_put(&body, &c) < 0)
		return err_set(e, ERR_TOO_LARGE, "the index has more than %u bytes", CATALOGUE_INDEX_MAX);
	if (catalogue_sign(f->key, buf_view(&body), signature, key, e) < 0)
		return -1;
	buf_puts(&file, "paddock-catalogue-1 ");
	catalogue_put_hex(&file, signature, sizeof(signature));
	buf_putc(&file, '\n');
	buf_add(&file, view_skip(buf_view(&body), strlen("paddock-catalogue-1\n")));
	/* As everybody will read it: two archives of one agent, for example, are refused here. */
	if (catalogue_read(&ctx->arena, buf_view(&file), key, 0, &check, e) < 0)
		return -1;
	int r = fd_replace(dir, CATALOGUE_INDEX, file.p, file.n, 0644, true);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, CATALOGUE_INDEX);
	buf_clear(&file);
	catalogue_put_hex(&file, key, sizeof(key));
	fprintf(stderr, "index number %llu of %zu agents; the key is\n", (unsigned long long)c.serial, c.n);
	buf_putc(&file, '\n');
	return show_bytes(STDOUT_FILENO, buf_view(&file), e);
}

static int run_index(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		     struct err *e)
{
	_cleanup_(closep) int dir = open(operands[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return dir < 0 ? err_sys(e, ERR_INVALID, errno, "%.120s", operands[0])
		       : write_index(ctx, dir, flags, e);
}

const struct cmd cmd_agent_index = {
	.name = "agent index",
	.operands = "CATALOGUE",
	.summary = "write and sign the index of a directory of agents' archives",
	.opts = INDEX_OPTS,
	.n_opts = ELEMS(INDEX_OPTS),
	.flags_size = sizeof(struct index_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.run = run_index,
};

/* ---- publish ---- */

static int copy_archive(struct source *s, int dir, const char *name, struct err *e)
{
	_cleanup_(closep) int fd =
		openat(dir, ".publishing", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	char piece[64 * 1024];
	ssize_t n;
	int r = fd < 0 ? -errno : 0;

	while (r >= 0 && (n = read(s->fd, piece, sizeof(piece))) != 0)
		r = n < 0 ? -errno : fd_write_all(fd, piece, (size_t)n);
	if (r >= 0 && fsync(fd) < 0)
		r = -errno;
	if (r >= 0 && source_check(s, e) < 0)
		return -1;
	if (r >= 0 && linkat(dir, ".publishing", dir, name, 0) < 0)
		r = -errno;
	(void)unlinkat(dir, ".publishing", 0);
	if (r == -EEXIST)
		return err_set(e, ERR_CONFLICT, "%.100s is published already: raise the version", name);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "%.100s", name) : 0;
}

static int run_publish(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		       struct err *e)
{
	_cleanup_(closep) int dir = open(operands[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(buf_done) struct buf text = BUF_INIT(AGENT_FILES_MANIFEST_MAX);
	_cleanup_(source_done) struct source source = SOURCE_INIT;
	const struct index_flags *f = flags;
	struct json *manifest;
	char name[64], file[160];

	if (dir < 0)
		return err_sys(e, ERR_INVALID, errno, "%.120s", operands[1]);
	if (!f->key)
		return err_set(e, ERR_INVALID, "--key FILE is needed: `paddock agent key FILE` makes one");
	if (agent_files_manifest(operands[0], &text, e) < 0 ||
	    json_parse(&ctx->arena, buf_view(&text), &manifest, e) < 0)
		return -1;
	struct view version = session_text(manifest, "version");
	if (!catalogue_name(session_text(manifest, "name"), name) || !catalogue_is_version(version))
		return err_set(e, ERR_INVALID, "the manifest has no name or no version such as 1.0.0");
	snprintf(file, sizeof(file), "%s-%.*s.tar", name, VIEW_ARG(version));
	if (agent_files_open(&source, operands[0], e) < 0 || copy_archive(&source, dir, file, e) < 0)
		return -1;
	return write_index(ctx, dir, f, e);
}

const struct cmd cmd_agent_publish = {
	.name = "agent publish",
	.operands = "DIR|TAR CATALOGUE",
	.summary = "add an agent to a catalogue, and sign its index",
	.opts = INDEX_OPTS,
	.n_opts = ELEMS(INDEX_OPTS),
	.flags_size = sizeof(struct index_flags),
	.lead = OPTS_ANYWHERE,
	.min = 2,
	.max = 2,
	.run = run_publish,
};

/* ---- key ---- */

static int run_key(struct cmd_ctx *ctx _unused_, const void *flags _unused_, size_t n _unused_,
		   char **operands, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT(128);
	uint8_t key[CATALOGUE_KEY], signature[CATALOGUE_SIGNATURE];
	struct stat st;
	int r = stat(operands[0], &st) == 0 ? catalogue_sign(operands[0], VIEW(""), signature, key, e)
					    : catalogue_key_new(operands[0], key, e);

	if (r < 0)
		return -1;
	catalogue_put_hex(&out, key, sizeof(key));
	buf_putc(&out, '\n');
	return show_bytes(STDOUT_FILENO, buf_view(&out), e);
}

const struct cmd cmd_agent_key = {
	.name = "agent key",
	.operands = "FILE",
	.summary = "make a catalogue's private key, or show the public one of a file",
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.run = run_key,
};
