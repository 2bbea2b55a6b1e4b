/*
 * Tenants and keys, for the core itself: see who.h.
 */
#pragma once

#include "job.h"
#include "list.h"
#include "loop.h"
#include "map.h"
#include "store.h"
#include "who.h"

/* What the room owns. */
struct who {
	struct core *core;
	struct loop_timer revoked;
	void (*on_revoked)(void *arg);
	void *revoked_arg;
	struct map tenants_by_id, tenants_by_name;
	struct map keys_by_id, keys_by_hash;
	struct list keys;
	struct list logins;      /* the one used last is the last */
	uint8_t sign_secret[32]; /* sign.c */
	bool has_sign_secret;
};

/* For the start: what the store has, then the two that must be there. */
int keys_load_tenant(struct core *c, const struct store_tenant *t);
int keys_load_key(struct core *c, const struct store_key *k);
int keys_ensure_admin(struct core *c, const uint8_t hash[32], struct err *e) _must_check_;
/* Those of the configuration. */
int keys_add_given(struct core *c, struct err *e) _must_check_;
const struct tenant *keys_tenant(struct core *c, struct view id);
/* By its id or its name. */
const struct tenant *keys_tenant_by_ref(struct core *c, struct view ref);
/* A new one, whose name is free; `done` when it is stored. NULL: no memory. */
const struct tenant *keys_add_tenant(struct core *c, struct view name, store_done *done, void *arg);
/* The key whose secret has this hash; compared in constant time. */
const struct key *keys_by_hash(struct core *c, const uint8_t hash[32]);
void keys_stop(struct core *c);
void keys_done(struct core *c);
/* NULL: there is none, or it was revoked. */
const struct key *keys_by_id(struct core *c, struct view id);
/* A setting of another name is none of them. */
int logins_load(struct core *c, const struct store_setting *s) _must_check_;
void logins_end_revoked(struct core *c);
void logins_done(struct core *c);
