/*
 * What the files of paddock-gate share: see main.c. The map of the program:
 *
 *   boxes.c    what the keeper and the api say: listeners, policies
 *   share.c    how many connections boxes and tenants have
 *   flow.c     one connection of a box, from accept to its end; who decides what when
 *   peek.c     its first bytes: TLS, HTTP or anything else
 *   proxy.c    the proxy port: HTTP CONNECT, absolute-form requests, SOCKS 5, tokens
 *   web.c      HTTP in clear: every request is judged
 *   dial.c     the other side: names, addresses, connecting, the upstream proxy
 *   relay.c    bytes between the two
 *   names.c    names to addresses: our own client of DNS, with a cache
 *   server.c   DNS for boxes
 *   verdict.c  what was decided, to the api
 *   intercept*.c  TLS that is looked into, to put secrets in: see intercept.h
 */
#pragma once

#include "addr.h"
#include "buf.h"
#include "link.h"
#include "map.h"
#include "policy.h"
#include "share.h"

#define GATE_FLOWS      8192                /* in all; each has two fds */
#define GATE_BOX_FLOWS  2048                /* of one box */
#define GATE_INTERCEPTS 256                 /* of these are looked into: each may hold some megabytes */
#define GATE_COLLECT    (32u * 1024 * 1024) /* bodies of a box that wait for their length */
#define GATE_HEAD_MS    30000               /* until a connection has said what it is */
#define GATE_FIRST_MS   150   /* a client that says nothing for so long lets the server speak first */
#define GATE_CONNECT_MS 10000 /* for one address */
#define GATE_IDLE_MS    900000
#define GATE_LINGER_MS                                                                                       \
	60000 /* at the end of an intercepted one, while its client takes nothing of what is left */
#define GATE_AWAY_MS 10000        /* if it is we who end it, whatever it takes */
#define GATE_OWNED   64           /* addresses of which it is known whether they are our own */
#define GATE_LOOK    (24u * 1024) /* bytes of the beginning that are kept to look at */

struct flow;
struct intercept_gate;

struct box {
	struct map_node node; /* by id */
	struct gate *gate;
	char id[24];
	char host[64]; /* what it calls itself; "": not known */
	struct loop_io tcp, dns;
	int steer;
	struct policy *policy; /* NULL: nothing is allowed */
	bool synced;           /* it came on the api's present channel */
	struct list flows, questions;
	struct share share; /* of the connections */
	unsigned n_intercepts;
	size_t collected; /* of GATE_COLLECT */
	uint64_t allowed, denied, bytes_out, bytes_in;
	uint64_t bytes_before,
		bytes_told; /* of the policy's max_bytes: used with gates before, and what the api knows */
	/* limits by time: what is left, and when it was counted last */
	uint64_t tokens_ms, bytes_left;
	double connects_left, questions_left;
	struct loop_timer refill;
	struct box_name { /* addresses that DNS gave to this box, the latest first to be overwritten last */
		struct addr addr;
		char *name;
	} * names;
	unsigned n_names, next_name;
	struct box_told { /* of questions: the last one that was allowed, and that was not */
		char name[256];
		int reason;
		uint64_t at_ms;
	} told[2];
};

struct gate {
	struct loop *loop;
	struct link keeper, api;
	struct link vault; /* intercept_vault.c */
	struct list vault_waits;
	uint32_t vault_stream;
	struct intercept_gate *intercept;
	struct map boxes, tenants;
	unsigned n_flows;
	struct names *names;
	int route; /* netlink: whether an address is our own */
	struct {
		struct addr addr;
		uint64_t until_ms;
		bool own;
	} owned[GATE_OWNED];              /* what it said lately, by a hash of the address */
	struct sockaddr_storage upstream; /* proxy; family 0: none */
	socklen_t upstream_len;
	struct buf verdicts; /* encoded, not yet sent */
	unsigned n_verdicts;
	uint64_t lost; /* verdicts */
	struct loop_timer flush, tell_used;
	int pipe[2]; /* empty between turns: what is spliced passes through it */
	char scratch[256 * 1024];
};

/* ---- boxes.c ---- */
extern const struct link_ops boxes_keeper_ops, boxes_api_ops;
void box_free(struct box *b);
/* Takes from the box's allowance of new connections; false: none is left. */
bool box_may_connect(struct box *b);
bool box_may_ask(struct box *b); /* DNS: a question that goes out */
/* Bytes that may be moved now, at most `want`; 0: wait, flow_wake comes. */
size_t box_allowance(struct box *b, size_t want);
void box_later(struct box *b); /* accepts nothing for a moment */
void box_count(struct box *b, bool out, size_t n);
/* Of the policy's max_bytes. */
uint64_t box_used(const struct box *b);
/* What DNS said to the box: the name of an address, or "". */
void box_remember(struct box *b, const struct addr *a, const char *name);
struct view box_name(const struct box *b, const struct addr *a);
bool box_was_told(const struct box *b, const struct addr *a, struct view name);

/* ---- names.c ---- */
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
struct names *names_new(struct loop *loop, const char *server,
			struct err *e) _must_check_; /* "" : /etc/resolv.conf */
void names_ask(struct names *n, struct view name, struct names_waiter *w,
	       void (*done)(struct names_waiter *, const struct names_answer *));
/* Whether it would be answered without asking anybody. */
bool names_cached(const struct names *n, struct view name);
void names_forget(struct names_waiter *w);

/* ---- server.c ---- */
void server_on_question(struct loop_io *io, uint32_t events);
/* One message; `answer` is called once, perhaps before it returns, unless it is cancelled.
 * False: there will be no answer. */
struct server_query;
bool server_start(struct box *b, struct view message,
		  void (*answer)(struct server_query *q, struct view message), void *arg);
void *server_arg(const struct server_query *q);
void server_cancel_all(struct box *b, const void *arg); /* NULL: all of the box */

/* ---- verdict.c ---- */
struct verdict {
	bool allowed;
	int reason; /* WIRE_GATE_REASON_… */
	const char *protocol, *via;
	struct view name, method, path;
	const struct addr *addr;
	uint16_t port;
	const struct policy_rule *rule;
};
void verdict_say(struct box *b, const struct verdict *v);
void verdict_flush(struct gate *g);

/* ---- dial.c ---- */
/* Whether the kernel delivers this address to this machine itself (or nowhere). */
bool dial_own(struct gate *g, const struct addr *a);
