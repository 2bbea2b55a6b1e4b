/*
 * Tenants and keys: see keys.h.
 */
#include "keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "core_base.h"
#include "log.h"
#include "rnd.h"
#include "sha256.h"
#include "spec.h"
#include "text.h"
#include "who.h"
#include "poison.h"

#define SECRET_BYTES 20
/* The map's key is a part of the hash only, so that the whole of it is compared in constant time. */
#define HASH_PREFIX 8
#define KEYS_MAX    10000

const char *keys_role_name(enum store_role role)
{
	return role == STORE_ROLE_ADMIN ? "admin" : role == STORE_ROLE_USER ? "user" : "none";
}

static enum store_role role_of(struct view name)
{
	if (name.n == 0 || view_is(name, "user"))
		return STORE_ROLE_USER;
	return view_is(name, "admin") ? STORE_ROLE_ADMIN : STORE_ROLE_NONE;
}

static struct view hash_prefix(const uint8_t hash[32])
{
	return (struct view){ (const char *)hash, HASH_PREFIX };
}

const struct key *keys_by_hash(struct core *c, const uint8_t hash[32])
{
	struct map_node *n = map_get(&c->who->keys_by_hash, hash_prefix(hash));
	const struct key *k = n ? CONTAINER(n, struct key, by_hash) : NULL;

	if (!k || !view_eq_secret((struct view){ (const char *)k->hash, 32 },
				  (struct view){ (const char *)hash, 32 }))
		return NULL;
	return k;
}

const struct key *keys_by_id(struct core *c, struct view id)
{
	struct map_node *n = map_get(&c->who->keys_by_id, id);
	return n ? CONTAINER(n, struct key, by_id) : NULL;
}

const struct tenant *keys_tenant(struct core *c, struct view id)
{
	struct map_node *n = map_get(&c->who->tenants_by_id, id);
	return n ? CONTAINER(n, struct tenant, by_id) : NULL;
}

const struct tenant *keys_tenant_by_ref(struct core *c, struct view ref)
{
	const struct tenant *t = keys_tenant(c, ref);
	struct map_node *n = t ? NULL : map_get(&c->who->tenants_by_name, ref);
	return n ? CONTAINER(n, struct tenant, by_name) : t;
}

const struct tenant *keys_find_tenant(struct core *c, const struct actor *a, struct view ref, struct err *e)
{
	if (auth_permit(a, ACT_TENANTS, NULL, e) < 0)
		return NULL;
	const struct tenant *t = keys_tenant_by_ref(c, ref);
	if (!t)
		err_set(e, ERR_NOT_FOUND, "no such tenant");
	return t;
}

/* ---- into and out of memory ---- */

int keys_load_tenant(struct core *c, const struct store_tenant *t)
{
	struct tenant *n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	int r = view_to_str(t->id, n->id, sizeof(n->id));
	if (r >= 0)
		r = view_to_str(t->name, n->name, sizeof(n->name));
	n->created_ms = t->created_ms;
	n->events_from = t->events_from;
	if (r >= 0)
		r = map_put(&c->who->tenants_by_id, &n->by_id, view_of(n->id));
	if (r >= 0) {
		r = map_put(&c->who->tenants_by_name, &n->by_name, view_of(n->name));
		if (r < 0)
			map_del(&c->who->tenants_by_id, &n->by_id);
	}
	if (r < 0)
		free(n);
	return r;
}

int keys_load_key(struct core *c, const struct store_key *k)
{
	struct key *n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	int r = view_to_str(k->id, n->id, sizeof(n->id));
	if (r >= 0)
		r = view_to_str(k->name, n->name, sizeof(n->name));
	n->tenant = keys_tenant(c, k->tenant);
	n->role = k->role;
	n->created_ms = k->created_ms;
	memcpy(n->hash, k->hash, sizeof(n->hash));
	if (r >= 0 && !n->tenant)
		r = -ENOENT;
	if (r >= 0)
		r = map_put(&c->who->keys_by_id, &n->by_id, view_of(n->id));
	if (r >= 0) {
		r = map_put(&c->who->keys_by_hash, &n->by_hash, hash_prefix(n->hash));
		if (r < 0)
			map_del(&c->who->keys_by_id, &n->by_id);
	}
	if (r < 0) {
		free(n);
		return r;
	}
	list_append(&c->who->keys, &n->order);
	return 0;
}

static void key_free(struct core *c, struct key *k)
{
	map_del(&c->who->keys_by_id, &k->by_id);
	map_del(&c->who->keys_by_hash, &k->by_hash);
	list_del(&k->order);
	free(k);
}

void keys_done(struct core *c)
{
	LIST_EACH (it, &c->who->keys)
		key_free(c, CONTAINER(it, struct key, order));
	for (struct map_node *n; (n = map_first(&c->who->tenants_by_id));) {
		struct tenant *t = CONTAINER(n, struct tenant, by_id);
		map_del(&c->who->tenants_by_id, n);
		free(t);
	}
	map_done(&c->who->keys_by_id);
	map_done(&c->who->keys_by_hash);
	map_done(&c->who->tenants_by_id);
	map_done(&c->who->tenants_by_name);
}

