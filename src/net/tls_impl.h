/*
 * Shared by the files of TLS: see tls.h.
 */
#pragma once

#include <errno.h>
/* OpenSSL has a type of the same name as one of our error codes. */
#define ERR_STATE openssl_err_state
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#undef ERR_STATE

#include "tls.h"

struct tls_conn {
	SSL *ssl;
	int fd;            /* -1: on bytes in memory */
	int sys;           /* errno of the last socket call */
	uint32_t recv_for; /* events that a recv, a send is waiting for */
	uint32_t send_for;
	bool ready, failed, notified;
	char why[128];
	const struct tls_mint_ops *ops; /* tls_mint.c */
	void *arg;
};

/* With what holds for every connection; NULL: it cannot be. */
SSL_CTX *tls_ctx_new(const SSL_METHOD *method, uint64_t more_options);
/* Reads and writes of a socket: OpenSSL's own would raise SIGPIPE. */
BIO_METHOD *tls_ctx_bio(void);
/* On a socket, which stays the caller's, or (without a method) on memory. */
struct tls_conn *tls_conn_make(SSL_CTX *ctx, BIO_METHOD *bio, int fd) _must_check_;

/* Authorities from files, for a context that ends before they do. */
struct tls_trust;
struct tls_trust *tls_trust_new(SSL_CTX *ctx) _must_check_;
void tls_trust_free(struct tls_trust *t); /* accepts NULL */
/* All that are in a file of PEM; false: there is none, or something else is wrong with it. */
bool tls_trust_file(struct tls_trust *t, const char *file) _must_check_;
