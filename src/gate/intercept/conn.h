/*
 * A connection of a box, as the interception sees it: its buffers, its destination, and the operations
 * it offers. Its owner (src/gate/flow) embeds one and implements them.
 */
#pragma once

#include "buf.h"
#include "policy.h"

#define CONN_CONNECT_MS 10000  /* for one address, and for a handshake with a server */
#define CONN_IDLE_MS    900000 /* without a byte */

struct conn;
struct intercept;

struct conn_ops {
	void (*end)(struct conn *c, bool reset);
	/* Says so, tells the client if it has a protocol for that, ends. */
	void (*refuse)(struct conn *c, int reason);
	void (*wants)(struct conn *c); /* what is awaited has changed */
	void (*timer)(struct conn *c, uint64_t ms);
	bool (*flush)(struct conn *c); /* false: it has ended */
	/* Whether the rules let a request go, by which; it is said to the api. */
	bool (*judge)(struct conn *c, struct view method, struct view path, const struct policy_rule **ret);
	void (*deny)(struct conn *c, int reason, struct view method, struct view path); /* is only said */
	/* Room for a body that is kept until it is whole; false: there is none. And back. */
	bool (*collect)(struct conn *c, size_t n);
	void (*collected)(struct conn *c, size_t n);
};

struct conn {
	const struct conn_ops *ops;
	const char *box;                 /* its id */
	char name[256];                  /* of the host, in lower case; "" for an address */
	uint16_t port;                   /* of the host */
	bool over;                       /* it has ended: nothing may be asked of it */
	bool client_eof;                 /* the client has sent its last byte */
	bool opened;                     /* its ClientHello is encrypted, and it is intercepted for that */
	uint64_t taken;                  /* bytes, by the client, of what was kept for it */
	size_t collected;                /* bytes of bodies that are kept */
	struct buf to_server, to_client; /* read from one side, not yet taken by the other */
	struct buf look;                 /* client's bytes that are not judged yet */
	struct intercept *intercept;     /* NULL: nobody looks into it */
};

static inline void conn_end(struct conn *c, bool reset)
{
	c->ops->end(c, reset);
}

static inline void conn_wants(struct conn *c)
{
	if (!c->over)
		c->ops->wants(c);
}

static inline void conn_timer(struct conn *c, uint64_t ms)
{
	c->ops->timer(c, ms);
}

static inline void conn_deny(struct conn *c, int reason, struct view method, struct view path)
{
	c->ops->deny(c, reason, method, path);
}

static inline bool conn_collect(struct conn *c, size_t n)
{
	return c->ops->collect(c, n);
}

static inline void conn_collected(struct conn *c, size_t n)
{
	if (!c->over) /* its end has given back all of it */
		c->ops->collected(c, n);
}
