/*
 * Inside src/api/http: the server's state, and what all its connections share:
 * the rooms in which HTTP/1.1 requests are read, the date of the second, request
 * ids, the buffer that HTTP/2 reads through.
 */
#pragma once

#include "http1.h"
#include "http_impl.h"

/*
 * Where one HTTP/1.1 connection reads a request and queues its answer. An idle
 * connection has none: it borrows one for the time of an exchange, so idle
 * connections are small and the memory in use is warm.
 */
struct http_room {
	struct http_room *next;
	struct arena arena;
	struct buf out;
	struct http_header *headers; /* limits.headers of them */
	size_t cap;                  /* limits.head_bytes and a window for the body */
	char in[];
};

struct http_server {
	struct loop *loop;
	struct http_config cfg;
	struct http_stats stats;
	struct list listeners, conns;
	unsigned n_listeners;    /* that there have been */
	struct loop_timer retry; /* accepting again after a pause */
	bool crowding;           /* a newcomer of this batch was refused */
	struct http_room *rooms; /* spare ones */
	size_t n_rooms;
	struct list strangers, known; /* connections, the least useful first: see http_place.h */
	struct list parties[256];
	struct list *ranks[2]; /* parties of strangers and of others, by their number of connections */
	unsigned most[2];      /* the highest of them */
	struct list lobbies;   /* parties: see http_lobby.h */
	unsigned n_lobby;
	struct loop_timer lobby;
	struct list turns; /* parties: see http_turn.h */
	struct loop_task turn_task;
	bool in_turns;
	unsigned n_strangers;
	unsigned n_adopted, n_crowded; /* connections of boxes that are served, and that are told no */
	size_t held, strangers_held;   /* bytes */
	char *scratch;                 /* HTTP_SCRATCH bytes, made with the first HTTP/2 connection */

	uint64_t date_s; /* the monotonic second for which `date` holds */
	char date[HTTP1_DATE_SIZE];
	char id_prefix[9];
	uint64_t id_next;
};

#define HTTP_SCRATCH (64u * 1024)

struct http_room *http_server_take_room(struct http_server *s);
void http_server_clean_room(struct http_room *r); /* between two exchanges */
void http_server_give_room(struct http_server *s, struct http_room *r);
struct view http_server_date(struct http_server *s);
/* Closes a newcomer's connection, and without TLS says why. */
void http_server_refuse(struct http_server *s, int fd);
/* Accepts from the listeners that had an event. */
void http_server_accept(struct http_server *s);
/* The client's own id where it is sane, else a new one. */
void http_server_request_id(struct http_server *s, struct view wish, char dst[HTTP_REQUEST_ID]);
