/*
 * The dashboard's session as a means to authenticate: a cookie, in place of a key. Browsers send cookies
 * for whoever asks them to, so it counts only where a page of this server asked: the request has a header
 * that no other page can send without our permission, or (a WebSocket, for which pages cannot set headers)
 * it names this server as its origin.
 */
#pragma once

#include "request.h"

#define LOGIN_HEADER     "x-paddock-dashboard" /* "1" */
#define LOGIN_COOKIE_MAX 48

/* Of the cookie: browsers send cookies to every port of a host, so the port is part of the name. */
void login_name(const struct http_exchange *x, char ret[LOGIN_COOKIE_MAX]);
/* The session's token; p == NULL: none. */
struct view login_token(const struct http_exchange *x);
/* Whether a page of this server sent it. ERR_FORBIDDEN. */
int login_check(const struct request *r, struct err *e) _must_check_;
/* Who asks, into r->actor: by key, else by session. */
int login_actor(struct request *r, struct err *e) _must_check_;
