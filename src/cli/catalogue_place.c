/*
 * Where a catalogue is, and what was seen of it: see catalogue.h.
 *
 * A web server is believed about nothing. It can refuse to answer, and that is all: what it sends is signed,
 * or has the hash that was signed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catalogue.h"
#include "client.h"
#include "clock.h"
#include "config.h"
#include "contexts.h"
#include "fd.h"

#include "poison.h"

#define SEEN     "catalogues.json"
#define SEEN_MAX (256u << 10)
#define FETCH_MS 60000

/* ---- bytes ---- */

struct sink {
	struct buf *text; /* or */
	int fd;
	uint64_t most, n;
	struct sha256 hash;
};

static int put(struct sink *s, struct view data, struct err *e)
{
	int r;

	s->n += data.n;
	if (s->n > s->most)
		return err_set(e, ERR_TOO_LARGE, "it has more than %llu bytes", (unsigned long long)s->most);
	sha256_add(&s->hash, data.p, data.n);
	r = s->text ? buf_add(s->text, data) : fd_write_all(s->fd, data.p, data.n);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "a copy of it") : 0;
}

static int from_directory(const char *path, const char *name, struct sink *s, struct err *e)
{
	_cleanup_(closep) int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -EBADF;
	struct stat st;
	char piece[64 * 1024];
	ssize_t n;

	fd = dir < 0 ? -1 : openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, ERR_NOT_FOUND, errno, "%.100s/%.60s", path, name);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%.100s/%.60s is no file", path, name);
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		if (put(s, (struct view){ piece, (size_t)n }, e) < 0)
			return -1;
	return n < 0 ? err_sys(e, ERR_INTERNAL, errno, "%.60s", name) : 0;
}

/* Redirects are not followed: the configuration says where it is. */
static int from_server(struct view where, const char *name, struct sink *s, struct err *e)
{
	_cleanup_(buf_done) struct buf path = BUF_INIT(2048), base = BUF_INIT(1024);
	struct config_url u;
	struct url server;
	struct client c;
	struct response answer;
	struct view piece;
	int r;

	if (config_url(where, &u, e) < 0)
		return err_wrap(e, "the catalogue's URL");
	if (memchr(u.target.p, '?', u.target.n))
		return err_set(e, ERR_INVALID, "the catalogue's URL must have no query");
	buf_printf(&base, "%s://%.*s", u.tls ? "https" : "http", VIEW_ARG(u.authority));
	if (url_parse(buf_view(&base), &server, e) < 0)
		return -1;
	if (!server.tls && !server.loopback)
		return err_set(e, ERR_INVALID, "the catalogue's URL must begin with https://");
	buf_printf(&path, "%.*s%s%s", VIEW_ARG(u.target), u.target.p[u.target.n - 1] == '/' ? "" : "/", name);
	client_init(&c, &server, NULL);
	const struct client_request rq = { .method = "GET", .path = buf_view(&path), .timeout_ms = FETCH_MS };
	r = client_send(&c, &rq, &answer, e);
	if (r >= 0 && answer.status != 200)
		r = err_set(e, answer.status == 404 ? ERR_NOT_FOUND : ERR_UNAVAILABLE,
			    "%.100s answers with status %d for %.60s", server.host, answer.status, name);
	while (r >= 0 && (r = client_read(&c, &piece, e)) > 0)
		r = put(s, piece, e);
	client_done(&c);
	return r < 0 ? -1 : 0;
}

static int fetch(const struct catalogue_place *p, struct view name, struct sink *s, struct err *e)
{
	char path[1024], file[192];

	sha256_init(&s->hash);
	if (view_to_str(p->where, path, sizeof(path)) < 0 || view_to_str(name, file, sizeof(file)) < 0)
		return err_set(e, ERR_INVALID, "the catalogue's place is too long");
	return memmem(path, p->where.n, "://", 3) ? from_server(p->where, file, s, e)
						  : from_directory(path, file, s, e);
}

/* ---- what was seen ---- */

static const struct json *seen_of(const struct json *all, const struct buf *key)
{
	for (size_t i = 0; all && all->type == JSON_OBJECT && i < all->n; i++)
		if (view_eq(all->members[i].key, buf_view(key)))
			return &all->members[i].value;
	return NULL;
}

