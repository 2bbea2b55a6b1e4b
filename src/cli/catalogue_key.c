/*
 * Ed25519 for catalogues: see catalogue.h.
 */
#include <errno.h>
#include <fcntl.h>
/* OpenSSL has a type of the same name as one of our error codes. */
#define ERR_STATE openssl_err_state
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#undef ERR_STATE
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catalogue.h"
#include "config_key.h"
#include "fd.h"

#include "poison.h"

static void pkey_freep(EVP_PKEY **p)
{
	EVP_PKEY_free(*p);
	ERR_clear_error();
}

static void md_freep(EVP_MD_CTX **p)
{
	EVP_MD_CTX_free(*p);
}

static void bio_freep(BIO **p)
{
	BIO_free(*p);
}

bool catalogue_verify(const uint8_t key[CATALOGUE_KEY], struct view text,
		      const uint8_t signature[CATALOGUE_SIGNATURE])
{
	_cleanup_(pkey_freep) EVP_PKEY *k =
		EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, CATALOGUE_KEY);
	_cleanup_(md_freep) EVP_MD_CTX *md = EVP_MD_CTX_new();

	return !config_key_is_weak(key) && k && md && EVP_DigestVerifyInit(md, NULL, NULL, NULL, k) == 1 &&
	       EVP_DigestVerify(md, signature, CATALOGUE_SIGNATURE, (const unsigned char *)text.p, text.n) ==
		       1;
}

static EVP_PKEY *read_key(const char *path, struct err *e)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	_cleanup_(bio_freep) BIO *bio = NULL;
	_cleanup_(buf_done) struct buf text = { .max = 16u << 10, .secret = true };
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0) {
		err_sys(e, ERR_INVALID, errno, "%.120s", path);
		return NULL;
	}
	if (!S_ISREG(st.st_mode) || (st.st_mode & 077)) {
		err_set(e, ERR_FORBIDDEN, "%.120s holds a key and must be yours alone: run `chmod 600` on it",
			path);
		return NULL;
	}
	r = fd_slurp(AT_FDCWD, path, &text);
	bio = r < 0 ? NULL : BIO_new_mem_buf(text.p + text.head, (int)buf_len(&text));
	EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
	if (!key || EVP_PKEY_get_id(key) != EVP_PKEY_ED25519) {
		err_set(e, ERR_INVALID, "%.120s holds no Ed25519 key: `paddock agent key FILE` makes one",
			path);
		EVP_PKEY_free(key);
		ERR_clear_error();
		return NULL;
	}
	return key;
}

static bool public_of(const EVP_PKEY *key, uint8_t ret[CATALOGUE_KEY])
{
	size_t n = CATALOGUE_KEY;

	return EVP_PKEY_get_raw_public_key(key, ret, &n) == 1 && n == CATALOGUE_KEY;
}

int catalogue_sign(const char *key_file, struct view text, uint8_t ret[CATALOGUE_SIGNATURE],
		   uint8_t ret_key[CATALOGUE_KEY], struct err *e)
{
	_cleanup_(pkey_freep) EVP_PKEY *key = read_key(key_file, e);
	_cleanup_(md_freep) EVP_MD_CTX *md = EVP_MD_CTX_new();
	size_t n = CATALOGUE_SIGNATURE;

	if (!key)
		return -1;
	if (!md || EVP_DigestSignInit(md, NULL, NULL, NULL, key) != 1 ||
	    EVP_DigestSign(md, ret, &n, (const unsigned char *)text.p, text.n) != 1 ||
	    n != CATALOGUE_SIGNATURE || !public_of(key, ret_key))
		return err_set(e, ERR_INTERNAL, "the index cannot be signed");
	return 0;
}

int catalogue_key_new(const char *key_file, uint8_t ret_key[CATALOGUE_KEY], struct err *e)
{
	_cleanup_(pkey_freep) EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	_cleanup_(bio_freep) BIO *bio = BIO_new(BIO_s_mem());
	_cleanup_(closep) int fd = -EBADF;
	char *text = NULL;

	if (!key || !bio || PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) != 1 ||
	    !public_of(key, ret_key))
		return err_set(e, ERR_INTERNAL, "there is no new key");
	long n = BIO_get_mem_data(bio, &text);
	fd = open(key_file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, ERR_INVALID, errno, "%.120s", key_file);
	int r = fd_write_all(fd, text, (size_t)n);
	explicit_bzero(text, (size_t)n);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "%.120s", key_file) : 0;
}
