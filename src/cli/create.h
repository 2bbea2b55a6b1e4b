/*
 * Making a box: the options that `create` and `run` share, and the request.
 */
#pragma once

#include "box_fields.h"
#include "box_limits.h"
#include "opts.h"
#include "session.h"

/* What is in struct create_flags for a field. */
#define CREATE_FLAG_BOOL    bool
#define CREATE_FLAG_NOT     bool
#define CREATE_FLAG_SECONDS uint64_t
#define CREATE_FLAG_TEXT    const char *
#define CREATE_FLAG_ZONE    const char *
#define CREATE_FLAG_HOST    const char *

struct create_flags {
	const char *name, *image;
	const char *snapshot, *on_end, *backend;
	struct opt_list env, env_file, metadata, allow, volumes, mounts, workspaces, require;
	struct opt_list secret_env, secret_file;
	struct box_limits_wish limits; /* 0: absent */
	uint64_t ttl_ms;
	/* Times are in milliseconds, absent texts NULL. */
#define FIELD(kind, name, ...) CREATE_FLAG_##kind name;
#include "box_fields.def"
#undef FIELD
};

/* The first CREATE_RUN_OPTS of them are for `run` as well. */
#define CREATE_COUNT_NO_FLAG        0
#define CREATE_COUNT_RUN_FLAG(...)  1
#define CREATE_COUNT_LIFE_FLAG(...) 0x100
enum {
	CREATE_FIELDS = 0
#define FIELD(kind, name, json, shown, wire, twin, pool, change, update, flag) +CREATE_COUNT_##flag
#include "box_fields.def"
#undef FIELD
	,
	CREATE_RUN_OPTS = 15 + BOX_LIMITS + (CREATE_FIELDS & 0xff),
	CREATE_OPTS = CREATE_RUN_OPTS + 4 + (CREATE_FIELDS >> 8)
};
extern const struct opt create_opts[CREATE_OPTS];

/* The option of a limit: for each line of box_limits.def. */
#define CREATE_LIMIT(kind, at, flag, letter, help)                                                           \
	{                                                                                                    \
		flag, letter, CREATE_LIMIT_##kind(at), help                                                  \
	}
#define CREATE_LIMIT_CPU(at)    OPT_CPU, at, "CORES"
#define CREATE_LIMIT_MEMORY(at) OPT_MIB, at, "SIZE"
#define CREATE_LIMIT_COUNT(at)  OPT_COUNT, at, "N"
#define CREATE_LIMIT_DISK(at)   CREATE_LIMIT_MEMORY(at)
/* `limits` of a request, unless there is none. */
void create_put_limits(struct json_out *o, const struct box_limits_wish *l);

/* *ret is the new box's object. */
int create_box(struct session *s, const struct create_flags *f, struct json **ret,
	       struct err *e) _must_check_;
/* The same for a box that goes with the session's connection. */
int create_tied(struct session *s, const struct create_flags *f, struct json **ret,
		struct err *e) _must_check_;
/* Whose a shell or an interpreter is, where and with which variables: members of its request. */
void create_put_place(struct json_out *o, const char *user, const char *workdir, const struct opt_list *env);
/* Puts the variables of the files before those of the list, which win. */
int create_env_files(struct arena *a, const struct opt_list *files, struct opt_list *env,
		     struct err *e) _must_check_;
/* Refuses what JSON cannot carry as it is. `what` names it in the message. */
int create_check_text(const char *text, const char *what, struct err *e) _must_check_;
void create_pairs(struct json_out *o, const char *key, const struct opt_list *pairs);
/* `secrets`: VARIABLE=SECRET, and FILE=SECRET where there may be files (NULL: not). */
void create_secrets(struct json_out *o, const struct opt_list *env, const struct opt_list *file);
