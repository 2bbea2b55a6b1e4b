/*
 * paddock completion: what bash, zsh and fish need to complete commands, options and
 * the names of things. It is written from the tables of commands, so that it knows
 * every command and option of the very program that prints it. What a value is, is
 * told by the word that the help uses for it: FILE, DIR, SANDBOX, IMAGE, ….
 */
#include <stdio.h>

#include "cmd.h"

#include "poison.h"

/* ---- what completes a word of the help ---- */

static const struct {
	const char *word, *how; /* a shell command that prints candidates; "<files>", "<dirs>" */
} KINDS[] = {
	{ "SANDBOX:PATH", "paddock ls -q 2>/dev/null | sed 's/$/:/'" },
	{ "SANDBOX", "paddock ls -q 2>/dev/null" },
	{ "FILE", "<files>" },
	{ "DIRECTORY", "<files>" },
	{ "DIR", "<dirs>" },
	{ "IMAGE", "paddock image ls 2>/dev/null | awk 'NR > 1 { print $1 }'" },
	{ "SNAPSHOT", "paddock snapshot ls 2>/dev/null | awk 'NR > 1 { print $1 }'" },
	{ "WORKSPACE", "paddock workspace ls 2>/dev/null | awk 'NR > 1 { print $1 }'" },
	{ "TENANT", "paddock tenant ls 2>/dev/null | awk 'NR > 1 { print $1 }'" },
	{ "CONTEXT", "paddock context ls 2>/dev/null | awk 'NR > 1 { print $(NF - 1) }'" },
	{ "LINK", "paddock link ls 2>/dev/null | awk 'NR > 1 { print $1 }'" },
	{ "WALLET", "paddock wallet ls 2>/dev/null | awk 'NR > 1 { print $1 }'" },
	{ "AGENT", "paddock agent ls 2>/dev/null | awk 'NR > 1 { print $2 }'" },
	{ "TRANSACTION", "paddock tx ls -p 2>/dev/null | awk 'NR > 1 { print $1 }'" },
	{ "SHELL", "printf '%s\\n' bash zsh fish" },
	{ "STATUS", "printf '%s\\n' creating running paused stopped" },
	{ "LANGUAGE", "printf '%s\\n' python javascript typescript r java bash" },
};

static const char *how_of(struct view text)
{
	for (size_t i = 0; i < ELEMS(KINDS); i++)
		if (memmem(text.p, text.n, KINDS[i].word, strlen(KINDS[i].word)))
			return KINDS[i].how;
	return "";
}

/* The word of the operand list that stands for operand `at`; the last one may be repeated. */
static struct view operand(const struct cmd *c, size_t at)
{
	struct view rest = view_of(c->operands), word = VIEW_NONE;

	for (size_t i = 0; rest.p && rest.n; i++) {
		word = view_split(rest, ' ', &rest);
		if (i == at)
			return word;
	}
	return word.n > 3 && memcmp(word.p + word.n - 3, "…", 3) == 0 ? word : VIEW_NONE;
}

/* ---- walking the tables ---- */

typedef void each_option(FILE *f, const struct cmd *c, const struct opt *o);

static void walk_options(FILE *f, const struct cmd *c, each_option *each)
{
	const struct {
		const struct opt *opts;
		size_t n;
	} tables[] = {
		{ c->more, c->n_more },
		{ c->opts, c->n_opts },
		{ cmd_json_opts, c->json ? CMD_JSON_OPTS : 0 },
		{ session_opts, c->client ? SESSION_OPTS : 0 },
		{ cmd_common_opts, 1 },
	};

	for (size_t t = 0; t < ELEMS(tables); t++)
		for (size_t i = 0; i < tables[t].n; i++)
			each(f, c, &tables[t].opts[i]);
}

/* Text within '…' of a shell. */
static void put_quoted(FILE *f, const char *text)
{
	fputc('\'', f);
	for (; *text; text++)
		if (*text == '\'')
			fputs("'\\''", f);
		else
			fputc(*text, f);
	fputc('\'', f);
}

/* ---- bash, and zsh through its bashcompinit ---- */

static void bash_option(FILE *f, const struct cmd *c _unused_, const struct opt *o)
{
	fprintf(f, "--%s ", o->name);
	if (o->letter)
		fprintf(f, "-%c ", o->letter);
}

/* "--name|-n) how ;;" for options with a value. */
static void bash_value(FILE *f, const struct cmd *c _unused_, const struct opt *o)
{
	if (o->kind == OPT_FLAG)
		return;
	fprintf(f, "\t\t\t--%s", o->name);
	if (o->letter)
		fprintf(f, "|-%c", o->letter);
	fputs(") how=", f);
	put_quoted(f, how_of(view_of(o->arg)));
	fputs("; return ;;\n", f);
}

