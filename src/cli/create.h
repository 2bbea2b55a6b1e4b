/*
 * Making a box: the options that `create` and `run` share, and the request.
 */
#pragma once

#include "box_limits.h"
#include "opts.h"
#include "session.h"

struct create_flags {
	const char *name, *image, *user, *workdir, *timezone;
	const char *snapshot, *on_end, *backend;
	struct opt_list env, env_file, metadata, allow, volumes, mounts, workspaces, require;
	struct opt_list secret_env, secret_file;
	struct box_limits_wish limits; /* 0: absent */
	uint64_t ttl_ms, idle_ms;
	bool readonly_root, no_sudo, auto_resume;
};

/* The first CREATE_RUN_OPTS of them are for `run` as well. */
enum { CREATE_RUN_OPTS = 17 + BOX_LIMITS, CREATE_OPTS = CREATE_RUN_OPTS + 6 };
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
