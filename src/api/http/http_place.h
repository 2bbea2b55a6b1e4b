/*
 * Inside src/api/http: who may stay when there are too many connections, and how many bytes all of
 * them may hold.
 *
 * A connection is a stranger until one of its requests has shown a key (http_vouch). Strangers are
 * counted by their address, the others by whose key it was: both are a `party`. Each party, all
 * strangers, and the whole server have a number of connections and a budget of bytes: requests that
 * wait, and answers that the peer does not read.
 *
 * Past a budget no request is begun on a connection that has something unsent, writers are stopped
 * early, and what would hold much is refused (http_is_pressed); far past it, connections are closed.
 * What is held for a party beside its exchanges counts, too (http_config.beside). Whoever has been of use
 * longest ago goes first: use is a request that begins or an answer that leaves, and never a byte of a head
 * or of a body, since those who only drip bytes are whom this is about.
 *
 * A part of each party's places is for guests, who come when all others are taken. A guest is served once and
 * then closed, and its place is the next newcomer's: so newcomers neither close connections that work nor are
 * shut out by them. http_yield.h says who gives way, http_lobby.h who waits, http_turn.h whose
 * turn it is.
 */
#pragma once

#include <sys/socket.h>

#include "http_server.h"

#define HTTP_PLACE_PIPELINED (24u * 1024)   /* unsent bytes of HTTP/1.1, with which no request is begun */
#define HTTP_PLACE_STREAMS   (1024u * 1024) /* the same of HTTP/2 */
#define HTTP_PLACE_TIGHT     (16u * 1024)   /* HTTP_HIGH_WATER of a party that holds too much */
#define HTTP_PLACE_STRANGERS (64u * 1024 * 1024) /* bytes of all strangers */
#define HTTP_PLACE_PARTY     (64u * 1024 * 1024)
#define HTTP_PLACE_ALL       (256u * 1024 * 1024)
#define HTTP_PLACE_LEFT      (1024u * 1024)     /* of a party's, without which nothing long begins */
#define HTTP_PLACE_SHARE     (8u * 1024 * 1024) /* of a party, where all of them hold too much */
#define HTTP_PLACE_TURN_NS   100000 /* after which a connection's next request waits for other connections */

struct http_conn;

struct http_key {
	uint64_t kind; /* 0: of an address */
	uint64_t part[2];
};

struct http_party {
	struct list link; /* of its bucket */
	struct list rank; /* of those with as many connections */
	struct list turn; /* of the parties that wait for a turn: see http_turn.h */
	struct list line; /* of connections: those that wait for a turn */
	struct http_server *server;
	struct http_key key;
	struct list conns, guests; /* the least useful first */
	unsigned n, n_guests;      /* all of them, and the guests among them */
	struct list waits, lobby;  /* of the server's parties with a lobby, and its own: see http_lobby.h */
	unsigned n_lobby;
	size_t held;
};

/* A connection's part of it. */
struct http_seat {
	struct list all, own; /* of the server and of the party, the least useful first */
	struct http_party *party;
	size_t held;
	uint64_t used_ms; /* when it was of use last, or came */
	bool guest;       /* closed behind its first answer */
};

int http_place_init(struct http_server *s) _must_check_;
void http_place_done(struct http_server *s);
/* A new one. Without memory for its party: -ENOMEM. */
int http_place_enter(struct http_conn *c, const struct sockaddr *peer) _must_check_;
void http_place_leave(struct http_conn *c);
void http_place_used(struct http_conn *c);
/* It has shown a key of this party. */
void http_place_known(struct http_conn *c, uint64_t party);
/* So many bytes are its own now. May close connections, this one too. */
void http_place_hold(struct http_conn *c, size_t bytes);
/* Whether another request may begin behind so many unsent bytes. */
bool http_place_may_begin(const struct http_conn *c, size_t unsent, size_t most);
bool http_place_is_pressed(const struct http_conn *c);
struct http_held http_place_held(struct http_server *s, uint64_t owner);
/* Queued bytes of an answer at which its writer is stopped. */
size_t http_place_high_water(const struct http_conn *c);
/* The connections of an origin that are served. */
unsigned http_place_of_origin(struct http_server *s, const char *origin);
/* Frees a party that nobody is of any more. */
void http_place_release(struct http_party *p);
/* Who comes from there; NULL where nobody does. */
struct http_party *http_place_of_address(struct http_server *s, const struct sockaddr *peer);
