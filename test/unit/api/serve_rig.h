/*
 * The frame of the dialects on a real server and a real core (whose keeper never says
 * a word), on a loop in a thread of its own. Clients are http_rig.h's.
 */
#pragma once

#include "http_rig.h"
#include "serve.h"

#define SERVE_RIG_KEY "pdk_0102030000000000000000000000000000000000"

struct serve_rig {
	struct http_rig listeners[2]; /* for http_rig_connect; the second is bound */
	struct loop *loop;
	struct store *store;
	struct core *core;
	struct serve *serve;
	struct http_server *server;
	struct loop_task stop;
	struct loop_timer last;
	unsigned long thread;
	int keeper;
	char dir[64];
};

/* bound: the dialect that has the second listener to itself. */
void serve_rig_start(struct serve_rig *r, const struct dialect *const *dialects, const char *bound);
void serve_rig_stop(struct serve_rig *r);
