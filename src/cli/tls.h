/*
 * TLS for the client. The handshake is done here; then a child process carries the
 * bytes between the connection and a socket, so that everybody else goes on as with
 * a plain connection.
 */
#pragma once

#include <sys/types.h>

#include "err.h"

/* Takes fd, which is connected. The server must prove to be `host` (a name or an address) by a certificate
 * of the authorities in `ca` (NULL: the system's). *ret_fd carries clear bytes, non-blocking; *ret_child ends
 * when it is closed. */
int tls_connect(int fd, const char *host, const char *ca, int *ret_fd, pid_t *ret_child,
		struct err *e) _must_check_;
