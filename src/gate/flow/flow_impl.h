/*
 * One connection of a box; shared by the files of this room. See states.c for its states.
 */
#pragma once

#include "flow.h"
#include "http1.h"
#include "peek.h"
#include "target.h"
#include "token.h"

#define FLOW_MOST       8192                /* in all; each has two fds */
#define FLOW_BOX_MOST   2048                /* of one box */
#define FLOW_INTERCEPTS 256                 /* of these are looked into: each may hold some megabytes */
#define FLOW_COLLECT    (32u * 1024 * 1024) /* bodies of a box that wait for their length */
#define FLOW_HEAD_MS    30000               /* until a connection has said what it is */
#define FLOW_FIRST_MS   150          /* a client that says nothing for so long lets the server speak first */
#define FLOW_LOOK_MOST  (24u * 1024) /* bytes of the beginning that are kept to look at */

enum flow_via { VIA_DIRECT, VIA_PROXY, VIA_SOCKS };

/* Where it stands; from FLOW_UNSEEN on, bytes move. */
enum flow_state {
	FLOW_LOOK,    /* direct: its first bytes are awaited */
	FLOW_PROXY,   /* proxy port: what it wants is awaited */
	FLOW_DNS,     /* TCP port 53 */
	FLOW_RESOLVE, /* the name's addresses are awaited */
	FLOW_CONNECT, /* the other side is */
	FLOW_UNSEEN,  /* no byte of the client has been judged yet */
	FLOW_OPAQUE,  /* judged; whatever comes passes */
	FLOW_HTTP,    /* each request is judged */
	FLOW_WAIT, /* a request asked for an upgrade: nothing more from the client until the answer has begun
		    */
	FLOW_INTERCEPT, /* TLS that is looked into: intercept.h */
	FLOW_DRAIN,     /* the last request is through; what else comes is dropped */
	FLOW_OVER,
	FLOW_STATES,
};

enum flow_event {
	EVENT_BYTES,      /* from the client, in data */
	EVENT_END,        /* of the client's bytes */
	EVENT_GONE,       /* the client's connection is lost while nothing is read from it */
	EVENT_RESOLVED,   /* answer: of the name; NULL: nobody answered */
	EVENT_DIALLED,    /* something happened to the connection that is being made: epoll's events */
	EVENT_BYTES_BACK, /* from the server, in data */
	EVENT_END_BACK,   /* of the server's bytes */
	EVENT_TIME,       /* the timer */
	EVENT_POLICY,     /* the box has another one */
	FLOW_EVENTS,
};

struct flow;
struct flow_what { /* of an event */
	struct view data;
	const struct names_answer *answer;
	uint32_t events;
};

/* states.c: */
struct flow_step {
	void (*run)(struct flow *f, const struct flow_what *w); /* NULL: does not happen; the flow is ended */
	uint32_t next; /* states in which it may be then, 1 << state */
};
const struct flow_step *states_step(enum flow_state s, enum flow_event e);
void states_event(struct flow *f, enum flow_event e, const struct flow_what *w);

struct flow {
	struct list link; /* box->flows */
	struct conn conn; /* buffers, where to: what interception sees of it */
	struct gate_box *box;
	struct loop_io client, server;
	int client_fd, server_fd; /* the ios have them only while something is awaited */
	struct loop_timer timer;
	struct loop_task freeing;
	uint64_t active_ms;

	enum flow_state state;
	enum flow_state mode; /* FLOW_UNSEEN to FLOW_DRAIN: the state once it is connected */
	enum flow_via via;
	bool doomed; /* denied and said so: its first bytes are awaited, for the kind of answer */
	int doom;    /* the reason */
	bool over;   /* doomed because there are too many: counts in box->n_over */
	bool hold;   /* the server's bytes wait until the client's have been judged */
	bool client_bulk, server_bulk; /* a piece was large */
	bool server_eof, client_shut, server_shut;
	bool throttled; /* waits for the box's allowance */
	bool ech;       /* its ClientHello is encrypted */
	size_t peeked;  /* proxy port: bytes that were seen and left in the socket */