#define OPERANDS 4 /* of a command that differ from one another */

static void bash_command(FILE *f, const struct cmd *c)
{
	fprintf(f, "\t'%s')\n\t\toptions='", c->name);
	walk_options(f, c, bash_option);
	fputs("'\n\t\tcase $2 in\n", f);
	walk_options(f, c, bash_value);
	fputs("\t\tesac\n\t\tcase $3 in\n", f);
	for (size_t i = 0; i < OPERANDS; i++) {
		struct view word = operand(c, i);

		if (!word.p)
			break;
		fprintf(f, "\t\t%s) how=",
			i + 1 == OPERANDS || !operand(c, i + 1).p ? "*" : (char[]){ (char)('0' + i), 0 });
		put_quoted(f, how_of(word));
		fputs(" ;;\n", f);
	}
	fputs("\t\tesac ;;\n", f);
}

/* "group) echo its second words ;;" at the first of a group. */
static void bash_group(FILE *f, size_t first)
{
	size_t n = strcspn(commands[first]->name, " ");
	const char *group = commands[first]->name;

	if (!group[n] || (first && strncmp(commands[first - 1]->name, group, n + 1) == 0))
		return;
	fprintf(f, "\t%.*s) echo", (int)n, group);
	for (size_t i = first; i < commands_n && strncmp(commands[i]->name, group, n + 1) == 0; i++)
		fprintf(f, " %s", commands[i]->name + n + 1);
	fputs(" ;;\n", f);
}

static void bash_words(FILE *f)
{
	const char *last = "";

	/* First words, each once: the members of a group stand together. */
	fputs("_paddock_words='help ", f);
	for (size_t i = 0; i < commands_n; i++) {
		size_t n = strcspn(commands[i]->name, " ");

		if (strncmp(last, commands[i]->name, n) != 0 || (last[n] != ' ' && last[n] != '\0'))
			fprintf(f, "%.*s ", (int)n, commands[i]->name);
		last = commands[i]->name;
	}
	fputs("'\n_paddock_second() {\n\tcase $1 in\n", f);
	for (size_t i = 0; i < commands_n; i++)
		bash_group(f, i);
	fputs("\tesac\n}\n", f);
}

static const char BASH_END[] =
	"_paddock() {\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
	"\tlocal first= name= operands=0 i word options= how=\n"
	"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	"\t\tword=${COMP_WORDS[i]}\n"
	"\t\tcase $word in -*) continue ;; esac\n"
	"\t\tif [[ -z $first ]]; then\n"
	"\t\t\t[[ $word == help ]] && continue\n"
	"\t\t\tfirst=$word name=$word\n"
	"\t\telif [[ $name == \"$first\" && \" $(_paddock_second \"$first\" | tr '\\n' ' ') \" == *\" $word "
	"\"* ]]; then\n"
	"\t\t\tname=\"$first $word\"\n"
	"\t\telse\n"
	"\t\t\t((operands++))\n"
	"\t\tfi\n"
	"\tdone\n"
	"\tCOMPREPLY=()\n"
	"\tif [[ -z $first ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$_paddock_words\" -- \"$cur\"))\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tif [[ $name == \"$first\" && -n $(_paddock_second \"$first\") ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$(_paddock_second \"$first\")\" -- \"$cur\"))\n"
	"\t\treturn\n"
	"\tfi\n"
	"\t_paddock_command \"$name\" \"$previous\" \"$operands\"\n"
	"\tif [[ $cur == -* ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
	"\telif [[ $how == '<files>' ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n"
	"\telif [[ $how == '<dirs>' ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -d -- \"$cur\"))\n"
	"\telif [[ -n $how ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$(eval \"$how\")\" -- \"$cur\"))\n"
	"\tfi\n"
	"}\n"
	"complete -o default -F _paddock paddock\n";

static void write_bash(FILE *f)
{
	fputs("# Completion of paddock for bash: eval \"$(paddock completion bash)\"\n", f);
	bash_words(f);
	fputs("# $1: the command, $2: the word before, $3: how many operands there are\n"
	      "_paddock_command() {\n\tcase $1 in\n",
	      f);
	for (size_t i = 0; i < commands_n; i++)
		bash_command(f, commands[i]);
	fputs("\tesac\n}\n", f);
	fputs(BASH_END, f);
}

static void write_zsh(FILE *f)
{
	fputs("#compdef paddock\n"
	      "# Completion of paddock for zsh: source <(paddock completion zsh)\n"
	      "autoload -Uz compinit bashcompinit\n"
	      "(( $+functions[compdef] )) || compinit\n"
	      "bashcompinit\n",
	      f);
	write_bash(f);
}

/* ---- fish ---- */

