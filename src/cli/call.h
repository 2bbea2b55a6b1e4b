/*
 * One request and its answer, for commands that need no more than that.
 */
#pragma once

#include "cmd.h"
#include "json.h"
#include "show.h"

/* "/v1/PREFIX/NAME" and the rest; NAME is percent-encoded, NULL: none. `prefix` as "sandboxes". */
struct cli_call {
	const char *method, *prefix, *name, *rest; /* rest may be NULL */
	struct view body;                          /* JSON; p == NULL: none */
	uint64_t timeout_ms;                       /* 0: SESSION_CALL_MS */
};

/* *ret may be NULL; it is NULL for an empty answer. */
int call_with(struct session *s, const struct cli_call *c, struct json **ret, struct err *e) _must_check_;
/* The same on a connection of its own. */
int call_once(struct cmd_ctx *ctx, const struct cli_call *c, struct json **ret, struct err *e) _must_check_;
/* GET of a list: as a table, or with --json as it is. */
int call_list(struct cmd_ctx *ctx, const struct cli_call *c, const char *list, const char *const *titles,
	      const char *const *fields, size_t n_columns, struct err *e) _must_check_;
/* What was removed of `names`, as {"removed": […]}: for --json. */
int call_removed(char **names, const bool *gone, size_t n, struct err *e) _must_check_;
/* DELETE of each of them; goes on after one that fails. The exit code, or -1. */
int call_remove(struct cmd_ctx *ctx, const char *prefix, size_t n, char **names, struct err *e) _must_check_;
/* Commands that list cmd.things, that remove those that are named, and that show one; and their tables. */
int call_ls(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e) _must_check_;
int call_rm(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e) _must_check_;
int call_show(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e) _must_check_;
/* POST of a verb, the last word of the command's name, to one of them: "code restart SANDBOX NAME". */
int call_verb(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e) _must_check_;
#define CALL_COMMON(t) .lead = OPTS_ANYWHERE, .client = true, .json = true, .things = &(t)
#define CALL_LS(t)     CALL_COMMON(t), .run = call_ls
#define CALL_RM(t)     CALL_COMMON(t), .min = 1, .max = SIZE_MAX, .run = call_rm
#define CALL_SHOW(t)   CALL_COMMON(t), .min = 1, .max = 1, .run = call_show
/* The same for things of a sandbox. */
#define CALL_LS_OF(t)   CALL_COMMON(t), .operands = "SANDBOX", .min = 1, .max = 1, .run = call_ls
#define CALL_RM_OF(t)   CALL_COMMON(t), .operands = "SANDBOX NAME…", .min = 2, .max = SIZE_MAX, .run = call_rm
#define CALL_SHOW_OF(t) CALL_COMMON(t), .operands = "SANDBOX NAME", .min = 2, .max = 2, .run = call_show
#define CALL_VERB_OF(t) CALL_COMMON(t), .operands = "SANDBOX NAME", .min = 2, .max = 2, .run = call_verb
/* A member's text on a line of its own, or with --json the whole object. */
int call_print(struct cmd_ctx *ctx, const struct json *object, const char *member,
	       struct err *e) _must_check_;
/* One of several has failed: says so, with its name where the message lacks it. */
void call_complain(const char *name, const struct err *e);