	/* where to, besides conn.name and conn.port */
	struct addr meant; /* direct: the address that the client connected to */
	bool has_meant;
	enum policy_proto proto;
	struct names_waiter waiter;
	struct addr addrs[NAMES_ADDRS];
	size_t n_addrs, next_addr;
	struct addr addr; /* that is dialled */
	const struct policy_rule *rule;
	bool tunnel_asked; /* with an upstream proxy: CONNECT was sent */

	struct peek_memory peek; /* of the first bytes in conn.look */
	size_t head_seen;        /* of a head that is not whole: bytes that were looked at */

	/* FLOW_HTTP */
	struct http1_request request;
	struct http_header *headers;
	struct http1_body body;
	bool in_body, first_done, one_request;
	int last_status; /* what the client is told when the server has answered what was allowed */
	const char *last_words;

	bool greeted;     /* SOCKS */
	bool intercepted; /* counts among the box's */
};

static inline bool flow_is_open(const struct flow *f)
{
	return f->state >= FLOW_UNSEEN && f->state <= FLOW_DRAIN;
}

/* ---- flow.c ---- */
/* Ends it. `reset`: the client sees a reset instead of an end. */
void flow_end(struct flow *f, bool reset);
/* Ends it behind an answer, which the client can read whatever it is still sending. */
void flow_part(struct flow *f);
/* What it is, or will be once it is connected. */
void flow_set_mode(struct flow *f, enum flow_state mode);
/* Its destination is known not to be the proxy port. */
void flow_start_direct(struct flow *f);
/* Refuses: tells the api, answers in the client's protocol where it has one, ends. */
void flow_deny(struct flow *f, int reason); /* the answer alone */
void flow_refuse(struct flow *f, int reason, const struct policy_rule *rule);
/* What a refusal is to a client that speaks HTTP. */
const char *flow_words(int reason, int *ret_status);
void flow_say(struct flow *f, bool allowed, int reason, const struct policy_rule *rule, struct view method,
	      struct view path);
void flow_facts(const struct flow *f, struct policy_facts *ret, const struct addr *a,
		enum policy_proto proto);
void flow_wants(struct flow *f); /* which events are awaited now */
void flow_timer(struct flow *f, uint64_t ms);
/* Judges what is known (with the address `a`); on refusal says so and ends. */
bool flow_judge(struct flow *f, enum policy_proto proto, struct view name, const struct addr *a);

/* ---- steps of the table (states.c), each in the file that its name begins with ---- */
typedef void flow_run(struct flow *f, const struct flow_what *w);
flow_run flow_stay, flow_on_lost, flow_on_idle, flow_on_policy;
flow_run look_on_bytes, look_on_end, look_on_time;
flow_run proxy_on_bytes, web_on_bytes, web_on_answer;
flow_run dial_on_resolved, dial_on_unresolved, dial_on_event;
flow_run relay_on_dns, relay_on_bytes, relay_on_bytes_back;
flow_run inside_on_bytes, inside_on_bytes_back, inside_on_end_back, inside_on_time;

/* ---- look.c ---- */
void look_bytes(struct flow *f);     /* more of the client's are in conn.look */
void look_connected(struct flow *f); /* the other side is */

/* ---- inside.c ---- */
extern const struct conn_ops inside_conn_ops;
void inside_start(struct flow *f); /* instead of going opaque */

/* ---- proxy.c ---- */
void proxy_answer(struct flow *f, bool ok, int reason);
/* An error in plain HTTP, on the client's side. */
void proxy_http_error(struct flow *f, int status, const char *text);

/* ---- web.c ---- */
/* Judges and forwards what is in conn.look; false when the flow has ended. */
bool web_step(struct flow *f);
void web_done(struct flow *f);

/* ---- dial.c ---- */
void dial_name(struct flow *f);                       /* conn.name: resolve, then connect */
void dial_addr(struct flow *f, const struct addr *a); /* connect */

/* ---- relay.c ---- */
void relay_client(struct flow *f); /* reads from the client as far as that goes */
void relay_server(struct flow *f);
bool relay_flush(struct flow *f);   /* false: the flow has ended */
void relay_pass_on(struct flow *f); /* to the api, whose connection it is from now on */
