/*
 * What the first bytes of a connection are.
 */
#pragma once

#include "view.h"

enum peek {
	PEEK_MORE,
	PEEK_TLS,
	PEEK_HTTP,
	PEEK_HTTP2, /* in clear: nothing of it is judged */
	PEEK_OTHER,
	PEEK_BAD,
};
/* Of TLS the name is copied in lower case, "" when there is none to be relied on. */
enum peek peek_look(struct view in, char name[256]);
