/*
 * Tenants and keys. A key is "pdk_" (or "e2b_") and 40 hex digits, shown once;
 * kept is the SHA-256 of the 20 bytes. All of them are in memory.
 */
#pragma once

#include "job.h"
#include "list.h"
#include "map.h"
#include "store.h"

struct core;

#define KEYS_TEXT_SIZE 45 /* "pdk_", 40 digits, NUL */
#define KEYS_NAME_MAX  64
#define KEYS_ID_SIZE   40
#define KEYS_ADMIN     "k_admin" /* the key in DIR/admin.key */

struct tenant {
	char id[KEYS_ID_SIZE], name[KEYS_NAME_MAX + 1];
	int64_t created_ms;
	struct map_node by_id, by_name;
};

struct key {
	char id[KEYS_ID_SIZE], name[KEYS_NAME_MAX + 1];
	const struct tenant *tenant;
	enum store_role role;
	uint8_t hash[32];
	int64_t created_ms;
	struct map_node by_id, by_hash;
	struct list order;
};

/* Who asks. The zero value is nobody and is permitted nothing. */
struct actor {
	const struct tenant *tenant;
	enum store_role role;
	char key[KEYS_ID_SIZE];
};

const char *keys_role_name(enum store_role role);

/* The wish for a key; empty views mean: no name, the asker's tenant, the role "user". */
struct key_wish {
	struct view name, tenant, role;
	bool existing; /* the tenant must be there; else it is made */
};

/* The result of keys_create. */
struct key_made {
	const struct key *key;
	const char *text;
};

struct job *keys_create(struct core *c, const struct actor *a, const struct key_wish *w, job_done *done,
			void *arg, struct err *e) _must_check_;
struct job *keys_remove(struct core *c, const struct actor *a, struct view id, job_done *done, void *arg,
			struct err *e) _must_check_;
/* In the order of their making. */
int keys_each(struct core *c, const struct actor *a, void (*each)(void *arg, const struct key *k), void *arg,
	      struct err *e) _must_check_;

/* For the start: what the store has, then the two that must be there. */
int keys_load_tenant(struct core *c, const struct store_tenant *t);
int keys_load_key(struct core *c, const struct store_key *k);
int keys_ensure_admin(struct core *c, const uint8_t hash[32], struct err *e) _must_check_;
const struct tenant *keys_tenant(struct core *c, struct view id);
/* A new one, whose name is free; `done` when it is stored. NULL: no memory. */
const struct tenant *keys_add_tenant(struct core *c, struct view name, store_done *done, void *arg);
/* The key whose secret has this hash; compared in constant time. */
const struct key *keys_by_hash(struct core *c, const uint8_t hash[32]);
void keys_done(struct core *c);
