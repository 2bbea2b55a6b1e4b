/*
 * The authority of the installation: a key that is sealed like a secret (DATA/vault/ca.key)
 * and a certificate that boxes are told to trust (DATA/vault/ca.pem). It signs
 * certificates for the gate's own key, one host each, for a few days.
 */
#pragma once

#include "shelf.h"

struct evp_pkey_st; /* OpenSSL's EVP_PKEY and X509 */
struct x509_st;

#define CA_KEY  "ca.key"
#define CA_CERT "ca.pem"

struct ca {
	struct evp_pkey_st *key;
	struct x509_st *cert;
};

/* Reads it, or makes it where there is none. ERR_UNAVAILABLE: the key cannot be opened. */
int ca_open(struct ca *c, int dir, const struct shelf_keys *keys, struct err *e) _must_check_;
void ca_close(struct ca *c);
int ca_pem(const struct ca *c, struct buf *out) _must_check_;
int ca_der(const struct ca *c, struct buf *out) _must_check_;
/* A certificate (DER) for `host` and the key (SubjectPublicKeyInfo, DER). */
int ca_sign(const struct ca *c, struct view host, struct view public_key, struct buf *out,
	    struct err *e) _must_check_;
