/*
 * Sessions of the dashboard: see who.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "core_base.h"
#include "keys.h"
#include "loop.h"
#include "rnd.h"
#include "sha256.h"
#include "text.h"
#include "who.h"
#include "poison.h"

#define TOKEN_BYTES 32
#define OLDEST_MS   (12ull * 60 * 60 * 1000) /* however busy somebody is */
#define OF_ONE_KEY  16                       /* then the one that was not used for longest makes place */
#define OF_ALL      1024

static struct login *of(struct list *it)
{
	return CONTAINER(it, struct login, link);
}

static void drop(struct login *l)
{
	list_del(&l->link);
	explicit_bzero(l, sizeof(*l));
	free(l);
}

static bool has_ended(const struct core *c, const struct login *l)
{
	uint64_t now = loop_now(c->loop);

	return now - l->used_ms > c->config->dashboard.session_seconds * 1000 || now - l->made_ms > OLDEST_MS;
}

static bool is_hash(const uint8_t a[SHA256_SIZE], const uint8_t b[SHA256_SIZE])
{
	return view_eq_secret((struct view){ (const char *)a, SHA256_SIZE },
			      (struct view){ (const char *)b, SHA256_SIZE });
}

/* Makes place for one more: what has ended goes, then whatever is too much. */
static void make_place(struct core *c, const char *key)
{
	unsigned all = 0, own = 0;
	struct login *first = NULL;

	LIST_EACH (it, &c->who->logins) {
		struct login *l = of(it);
		if (has_ended(c, l) || !keys_by_id(c, view_of(l->key))) {
			drop(l);
			continue;
		}
		all++;
		if (!view_is(view_of(l->key), key))
			continue;
		own++;
		first = first ? first : l;
	}
	if (own >= OF_ONE_KEY)
		drop(first);
	else if (all >= OF_ALL)
		drop(of(c->who->logins.next));
}

int logins_new(struct core *c, struct view key, struct view host, char ret[LOGINS_TEXT_SIZE],
	       struct actor *ret_actor, struct err *e)
{
	uint8_t token[TOKEN_BYTES];

	if (auth_actor(c, key, ret_actor, e) < 0)
		return -1;
	make_place(c, ret_actor->key);
	struct login *l = calloc(1, sizeof(*l));
	if (!l)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "a session");
	rnd_bytes(token, sizeof(token));
	sha256_of((struct view){ (const char *)token, sizeof(token) }, l->hash);
	sha256_of(host, l->host);
	memcpy(l->key, ret_actor->key, sizeof(l->key));
	l->made_ms = l->used_ms = loop_now(c->loop);
	list_append(&c->who->logins, &l->link);
	text_hex(token, sizeof(token), ret);
	explicit_bzero(token, sizeof(token));
	return 0;
}

static struct login *find(struct core *c, struct view token, struct view host)
{
	uint8_t bytes[TOKEN_BYTES], hash[SHA256_SIZE], place[SHA256_SIZE];
	struct login *found = NULL;

	if (text_unhex(token, bytes, sizeof(bytes)) < 0)
		return NULL;
	sha256_of((struct view){ (const char *)bytes, sizeof(bytes) }, hash);
	explicit_bzero(bytes, sizeof(bytes));
	sha256_of(host, place);
	LIST_EACH (it, &c->who->logins)
		if (is_hash(of(it)->hash, hash) && is_hash(of(it)->host, place))
			found = of(it);
	return found;
}

int logins_actor(struct core *c, struct view token, struct view host, struct actor *ret, struct err *e)
{
	struct login *l = find(c, token, host);
	const struct key *k = l && !has_ended(c, l) ? keys_by_id(c, view_of(l->key)) : NULL;

	if (!k) {
		if (l)
			drop(l);
		return err_set(e, ERR_UNAUTHORIZED, "the session has ended: sign in again");
	}
	l->used_ms = loop_now(c->loop);
	list_del(&l->link);
	list_append(&c->who->logins, &l->link);
	*ret = (struct actor){ .tenant = k->tenant, .role = k->role };
	memcpy(ret->key, k->id, sizeof(ret->key));
	return 0;
}

void logins_end(struct core *c, struct view token, struct view host)
{
	struct login *l = find(c, token, host);

	if (l)
		drop(l);
}

void logins_done(struct core *c)
{
	LIST_EACH (it, &c->who->logins)
		drop(of(it));
}
