/*
 * Places: see http_place.h.
 */
#include "http_place.h"

#include <errno.h>
#include <stdlib.h>

#include "http_conn.h"
#include "poison.h"

struct http_key {
	uint64_t kind; /* 0: of an address */
	uint64_t part[2];
};

struct http_party {
	struct list link; /* of its bucket */
	struct http_server *server;
	struct http_key key;
	struct list conns;
	unsigned n;
	size_t held;
};

enum { OF_ADDRESS, OF_OWNER, OF_ORIGIN, OF_CROWD };

/* ---- parties ---- */

/* The clients of one network of IPv6 are one: each has as many addresses as it likes. */
static struct http_key address_key(const struct sockaddr *peer)
{
	struct http_key k = { .kind = OF_ADDRESS };

	if (peer->sa_family == AF_INET)
		k.part[1] = ((const struct sockaddr_in *)(const void *)peer)->sin_addr.s_addr;
	else if (peer->sa_family == AF_INET6)
		memcpy(k.part, &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr, 8);
	return k;
}

static struct http_key origin_key(const char *origin, uint64_t kind)
{
	struct http_key k = { .kind = kind };

	memcpy(k.part, origin, MIN(sizeof(k.part), strlen(origin)));
	return k;
}

static struct list *bucket(struct http_server *s, const struct http_key *k)
{
	uint64_t h = (k->kind + k->part[0] * 31 + k->part[1]) * UINT64_C(0x9e3779b97f4a7c15);
	return &s->parties[h >> 56];
}

static struct http_party *find(struct http_server *s, const struct http_key *k)
{
	LIST_EACH (it, bucket(s, k)) {
		struct http_party *p = CONTAINER(it, struct http_party, link);
		if (memcmp(&p->key, k, sizeof(*k)) == 0)
			return p;
	}
	return NULL;
}

static struct http_party *find_or_make(struct http_server *s, const struct http_key *k)
{
	struct http_party *p = find(s, k);
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->server = s;
	p->key = *k;
	list_init(&p->conns);
	list_append(bucket(s, k), &p->link);
	return p;
}

static bool http_place_is_stranger(const struct http_conn *c)
{
	return !c->seat.party || c->seat.party->key.kind == OF_ADDRESS;
}

static void sit(struct http_conn *c, struct http_party *p)
{
	struct http_server *s = c->server;
	bool stranger = p->key.kind == OF_ADDRESS;

	c->seat.party = p;
	list_append(stranger ? &s->strangers : &s->known, &c->seat.all);
	list_append(&p->conns, &c->seat.own);
	p->n++;
	p->held += c->seat.held;
	s->held += c->seat.held;
	s->n_strangers += stranger;
	s->strangers_held += stranger ? c->seat.held : 0;
}

static void stand_up(struct http_conn *c)
{
	struct http_server *s = c->server;
	struct http_party *p = c->seat.party;
	bool stranger = http_place_is_stranger(c);

	list_del(&c->seat.all);
	list_del(&c->seat.own);
	c->seat.party = NULL;
	p->held -= c->seat.held;
	s->held -= c->seat.held;
	s->n_strangers -= stranger;
	s->strangers_held -= stranger ? c->seat.held : 0;
	if (--p->n == 0) {
		list_del(&p->link);
		free(p);
	}
}

/* ---- coming and going ---- */

void http_place_init(struct http_server *s)
{
	list_init(&s->strangers);
	list_init(&s->known);
	for (size_t i = 0; i < ELEMS(s->parties); i++)
		list_init(&s->parties[i]);
}

int http_place_enter(struct http_conn *c, const struct sockaddr *peer)
{
	struct http_key k = address_key(peer);

	if (c->origin[0]) /* a box's: http_server_adopt looks at their number */
		k = origin_key(c->origin, c->crowded ? OF_CROWD : OF_ORIGIN);
	struct http_party *p = find_or_make(c->server, &k);
	if (!p)
		return -ENOMEM;
	sit(c, p);
	return 0;
}

void http_place_leave(struct http_conn *c)
{
	if (!c->seat.party)
		return;
	stand_up(c);
	c->seat.held = 0;
}

void http_place_used(struct http_conn *c)
{
	struct http_server *s = c->server;

	if (!c->seat.party)
		return;
	list_del(&c->seat.all);
	list_del(&c->seat.own);
	list_append(http_place_is_stranger(c) ? &s->strangers : &s->known, &c->seat.all);
	list_append(&c->seat.party->conns, &c->seat.own);
}

/* ---- who leaves ---- */