static struct key *find_key(struct core *c, struct view id)
{
	struct map_node *n = map_get(&c->who->keys_by_id, id);
	return n ? CONTAINER(n, struct key, by_id) : NULL;
}

/* The tenant of this name, made (in memory and in the store) where there is none. */
static const struct tenant *ensure_tenant(struct core *c, const char *id, struct view name)
{
	struct map_node *n = map_get(&c->who->tenants_by_name, name);
	if (n)
		return CONTAINER(n, struct tenant, by_name);
	struct store_tenant row = { .id = view_of(id), .name = name, .created_ms = clock_wall_ms() };
	if (keys_load_tenant(c, &row) < 0)
		return NULL;
	store_tenant_put(c->store, &row, core_store_done, c);
	return keys_tenant(c, row.id);
}

const struct tenant *keys_add_tenant(struct core *c, struct view name, store_done *done, void *arg)
{
	char id[KEYS_ID_SIZE] = "t_";

	rnd_name(id + 2, 16);
	struct store_tenant row = { .id = view_of(id), .name = name, .created_ms = clock_wall_ms() };
	if (keys_load_tenant(c, &row) < 0)
		return NULL;
	store_tenant_put(c->store, &row, done, arg);
	return keys_tenant(c, row.id);
}

int keys_ensure_admin(struct core *c, const uint8_t hash[32], struct err *e)
{
	struct view id = VIEW(KEYS_ADMIN);
	const struct tenant *t = ensure_tenant(c, "default", VIEW("default"));
	struct key *old = find_key(c, id);

	if (!t)
		return err_set(e, ERR_INTERNAL, "cannot make the tenant \"default\"");
	if (!hash || (old && memcmp(old->hash, hash, 32) == 0))
		return 0;
	if (old) {
		key_free(c, old);
		store_key_delete(c->store, id, core_store_done, c);
	}
	struct store_key row = { .id = id,
				 .tenant = view_of(t->id),
				 .name = VIEW("admin.key"),
				 .role = STORE_ROLE_ADMIN,
				 .created_ms = clock_wall_ms() };
	memcpy(row.hash, hash, sizeof(row.hash));
	int r = keys_load_key(c, &row);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "cannot keep the admin key");
	store_key_put(c->store, &row, core_store_done, c);
	return 0;
}

/* They are the configuration's: in no store, so that one that is taken out of it is gone. */
int keys_add_given(struct core *c, struct err *e)
{
	const struct tenant *t = ensure_tenant(c, "default", VIEW("default"));

	for (size_t i = 0; i < c->config->n_keys; i++) {
		const struct config_key *given = &c->config->keys_given[i];
		char id[KEYS_ID_SIZE];
		struct store_key row = { .name = VIEW("configuration"),
					 .role = view_is(given->role, "admin") ? STORE_ROLE_ADMIN
									       : STORE_ROLE_USER,
					 .created_ms = clock_wall_ms() };

		snprintf(id, sizeof(id), KEYS_GIVEN "%zu", i);
		row.id = view_of(id);
		row.tenant = t ? view_of(t->id) : VIEW("");
		if (!t || text_unhex(given->sha256, row.hash, sizeof(row.hash)) < 0 ||
		    keys_load_key(c, &row) < 0)
			return err_set(e, ERR_INTERNAL, "cannot keep a key of the configuration");
	}
	return 0;
}

/* ---- operations ---- */

struct key_job {
	struct job job;
	struct core *core;
	char id[KEYS_ID_SIZE];
	char text[KEYS_TEXT_SIZE];
};

static struct key_job *new_job(struct core *c, const char *id, job_done *done, void *arg, struct err *e)
{
	struct key_job *j = calloc(1, sizeof(*j));
	if (!j) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "key");
		return NULL;
	}
	j->job = (struct job){ .done = done, .arg = arg };
	j->core = c;
	memcpy(j->id, id, strnlen(id, sizeof(j->id) - 1));
	return j;
}

static void on_created(void *arg, const struct err *e)
{
	struct key_job *j = arg;
	struct key *k = find_key(j->core, view_of(j->id));

	core_store_result(j->core, e);
	if (e && k) { /* not on disk: it must not work either */
		key_free(j->core, k);
		k = NULL;
	}
	struct key_made made = { .key = k, .text = j->text };
	struct err gone = { 0 };
	if (!e && !k) { /* removed by another admin meanwhile */
		err_set(&gone, ERR_GONE, "the key was removed at once");
		e = &gone;
	}
	job_finish(&j->job, &made, e);
	explicit_bzero(j->text, sizeof(j->text));
	free(j);
}

static bool valid_name(struct view v)
{
	if (v.n > KEYS_NAME_MAX)
		return false;
	for (size_t i = 0; i < v.n; i++)
		if ((unsigned char)v.p[i] < ' ' || v.p[i] == 0x7f)
			return false;
	return true;
}

