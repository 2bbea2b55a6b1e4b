/*
 * The authority: see ca.h.
 */
#include "ca.h"

#include <errno.h>
/* OpenSSL has a type of the same name as one of our error codes. */
#define ERR_STATE openssl_err_state
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#undef ERR_STATE
#include <stdio.h>

#include "clock.h"
#include "fd.h"
#include "rnd.h"
#include "poison.h"

#define DER_MAX   (16u * 1024)
#define DAY       86400
#define CA_DAYS   3650
#define LEAF_DAYS 7
#define HOST_MAX  253

static const struct seal_label label = {
	.tenant = VIEW(""), .box = VIEW(""), .name = VIEW("ca"), .version = 1
};

/* ---- certificates ---- */

static int add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	int ok = ext && X509_add_ext(x, ext, -1) == 1;
	X509_EXTENSION_free(ext);
	return ok ? 0 : -EIO;
}

static int set_serial(X509 *x)
{
	uint8_t bytes[16];
	rnd_bytes(bytes, sizeof(bytes));
	bytes[0] = (uint8_t)((bytes[0] & 0x7f) | 1);
	BIGNUM *n = BN_bin2bn(bytes, sizeof(bytes), NULL);
	int ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x)) != NULL;
	BN_free(n);
	return ok ? 0 : -EIO;
}

static int set_name(X509_NAME *name, const char *cn)
{
	return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8, (const uint8_t *)"Paddock", -1, -1, 0) ==
				       1 &&
			       X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const uint8_t *)cn, -1,
							  -1, 0) == 1
		       ? 0
		       : -EIO;
}

static int set_times(X509 *x, long days)
{
	/* Clocks of boxes and machines differ a little. */
	return X509_gmtime_adj(X509_getm_notBefore(x), -DAY) &&
			       X509_gmtime_adj(X509_getm_notAfter(x), days * DAY)
		       ? 0
		       : -EIO;
}

static X509 *make_authority(EVP_PKEY *key)
{
	X509 *x = X509_new();
	char cn[64], id[9];

	rnd_name(id, 8);
	snprintf(cn, sizeof(cn), "Paddock installation %s", id);
	if (x && X509_set_version(x, 2) == 1 && set_serial(x) == 0 && set_times(x, CA_DAYS) == 0 &&
	    set_name(X509_get_subject_name(x), cn) == 0 &&
	    X509_set_issuer_name(x, X509_get_subject_name(x)) == 1 && X509_set_pubkey(x, key) == 1 &&
	    add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") == 0 &&
	    add_extension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") == 0 &&
	    add_extension(x, x, NID_subject_key_identifier, "hash") == 0 &&
	    X509_sign(x, key, EVP_sha256()) > 0)
		return x;
	X509_free(x);
	return NULL;
}

static bool is_host(struct view v)
{
	if (v.n < 1 || v.n > HOST_MAX || v.p[0] == '.' || v.p[v.n - 1] == '.')
		return false;
	for (size_t i = 0; i < v.n; i++) {
		char c = v.p[i];
		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_'))
			return false;
	}
	return true;
}

static X509 *make_leaf(const struct ca *c, const char *host, EVP_PKEY *key)
{
	X509 *x = X509_new();
	char san[HOST_MAX + 16];

	snprintf(san, sizeof(san), "critical,DNS:%s",
		 host); /* the subject is empty: names longer than 64 do not fit there */
	if (x && X509_set_version(x, 2) == 1 && set_serial(x) == 0 && set_times(x, LEAF_DAYS) == 0 &&
	    X509_set_issuer_name(x, X509_get_subject_name(c->cert)) == 1 && X509_set_pubkey(x, key) == 1 &&
	    add_extension(x, c->cert, NID_subject_alt_name, san) == 0 &&
	    add_extension(x, c->cert, NID_basic_constraints, "critical,CA:FALSE") == 0 &&
	    add_extension(x, c->cert, NID_key_usage, "critical,digitalSignature,keyEncipherment") == 0 &&
	    add_extension(x, c->cert, NID_ext_key_usage, "serverAuth") == 0 &&
	    add_extension(x, c->cert, NID_authority_key_identifier, "keyid:always") == 0 &&
	    X509_sign(x, c->key, EVP_sha256()) > 0)
		return x;
	X509_free(x);
	return NULL;
}

static int put_der(const X509 *x, struct buf *out)
{
	int n = i2d_X509(x, NULL);
	uint8_t *p = n > 0 ? (uint8_t *)buf_reserve(out, (size_t)n) : NULL;

	if (!p || i2d_X509(x, &p) != n)
		return out->bad ? out->bad : -EIO;
	buf_commit(out, (size_t)n);
	return 0;
}

