/*
 * TLS for servers, by OpenSSL: version 1.2 and later, ALPN h2 and http/1.1,
 * non-blocking. Nothing of OpenSSL is touched before tls_server_new.
 */
#pragma once

#include <sys/types.h>

#include "err.h"

struct tls_server;
struct tls_conn;

struct tls_server *tls_server_new(const char *cert_pem_file, const char *key_pem_file,
				  struct err *e) _must_check_;
/* Another certificate, for names of one label before `domain`; others get the first. */
int tls_server_add(struct tls_server *s, const char *domain, const char *cert_pem_file,
		   const char *key_pem_file, struct err *e) _must_check_;
void tls_server_free(struct tls_server *s);

/* Does not take the fd. */
struct tls_conn *tls_conn_new(struct tls_server *s, int fd);
void tls_conn_free(struct tls_conn *c);
/* 0 when done, -EAGAIN, or another -errno. */
int tls_conn_handshake(struct tls_conn *c) _must_check_;
bool tls_conn_is_h2(const struct tls_conn *c);
/* A count, 0 (recv: the peer closed properly), -EAGAIN, or another -errno. */
ssize_t tls_conn_recv(struct tls_conn *c, void *p, size_t n) _must_check_;
ssize_t tls_conn_send(struct tls_conn *c, const void *p, size_t n) _must_check_;
bool tls_conn_pending(const struct tls_conn *c);
/* The epoll events that bring on a wish to read or write: TLS may want the other one first. */
uint32_t tls_conn_events(const struct tls_conn *c, bool read, bool write);
/* close_notify, once; -EAGAIN when it does not fit into the socket's buffer now. */
int tls_conn_notify(struct tls_conn *c);
