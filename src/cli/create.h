/*
 * Making a box: the options that `create` and `run` share, and the request.
 */
#pragma once

#include "opts.h"
#include "session.h"

struct create_flags {
	const char *name, *image, *user, *workdir, *timezone;
	const char *snapshot, *on_end, *backend;
	struct opt_list env, env_file, metadata, allow, volumes, mounts, workspaces, require;
	struct opt_list secret_env, secret_file;
	uint64_t memory_mb, pids, nofile, disk_mb, ttl_ms, idle_ms;
	double cpu;
	bool readonly_root, no_sudo, auto_resume;
};

/* The first CREATE_RUN_OPTS of them are for `run` as well. */
enum { CREATE_RUN_OPTS = 22, CREATE_OPTS = 28 };
extern const struct opt create_opts[CREATE_OPTS];

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
