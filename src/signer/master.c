/*
 * The signer's master key: 32 bytes as hex, in DATA/signer/master.key (0600, made at the first start) or
 * given by the keeper as a credential. The database knows which one it was made with: with another key, or
 * without one, nothing is opened and nothing is made anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "fd.h"
#include "rnd.h"
#include "sha256.h"
#include "signer.h"
#include "text.h"

#include "poison.h"

#define FILE_KEY "master.key"
#define TEXT_MAX 128
#define KEY_ID   8

static int parse_key(struct view v, uint8_t ret[XSEAL_KEY])
{
	while (v.n && (v.p[v.n - 1] == '\n' || v.p[v.n - 1] == '\r' || v.p[v.n - 1] == ' '))
		v.n--;
	return text_unhex(v, ret, XSEAL_KEY);
}

static int read_given(int fd, uint8_t ret[XSEAL_KEY])
{
	char text[TEXT_MAX];
	const ssize_t n = read(fd, text, sizeof(text));
	int r = n < 0 ? -errno : parse_key((struct view){ text, (size_t)n }, ret);

	explicit_bzero(text, sizeof(text));
	return r;
}

static int read_file(int dir, uint8_t ret[XSEAL_KEY])
{
	_cleanup_(buf_done) struct buf text = { .max = TEXT_MAX, .secret = true };
	int r = fd_slurp(dir, FILE_KEY, &text);

	return r < 0 ? r : parse_key(buf_view(&text), ret);
}

static int make_file(int dir, uint8_t ret[XSEAL_KEY])
{
	char text[2 * XSEAL_KEY + 1];

	rnd_bytes(ret, XSEAL_KEY);
	text_hex(ret, XSEAL_KEY, text);
	text[2 * XSEAL_KEY] = '\n';
	int r = fd_replace(dir, FILE_KEY, text, sizeof(text), 0600, true);
	if (r == 0 && fsync(dir) < 0)
		r = -errno;
	explicit_bzero(text, sizeof(text));
	return r;
}

/* 1: the database was made with this key; 0: it knows none yet. */
static int known(struct signer *s, const uint8_t id[KEY_ID], struct err *e)
{
	sqlite3_stmt *row = db_ask(&s->db, DB_META_GET, "t", VIEW("key_id"));
	int r = db_row(&s->db, row, e);

	if (r == 1 && !view_eq(db_view(row, 0), (struct view){ (const char *)id, KEY_ID }))
		r = err_set(e, ERR_UNAVAILABLE,
			    "the wallets were sealed with another master key: put %s back", FILE_KEY);
	db_end(row);
	return r;
}

static void id_of(const uint8_t master[XSEAL_KEY], uint8_t ret[32])
{
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, "paddock signer key", 18);
	sha256_add(&h, master, XSEAL_KEY);
	sha256_end(&h, ret);
	explicit_bzero(&h, sizeof(h));
}

static int is_new(struct signer *s, struct err *e)
{
	sqlite3_stmt *row = db_ask(&s->db, DB_META_GET, "t", VIEW("key_id"));
	int r = db_row(&s->db, row, e);

	db_end(row);
	return r < 0 ? -1 : r == 0;
}

int master_load(struct signer *s, int fd, struct err *e)
{
	uint8_t master[XSEAL_KEY], id[32];
	int r = fd >= 0 ? read_given(fd, master) : read_file(s->dir, master);

	if (r == -ENOENT) {
		r = is_new(s, e);
		if (r < 0)
			return -1;
		if (r == 0)
			return err_set(e, ERR_UNAVAILABLE, "the master key is missing: put %s back",
				       FILE_KEY);
		r = make_file(s->dir, master);
	}
	if (r < 0)
		return err_sys(e, ERR_UNAVAILABLE, r, "the signer's master key cannot be used");
	id_of(master, id);
	r = known(s, id, e);
	if (r == 0)
		r = db_do(&s->db, DB_META_PUT, e, "tb", VIEW("key_id"),
			  (struct view){ (const char *)id, KEY_ID });
	if (r >= 0 &&
	    xseal_hkdf(VIEW("paddock-signer"), (struct view){ (const char *)master, sizeof(master) },
		       VIEW("wallet keys, version 1"), s->key, sizeof(s->key)) < 0)
		r = err_set(e, ERR_INTERNAL, "HKDF");
	explicit_bzero(master, sizeof(master));
	return r < 0 ? -1 : 0;
}
