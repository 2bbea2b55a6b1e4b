/*
 * Ports of boxes: listening sockets, byte streams to them, and links between boxes.
 */
#pragma once

#include "job.h"
#include "mux.h"
#include "who.h"

struct actor;
struct box;
struct core;
struct port_stream;

/*
 * ---- ports.c ----
 * Ports of boxes: what listens, and byte streams to it, by the box's PID 1. The
 * caller embeds a struct port_stream (zeroed, `ops` set) and keeps it until `done`
 * or ports_close.
 */

struct port_ops {
	void (*on_open)(struct port_stream *s);
	/* Every byte is to be given back by ports_consumed. */
	void (*on_data)(struct port_stream *s, struct view data);
	void (*on_eof)(struct port_stream *s);  /* the box sends no more */
	void (*on_room)(struct port_stream *s); /* after ports_send took less than it was given */
	/* Both ends have ended it (e NULL), or it broke. ERR_NOT_FOUND: nothing listens. */
	void (*done)(struct port_stream *s, const struct err *e);
};

struct port_stream {
	struct call call;
	const struct port_ops *ops;
	bool open, eof, want_end;
};

/* A use of the box: resumes it where it may be. */
int ports_open(struct core *c, const struct actor *a, struct view id_or_name, uint16_t port,
	       struct port_stream *s, struct err *e) _must_check_;
size_t ports_send(struct port_stream *s, struct view data);
void ports_end(struct port_stream *s); /* sends no more, reads on */
void ports_consumed(struct port_stream *s, size_t n);
void ports_close(struct port_stream *s);

struct port_listener {
	uint16_t port;
	struct view address, process; /* process: its name; the box's words */
	uint32_t pid;
};

struct port_query {
	struct call call;
	/* The list is gone when this returns; NULL with an error. */
	void (*done)(struct port_query *q, const struct port_listener *list, size_t n, const struct err *e);
};
int ports_list(struct core *c, const struct actor *a, struct view id_or_name, struct port_query *q,
	       struct err *e) _must_check_;
void ports_cancel(struct port_query *q);

/* A box that a client may know of, by its id; or NULL. */
struct box *ports_box(struct core *c, struct view id);

/* "EXPIRES-SIGNATURE": opens one port of one box until then, without a key. */
#define PORTS_TICKET_SIZE (24 + SIGN_SIZE)
int ports_ticket(struct core *c, const struct actor *a, struct view id_or_name, uint16_t port,
		 uint32_t seconds, char ret[PORTS_TICKET_SIZE], const struct box **ret_box,
		 int64_t *ret_expires_s, struct err *e) _must_check_;
bool ports_ticket_fits(const struct core *c, const struct box *b, uint16_t port,
		       struct view ticket) _must_check_;
/* The same for one that may have ended. */
bool ports_ticket_genuine(const struct core *c, const struct box *b, uint16_t port,
			  struct view ticket) _must_check_;

/*
 * ---- bridges.c ----
 * Links between boxes: a port on the loopback of one box that leads to a port of
 * another of the same tenant. The first box's PID 1 listens, the api carries each
 * connection to the second's. A link is part of the first box's spec, so it comes
 * back with the box, and goes with either of the two.
 */

struct bridge_wish {
	struct view from, to; /* ids or names */
	uint16_t port;        /* of `to` */
	uint16_t listen;      /* on the loopback of `from`; 0: the same */
};

/* What is; gone when the callback returns. */
struct bridge_view {
	const char *id, *from, *to;
	uint16_t port, listen;
	bool up; /* somebody listens */
};

/* The result is a const struct bridge_view *. ERR_CONFLICT: the port is taken. */
struct job *bridges_create(struct core *c, const struct actor *a, const struct bridge_wish *w, job_done *done,
			   void *arg, struct err *e) _must_check_;
/* No result. */
struct job *bridges_remove(struct core *c, const struct actor *a, struct view id, job_done *done, void *arg,
			   struct err *e) _must_check_;
void bridges_each(struct core *c, const struct actor *a, void (*each)(void *arg, const struct bridge_view *v),
		  void *arg);
