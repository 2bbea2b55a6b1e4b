/*
 * What the first bytes of a connection are.
 */
#pragma once

#include "view.h"

enum peek {
	PEEK_MORE,
	PEEK_TLS,
	PEEK_ECH, /* TLS with an encrypted ClientHello (or what only looks like one, GREASE): the name may be a front */
	PEEK_HTTP,
	PEEK_HTTP2, /* in clear: nothing of it is judged */
	PEEK_OTHER,
	PEEK_BAD,
};
/* Of TLS the name is copied in lower case, "" when there is none. */
enum peek peek_look(struct view in, char name[256]);
/* Whether a connection to the proxy port begins with a request for the AI gateway: PEEK_HTTP, PEEK_OTHER or PEEK_MORE. */
enum peek peek_caller(struct view in);
