/*
 * The commands: each is a constant that its own file defines, from which main.c
 * dispatches and writes the help.
 */
#pragma once

#include "opts.h"
#include "session.h"

enum {
	CMD_FAILED = 1,
	CMD_USAGE = 2,
	CMD_DAEMON_FAILED = 125, /* run and exec: everything below belongs to the command inside */
};

struct cmd_ctx {
	struct arena arena;
	struct session_flags session; /* of --url and --key-file */
};

struct cmd {
	const char *name;     /* one word, or two: "key create" */
	const char *operands; /* for the usage line */
	const char *summary;
	const char *help; /* more lines, may be NULL */
	const struct opt *opts;
	size_t n_opts;
	const struct opt *more; /* shared with another command, same flags struct */
	size_t n_more;
	size_t flags_size;
	size_t lead;     /* see opts_parse */
	size_t min, max; /* operands */
	bool client;     /* takes --url and --key-file */
	int failed;      /* the exit code when run returns -1 */
	/* The exit code, or -1 with e set. `operands` ends with NULL. */
	int (*run)(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e);
};

extern const struct cmd cmd_serve, cmd_run, cmd_create, cmd_exec, cmd_shell, cmd_forward, cmd_cp, cmd_ls,
	cmd_inspect, cmd_rm;
extern const struct cmd cmd_pause, cmd_resume, cmd_stop, cmd_start, cmd_extend, cmd_fork;
extern const struct cmd cmd_snapshot_create, cmd_snapshot_ls, cmd_snapshot_rm;
extern const struct cmd cmd_workspace_create, cmd_workspace_ls, cmd_workspace_rm;
extern const struct cmd cmd_secret_set, cmd_secret_ls, cmd_secret_rm, cmd_vault_rotate;
extern const struct cmd cmd_key_create, cmd_key_ls, cmd_key_rm;
extern const struct cmd cmd_image_import, cmd_image_of, cmd_image_ls, cmd_image_rm;
extern const struct cmd cmd_ai_show, cmd_ai_set, cmd_ai_reset, cmd_ai_rotate, cmd_ai_calls;
extern const struct cmd cmd_egress_show, cmd_egress_allow, cmd_egress_deny, cmd_egress_set, cmd_egress_reset,
	cmd_egress_log, cmd_egress_sets;
extern const struct cmd cmd_config_check, cmd_config_show, cmd_doctor, cmd_version;
