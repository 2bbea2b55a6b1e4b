/*
 * The daemon's address as the user writes it: http[s]://HOST[:PORT][/].
 */
#pragma once

#include "err.h"
#include "view.h"

struct url {
	char host[256]; /* a name or an address, without brackets */
	char port[6];
	char authority[272]; /* what the Host header says */
	bool loopback;       /* surely this machine */
	bool tls;            /* https */
};

int url_parse(struct view text, struct url *ret, struct err *e) _must_check_;
