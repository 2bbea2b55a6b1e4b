/*
 * paddock: the command line. Runs as the user who calls it, holds nothing but
 * that user's rights and an API key; talks HTTP to paddock-api, and as root
 * executes paddockd (`serve`, `doctor`), which is where privilege begins.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd.h"
#include "nearest.h"
#include "show.h"

#include "poison.h"

#define ARENA_MAX (1u << 30)

static void complain(const struct err *e)
{
	struct buf b = BUF_INIT(4096);

	show_clean(&b, view_of(e->msg));
	fprintf(stderr, "paddock: %.*s\n", VIEW_ARG(buf_view(&b)));
	buf_done(&b);
}

static void print_overview(FILE *f)
{
	fputs("usage: paddock [OPTION…] COMMAND [ARGUMENT…]\n\n"
	      "Isolated Linux sandboxes for agents.\n\n",
	      f);
	for (size_t i = 0; i < commands_n; i++)
		fprintf(f, "  %-16s %s\n", commands[i]->name, commands[i]->summary);
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
	if (c->json)
		opts_help(stdout, cmd_json_opts, CMD_JSON_OPTS);
	if (c->client)
		opts_help(stdout, session_opts, SESSION_OPTS);
	opts_help(stdout, cmd_common_opts, 1);
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
	for (size_t i = 0; i < commands_n; i++) {
		*ret_used = match(commands[i], n, words);
		if (*ret_used)
			return commands[i];
	}
	return NULL;
}

/* The commands that begin with this word; false: there are none. */
static bool print_group(FILE *f, const char *word)
{
	bool group = false;

	for (size_t i = 0; i < commands_n; i++) {
		const struct cmd *c = commands[i];
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

/* "snapshot lss": the second word of a group; false: nothing in the group is near. */
static bool unknown_second(const char *word, const char *second)
{
	struct nearest near = NEAREST(view_of(second));

	for (size_t i = 0; i < commands_n; i++) {
		struct view rest, first = view_split(view_of(commands[i]->name), ' ', &rest);

		if (rest.p && view_is(first, word))
			nearest_try(&near, rest.p);
	}
	if (near.best)
		fprintf(stderr, "paddock: no command \"%s %s\"; did you mean `paddock %s %s`?\n", word,
			second, word, near.best);
	return near.best != NULL;
}

static int unknown(const char *word, const char *second)
{
	if (second && unknown_second(word, second))
		return CMD_USAGE;
	if (!print_group(stderr, word)) {
		struct nearest near = NEAREST(view_of(word));
		struct err e = { 0 };

		for (size_t i = 0; i < commands_n; i++)
			nearest_try(&near, commands[i]->name);
		if (near.best)
			err_set(&e, ERR_INVALID, "no command \"%.60s\"; did you mean `paddock %s`?", word,
				near.best);
		else
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
	struct cmd_common common = { 0 };
	void *flags = arena_alloc(&ctx->arena, c->flags_size + 1);
	const struct opt_table tables[] = {
		{ c->opts, c->n_opts, flags },
		{ c->more, c->n_more, flags },
		{ cmd_common_opts, 1, &common },
		{ cmd_json_opts, c->json ? CMD_JSON_OPTS : 0, ctx },
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
	ctx->cmd = c;
	code = c->run(ctx, flags, n, operands, &e);
	if (code >= 0)
		return code;
	complain(&e);
	if (c->failed == CMD_DAEMON_FAILED && e.code == ERR_COMMAND)
		return CMD_NOT_FOUND;
	if (c->failed == CMD_DAEMON_FAILED && e.code == ERR_EXECUTABLE)
		return CMD_NOT_EXECUTABLE;
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
		return n == 1 && print_group(stdout, words[0]) ? 0 : unknown(words[0], words[1]);
	print_help(c);
	return 0;
}

static int dispatch(struct cmd_ctx *ctx, size_t argc, char **argv)
{
	struct cmd_common common = { 0 };
	const struct opt_table tables[] = {
		{ cmd_common_opts, CMD_COMMON_OPTS, &common },
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
		return run_command(ctx, find(1, (char *[]){ (char *)"version" }, &used), 0, NULL);
	if (common.help || (n > 0 && strcmp(words[0], "help") == 0))
		return help(common.help ? n : n - 1, common.help ? words : words + 1);
	if (n == 0) {
		print_overview(stderr);
		return CMD_USAGE;
	}
	c = find(n, words, &used);
	return c ? run_command(ctx, c, n - used, words + used) : unknown(words[0], words[1]);
}

/* Called by the name of another system's command line: its verbs are commands of ours below that name. */
static int dispatch_as(struct cmd_ctx *ctx, size_t argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];

	if (strcmp(name, "sandkasten") != 0)
		return dispatch(ctx, argc - 1, argv + 1);
	argv[0] = (char *)"sandkasten";
	return dispatch(ctx, argc, argv);
}

int main(int argc, char **argv)
{
	struct cmd_ctx ctx = { .arena = ARENA_INIT(ARENA_MAX) };
	int code = argc > 0 ? dispatch_as(&ctx, (size_t)argc, argv) : CMD_USAGE;

	arena_done(&ctx.arena);
	if (fflush(stdout) != 0 && code == 0)
		code = CMD_FAILED;
	return code;
}
