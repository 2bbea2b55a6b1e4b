/*
 * Places: see http_place.h.
 */
#include "http_place.h"

#include <errno.h>
#include <stdlib.h>

#include "http_conn.h"
#include "http_turn.h"
#include "http_yield.h"
#include "poison.h"

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
	list_init(&p->guests);
	list_init(&p->rank);
	list_init(&p->turn);
	list_init(&p->line);
	list_init(&p->waits);
	list_init(&p->lobby);
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
	list_append(c->seat.guest ? &p->guests : &p->conns, &c->seat.own);
	p->n++;
	p->n_guests += c->seat.guest;
	http_yield_rank(p);
	p->held += c->seat.held;
	s->held += c->seat.held;
	s->n_strangers += stranger;
	s->strangers_held += stranger ? c->seat.held : 0;
}

void http_place_release(struct http_party *p)
{
	if (p->n || p->n_lobby)
		return;
	list_del(&p->link);
	list_del(&p->turn);
	free(p);
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
	p->n_guests -= c->seat.guest;
	p->n--;
	http_yield_rank(p);
	http_place_release(p);
}

/* ---- coming and going ---- */

int http_place_init(struct http_server *s)
{
	list_init(&s->strangers);
	list_init(&s->known);
	for (size_t i = 0; i < ELEMS(s->parties); i++)
		list_init(&s->parties[i]);
	return http_yield_init(s);
}

void http_place_done(struct http_server *s)
{
	http_yield_done(s);
}

int http_place_enter(struct http_conn *c, const struct sockaddr *peer)
{
	struct http_key k = address_key(peer);

	if (c->origin[0]) /* a box's: http_server_adopt looks at their number */
		k = origin_key(c->origin, c->crowded ? OF_CROWD : OF_ORIGIN);
	struct http_party *p = find_or_make(c->server, &k);
	if (!p)
		return -ENOMEM;
	c->seat.guest = !http_yield_place(p);
	c->seat.used_ms = loop_now(c->server->loop);
	sit(c, p);
	return 0;
}

void http_place_leave(struct http_conn *c)
{
	if (!c->seat.party)
		return;
	http_turn_leave(c);
	stand_up(c);
	c->seat.held = 0;
}

void http_place_used(struct http_conn *c)
{
	struct http_server *s = c->server;
	struct http_party *p = c->seat.party;

	if (!p)
		return;
	c->seat.used_ms = loop_now(s->loop);
	list_del(&c->seat.all);
	list_append(http_place_is_stranger(c) ? &s->strangers : &s->known, &c->seat.all);
	list_del(&c->seat.own);
	list_append(c->seat.guest ? &p->guests : &p->conns, &c->seat.own);
}

unsigned http_place_of_origin(struct http_server *s, const char *origin)
{
	const struct http_key k = origin_key(origin, OF_ORIGIN);
	const struct http_party *p = find(s, &k);

	return p ? p->n : 0;
}

struct http_party *http_place_of_address(struct http_server *s, const struct sockaddr *peer)
{
	const struct http_key k = address_key(peer);

	return find(s, &k);
}

void http_place_known(struct http_conn *c, uint64_t party)
{
	const struct http_key k = { .kind = OF_OWNER, .part = { party } };

	if (!c->seat.party || c->origin[0] || memcmp(&c->seat.party->key, &k, sizeof(k)) == 0)
		return;
	struct http_party *p = find_or_make(c->server, &k);
	if (!p)
		return; /* it stays what it was */
	bool waits = http_turn_leave(c);
	stand_up(c);
	c->seat.guest = !http_yield_place(p);
	sit(c, p);
	if (waits)
		http_turn_wait(c);
	/* Closed behind what is going on: it is within a dialect's call. */
	if (p->n > c->server->cfg.limits.party)
		http_conn_doom(http_yield_of(p, c));
}

/* ---- bytes ---- */

struct http_held http_place_held(struct http_server *s, uint64_t owner)
{
	const struct http_key k = { .kind = OF_OWNER, .part = { owner } };
	const struct http_party *p = find(s, &k);

	return (struct http_held){ p ? p->held : 0, s->held };
}

/* Those that hold little go on while others have filled what there is for all. */
static bool is_pressed(const struct http_server *s, const struct http_party *p)
{
	struct http_held h = { p ? p->held : 0, s->held }, beside = { 0 };

	if (s->cfg.beside)
		beside = s->cfg.beside(s->cfg.arg, p && p->key.kind == OF_OWNER ? p->key.part[0] : 0);
	h.party += beside.party;
	h.all += beside.all;
	return h.party > HTTP_PLACE_PARTY - HTTP_PLACE_LEFT ||
	       (h.all > HTTP_PLACE_ALL && h.party > HTTP_PLACE_SHARE);
}

bool http_place_is_pressed(const struct http_conn *c)
{
	return is_pressed(c->server, c->seat.party);
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

static struct http_conn *first_own_holder(const struct list *l)
{
	LIST_EACH (it, l) {
		struct http_conn *c = CONTAINER(it, struct http_conn, seat.own);
		if (c->seat.held)
			return c;
	}
	return NULL;
}

static struct http_conn *first_of_party(const struct http_party *p)
{
	struct http_conn *c = first_own_holder(&p->guests);
	return c ? c : first_own_holder(&p->conns);
}

/* Who goes for the bytes that are held now; NULL: they are not too many. */
static struct http_conn *holds_too_long(struct http_server *s, struct http_party *p)
{
	struct http_conn *c = NULL;

	if (p && p->held > 2 * (size_t)HTTP_PLACE_PARTY)
		return first_of_party(p);
	if (s->strangers_held > HTTP_PLACE_STRANGERS)
		return first_holder(&s->strangers);
	if (s->held > 2 * (size_t)HTTP_PLACE_ALL)
		c = first_holder(&s->strangers);
	if (!c && s->held > 2 * (size_t)HTTP_PLACE_ALL && p && is_pressed(s, p))
		c = first_of_party(p);
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