static void fish_candidates(FILE *f, const char *how)
{
	fputs("\"(", f);
	for (const char *p = how; *p; p++)
		fprintf(f, strchr("\"$\\", *p) ? "\\%c" : "%c", *p);
	fputs(")\"", f);
}

/* One line for each operand that has candidates; the last one may be repeated. */
static void fish_operands(FILE *f, const struct cmd *c)
{
	for (size_t i = 0; *c->operands && i < OPERANDS && operand(c, i).p; i++) {
		const char *how = how_of(operand(c, i));
		bool last = i + 1 == OPERANDS || !operand(c, i + 1).p;

		if (!*how)
			continue;
		fprintf(f, "complete -c paddock -n '__paddock_at %zu %s %s' ", i, last ? "more" : "only",
			c->name);
		if (*how == '<') {
			fputs("-F\n", f);
			continue;
		}
		fputs("-a ", f);
		fish_candidates(f, how);
		fputc('\n', f);
	}
}

static void fish_option(FILE *f, const struct cmd *c, const struct opt *o)
{
	const char *how = o->arg ? how_of(view_of(o->arg)) : "";

	fprintf(f, "complete -c paddock -n '__paddock_is %s' -l %s", c->name, o->name);
	if (o->letter)
		fprintf(f, " -s %c", o->letter);
	if (o->kind != OPT_FLAG)
		fputs(strcmp(how, "<files>") == 0 || strcmp(how, "<dirs>") == 0 ? " -r -F" : " -x", f);
	if (o->kind != OPT_FLAG && *how && *how != '<') {
		fputs(" -a ", f);
		fish_candidates(f, how);
	}
	fputs(" -d ", f);
	put_quoted(f, o->help);
	fputc('\n', f);
}

static void fish_command(FILE *f, const struct cmd *c)
{
	const char *space = strchr(c->name, ' ');

	if (space)
		fprintf(f, "complete -c paddock -n '__paddock_in_group %.*s' -a %s -d ",
			(int)(space - c->name), c->name, space + 1);
	else
		fprintf(f, "complete -c paddock -n __fish_use_subcommand -a %s -d ", c->name);
	put_quoted(f, c->summary);
	fputc('\n', f);
	if (space)
		fprintf(f, "complete -c paddock -n __fish_use_subcommand -a %.*s\n", (int)(space - c->name),
			c->name);
	fish_operands(f, c);
	walk_options(f, c, fish_option);
}

static const char FISH_BEGIN[] = "# Completion of paddock for fish: paddock completion fish | source\n"
				 "function __paddock_words\n"
				 "\tset -l words (commandline -opc)\n"
				 "\tfor word in $words[2..-1]\n"
				 "\t\tstring match -q -- '-*' $word; or echo $word\n"
				 "\tend\n"
				 "end\n"
				 "function __paddock_is\n"
				 "\tset -l words (__paddock_words)\n"
				 "\tset -l n (count $argv)\n"
				 "\ttest (count $words) -ge $n; and test \"$words[1..$n]\" = \"$argv\"\n"
				 "end\n"
				 "# how many operands there are, whether there may be more, and the command\n"
				 "function __paddock_at\n"
				 "\t__paddock_is $argv[3..-1]; or return 1\n"
				 "\tset -l n (math (count (__paddock_words)) - (count $argv) + 2)\n"
				 "\ttest $n -eq $argv[1]; or test $argv[2] = more -a $n -gt $argv[1]\n"
				 "end\n"
				 "function __paddock_in_group\n"
				 "\tset -l words (__paddock_words)\n"
				 "\ttest (count $words) -eq 1; and test \"$words[1]\" = $argv[1]\n"
				 "end\n"
				 "complete -c paddock -f\n";

static void write_fish(FILE *f)
{
	fputs(FISH_BEGIN, f);
	for (size_t i = 0; i < commands_n; i++)
		fish_command(f, commands[i]);
}

static int run(struct cmd_ctx *ctx _unused_, const void *flags _unused_, size_t n _unused_, char **operands,
	       struct err *e)
{
	static const struct {
		const char *name;
		void (*write)(FILE *f);
	} shells[] = { { "bash", write_bash }, { "zsh", write_zsh }, { "fish", write_fish } };

	for (size_t i = 0; i < ELEMS(shells); i++)
		if (strcmp(operands[0], shells[i].name) == 0) {
			shells[i].write(stdout);
			return 0;
		}
	return err_set(e, ERR_INVALID, "\"%.40s\" is not a shell that can be completed: bash, zsh or fish",
		       operands[0]);
}

const struct cmd cmd_completion = {
	.name = "completion",
	.operands = "SHELL",
	.summary = "print what bash, zsh or fish needs to complete this command",
	.help = "bash:  eval \"$(paddock completion bash)\"\n"
		"zsh:   source <(paddock completion zsh)\n"
		"fish:  paddock completion fish | source",
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.run = run,
};
