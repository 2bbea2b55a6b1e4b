/*
 * What the files of paddock-ai share: see main.c.
 */
#pragma once

#include "link.h"
#include "name.h"
#include "secure.h"

#define AI_AT_ONCE    1000
#define AI_CONNECT_MS 10000 /* from the name to the last byte of the head */

struct ai {
	struct loop *loop;
	struct link api;
	unsigned n; /* connections */
	struct secure_ctx *tls;
	struct name_server names;
};

/* dial.c: one AiDial; the frame is a CALL of the api. */
void dial_start(struct ai *h, const struct frame *f);
