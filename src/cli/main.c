/*
 * paddock: the command line. Runs as the user who calls it, holds nothing but
 * that user's rights and an API key; talks HTTP to paddock-api, and as root
 * executes paddockd (`serve`, `doctor`), which is where privilege begins.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd.h"
#include "show.h"

#include "poison.h"

#define ARENA_MAX (1u << 30)

static const struct cmd *const COMMANDS[] = {
	&cmd_serve,
	&cmd_run,
	&cmd_create,
	&cmd_exec,
	&cmd_shell,
	&cmd_forward,
	&cmd_cp,
	&cmd_ls,
	&cmd_inspect,
	&cmd_rm,
	&cmd_pause,
	&cmd_resume,
	&cmd_stop,
	&cmd_start,
	&cmd_extend,
	&cmd_fork,
	&cmd_snapshot_create,
	&cmd_snapshot_ls,
	&cmd_snapshot_rm,
	&cmd_workspace_create,
	&cmd_workspace_ls,
	&cmd_workspace_rm,
	&cmd_egress_show,
	&cmd_egress_allow,
	&cmd_egress_deny,
	&cmd_egress_set,
	&cmd_egress_reset,
	&cmd_egress_log,
	&cmd_egress_sets,
	&cmd_ai_show,
	&cmd_ai_set,
	&cmd_ai_reset,
	&cmd_ai_rotate,
	&cmd_ai_calls,
	&cmd_secret_set,
	&cmd_secret_ls,
	&cmd_secret_rm,
	&cmd_vault_rotate,
	&cmd_key_create,
	&cmd_key_ls,
	&cmd_key_rm,
	&cmd_image_import,
	&cmd_image_of,
	&cmd_image_ls,
	&cmd_image_rm,
	&cmd_config_check,
	&cmd_config_show,
	&cmd_doctor,
	&cmd_version,
};

struct common_flags {
	bool help;
	bool version; /* before the command only */
};

static const struct opt COMMON_OPTS[] = {
	{ "help", 'h', OPT_FLAG, offsetof(struct common_flags, help), NULL, "show this help" },
	{ "version", 0, OPT_FLAG, offsetof(struct common_flags, version), NULL, "show the version" },
};

static void complain(const struct err *e)
{
	struct buf b = BUF_INIT(4096);

	show_clean(&b, view_of(e->msg));
	fprintf(stderr, "paddock: %.*s\n", VIEW_ARG(buf_view(&b)));
	buf_done(&b);
}

static void print_overview(FILE *f)
{
	fputs("usage: paddock [--url URL] [--key-file FILE] COMMAND [ARGUMENT…]\n\n"
	      "Isolated Linux sandboxes for agents.\n\n",
	      f);
	for (size_t i = 0; i < ELEMS(COMMANDS); i++)
		fprintf(f, "  %-17s %s\n", COMMANDS[i]->name, COMMANDS[i]->summary);
	fputs("\n`paddock help COMMAND` says more; so does paddock(1).\n", f);
}

static void print_help(const struct cmd *c)
{
	printf("usage: paddock %s%s%s%s\n\n%s\n", c->name,
	       c->n_opts || c->n_more || c->client ? " [OPTION…]" : "", *c->operands ? " " : "", c->operands,
	       c->summary);
	if (c->help)
		printf("\n%s\n", c->help);
	putchar('\n');
	opts_help(stdout, c->more, c->n_more);
	opts_help(stdout, c->opts, c->n_opts);
	if (c->client)
		opts_help(stdout, session_opts, SESSION_OPTS);
	opts_help(stdout, COMMON_OPTS, 1);
}

/* Matches the words of a command's name at the front of words: how many, or 0. */
static size_t match(const struct cmd *c, size_t n, char *const *words)
{
	struct view second, first = view_split(view_of(c->name), ' ', &second);

	if (n < 1 || !view_is(first, words[0]))
		return 0;
	if (!second.p)
		return 1;
	return n > 1 && view_is(second, words[1]) ? 2 : 0;
}

static const struct cmd *find(size_t n, char *const *words, size_t *ret_used)
{
	for (size_t i = 0; i < ELEMS(COMMANDS); i++) {
		*ret_used = match(COMMANDS[i], n, words);
		if (*ret_used)
			return COMMANDS[i];
	}
	return NULL;
}

