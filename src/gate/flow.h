/*
 * One connection of a box. See flow.c for its life.
 */
#pragma once

#include "gate.h"
#include "http1.h"
#include "peek.h"
#include "token.h"

struct intercept;

enum flow_via { VIA_DIRECT, VIA_PROXY, VIA_SOCKS };

enum flow_state {
	FLOW_LOOK,  /* direct: its first bytes are awaited */
	FLOW_PROXY, /* proxy port: what it wants is awaited */
	FLOW_DNS,   /* TCP port 53 */
	FLOW_RESOLVE,
	FLOW_CONNECT,
	FLOW_OPEN, /* bytes move */
	FLOW_OVER,
};

enum flow_mode {
	MODE_UNSEEN, /* no byte of the client has been judged yet */
	MODE_OPAQUE, /* judged; whatever comes passes */
	MODE_HTTP,   /* each request is judged */
	MODE_WAIT, /* a request asked for an upgrade: nothing more from the client until the answer has begun
		    */
	MODE_INTERCEPT, /* TLS that is looked into: intercept.h */
	MODE_DRAIN,     /* the one request of a proxy connection is through; what else comes is dropped */
};

struct flow {
	struct list link; /* box->flows */
	struct box *box;
	struct loop_io client, server;
	int client_fd, server_fd; /* the ios have them only while something is awaited */
	struct loop_timer timer;
	struct loop_task freeing;
	uint64_t active_ms;
	uint64_t taken; /* bytes, by the client, of what was kept for it */

	enum flow_state state;
	enum flow_mode mode;
	enum flow_via via;
	bool doomed; /* denied and said so: its first bytes are awaited, for the kind of answer */
	int doom;    /* the reason */
	bool hold;   /* the server's bytes wait until the client's have been judged */
	bool client_bulk, server_bulk; /* a piece was large */
	bool client_eof, server_eof, client_shut, server_shut;
	bool throttled;   /* waits for the box's allowance */
	bool ech, opened; /* its ClientHello is encrypted; it is intercepted for that */
	size_t peeked;    /* proxy port: bytes that were seen and left in the socket */

	/* where to */
	struct addr meant; /* direct: the address that the client connected to */
	bool has_meant;
	char name[256]; /* that it asked for, in lower case; "" for an address */
	uint16_t port;
	enum policy_proto proto;
	struct names_waiter waiter;
	struct addr addrs[NAMES_ADDRS];
	size_t n_addrs, next_addr;
	struct addr addr; /* that is dialled */
	const struct policy_rule *rule;
	bool tunnel_asked, tunnel_ok; /* with an upstream proxy: CONNECT was sent, and granted */

	struct buf to_server, to_client; /* read from one side, not yet taken by the other */
	struct buf look;                 /* client's bytes that are not judged yet */
	struct peek_memory peek;         /* of the first of them */
	size_t head_seen;                /* of a head that is not whole: bytes that were looked at */

	/* MODE_HTTP */
	struct http1_request request;
	struct http_header *headers;
	struct http1_body body;
	bool in_body, first_done, one_request;
	int last_status; /* what the client is told when the server has answered what was allowed */
	const char *last_words;

	bool greeted;     /* SOCKS */
	bool intercepted; /* counts among the box's */
	size_t collected; /* of the box's */
	struct intercept *intercept;
};

/* ---- flow.c ---- */
/* f->meant and f->port are where it wants to go. */
void flow_start_direct(struct flow *f);
void flow_accept(struct loop_io *listener, uint32_t events);
/* Ends it. `reset`: the client sees a reset instead of an end. */
void flow_end(struct flow *f, bool reset);
/* Refuses: tells the api, answers in the client's protocol where it has one, ends. */
/* What a refusal is to a client that speaks HTTP. */
const char *flow_words(int reason, int *ret_status);
void flow_refuse(struct flow *f, int reason, const struct policy_rule *rule);
void flow_say(struct flow *f, bool allowed, int reason, const struct policy_rule *rule, struct view method,
	      struct view path);
/* Judges what is known (with the address `a`); on refusal says so and ends. */
bool flow_judge(struct flow *f, enum policy_proto proto, struct view name, const struct addr *a);
void flow_facts(const struct flow *f, struct policy_facts *ret, const struct addr *a,
		enum policy_proto proto);
void flow_wants(struct flow *f); /* which events are awaited now */
void flow_timer(struct flow *f, uint64_t ms);
/* Room for a body that is kept until it is whole; false: there is none. And back. */
bool flow_collect(struct flow *f, size_t n);
void flow_collected(struct flow *f, size_t n);
/* More of the client's bytes are in f->look. */
void flow_looked(struct flow *f);
/* The policy has changed: false when it would not be allowed any more. */
bool flow_still_allowed(const struct flow *f);
/* The other side is connected. */
void flow_connected(struct flow *f);

/* ---- proxy.c ---- */
void proxy_read(struct flow *f);
void proxy_answer(struct flow *f, bool ok, int reason);
/* "name", "name:80", "[::1]:80": a name (in lower case) or an address. -EINVAL */
struct proxy_target {
	char name[256]; /* "": it is an address */
	struct addr addr;
	uint16_t port; /* 0: none was given */
};
int proxy_target(struct view text, struct proxy_target *ret) _must_check_;
/* An error in plain HTTP, on the client's side. */
void proxy_http_error(struct flow *f, int status, const char *text);

/* ---- web.c ---- */
/* Judges and forwards what is in f->look; false when the flow has ended. */
bool web_step(struct flow *f);
/* The first bytes of the server's answer to an upgrade. */
bool web_answer(struct flow *f, struct view first);
void web_done(struct flow *f);

/* ---- dial.c ---- */
void dial_name(struct flow *f);                       /* f->name: resolve, then connect */
void dial_addr(struct flow *f, const struct addr *a); /* connect */
void dial_event(struct flow *f, uint32_t events);

/* ---- relay.c ---- */
void relay_client(struct flow *f); /* reads from the client as far as that goes */
void relay_server(struct flow *f);
bool relay_flush(struct flow *f); /* false: the flow has ended */
void relay_check_end(struct flow *f);
