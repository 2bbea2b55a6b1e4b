/*
 * TLS with OpenSSL, which no other code uses: version 1.2 and later, client and server, on a
 * non-blocking socket or on bytes in memory that the caller moves. Server certificates are always
 * checked, against authorities and the requested host; the check cannot be turned off. Files are read
 * before a program is confined.
 */
#pragma once

#include <sys/types.h>

#include "buf.h"
#include "err.h"

struct tls_conn; /* one end of a connection */

/* ---- tls_server.c: certificates from files; ALPN h2 and http/1.1 ---- */
struct tls_server;
struct tls_server *tls_server_new(const char *cert_pem_file, const char *key_pem_file,
				  struct err *e) _must_check_;
/* Another certificate, for names of one label before `domain`; others get the first. */
int tls_server_add(struct tls_server *s, const char *domain, const char *cert_pem_file,
		   const char *key_pem_file, struct err *e) _must_check_;
void tls_server_free(struct tls_server *s);
/* Does not take the fd. */
struct tls_conn *tls_server_conn(struct tls_server *s, int fd) _must_check_;

/* ---- tls_client.c ---- */
struct tls_client;
/* It believes those of the file, or of the system where it is empty. */
struct tls_client *tls_client_load(const char *ca_file, struct err *e) _must_check_;
/* The same in steps: at first it believes nobody. */
struct tls_client *tls_client_new(struct err *e) _must_check_;
int tls_client_trust(struct tls_client *c, const char *file, struct err *e) _must_check_;
int tls_client_trust_system(struct tls_client *c, struct err *e) _must_check_;
void tls_client_free(struct tls_client *c);
/* Does not take the fd; -1: on bytes in memory. `host`: a name or an address. */
struct tls_conn *tls_client_conn(struct tls_client *c, int fd, struct view host) _must_check_;
/* ALPN; before the handshake. */
int tls_client_offer(struct tls_conn *c, bool h2, bool h1) _must_check_;

/* ---- tls_mint.c: a server for any host, with certificates that are made for its key ---- */
struct tls_mint;
/* In a client's hello; ASKED: it was seen. */
enum tls_offer { TLS_OFFER_ASKED = 1, TLS_OFFER_H1 = 2, TLS_OFFER_H2 = 4, TLS_OFFER_OTHER = 8 };
struct tls_mint_ops {
	/* False: the handshake waits, and asks again when it is called again. */
	bool (*on_hello)(void *arg, unsigned offers);
	enum tls_offer (*choose)(void *arg); /* H1 or H2; 0: neither */
};
struct tls_mint *tls_mint_new(struct err *e) _must_check_;
void tls_mint_free(struct tls_mint *m);
struct view tls_mint_key(const struct tls_mint *m); /* public */
bool tls_mint_knows(const struct tls_mint *m, const char *host);
/* A certificate and its authority's, in DER; false: they are none. */
bool tls_mint_keep(struct tls_mint *m, const char *host, struct view cert,
		   struct view authority) _must_check_;
/* On bytes in memory. NULL without a certificate for the host. */
struct tls_conn *tls_mint_conn(struct tls_mint *m, const char *host, const struct tls_mint_ops *ops,
			       void *arg) _must_check_;

/* ---- tls.c ---- */
void tls_conn_free(struct tls_conn *c);
/* 0 when done, -EAGAIN, or another -errno. */
int tls_conn_handshake(struct tls_conn *c) _must_check_;
bool tls_conn_is_h2(const struct tls_conn *c);
/* A count, 0 (recv: the peer closed properly), -EAGAIN, or another -errno. */
ssize_t tls_conn_recv(struct tls_conn *c, void *p, size_t n) _must_check_;
ssize_t tls_conn_send(struct tls_conn *c, const void *p, size_t n) _must_check_;
bool tls_conn_pending(const struct tls_conn *c);
/* The epoll events that bring on a wish to read or write: TLS may want the other one first. The
 * handshake's are those of reading. */
uint32_t tls_conn_events(const struct tls_conn *c, bool read, bool write);
/* close_notify, once; -EAGAIN when it does not fit into the socket's buffer now. */
int tls_conn_notify(struct tls_conn *c);
/* Why it failed, or "" where an errno says it. */
const char *tls_conn_why(const struct tls_conn *c);
/* What is wrong with the peer's certificate; NULL: nothing. */
const char *tls_conn_distrust(const struct tls_conn *c);
/* In memory: bytes from the peer; what is to be sent to it, appended. -errno */
int tls_conn_feed(struct tls_conn *c, struct view data) _must_check_;
int tls_conn_drain(struct tls_conn *c, struct buf *to) _must_check_;
