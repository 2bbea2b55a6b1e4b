/*
 * The specification of a box. A wish is what the client sent and may be incomplete; a spec is complete
 * and checked against the configuration.
 */
#pragma once

#include "box_fields.h"
#include "box_limits.h"
#include "json.h"

struct config;
struct egress_policy;

/*
 * ---- spec_secrets.c ----
 * What is wished of mounted secrets: `secrets: [{name, file | env, version}]` of a box or
 * of one command. Names only; values are never here. Pure.
 */

#define SPEC_SECRETS_MAX 64

struct spec_secret {
	struct view name;
	struct view file; /* below /run/secrets; empty: none */
	struct view env;  /* a variable; empty: none */
	uint32_t version; /* 0: the newest */
};

struct spec_secrets {
	struct spec_secret *items;
	size_t n;
};

/* An array of such objects; NULL and null are none. ERR_INVALID names the field. */
int spec_secrets_read(struct arena *a, const struct json *j, bool files, struct spec_secrets *ret,
		      struct err *e) _must_check_;
void spec_secrets_put(struct json_out *o, const struct spec_secrets *s);
bool spec_secrets_is_name(struct view v); /* [A-Za-z_][A-Za-z0-9_.-]{0,63} */

/*
 * ---- spec_mounts.c ----
 * Directories of the machine in a box: `mounts: [{source, path, mode}]`. Who may have which is said by
 * mounts.allow of the configuration; the keeper judges the directory again. Pure.
 */

#define SPEC_MOUNTS_MAX 8

struct spec_mount {
	struct view source, path;
	bool readonly;
};

struct spec_mount_list {
	struct spec_mount *items;
	size_t n;
};

int spec_mounts_read(struct arena *a, const struct json *j, struct spec_mount_list *ret,
		     struct err *e) _must_check_;
void spec_mounts_put(struct json_out *o, const struct spec_mount_list *m);

/*
 * ---- spec_workspaces.c ----
 * Named workspaces in a box and where they are mounted: `workspaces: [{name, path, mode}]`. Pure.
 */

#define SPEC_WORKSPACES_MAX 8
#define SPEC_WORKSPACE_PATH "/workspace"

struct spec_workspace {
	struct view name, path; /* of a wish, an empty path is SPEC_WORKSPACE_PATH */
	bool readonly;
};

struct spec_workspace_list {
	struct spec_workspace *items;
	size_t n;
};

int spec_workspaces_read(struct arena *a, const struct json *j, struct spec_workspace_list *ret,
			 struct err *e) _must_check_;
void spec_workspaces_put(struct json_out *o, const struct spec_workspace_list *l);
/* The one at SPEC_WORKSPACE_PATH; NULL: the box has its own there. */
struct box_spec;
const struct spec_workspace *spec_workspace(const struct box_spec *s);

/*
 * ---- spec.c ----
 * What is wished of a box. A wish is what a client said, with holes; a spec is
 * complete and checked against the configuration. Pure: no I/O, no state.
 */

#define SPEC_NAME_MAX       63
#define SPEC_USER_MAX       32
#define SPEC_PATH_MAX       4096
#define SPEC_ENV_MAX        512 /* variables */
#define SPEC_ENV_BYTES      (128u * 1024)
#define SPEC_METADATA_MAX   64 /* entries */
#define SPEC_METADATA_KEY   128
#define SPEC_METADATA_VALUE 1024
#define SPEC_BACKEND_MAX    15
#define SPEC_LINKS_MAX      8
#define SPEC_LINK_ID        20

/* What happens to a box when its time is over or when it was idle for too long. */
enum spec_on_end { SPEC_END_DELETE, SPEC_END_STOP, SPEC_END_PAUSE };
#define SPEC_ENDS 3
const char *spec_on_end_name(enum spec_on_end v);

struct core;
struct box;

struct box_wish {
	/* Called before the box is answered, as soon as exec_ahead can be; not for every kind of box. */
	void (*early)(struct core *c, const struct box *b);
	struct view name, image; /* empty: none, or the default */
	struct view backend;     /* empty: that of the snapshot, or the default */
#define FIELD(kind, name, ...) BOX_FIELD_##kind name;
#include "box_fields.def"
#undef FIELD
	struct json_strmap env, metadata;
	struct box_limits_wish limits;
	bool has_ttl;
	uint64_t ttl_seconds;  /* 0: no end, where the configuration allows that */
	struct view on_end;    /* "delete", "stop", "pause"; empty: delete */
	uint32_t require;      /* FEATURE_BITs that its walls must have */
	struct view snapshot;  /* name or id; empty: none. Not together with image */
	struct view workspace; /* a name, for SPEC_WORKSPACE_PATH; empty: none of these words */
	bool workspace_readonly;
	struct spec_workspace_list workspaces;
	const struct egress_policy *egress; /* that policies_wish has judged; NULL: none of its own */
	struct view ai;                     /* what allowances_wish has made; empty: nothing of its own */
	struct spec_secrets secrets;
	struct spec_mount_list mounts;
};

/* A port of the box's loopback that leads to a port of another box: bridges.c. */
struct spec_link {
	char id[SPEC_LINK_ID + 1], to[SPEC_LINK_ID + 1];
	uint16_t port, listen;
};

/* Views point into the arena that spec_make was given. */
struct box_spec {
	struct view name, image, digest;
#define FIELD(kind, name, ...) BOX_FIELD_##kind name;
#include "box_fields.def"
#undef FIELD
	char backend[SPEC_BACKEND_MAX + 1]; /* whose walls it has; "" until create.c has chosen */
	struct json_strmap env, metadata;
	struct box_limits limits;
	uint64_t ttl_seconds; /* 0: no end */
	enum spec_on_end on_end;
	uint32_t require;     /* FEATURE_BITs that its walls must have, at every start */
	struct view snapshot; /* what it was made from, as it was called; empty: the image alone */
	struct view origin;   /* of a fork: what the first of its kind was made from */
	struct spec_workspace_list workspaces;
	const struct egress_policy *egress; /* NULL: that of its image, tenant, … (net.h) */
	struct view ai;    /* JSON; what it may use of models, as far as that was said (allowances.h) */
	uint64_t ai_token; /* how often its token for models was changed; a copy of the box has a token of its
			      own */
	int64_t ai_token_ends_ms;      /* 0: with the box */
	struct spec_secrets secrets;   /* what is mounted; a fork has none */
	struct spec_mount_list mounts; /* likewise */
	bool farewell; /* a program of its user runs before it is stopped or removed: farewell.c */
	struct spec_link links[SPEC_LINKS_MAX]; /* not of a wish: a copy of the box has none */
	size_t n_links;
};
/* Names of features (feature.h) as bits; and as a list in JSON. */
int spec_take_require(const struct json_strlist *names, uint32_t *ret, struct err *e) _must_check_;
void spec_put_require(struct json_out *o, uint32_t require);  /* `require` and its value */
void spec_put_features(struct json_out *o, uint32_t require); /* the value */

/* A user's name or number; `field` is for the message. */
int spec_check_user(struct view v, const char *field, struct err *e) _must_check_;
bool spec_is_name(struct view v); /* [A-Za-z0-9][A-Za-z0-9._-]{0,62} */
/* The value of a key; p == NULL when absent. */
struct view spec_map_get(const struct json_strmap *m, struct view key);
