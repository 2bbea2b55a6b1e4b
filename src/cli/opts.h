/*
 * Command line options as tables: a command's options are data, read by one
 * parser into the command's flags struct and printed by one help writer.
 */
#pragma once

#include <stdio.h>

#include "arena.h"
#include "err.h"

enum opt_kind {
	OPT_FLAG,  /* bool */
	OPT_TEXT,  /* const char *; NULL while absent */
	OPT_LIST,  /* struct opt_list; may be given many times */
	OPT_PAIRS, /* struct opt_list of "KEY=VALUE" with a key */
	OPT_ENV,   /* the same; "KEY" alone takes the value from our own environment */
	OPT_COUNT, /* uint64_t from 1; 0 while absent */
	OPT_CPU,   /* double above 0; 0 while absent */
	OPT_MIB,   /* uint64_t MiB: "512", "512m", "2g" */
	OPT_MS,    /* uint64_t milliseconds: "10" (seconds), "500ms", "10s", "5m", "2h", "1d" */
};

struct opt_list {
	const char **items;
	size_t n;
};

struct opt {
	const char *name; /* without "--" */
	char letter;      /* 0: none */
	enum opt_kind kind;
	size_t offset;   /* of the value in the flags struct */
	const char *arg; /* what the help calls its value; NULL for flags */
	const char *help;
};

/* Tables with the struct that each fills: a command has its own and shares some. */
struct opt_table {
	const struct opt *opts;
	size_t n;
	void *flags;
};

#define OPTS_ANYWHERE SIZE_MAX

/*
 * Reads argv[0..argc), which has no program name. Options may stand among the
 * first `lead` operands; "--" or one operand more ends them. *ret_operands is a
 * NULL-terminated array in the arena.
 */
int opts_parse(struct arena *a, const struct opt_table *tables, size_t n_tables, size_t lead, size_t argc,
	       char *const *argv, char ***ret_operands, size_t *ret_n, struct err *e) _must_check_;
void opts_help(FILE *f, const struct opt *opts, size_t n);

int opts_read_mib(struct view v, uint64_t *ret) _must_check_; /* -EINVAL, -ERANGE */
int opts_read_ms(struct view v, uint64_t *ret) _must_check_;