static int save_seen(int dir, const struct json *all, const struct buf *key, const struct catalogue *c,
		     struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(SEEN_MAX), hex = BUF_INIT(2 * SHA256_SIZE);
	struct json_out o;

	catalogue_put_hex(&hex, c->digest, SHA256_SIZE);
	json_out_init(&o, &b);
	json_out_object(&o);
	for (size_t i = 0; all && all->type == JSON_OBJECT && i < all->n; i++) {
		if (view_eq(all->members[i].key, buf_view(key)))
			continue;
		json_out_key_view(&o, all->members[i].key);
		json_out_value(&o, &all->members[i].value);
	}
	json_out_key_view(&o, buf_view(key));
	json_out_object(&o);
	json_out_ku64(&o, "serial", c->serial);
	json_out_kstr(&o, "sha256", buf_view(&hex));
	json_out_end(&o, '}');
	json_out_end(&o, '}');
	buf_putc(&b, '\n');
	int r = b.bad ? b.bad : fd_replace(dir, SEEN, b.p, b.n, 0600, false);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, SEEN) : 0;
}

static int compare_seen(struct arena *a, const struct catalogue_place *p, const struct catalogue *c,
			struct err *e)
{
	_cleanup_(buf_done) struct buf key = BUF_INIT(2 * CATALOGUE_KEY + 1), text = BUF_INIT(SEEN_MAX);
	_cleanup_(closep) int dir = -EBADF;
	struct json *all = NULL;
	uint64_t serial = 0;
	uint8_t digest[SHA256_SIZE];
	int r;

	if (contexts_open_directory(&dir, e) < 0)
		return -1;
	catalogue_put_hex(&key, p->key, CATALOGUE_KEY);
	r = fd_slurp(dir, SEEN, &text);
	if (r < 0 && r != -ENOENT)
		return err_sys(e, ERR_INTERNAL, r, SEEN);
	if (r >= 0 && json_parse(a, buf_view(&text), &all, e) < 0)
		return err_wrap(e, SEEN);
	const struct json *one = seen_of(all, &key), *number = one ? json_get(one, "serial") : NULL,
			  *hash = one ? json_get(one, "sha256") : NULL;
	if (one && (!number || json_to_u64(number, &serial) < 0 || !hash || hash->type != JSON_STRING ||
		    !catalogue_hex(hash->text, digest, sizeof(digest))))
		return err_set(e, ERR_INVALID, SEEN " is damaged");
	if (c->serial < serial)
		return err_set(e, ERR_FORBIDDEN,
			       "the index is older than one that was seen before (number %llu, then %llu)",
			       (unsigned long long)serial, (unsigned long long)c->serial);
	if (one && c->serial == serial)
		return memcmp(digest, c->digest, sizeof(digest)) == 0
			       ? 0
			       : err_set(e, ERR_FORBIDDEN,
					 "there are two different indexes with the number %llu",
					 (unsigned long long)serial);
	return save_seen(dir, all, &key, c, e);
}

/* ---- the two uses ---- */

int catalogue_open(struct arena *a, const struct catalogue_place *p, struct catalogue *ret, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(CATALOGUE_INDEX_MAX + 1);
	struct sink s = { .text = &text, .most = CATALOGUE_INDEX_MAX };

	if (fetch(p, VIEW(CATALOGUE_INDEX), &s, e) < 0 ||
	    catalogue_read(a, buf_view(&text), p->key, clock_wall_ms(), ret, e) < 0 ||
	    compare_seen(a, p, ret, e) < 0)
		return err_wrap(e, "catalogue %.*s", VIEW_ARG(view_head(p->name, 60)));
	return 0;
}

int catalogue_fetch(const struct catalogue_place *p, const struct catalogue_agent *a, int *ret_fd,
		    struct err *e)
{
	_cleanup_(closep) int fd = memfd_create("agent", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct sink s = { .fd = fd, .most = a->size };
	uint8_t hash[SHA256_SIZE];

	if (fd < 0)
		return err_sys(e, ERR_INTERNAL, errno, "memfd_create");
	if (fetch(p, a->archive, &s, e) < 0)
		return err_wrap(e, "catalogue %.*s", VIEW_ARG(view_head(p->name, 60)));
	sha256_end(&s.hash, hash);
	if (s.n != a->size || memcmp(hash, a->sha256, sizeof(hash)) != 0)
		return err_set(e, ERR_FORBIDDEN, "%.*s is not what the index says: its hash differs",
			       VIEW_ARG(view_head(a->archive, 120)));
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "sealing");
	*ret_fd = TAKE_FD(fd);
	return 0;
}
