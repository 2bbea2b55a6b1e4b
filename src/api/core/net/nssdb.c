/*
 * The database: see nssdb.h. A table of objects of PKCS #11, a column for each attribute that
 * NSS knows, named by its number; numbers within are 4 bytes in network order. There are two
 * objects, the certificate and what it is trusted for. Both are public, so that no key is needed.
 */
#include "nssdb.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sqlite3.h>
#include <string.h>
/* OpenSSL has a type of the same name as one of our error codes. */
#define ERR_STATE openssl_err_state
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#undef ERR_STATE

#include "poison.h"

enum { CLASS_CERTIFICATE = 1, X509_TYPE = 0 };
#define NSS(n)          (0xce534350u + (n))
#define CLASS_TRUST     NSS(3)
#define TRUSTED_CA      NSS(2)
#define MUST_BE_CHECKED NSS(3)

static const char schema[] = "CREATE TABLE nssPublic (id PRIMARY KEY UNIQUE ON CONFLICT ABORT, a0, a1, a2, "
			     "a3, a10, a11, a12, a80, a81, a82, a83, a84, a85, a86, "
			     "a87, a88, a89, a8a, a8b, a90, a100, a101, a102, a103, a104, a105, a106, a107, "
			     "a108, a109, a10a, a10b, a10c, a110, a111, a120, a121, "
			     "a122, a123, a124, a125, a126, a127, a128, a129, a130, a131, a132, a133, a134, "
			     "a160, a161, a162, a163, a164, a165, a166, a170, a180, "
			     "a181, a200, a201, a202, a210, a300, a301, a302, a400, a401, a402, a403, a404, "
			     "a405, a406, a480, a481, a482, a500, a501, a502, a503, "
			     "a40000211, a40000212, a80000001, ace534351, ace534352, ace534353, ace534354, "
			     "ace534355, ace534356, ace534357, ace534358, ace534364, "
			     "ace534365, ace534366, ace534367, ace534368, ace534369, ace534373, ace534374, "
			     "ace536351, ace536352, ace536353, ace536354, ace536355, "
			     "ace536356, ace536357, ace536358, ace536359, ace53635a, ace53635b, ace53635c, "
			     "ace53635d, ace53635e, ace53635f, ace536360, ace5363b4, "
			     "ace5363b5, ad5a0db00);"
			     "CREATE INDEX issuer ON nssPublic (a81);"
			     "CREATE INDEX subject ON nssPublic (a101);"
			     "CREATE INDEX label ON nssPublic (a3);"
			     "CREATE INDEX ckaid ON nssPublic (a102);";

/* What both have: token, private, label, issuer, serial, modifiable. */
static const char certificate[] =
	"INSERT INTO nssPublic (id, a0, a1, a2, a3, a81, a82, a170, a11, a80, a101, a102) "
	"VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
/* For servers, clients, mail, code; without step-up; its hashes. */
static const char trust[] =
	"INSERT INTO nssPublic (id, a0, a1, a2, a3, a81, a82, a170, ace536358, ace536359, ace53635a, "
	"ace53635b, "
	"ace536360, ace5363b4, ace5363b5) VALUES (2, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/* The parts of a certificate, each as DER. */
struct parts {
	unsigned char *der, *subject, *issuer, *serial;
	int der_n, subject_n, issuer_n, serial_n;
	unsigned char sha1[20], md5[16];
};

static int take_apart(struct view pem, struct parts *p)
{
	BIO *in = BIO_new_mem_buf(pem.p, (int)MIN(pem.n, (size_t)INT32_MAX));
	X509 *x = in ? PEM_read_bio_X509(in, NULL, NULL, NULL) : NULL;
	unsigned n = 0;
	int r = -EINVAL;

	if (x) {
		p->der_n = i2d_X509(x, &p->der);
		p->subject_n = i2d_X509_NAME(X509_get_subject_name(x), &p->subject);
		p->issuer_n = i2d_X509_NAME(X509_get_issuer_name(x), &p->issuer);
		p->serial_n = i2d_ASN1_INTEGER(X509_get0_serialNumber(x), &p->serial);
		if (p->der_n > 0 && p->subject_n > 0 && p->issuer_n > 0 && p->serial_n > 0 &&
		    X509_digest(x, EVP_sha1(), p->sha1, &n) == 1 &&
		    X509_digest(x, EVP_md5(), p->md5, &n) == 1)
			r = 0;
	}
	X509_free(x);
	BIO_free(in);
	ERR_clear_error();
	return r;
}

static void parts_done(struct parts *p)
{
	OPENSSL_free(p->der);
	OPENSSL_free(p->subject);
	OPENSSL_free(p->issuer);
	OPENSSL_free(p->serial);
}

static int insert(sqlite3 *db, const char *sql, const struct view *values, size_t n)
{
	sqlite3_stmt *s = NULL;
	bool ok = sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK;

	for (size_t i = 0; ok && i < n; i++)
		ok = sqlite3_bind_blob(s, (int)i + 1, values[i].p, (int)values[i].n, SQLITE_STATIC) ==
		     SQLITE_OK;
	ok = ok && sqlite3_step(s) == SQLITE_DONE;
	sqlite3_finalize(s);
	return ok ? 0 : -EIO;
}

#define BYTES(p, n) ((struct view){ (const char *)(p), (size_t)(n) })

static int fill(sqlite3 *db, const struct parts *p)
{
	static const char yes[1] = { 1 }, no[1] = { 0 }, none[] = { (char)0xa5, 0, 0x5a };
	const uint32_t is_cert = htonl(CLASS_CERTIFICATE), type = htonl(X509_TYPE),
		       is_trust = htonl(CLASS_TRUST), ca = htonl(TRUSTED_CA), check = htonl(MUST_BE_CHECKED);
	const struct view issuer = BYTES(p->issuer, p->issuer_n), serial = BYTES(p->serial, p->serial_n);
	const struct view cert[] = { BYTES(&is_cert, 4),
				     BYTES(yes, 1),
				     BYTES(no, 1),
				     VIEW("Paddock"),
				     issuer,
				     serial,
				     BYTES(yes, 1),
				     BYTES(p->der, p->der_n),
				     BYTES(&type, 4),
				     BYTES(p->subject, p->subject_n),
				     BYTES(p->sha1, 20) };
	const struct view trusted[] = { BYTES(&is_trust, 4), BYTES(yes, 1),    BYTES(no, 1),
					BYTES(none, 3),      issuer,           serial,
					BYTES(yes, 1),       BYTES(&ca, 4),    BYTES(&check, 4),
					BYTES(&check, 4),    BYTES(&check, 4), BYTES(no, 1),
					BYTES(p->sha1, 20),  BYTES(p->md5, 16) };

	if (sqlite3_exec(db, schema, NULL, NULL, NULL) != SQLITE_OK ||
	    insert(db, certificate, cert, ELEMS(cert)) < 0)
		return -EIO;
	return insert(db, trust, trusted, ELEMS(trusted));
}

int nssdb_make(struct view pem, struct buf *out)
{
	struct parts p = { 0 };
	sqlite3 *db = NULL;
	sqlite3_int64 n = 0;
	int r = take_apart(pem, &p);

	if (r == 0)
		r = sqlite3_open_v2(":memory:", &db,
				    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY,
				    NULL) == SQLITE_OK
			    ? fill(db, &p)
			    : -EIO;
	if (r == 0) {
		unsigned char *file = sqlite3_serialize(db, "main", &n, 0);
		r = file ? buf_append(out, file, (size_t)n) : -EIO;
		sqlite3_free(file);
	}
	sqlite3_close(db);
	parts_done(&p);
	return r;
}
