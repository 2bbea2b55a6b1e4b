/*
 * The commands as data: each is a constant that the file of its family defines.
 * From these tables come the dispatch, the help, the shell completions and the
 * check of the manual page; commands.c lists them all.
 */
#pragma once

#include "opts.h"
#include "session.h"

enum {
	CMD_FAILED = 1,
	CMD_USAGE = 2,
	CMD_DAEMON_FAILED = 125, /* run and exec: everything below belongs to the command inside */
	CMD_NOT_EXECUTABLE = 126,
	CMD_NOT_FOUND = 127,
};

struct cmd;

struct cmd_ctx {
	const struct cmd *cmd; /* the one that runs */
	struct arena arena;
	struct session_flags session; /* of the options that find the daemon */
	bool json;                    /* print what the daemon said, as JSON */
};

/* A kind of things that the API lists and removes by name: GET /v1/PREFIX is {PREFIX: [{…}]}, or, for what
 * belongs to a sandbox, GET /v1/sandboxes/ID/PREFIX. */
struct cmd_things {
	const char *prefix;
	bool of_sandbox;                           /* the first operand */
	const char *const *titles, *const *fields; /* of the table */
	size_t n_columns;
};

struct cmd {
	const char *name;     /* one word, or two: "key create" */
	const char *operands; /* for the usage line; its words also tell what completes them */
	const char *summary;
	const char *help; /* more lines, may be NULL */
	const struct opt *opts;
	size_t n_opts;
	const struct opt *more; /* shared with another command, same flags struct */
	size_t n_more;
	size_t flags_size;
	size_t lead;                     /* see opts_parse */
	size_t min, max;                 /* operands */
	bool client;                     /* takes the options of session_opts */
	bool json;                       /* takes --json */
	const struct cmd_things *things; /* of call_ls and call_rm */
	int failed;                      /* the exit code when run returns -1 */
	/* The exit code, or -1 with e set. `operands` ends with NULL. */
	int (*run)(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e);
};

/* All of them, in the order of the help. */
extern const struct cmd *const commands[];
extern const size_t commands_n;

/* Options that every command has (--help), and those with .json (--json). */
struct cmd_common {
	bool help, version;
};
enum { CMD_COMMON_OPTS = 2, CMD_JSON_OPTS = 1 };
extern const struct opt cmd_common_opts[CMD_COMMON_OPTS]; /* --version before the command only */
extern const struct opt cmd_json_opts[CMD_JSON_OPTS];     /* of struct cmd_ctx */