static int check_wish(struct core *c, const struct key_wish *w, struct err *e)
{
	if (!valid_name(w->name))
		return err_set(e, ERR_INVALID,
			       "name must have at most %d characters and no control characters",
			       KEYS_NAME_MAX);
	if (w->tenant.n && !spec_is_name(w->tenant))
		return err_set(e, ERR_INVALID,
			       "tenant must be 1 to %d of [A-Za-z0-9._-] and begin with a letter or digit",
			       SPEC_NAME_MAX);
	if (!w->create_tenant && w->tenant.n && !map_get(&c->who->tenants_by_name, w->tenant))
		return err_set(e, ERR_NOT_FOUND, "tenant: there is no tenant %s (create_tenant makes it)",
			       log_quoted(view_head(w->tenant, SPEC_NAME_MAX)));
	if (role_of(w->role) == STORE_ROLE_NONE)
		return err_set(e, ERR_INVALID, "role must be \"admin\" or \"user\"");
	if (c->who->keys_by_id.n >= KEYS_MAX)
		return err_set(e, ERR_QUOTA, "there are %d keys already", KEYS_MAX);
	return 0;
}

struct job *keys_create(struct core *c, const struct actor *a, const struct key_wish *w, job_done *done,
			void *arg, struct err *e)
{
	uint8_t secret[SECRET_BYTES];
	char tenant_id[KEYS_ID_SIZE] = "t_", id[KEYS_ID_SIZE] = "k_";

	if (auth_permit(a, ACT_KEYS, NULL, e) < 0 || check_wish(c, w, e) < 0)
		return NULL;
	rnd_name(tenant_id + 2, 16);
	rnd_name(id + 2, 16);
	const struct tenant *t = w->tenant.n ? ensure_tenant(c, tenant_id, w->tenant) : a->tenant;
	if (!t) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "tenant");
		return NULL;
	}
	struct key_job *j = new_job(c, id, done, arg, e);
	if (!j)
		return NULL;
	rnd_bytes(secret, sizeof(secret));
	memcpy(j->text, "pdk_", 4);
	text_hex(secret, sizeof(secret), j->text + 4);
	struct store_key row = { .id = view_of(j->id),
				 .tenant = view_of(t->id),
				 .name = w->name,
				 .role = role_of(w->role),
				 .created_ms = clock_wall_ms() };
	sha256_of((struct view){ (const char *)secret, sizeof(secret) }, row.hash);
	explicit_bzero(secret, sizeof(secret));
	int r = keys_load_key(c, &row);
	if (r < 0) {
		free(j);
		err_sys(e, ERR_INTERNAL, r, "key");
		return NULL;
	}
	log_info("key %s made for tenant %s, role %s, by %s", j->id, log_quoted(view_of(t->name)),
		 keys_role_name(row.role), a->key);
	store_key_put(c->store, &row, on_created, j);
	return &j->job;
}

static void on_removed(void *arg, const struct err *e)
{
	struct key_job *j = arg;
	core_store_result(j->core, e);
	job_finish(&j->job, NULL, e);
	free(j);
}

void keys_on_revoked(struct core *c, void (*on_revoked)(void *arg), void *arg)
{
	c->who->on_revoked = on_revoked;
	c->who->revoked_arg = arg;
}

/* Not at once: the request that removes its own key is still to be answered. */
static void on_revoked(struct loop_timer *t)
{
	struct who *who = CONTAINER(t, struct who, revoked);

	logins_end_revoked(who->core);
	if (who->on_revoked)
		who->on_revoked(who->revoked_arg);
}

void keys_stop(struct core *c)
{
	loop_timer_stop(&c->who->revoked);
}

struct job *keys_remove(struct core *c, const struct actor *a, struct view id, job_done *done, void *arg,
			struct err *e)
{
	if (auth_permit(a, ACT_KEYS, NULL, e) < 0)
		return NULL;
	struct key *k = find_key(c, id);
	if (!k) {
		err_set(e, ERR_NOT_FOUND, "no such key");
		return NULL;
	}
	if (view_is(id, KEYS_ADMIN)) {
		err_set(e, ERR_STATE,
			"the key of admin.key cannot be removed; delete the file and restart to replace it");
		return NULL;
	}
	if (view_starts(id, KEYS_GIVEN)) {
		err_set(e, ERR_STATE,
			"the key is the configuration's; take it out there (`keys`) and restart");
		return NULL;
	}
	struct key_job *j = new_job(c, k->id, done, arg, e);
	if (!j)
		return NULL;
	log_info("key %s removed by %s", k->id, a->key);
	/* Out of memory first: from this moment it opens nothing. */
	key_free(c, k);
	if (!loop_timer_active(&c->who->revoked))
		loop_timer_start(c->loop, &c->who->revoked, KEYS_REVOKED_MS, on_revoked);
	store_key_delete(c->store, view_of(j->id), on_removed, j);
	return &j->job;
}

int keys_each(struct core *c, const struct actor *a, void (*each)(void *arg, const struct key *k), void *arg,
	      struct err *e)
{
	if (auth_permit(a, ACT_KEYS, NULL, e) < 0)
		return -1;
	LIST_EACH (it, &c->who->keys)
		each(arg, CONTAINER(it, struct key, order));
	return 0;
}
