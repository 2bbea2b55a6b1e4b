/*
 * DNS for one box: see server.c. The owner decides what the box may ask and receives the results.
 */
#pragma once

#include "names.h"
#include "policy.h"

struct server;
struct server_query;

struct server_ops {
	const struct policy *(*policy)(struct server *s);       /* NULL: nothing is allowed */
	bool (*may_ask)(struct server *s);                      /* a question that goes out: takes one */
	bool (*is_own)(struct server *s, const struct addr *a); /* an address of this machine */
	void (*told)(struct server *s, const struct addr *a, const char *name); /* the box knows it now */
	/* Once for a question that comes again and again. */
	void (*say)(struct server *s, bool allowed, int reason, const char *name, const struct addr *a);
};

struct server {
	const struct server_ops *ops;
	struct loop *loop;
	struct names *names;
	struct loop_io io; /* UDP */
	char host[64];     /* what the box calls itself; "": not known */
	struct list questions;
	struct server_said { /* the last one that was allowed, and that was not */
		char name[256];
		int reason;
		uint64_t at_ms;
	} said[2];
};

/* Without a socket. */
void server_init(struct server *s, struct loop *loop, struct names *names, const struct server_ops *ops);
/* Takes the fd; the old one is closed. */
int server_serve(struct server *s, int fd) _must_check_;
/* One message; `answer` is called once, perhaps before it returns, unless it is cancelled.
 * False: there will be no answer. */
bool server_start(struct server *s, struct view message,
		  void (*answer)(struct server_query *q, struct view message), void *arg);
void *server_arg(const struct server_query *q);
void server_cancel_all(struct server *s, const void *arg); /* NULL: all of them */
void server_done(struct server *s);