/* The commands that begin with this word; false: there are none. */
static bool print_group(FILE *f, const char *word)
{
	bool group = false;

	for (size_t i = 0; i < ELEMS(COMMANDS); i++) {
		const struct cmd *c = COMMANDS[i];
		struct view second, first = view_split(view_of(c->name), ' ', &second);

		if (!second.p || !view_is(first, word))
			continue;
		fprintf(f, "%spaddock %s%s%s\n", group ? "       " : "usage: ", c->name,
			*c->operands ? " " : "", c->operands);
		fprintf(f, "           %s\n", c->summary);
		group = true;
	}
	if (group)
		fprintf(f, "\n`paddock help %s COMMAND` says more.\n", word);
	return group;
}

static int unknown(const char *word)
{
	if (!print_group(stderr, word)) {
		struct err e = { 0 };

		err_set(&e, ERR_INVALID, "no command \"%.60s\"; `paddock help` lists them", word);
		complain(&e);
	}
	return CMD_USAGE;
}

static int usage_error(const struct cmd *c, const struct err *e)
{
	complain(e);
	fprintf(stderr, "`paddock help %s` shows its use.\n", c->name);
	return CMD_USAGE;
}

static int run_command(struct cmd_ctx *ctx, const struct cmd *c, size_t argc, char **argv)
{
	struct common_flags common = { 0 };
	void *flags = arena_alloc(&ctx->arena, c->flags_size + 1);
	const struct opt_table tables[] = {
		{ c->opts, c->n_opts, flags },
		{ c->more, c->n_more, flags },
		{ COMMON_OPTS, 1, &common },
		{ session_opts, c->client ? SESSION_OPTS : 0, &ctx->session },
	};
	struct err e = { 0 };
	char **operands;
	size_t n;
	int code;

	if (!flags)
		return CMD_FAILED;
	if (opts_parse(&ctx->arena, tables, ELEMS(tables), c->lead, argc, argv, &operands, &n, &e) < 0)
		return usage_error(c, &e);
	if (common.help) {
		print_help(c);
		return 0;
	}
	if (n < c->min || n > c->max) {
		err_set(&e, ERR_INVALID, "%s wants %s", c->name, *c->operands ? c->operands : "no operands");
		return usage_error(c, &e);
	}
	code = c->run(ctx, flags, n, operands, &e);
	if (code >= 0)
		return code;
	complain(&e);
	return c->failed ? c->failed : CMD_FAILED;
}

static int help(size_t n, char **words)
{
	const struct cmd *c;
	size_t used;

	if (n == 0) {
		print_overview(stdout);
		return 0;
	}
	c = find(n, words, &used);
	if (!c)
		return n == 1 && print_group(stdout, words[0]) ? 0 : unknown(words[0]);
	print_help(c);
	return 0;
}

static int dispatch(struct cmd_ctx *ctx, size_t argc, char **argv)
{
	struct common_flags common = { 0 };
	const struct opt_table tables[] = {
		{ COMMON_OPTS, ELEMS(COMMON_OPTS), &common },
		{ session_opts, SESSION_OPTS, &ctx->session },
	};
	const struct cmd *c;
	struct err e = { 0 };
	char **words;
	size_t n, used;

	if (opts_parse(&ctx->arena, tables, ELEMS(tables), 0, argc, argv, &words, &n, &e) < 0) {
		complain(&e);
		return CMD_USAGE;
	}
	if (common.version)
		return run_command(ctx, &cmd_version, 0, NULL);
	if (common.help || (n > 0 && strcmp(words[0], "help") == 0))
		return help(common.help ? n : n - 1, common.help ? words : words + 1);
	if (n == 0) {
		print_overview(stderr);
		return CMD_USAGE;
	}
	c = find(n, words, &used);
	return c ? run_command(ctx, c, n - used, words + used) : unknown(words[0]);
}

int main(int argc, char **argv)
{
	struct cmd_ctx ctx = { .arena = ARENA_INIT(ARENA_MAX) };
	int code = argc > 0 ? dispatch(&ctx, (size_t)argc - 1, argv + 1) : CMD_USAGE;

	arena_done(&ctx.arena);
	if (fflush(stdout) != 0 && code == 0)
		code = CMD_FAILED;
	return code;
}
