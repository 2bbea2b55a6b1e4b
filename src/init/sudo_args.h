/*
 * What the command lines of sudo and su ask for, and the environment that they
 * give. Pure.
 */
#pragma once

#include "arena.h"
#include "err.h"

#define SUDO_ARGS_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum sudo_mode {
	SUDO_RUN,
	SUDO_NOTHING, /* -v, -k: there is no password to remember or to forget */
	SUDO_LIST,
	SUDO_VERSION,
	SUDO_HELP,
};

struct sudo_args {
	bool su; /* called by that name: another environment */
	enum sudo_mode mode;
	const char *user;      /* "root" */
	bool login, shell;     /* -i, -s; of su: "-" */
	const char *program;   /* su -s: the shell */
	bool keep;             /* -E; su without "-" */
	const char *keep_list; /* --preserve-env=A,B */
	bool background;
	const char *cwd; /* -D */
	char **sets;     /* NAME=VALUE before the command */
	unsigned n_sets;
	char **argv; /* the command; none for a shell */
	unsigned argc;
	const char *command; /* su -c */
};

/* ERR_INVALID with a sentence; ERR_UNSUPPORTED for what sudo can and this cannot. */
int sudo_args_read(int argc, char **argv, struct arena *a, struct sudo_args *ret, struct err *e) _must_check_;

/* Of the user that the command will have. */
struct sudo_target {
	const char *name, *home, *shell;
};
struct sudo_caller {
	const char *name;
	unsigned uid, gid;
	char **env;
};
/* The command as it is executed: argv, and the file where argv[0] is not its name (else NULL). */
int sudo_args_command(const struct sudo_args *s, const struct sudo_target *t, const struct sudo_caller *c,
		      struct arena *a, char ***ret_argv, const char **ret_file) _must_check_;
/* Its environment: a list that ends with NULL. */
int sudo_args_env(const struct sudo_args *s, const struct sudo_target *t, const struct sudo_caller *c,
		  char *const *argv, struct arena *a, char ***ret) _must_check_;
