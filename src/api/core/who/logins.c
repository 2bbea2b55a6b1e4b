/*
 * Sessions of the dashboard: see who.h. A session is a setting of the store, "login " and the hash of its
 * token: the hash of its host, when it was made and used by the clock of the wall, and its key. While the
 * program runs only its own clock counts; over a restart that of the wall does.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "core_base.h"
#include "keys.h"
#include "loop.h"
#include "num.h"
#include "rnd.h"
#include "sha256.h"
#include "text.h"
#include "who.h"
#include "poison.h"

#define TOKEN_BYTES 32
#define OLDEST_MS   (12ull * 60 * 60 * 1000) /* however busy somebody is */
#define OF_ONE_KEY  16                       /* then the one that was not used for longest makes place */
#define OF_ALL      1024
#define USES        20 /* how often the last use is written within the time that it counts for */
#define PREFIX      "login "
#define NAME_SIZE   (sizeof(PREFIX) + 2 * SHA256_SIZE)
#define ROW_MAX     256

static struct login *of(struct list *it)
{
	return CONTAINER(it, struct login, link);
}

/* ---- the store ---- */

static void name_of(const struct login *l, char ret[NAME_SIZE])
{
	memcpy(ret, PREFIX, sizeof(PREFIX));
	text_hex(l->hash, SHA256_SIZE, ret + strlen(PREFIX));
}

static int64_t wall_of(const struct core *c, uint64_t ms)
{
	return clock_wall_ms() - (int64_t)(loop_now(c->loop) - ms);
}

static void keep(struct core *c, struct login *l)
{
	char name[NAME_SIZE], host[2 * SHA256_SIZE + 1], row[ROW_MAX];

	name_of(l, name);
	text_hex(l->host, SHA256_SIZE, host);
	snprintf(row, sizeof(row), "%s %" PRId64 " %" PRId64 " %s", host, wall_of(c, l->made_ms),
		 wall_of(c, l->used_ms), l->key);
	l->stored_ms = l->used_ms;
	store_setting_put(c->store, &(struct store_setting){ view_of(name), view_of(row) }, core_store_done,
			  c);
}

/* As long ago by the loop's clock as it is by the wall's; nothing is in the future. */
static uint64_t loop_of(const struct core *c, int64_t wall_ms)
{
	int64_t ago = clock_wall_ms() - wall_ms;

	return loop_now(c->loop) - (uint64_t)MAX(ago, 0);
}

int logins_load(struct core *c, const struct store_setting *s)
{
	struct view rest = s->value, host, made, used;
	int64_t made_ms, used_ms;

	if (!view_starts(s->name, PREFIX))
		return 0;
	struct login *l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	host = view_split(rest, ' ', &rest);
	made = view_split(rest, ' ', &rest);
	used = view_split(rest, ' ', &rest);
	if (text_unhex(view_skip(s->name, strlen(PREFIX)), l->hash, SHA256_SIZE) < 0 ||
	    text_unhex(host, l->host, SHA256_SIZE) < 0 || num_i64(made, &made_ms) < 0 ||
	    num_i64(used, &used_ms) < 0 || view_to_str(rest, l->key, sizeof(l->key)) < 0) {
		free(l);
		return 0; /* of a newer version: they sign in again */
	}
	l->made_ms = loop_of(c, made_ms);
	l->used_ms = l->stored_ms = loop_of(c, used_ms);
	list_append(&c->who->logins, &l->link);
	return 0;
}

static void drop(struct core *c, struct login *l)
{
	char name[NAME_SIZE];

	name_of(l, name);
	if (!c->stopping)
		store_setting_delete(c->store, view_of(name), core_store_done, c);
	list_del(&l->link);
	explicit_bzero(l, sizeof(*l));
	free(l);
}

/* ---- who is signed in ---- */

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
			drop(c, l);
			continue;
		}
		all++;
		if (!view_is(view_of(l->key), key))
			continue;
		own++;
		first = first ? first : l;
	}
	if (own >= OF_ONE_KEY)
		drop(c, first);
	else if (all >= OF_ALL)
		drop(c, of(c->who->logins.next));
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
	keep(c, l);
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
			drop(c, l);
		return err_set(e, ERR_UNAUTHORIZED, "the session has ended: sign in again");
	}
	l->used_ms = loop_now(c->loop);
	if (l->used_ms - l->stored_ms > c->config->dashboard.session_seconds * 1000 / USES)
		keep(c, l);
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
		drop(c, l);
}

void logins_end_revoked(struct core *c)
{
	LIST_EACH (it, &c->who->logins)
		if (!keys_by_id(c, view_of(of(it)->key)))
			drop(c, of(it));
}

void logins_done(struct core *c)
{
	LIST_EACH (it, &c->who->logins) {
		struct login *l = of(it);
		list_del(&l->link);
		explicit_bzero(l, sizeof(*l));
		free(l);
	}
}
