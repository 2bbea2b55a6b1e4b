/*
 * The authorities that a client believes, kept as they are on the wire. OpenSSL's own store keeps each as
 * objects, ten times as large, though a program meets a handful of a hundred and fifty: here the store
 * asks by the issuer's name, and gets those that it asks for. Files are read once, at the start.
 */
#include <stdlib.h>

#include "tls_impl.h"
#include "buf.h"
#include "poison.h"

#define MAX_BYTES (16u << 20)

struct trust_entry {
	unsigned long hash; /* of the subject */
	size_t at, n;       /* in the bytes */
};

struct tls_trust {
	X509_LOOKUP_METHOD *method;
	struct trust_entry *entries;
	size_t count;
	struct buf der;
};

/* Those of this subject join the store. `ret` gets one of them and, as OpenSSL wants it, no reference of its
 * own. */
static int on_subject(X509_LOOKUP *lookup, X509_LOOKUP_TYPE type, const X509_NAME *name, X509_OBJECT *ret)
{
	const struct tls_trust *t = X509_LOOKUP_get_method_data(lookup);
	unsigned long hash = X509_NAME_hash_ex(name, NULL, NULL, NULL);
	bool found = false;

	for (size_t i = 0; type == X509_LU_X509 && i < t->count; i++) {
		const struct trust_entry *entry = &t->entries[i];
		const unsigned char *p = (const unsigned char *)buf_view(&t->der).p + entry->at;
		if (entry->hash != hash)
			continue;
		X509 *cert = d2i_X509_AUX(NULL, &p, (long)entry->n);
		if (cert && X509_NAME_cmp(X509_get_subject_name(cert), name) == 0 &&
		    X509_STORE_add_cert(X509_LOOKUP_get_store(lookup), cert) == 1 && !found) {
			found = X509_OBJECT_set1_X509(ret, cert) == 1;
			if (found)
				X509_free(cert); /* the store's reference is the one that stays */
		}
		X509_free(cert);
	}
	return found;
}

static bool add(struct tls_trust *t, X509 *cert)
{
	struct trust_entry *more = reallocarray(t->entries, t->count + 1, sizeof(*more));
	unsigned char *bytes = NULL;
	int n = i2d_X509_AUX(cert, &bytes);

	if (more)
		t->entries = more;
	bool added = more && n > 0 && buf_append(&t->der, bytes, (size_t)n) == 0;
	if (added)
		t->entries[t->count++] = (struct trust_entry){ .hash = X509_subject_name_hash(cert),
							       .at = buf_len(&t->der) - (size_t)n,
							       .n = (size_t)n };
	OPENSSL_free(bytes);
	return added;
}

bool tls_trust_file(struct tls_trust *t, const char *file)
{
	BIO *in = BIO_new_file(file, "r");
	size_t before = t->count;
	bool whole = in != NULL;

	for (X509 *cert; whole && (cert = PEM_read_bio_X509_AUX(in, NULL, NULL, NULL)); X509_free(cert))
		whole = add(t, cert);
	unsigned long error = ERR_peek_last_error();
	whole = whole && ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
	ERR_clear_error();
	BIO_free(in);
	if (!whole)
		t->count = before;
	return t->count > before;
}

struct tls_trust *tls_trust_new(SSL_CTX *ctx)
{
	struct tls_trust *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	buf_init(&t->der, MAX_BYTES);
	t->method = X509_LOOKUP_meth_new("authorities");
	if (t->method && X509_LOOKUP_meth_set_get_by_subject(t->method, on_subject) == 1) {
		X509_LOOKUP *lookup = X509_STORE_add_lookup(SSL_CTX_get_cert_store(ctx), t->method);
		if (lookup && X509_LOOKUP_set_method_data(lookup, t) == 1)
			return t;
	}
	tls_trust_free(t);
	return NULL;
}

void tls_trust_free(struct tls_trust *t)
{
	if (!t)
		return;
	X509_LOOKUP_meth_free(t->method);
	buf_done(&t->der);
	free(t->entries);
	free(t);
}