/* The first of a list that is not doing anything. */
static struct http_conn *first_idle(const struct list *l)
{
	LIST_EACH (it, l) {
		struct http_conn *c = CONTAINER(it, struct http_conn, seat.all);
		if (http_conn_is_idle(c))
			return c;
	}
	return NULL;
}

static struct http_conn *first_own(struct http_party *p, const struct http_conn *but, bool holds)
{
	LIST_EACH (it, &p->conns) {
		struct http_conn *c = CONTAINER(it, struct http_conn, seat.own);
		if (c != but && (!holds || c->seat.held))
			return c;
	}
	return NULL;
}

static struct http_conn *first_stranger(const struct http_server *s)
{
	return list_empty(&s->strangers) ? NULL : CONTAINER(s->strangers.next, struct http_conn, seat.all);
}

bool http_place_can_make(const struct http_server *s)
{
	return first_stranger(s) || first_idle(&s->known);
}

/* The strangers have not even their share: those with a key who do nothing make place first. */
void http_place_make_any(struct http_server *s)
{
	struct http_conn *leaves = first_idle(&s->known);

	if (!leaves)
		leaves = first_stranger(s);
	if (leaves)
		http_conn_close(leaves);
}

unsigned http_place_of_origin(struct http_server *s, const char *origin)
{
	const struct http_key k = origin_key(origin, OF_ORIGIN);
	const struct http_party *p = find(s, &k);

	return p ? p->n : 0;
}

void http_place_make(struct http_server *s, const struct sockaddr *peer)
{
	const struct http_limits *l = &s->cfg.limits;
	const struct http_key k = address_key(peer);
	struct http_party *p = find(s, &k);
	struct http_conn *leaves = NULL;

	if (p && p->n >= l->party)
		leaves = first_own(p, NULL, false);
	else if (s->n_strangers >= l->strangers)
		leaves = first_stranger(s);
	else if (s->stats.connections_open < l->connections)
		return;
	if (leaves)
		http_conn_close(leaves);
	else
		http_place_make_any(s);
}

void http_place_known(struct http_conn *c, uint64_t party)
{
	const struct http_key k = { .kind = OF_OWNER, .part = { party } };

	if (!c->seat.party || c->origin[0] || memcmp(&c->seat.party->key, &k, sizeof(k)) == 0)
		return;
	struct http_party *p = find_or_make(c->server, &k);
	if (!p)
		return; /* it stays what it was */
	stand_up(c);
	sit(c, p);
	/* Closed behind what is going on: it is within a dialect's call. */
	if (p->n > c->server->cfg.limits.party)
		http_conn_doom(first_own(p, c, false));
}

/* ---- bytes ---- */

bool http_place_is_pressed(const struct http_conn *c)
{
	const struct http_party *p = c->seat.party;
	return (p && p->held > HTTP_PLACE_PARTY) || c->server->held > HTTP_PLACE_ALL;
}

bool http_place_may_begin(const struct http_conn *c, size_t unsent, size_t most)
{
	return unsent == 0 || (unsent < most && !http_place_is_pressed(c));
}

size_t http_place_high_water(const struct http_conn *c)
{
	return http_place_is_pressed(c) ? HTTP_PLACE_TIGHT : HTTP_HIGH_WATER;
}

static struct http_conn *first_holder(const struct list *l)
{
	LIST_EACH (it, l) {
		struct http_conn *c = CONTAINER(it, struct http_conn, seat.all);
		if (c->seat.held)
			return c;
	}
	return NULL;
}

/* Who goes for the bytes that are held now; NULL: they are not too many. */
static struct http_conn *holds_too_long(struct http_server *s, struct http_party *p)
{
	struct http_conn *c = NULL;

	if (p && p->held > 2 * (size_t)HTTP_PLACE_PARTY)
		return first_own(p, NULL, true);
	if (s->strangers_held > HTTP_PLACE_STRANGERS)
		return first_holder(&s->strangers);
	if (s->held > 2 * (size_t)HTTP_PLACE_ALL)
		c = first_holder(&s->strangers);
	return c;
}

void http_place_hold(struct http_conn *c, size_t bytes)
{
	struct http_server *s = c->server;
	struct http_party *p = c->seat.party;
	struct http_conn *goes;

	if (!p || bytes == c->seat.held)
		return;
	bool more = bytes > c->seat.held;
	p->held += bytes - c->seat.held;
	s->held += bytes - c->seat.held;
	s->strangers_held += http_place_is_stranger(c) ? bytes - c->seat.held : 0;
	c->seat.held = bytes;
	while (more && (goes = holds_too_long(s, c->seat.party)))
		http_conn_reset(goes);
}
