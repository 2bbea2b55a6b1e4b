/*
 * The master key: 32 bytes as hex, in DATA/vault/master.key (0600, made at the first
 * start) or given by the keeper as a credential. Rotation survives being cut off: the
 * new key is on disk as master.key.next before anything is sealed with it, and takes
 * the old one's place when nothing is sealed with that any more. Every sealed file says
 * which key it needs, so both states can be read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "fd.h"
#include "log.h"
#include "rnd.h"
#include "text.h"
#include "vault.h"
#include "poison.h"

#define FILE_KEY  "master.key"
#define FILE_NEXT "master.key.next"
#define TEXT_MAX  128

static int parse_key(struct view v, struct seal_key *ret)
{
	uint8_t bytes[SEAL_KEY];

	while (v.n && (v.p[v.n - 1] == '\n' || v.p[v.n - 1] == '\r' || v.p[v.n - 1] == ' '))
		v.n--;
	int r = text_unhex(v, bytes, sizeof(bytes));
	if (r >= 0)
		seal_key_set(ret, bytes);
	explicit_bzero(bytes, sizeof(bytes));
	return r < 0 ? -EBADMSG : 0;
}

static int read_key(int dir, const char *path, struct seal_key *ret)
{
	_cleanup_(buf_done) struct buf text = { .max = TEXT_MAX, .secret = true };
	int r = fd_slurp(dir, path, &text);

	return r < 0 ? r : parse_key(buf_view(&text), ret);
}

/* A credential: it was opened for us, as a file that our uid could not open. */
static int read_given(int fd, struct seal_key *ret)
{
	char text[TEXT_MAX];
	ssize_t n = read(fd, text, sizeof(text));
	int r = n < 0 ? -errno : parse_key((struct view){ text, (size_t)n }, ret);

	explicit_bzero(text, sizeof(text));
	return r;
}

static int make_key(struct vault *v, const char *path, struct seal_key *ret)
{
	uint8_t bytes[SEAL_KEY];
	char text[2 * SEAL_KEY + 1];

	rnd_bytes(bytes, sizeof(bytes));
	text_hex(bytes, sizeof(bytes), text);
	text[2 * SEAL_KEY] = '\n';
	int r = fd_replace(v->dir, path, text, sizeof(text), 0600, true);
	if (r == 0 && fsync(v->dir) < 0)
		r = -errno;
	if (r == 0)
		seal_key_set(ret, bytes);
	explicit_bzero(bytes, sizeof(bytes));
	explicit_bzero(text, sizeof(text));
	return r;
}

static bool anything_sealed(const struct vault *v)
{
	return faccessat(v->dir, CA_KEY, F_OK, 0) == 0 || errno != ENOENT;
}

/* 1: there it is; 0: there is none. */
static int try_file(struct vault *v, const char *path, struct err *e)
{
	int r = read_key(v->dir, path, &v->keys.key[v->keys.n]);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_sys(e, ERR_UNAVAILABLE, r, "the master key in %s cannot be used", path);
	v->keys.n++;
	return 1;
}

int master_load(struct vault *v, const int *fds, unsigned n_fds, struct err *e)
{
	for (unsigned i = 0; i < n_fds; i++) {
		int r = read_given(fds[i], &v->keys.key[v->keys.n]);
		if (r < 0)
			return err_sys(e, ERR_UNAVAILABLE, r,
				       "the credential with the master key must be 64 hex digits");
		v->keys.n++;
	}
	v->given = n_fds > 0;
	if (try_file(v, FILE_NEXT, e) < 0 || try_file(v, FILE_KEY, e) < 0)
		return -1;
	if (v->keys.n)
		return 0;
	if (anything_sealed(v))
		return err_set(e, ERR_UNAVAILABLE, "the master key is missing: put %s back", FILE_KEY);
	int r = make_key(v, FILE_KEY, &v->keys.key[0]);
	if (r < 0)
		return err_sys(e, ERR_UNAVAILABLE, r, "the master key cannot be written");
	v->keys.n = 1;
	return 0;
}

static void forget_old(struct vault *v)
{
	for (unsigned i = 1; i < v->keys.n; i++)
		seal_key_wipe(&v->keys.key[i]);
	v->keys.n = 1;
}

int master_settle(struct vault *v, unsigned *ret_resealed, struct err *e)
{
	*ret_resealed = 0;
	if (v->keys.n < 2)
		return 0;
	int n = shelf_reseal(&v->shelf), r = n < 0 ? n : shelf_reseal_file(v->dir, CA_KEY, &v->keys);
	if (r >= 0)
		r = fsync(v->dir) < 0 ? -errno : r;
	if (r < 0) /* the old keys stay where they are: nothing is lost, and the next start tries again */
		return err_sys(e, ERR_INTERNAL, r, "not everything could be sealed with the new master key");
	if (v->given) {
		(void)unlinkat(v->dir, FILE_NEXT, 0);
		(void)unlinkat(v->dir, FILE_KEY, 0);
	} else if (renameat(v->dir, FILE_NEXT, v->dir, FILE_KEY) < 0 && errno != ENOENT) {
		return err_sys(e, ERR_INTERNAL, errno, "the new master key cannot take the old one's place");
	}
	(void)fsync(v->dir);
	forget_old(v);
	*ret_resealed = (unsigned)n;
	return 0;
}

int master_rotate(struct vault *v, unsigned *ret_resealed, struct err *e)
{
	if (v->given)
		return err_set(e, ERR_UNSUPPORTED,
			       "the master key is a credential: give a new one as paddock-master-key, the "
			       "old one as "
			       "paddock-master-key-old, and restart");
	if (v->keys.n > 1 && master_settle(v, ret_resealed, e) < 0)
		return -1;
	struct seal_key fresh = { 0 };
	int r = make_key(v, FILE_NEXT, &fresh);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "the new master key cannot be written");
	v->keys.key[1] = v->keys.key[0];
	v->keys.key[0] = fresh;
	v->keys.n = 2;
	seal_key_wipe(&fresh);
	return master_settle(v, ret_resealed, e);
}
