/*
 * Names to addresses: see names.c.
 */
#pragma once

#include "addr.h"
#include "err.h"
#include "loop.h"

#define NAMES_ADDRS 16
struct names_answer {
	struct addr addrs[NAMES_ADDRS]; /* IPv4 first */
	size_t n;
	uint32_t ttl;
	bool known; /* the name exists, though perhaps without an address */
};
struct names_waiter {
	struct list link; /* empty when nobody waits */
	/* May be called before names_ask returns. NULL: no name server answered. */
	void (*done)(struct names_waiter *w, const struct names_answer *a);
};
struct names_setup {
	struct sockaddr_storage server; /* server_len 0: those of /etc/resolv.conf */
	socklen_t server_len;
	bool hosts; /* names may also be addresses, or stand in /etc/hosts */
};
/* Reads files: before the program is confined. */
struct names *names_new(struct loop *loop, const struct names_setup *setup, struct err *e) _must_check_;
void names_free(struct names *n); /* who waits must have been forgotten */
void names_ask(struct names *n, struct view name, struct names_waiter *w,
	       void (*done)(struct names_waiter *, const struct names_answer *));
/* Whether it would be answered without asking anybody. */
bool names_cached(const struct names *n, struct view name);
void names_forget(struct names_waiter *w);
