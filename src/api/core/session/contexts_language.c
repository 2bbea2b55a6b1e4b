/*
 * The languages of code contexts: how an interpreter is started and given its driver,
 * and how variables are written for it.
 */
#include "contexts_drivers.h"
#include "contexts_impl.h"
#include "text.h"
#include "poison.h"

static void put_env_json(struct buf *b, const struct context_code *w)
{
	struct json_out o;

	json_out_init(&o, b);
	json_out_object(&o);
	for (size_t i = 0; i < w->env.n + w->secrets.n; i++) {
		const struct json_strmap *from = i < w->env.n ? &w->env : &w->secrets;
		size_t at = i < w->env.n ? i : i - w->env.n;
		json_out_key_view(&o, from->keys[at]);
		json_out_str(&o, from->values[at]);
	}
	json_out_end(&o, '}');
}

/* A='b c' D='e'"'"'f': the names were checked to be names. */
static void put_words(struct buf *b, const struct json_strmap *env)
{
	for (size_t i = 0; i < env->n; i++) {
		buf_add(b, env->keys[i]);
		buf_putc(b, '=');
		text_quote_word(b, env->values[i]);
		buf_putc(b, ' ');
	}
}

static void put_env_words(struct buf *b, const struct context_code *w)
{
	put_words(b, &w->env);
	put_words(b, &w->secrets);
}

/* NAME=VALUE, and a NUL after each: no value has one. */
static void put_env_strings(struct buf *b, const struct context_code *w)
{
	for (size_t i = 0; i < w->env.n + w->secrets.n; i++) {
		const struct json_strmap *from = i < w->env.n ? &w->env : &w->secrets;
		size_t at = i < w->env.n ? i : i - w->env.n;
		buf_add(b, from->keys[at]);
		buf_putc(b, '=');
		buf_add(b, from->values[at]);
		buf_putc(b, 0);
	}
}

#define NODE(language)                                                                                       \
	{                                                                                                    \
		"node", "-e",                                                                                \
			"{const f = require('fs'), b = Buffer.alloc(1); let n = '';"                         \
			"while (f.readSync(250, b) && b[0] != 10) n += b;"                                   \
			"const d = Buffer.alloc(+n);"                                                        \
			"for (let i = 0; i < d.length;) i += f.readSync(250, d, i, d.length - i, null);"     \
			"require('vm').runInThisContext('(function(require,boot){' + d + '\\n})', { "        \
			"filename: "                                                                         \
			"'paddock' })"                                                                       \
			"(require, { load: (s, o) => import(s, o), language: '" language "' })}"             \
	}

/* For an interpreter that reads its program from a file: says so where there is none, else has it in $d. */
#define BY_BASH(name, program, needs, start)                                                                 \
	{                                                                                                    \
		"bash", "--norc", "-c",                                                                      \
			"if ! command -v " program " >/dev/null; then printf '%s\\n' "                       \
			"'{\"id\":0,\"type\":\"unsupported\",\"value\":\"" name " needs " program            \
			", which this sandbox does not have: install " needs "\"}' >&251; exit 1; fi\n"      \
			"IFS=' ' read -r -u 250 n; LC_ALL=C IFS= read -r -u 250 -N \"$n\" d\n" start,        \
			"bash"                                                                               \
	}

#define R_NEEDS    "r-base-core"
#define JAVA_NEEDS "default-jdk-headless"

/* Descriptor 250 is read to the byte: what follows the driver is the first request. The lines of
 * Python and Node are not seen in `ps`: their drivers wipe them. */
static const struct context_language contexts_languages[] = {
	{ "python",
	  { "python3", "-c",
	    "import io\n"
	    "c = io.open(250, 'rb', closefd=False)\n"
	    "exec(compile(c.read(int(c.readline())), '<paddock>', 'exec'),"
	    " {'control': c, '__name__': '__paddock__'})" },
	  contexts_python,
	  &contexts_python_size,
	  put_env_json,
	  .needs = "python3" },
	{ "javascript", NODE("javascript"), contexts_javascript, &contexts_javascript_size, put_env_json,
	  .needs = "nodejs" },
	{ "typescript", NODE("typescript"), contexts_javascript, &contexts_javascript_size, put_env_json,
	  .needs = "nodejs and node-typescript", .greets = true },
	{ "r",
	  BY_BASH("r", "R", R_NEEDS,
		  "export LANG=\"${LANG:-C.UTF-8}\" EDITOR=\"${EDITOR:-vi}\" PAGER=\"${PAGER:-cat}\"\n"
		  "exec R --no-save --no-restore --no-echo --file=/proc/self/fd/3 3<<<\"$d\""),
	  contexts_r, &contexts_r_size, put_env_strings, .needs = R_NEEDS, .greets = true },
	/* The second compiler would cost four seconds of the start. */
	{ "java",
	  BY_BASH("java", "java", JAVA_NEEDS,
		  "f=$(mktemp) && printf %s \"$d\" >\"$f\" && exec 3<\"$f\" && rm \"$f\" &&\n"
		  "exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.awt.headless=true "
		  "-Dfile.encoding=UTF-8 "
		  "--add-modules jdk.jshell --source 11 /proc/self/fd/3"),
	  contexts_java, &contexts_java_size, put_env_strings, .needs = JAVA_NEEDS, .greets = true },
	{ "bash",
	  { "bash", "--norc", "-s" },
	  contexts_bash,
	  &contexts_bash_size,
	  put_env_words,
	  .by_stdin = true, /* it reads no more than the driver from a pipe */
	  .needs = "bash",
	  .insist = true }, /* a signal that comes while it forks is not seen before the child has ended */
	{ 0 },
};

const struct context_language *contexts_language(struct view name)
{
	for (const struct context_language *l = contexts_languages; l->name; l++)
		if (view_is(name, l->name))
			return l;
	return NULL;
}
