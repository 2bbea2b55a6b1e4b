/*
 * Callers and their permissions: keys, acts, sessions of the dashboard.
 */
#pragma once

#include "job.h"
#include "list.h"
#include "map.h"
#include "store.h"

struct actor;
struct core;
struct tenant;

/*
 * ---- auth.c ----
 * Who asks, and what they may do: the one place where every operation of every
 * dialect is permitted or refused.
 */

enum act {
	ACT_NONE, /* permitted to nobody */
	ACT_BOX_CREATE,
	ACT_BOX_LIST,
	ACT_BOX_READ,
	ACT_BOX_DELETE,
	ACT_BOX_EXEC,
	ACT_BOX_CHANGE, /* its deadlines and labels; pause, resume, stop, start */
	ACT_BOX_COPY,   /* snapshot, fork */
	ACT_BOX_PORTS,  /* connect to its servers */
	ACT_BOX_SHARE,  /* let others do that: signed links, links between boxes */
	ACT_SNAPSHOT_LIST,
	ACT_SNAPSHOT_READ,
	ACT_SNAPSHOT_DELETE,
	ACT_WORKSPACE_CREATE,
	ACT_WORKSPACE_LIST,
	ACT_WORKSPACE_READ,
	ACT_WORKSPACE_WRITE,
	ACT_WORKSPACE_DELETE,
	ACT_FILE_READ,
	ACT_FILE_WRITE,
	ACT_IMAGE_LIST,
	ACT_IMAGE_CHANGE,
	ACT_KEYS,
	ACT_POSTURE,
	ACT_METRICS,
	ACT_CAPABILITIES,
	ACT_EVENTS,   /* of the tenant's boxes; an admin sees all */
	ACT_WEBHOOKS, /* of the tenant */
	ACT_TENANTS,
	ACT_SECRETS,     /* of the tenant */
	ACT_BOX_SECRETS, /* of a box */
	ACT_VAULT,       /* its master key */
	ACT_AGENT_CREATE,
	ACT_AGENT_LIST,
	ACT_AGENT_READ,
	ACT_AGENT_CHANGE, /* start and stop it, give it its files, remove it */
	ACTS
};

/* A token as it stands behind "Bearer " or in X-API-Key. */
int auth_actor(struct core *c, struct view token, struct actor *ret, struct err *e) _must_check_;
/* A user of the tenant "default" who showed no key, where a listener is configured so. */
int auth_anonymous(struct core *c, struct actor *ret, struct err *e) _must_check_;
/* `owner` of the box where the act is on one, else NULL. Another tenant's box does not exist. */
int auth_permit(const struct actor *a, enum act act, const struct tenant *owner, struct err *e) _must_check_;
/* The same on a snapshot or a workspace; `what` is its kind, for the message. */
int auth_permit_on(const struct actor *a, enum act act, const struct tenant *owner, const char *what,
		   struct err *e) _must_check_;
/* ERR_NOT_FOUND, always in the same words. */
int auth_unknown(struct err *e, const char *what);
/* Whether the act counts as a use of the box, which keeps it from being idle. */
bool auth_is_use(enum act act);

/*
 * ---- keys.c ----
 * Tenants and keys. A key is "pdk_" (or "e2b_") and 40 hex digits, shown once;
 * kept is the SHA-256 of the 20 bytes. All of them are in memory.
 */

#define KEYS_TEXT_SIZE 45 /* "pdk_", 40 digits, NUL */
#define KEYS_NAME_MAX  64
#define KEYS_ID_SIZE   40
#define KEYS_ADMIN     "k_admin"   /* the key in DIR/admin.key */
#define KEYS_GIVEN     "k_config_" /* and a number: one of the configuration */

struct tenant {
	char id[KEYS_ID_SIZE], name[KEYS_NAME_MAX + 1];
	int64_t created_ms;
	uint64_t events_from; /* its events are counted from here: what it was shown by an older version */
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
	bool create_tenant; /* make a tenant that does not exist, instead of refusing */
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
/* By id or by name, for admins. */
const struct tenant *keys_find_tenant(struct core *c, const struct actor *a, struct view ref,
				      struct err *e) _must_check_;
/* In the order of their making. */
int keys_each(struct core *c, const struct actor *a, void (*each)(void *arg, const struct key *k), void *arg,
	      struct err *e) _must_check_;

/*
 * ---- logins.c ----
 * Sessions of the dashboard: somebody showed a key once and has a random token since, which counts
 * for the host it was made for and for as long as the key does. Only the token's hash is kept, in
 * memory: after a restart everybody signs in again.
 */

#define LOGINS_TEXT_SIZE 65 /* 64 hex digits, NUL */

struct login {
	uint8_t hash[32], host[32]; /* of the token; of the name in the address, with its port */
	char key[KEYS_ID_SIZE];
	uint64_t made_ms, used_ms;
	struct list link;
};

/* For whoever shows this key. ERR_UNAUTHORIZED. */
int logins_new(struct core *c, struct view key, struct view host, char ret[LOGINS_TEXT_SIZE],
	       struct actor *ret_actor, struct err *e) _must_check_;
/* Who has this token, and counts as a use of it. ERR_UNAUTHORIZED. */
int logins_actor(struct core *c, struct view token, struct view host, struct actor *ret,
		 struct err *e) _must_check_;
/* Nothing happens where there is none. */
void logins_end(struct core *c, struct view token, struct view host);

/*
 * ---- sign.c ----
 * The secret of this installation, and what is derived from it.
 */
#define SIGN_SIZE        65     /* 64 hex digits, NUL */
#define SIGN_SECONDS_MAX 604800 /* of a signature that ends */

/* A key of this installation for one purpose, which is the same after a restart. */
void sign_key(const struct core *c, struct view purpose, uint8_t ret[32]);