int ca_der(const struct ca *c, struct buf *out)
{
	return put_der(c->cert, out);
}

int ca_sign(const struct ca *c, struct view host, struct view public_key, struct buf *out, struct err *e)
{
	char name[HOST_MAX + 1];
	const uint8_t *p = (const uint8_t *)public_key.p;

	if (!is_host(host) || view_to_str(host, name, sizeof(name)) < 0)
		return err_set(e, ERR_INVALID, "not the name of a host");
	EVP_PKEY *key =
		public_key.n && public_key.n <= DER_MAX ? d2i_PUBKEY(NULL, &p, (long)public_key.n) : NULL;
	X509 *x = key ? make_leaf(c, name, key) : NULL;
	int r = x ? put_der(x, out) : -EIO;
	X509_free(x);
	EVP_PKEY_free(key);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "the certificate") : 0;
}

/* ---- the key and its file ---- */

static int write_key(int dir, const struct shelf_keys *keys, EVP_PKEY *key)
{
	_cleanup_(buf_done) struct buf der = { .max = DER_MAX, .secret = true }, file = BUF_INIT(SEAL_FILE);
	struct seal_label l = label;
	int n = i2d_PrivateKey(key, NULL);
	uint8_t *p = n > 0 ? (uint8_t *)buf_reserve(&der, (size_t)n) : NULL;

	if (!p || i2d_PrivateKey(key, &p) != n)
		return -EIO;
	buf_commit(&der, (size_t)n);
	l.created_ms = clock_wall_ms();
	int r = seal_close(&keys->key[0], &l, buf_view(&der), &file);
	return r < 0 ? r : fd_replace(dir, CA_KEY, buf_view(&file).p, buf_len(&file), 0600, true);
}

int ca_pem(const struct ca *c, struct buf *out)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *p;
	long n = bio && PEM_write_bio_X509(bio, c->cert) == 1 ? BIO_get_mem_data(bio, &p) : 0;
	int r = n > 0 ? buf_append(out, p, (size_t)n) : -EIO;

	BIO_free(bio);
	return r;
}

/* The certificate first: a key on disk says that both are there. */
static int make(struct ca *c, int dir, const struct shelf_keys *keys)
{
	_cleanup_(buf_done) struct buf pem = BUF_INIT(DER_MAX);

	c->key = EVP_EC_gen("P-256");
	c->cert = c->key ? make_authority(c->key) : NULL;
	int r = c->cert ? ca_pem(c, &pem) : -EIO;
	if (r == 0)
		r = fd_replace(dir, CA_CERT, buf_view(&pem).p, buf_len(&pem), 0644, true);
	return r == 0 ? write_key(dir, keys, c->key) : r;
}

static int read_cert(struct ca *c, int dir)
{
	_cleanup_(buf_done) struct buf pem = BUF_INIT(DER_MAX);
	int r = fd_slurp(dir, CA_CERT, &pem);
	BIO *bio = r == 0 ? BIO_new_mem_buf(buf_view(&pem).p, (int)buf_len(&pem)) : NULL;

	c->cert = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
	BIO_free(bio);
	if (r == 0 && (!c->cert || X509_check_private_key(c->cert, c->key) != 1))
		r = -EBADMSG;
	return r;
}

int ca_open(struct ca *c, int dir, const struct shelf_keys *keys, struct err *e)
{
	_cleanup_(buf_done) struct buf der = { .max = SEAL_VALUE, .secret = true };
	int r = shelf_open_file(dir, CA_KEY, keys, &label, &der);

	if (r == -ENOENT) {
		r = make(c, dir, keys);
		return r < 0 ? err_sys(e, ERR_UNAVAILABLE, r, "the authority cannot be made") : 0;
	}
	if (r == -ENOKEY)
		return err_set(e, ERR_UNAVAILABLE,
			       "the master key is not the one that the secrets were sealed with");
	if (r == -EBADMSG)
		return err_set(e, ERR_UNAVAILABLE, "%s is damaged", CA_KEY);
	if (r == 0) {
		const uint8_t *p = (const uint8_t *)buf_view(&der).p;
		c->key = d2i_AutoPrivateKey(NULL, &p, (long)buf_len(&der));
		r = c->key ? read_cert(c, dir) : -EBADMSG;
	}
	return r < 0 ? err_sys(e, ERR_UNAVAILABLE, r, "the authority cannot be used") : 0;
}

void ca_close(struct ca *c)
{
	EVP_PKEY_free(c->key);
	X509_free(c->cert);
	*c = (struct ca){ 0 };
}
