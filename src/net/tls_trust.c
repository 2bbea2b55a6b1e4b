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

/* Goes into the next element, or past it. ASN1_get_object: 0x80 is an error, 1 an end that is not said. */
static bool enter(const unsigned char **p, const unsigned char **end)
{
	long n;
	int tag, class;

	if (ASN1_get_object(p, &n, &tag, &class, *end - *p) & 0x81)
		return false;
	*end = *p + n;
	return true;
}

static bool skip(const unsigned char **p, const unsigned char *end)
{
	if (!enter(p, &end))
		return false;
	*p = end;
	return true;
}

/* Of the subject. The rest is read when it is needed: reading a key makes OpenSSL fetch all that it has for
 * keys. */
static bool hash_of(const unsigned char *p, size_t n, unsigned long *ret)
{
	const unsigned char *end = p + n;
	bool is_there = enter(&p, &end) && enter(&p, &end) && p < end;

	if (is_there && *p == 0xa0) /* the version, but for the first one */
		is_there = skip(&p, end);
	/* serial number, algorithm, issuer, validity */
	for (int i = 0; is_there && i < 4; i++)
		is_there = skip(&p, end);
	X509_NAME *name = is_there ? d2i_X509_NAME(NULL, &p, end - p) : NULL;
	if (name)
		*ret = X509_NAME_hash_ex(name, NULL, NULL, NULL);
	X509_NAME_free(name);
	return name;
}

static bool add(struct tls_trust *t, const unsigned char *bytes, size_t n)
{
	struct trust_entry *more = reallocarray(t->entries, t->count + 1, sizeof(*more)),
			   entry = { .at = buf_len(&t->der), .n = n };

	if (!more)
		return false;
	t->entries = more;
	if (!hash_of(bytes, n, &entry.hash) || buf_append(&t->der, bytes, n) < 0)
		return false;
	t->entries[t->count++] = entry;
	return true;
}

bool tls_trust_file(struct tls_trust *t, const char *file)
{
	BIO *in = BIO_new_file(file, "r");
	size_t before = t->count;
	bool whole = in != NULL;
	unsigned char *bytes;
	long n;

	while (whole && PEM_bytes_read_bio(&bytes, &n, NULL, PEM_STRING_X509_TRUSTED, in, NULL, NULL) == 1) {
		whole = add(t, bytes, (size_t)n);
		OPENSSL_free(bytes);
	}
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
