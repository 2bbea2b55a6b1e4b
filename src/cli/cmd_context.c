/*
 * paddock login, paddock context: daemons on other machines, by name. A key is read
 * from a file, a variable or a prompt, never from the command line, which everybody
 * on the machine can see.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "call.h"
#include "contexts.h"
#include "fd.h"
#include "nearest.h"
#include "text.h"

#include "poison.h"

#define KEY_MAX 256

struct login_flags {
	const char *name;
};

static const struct opt LOGIN_OPTS[] = {
	{ "name", 'n', OPT_TEXT, offsetof(struct login_flags, name), "NAME",
	  "what to call it (default: the host)" },
};

/* One line, which a terminal does not show. */
static int read_line(char ret[KEY_MAX], struct err *e)
{
	struct termios old, silent;
	bool terminal = tcgetattr(STDIN_FILENO, &old) == 0;
	size_t n = 0;
	ssize_t got;

	if (terminal) {
		/* Silent first: what is typed when the prompt is there must be neither shown nor lost. */
		silent = old;
		silent.c_lflag &= ~(tcflag_t)ECHO;
		(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
		fputs("API key: ", stderr);
	}
	while ((got = read(STDIN_FILENO, ret + n, 1)) == 1 && ret[n] != '\n' && n < KEY_MAX - 1)
		n++;
	if (terminal) {
		(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &old);
		fputc('\n', stderr);
	}
	ret[n] = '\0';
	return n ? 0 : err_set(e, ERR_INVALID, "no key was given");
}

static int find_login_key(const struct session_flags *f, char ret[KEY_MAX], struct err *e)
{
	const char *key = getenv("PADDOCK_API_KEY"), *file = f->key_file;
	_cleanup_(buf_done) struct buf b = { .max = KEY_MAX, .secret = true };
	struct view text;
	int r;

	if (!file && key && *key)
		return view_to_str(view_of(key), ret, KEY_MAX) < 0
			       ? err_set(e, ERR_INVALID, "PADDOCK_API_KEY does not hold an API key")
			       : 0;
	if (!file)
		file = getenv("PADDOCK_KEY_FILE");
	if (!file || !*file)
		return read_line(ret, e);
	r = fd_slurp(AT_FDCWD, file, &b);
	if (r < 0)
		return err_sys(e, ERR_UNAUTHORIZED, r, "cannot read the key file %.120s", file);
	text = buf_view(&b);
	while (text.n && strchr(" \t\r\n", text.p[text.n - 1]))
		text.n--;
	return view_to_str(text, ret, KEY_MAX) < 0
		       ? err_set(e, ERR_INVALID, "%.120s does not hold an API key", file)
		       : 0;
}

/* The file must be found from any directory later. */
static int absolute(struct arena *a, const char *path, const char **ret, struct err *e)
{
	char *real = path ? realpath(path, NULL) : NULL;

	*ret = real ? arena_str(a, view_of(real)) : NULL;
	free(real);
	return path && !*ret ? err_sys(e, ERR_INVALID, errno, "%.120s", path) : 0;
}

static int save(struct cmd_ctx *ctx, struct contexts_entry *entry, struct err *e)
{
	struct contexts_entry *old;
	struct contexts all;

	if (contexts_load(&ctx->arena, &all, e) < 0)
		return -1;
	old = contexts_get(&all, entry->name);
	if (!old && all.n == CONTEXTS_MAX)
		return err_set(e, ERR_TOO_LARGE, "there are %d contexts already", CONTEXTS_MAX);
	*(old ? old : &all.items[all.n++]) = *entry;
	all.current = entry->name;
	return contexts_save(&all, e);
}

static int run_login(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		     struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	const struct login_flags *f = flags;
	struct session_flags at = ctx->session;
	struct contexts_entry entry = { .name = f->name, .url = operands[0] };
	char key[KEY_MAX];
	struct json *answer;
	int r;

	at.url = operands[0];
	at.context = NULL;
	if (absolute(&ctx->arena, at.ca, &entry.ca, e) < 0 || find_login_key(&at, key, e) < 0)
		return -1;
	r = session_open_with(&s, &at, &ctx->arena, view_of(key), e);
	/* A key or a certificate that is no good is better found out now. */
	if (r >= 0)
		r = call_with(&s, &(struct cli_call){ "GET", "capabilities" }, &answer, e);
	if (r >= 0 && !entry.name)
		entry.name = arena_str(&ctx->arena, view_of(s.client.url.host));
	entry.key = key;
	if (r >= 0 && (!text_is_utf8(view_of(entry.name)) || !*entry.name))
		r = err_set(e, ERR_INVALID, "the name is not valid UTF-8");
	if (r >= 0)
		r = save(ctx, &entry, e);
	explicit_bzero(key, sizeof(key));
	if (r >= 0)
		fprintf(stderr, "logged in to %s as context \"%s\", which is in use now\n", operands[0],
			entry.name);
	return r < 0 ? -1 : 0;
}

/* ---- context ---- */

static int load_named(struct cmd_ctx *ctx, const char *name, struct contexts *all, struct err *e)
{
	struct nearest near = NEAREST(view_of(name));

	if (contexts_load(&ctx->arena, all, e) < 0)
		return -1;
	if (contexts_get(all, name))
		return 0;
	for (size_t i = 0; i < all->n; i++)
		nearest_try(&near, all->items[i].name);
	if (near.best)
		return err_set(e, ERR_NOT_FOUND, "there is no context \"%.60s\"; did you mean \"%s\"?", name,
			       near.best);
	return err_set(e, ERR_NOT_FOUND, "there is no context \"%.60s\"; `paddock login URL` makes one",
		       name);
}

static int run_use(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_, char **operands,
		   struct err *e)
{
	struct contexts all;

	if (load_named(ctx, operands[0], &all, e) < 0)
		return -1;
	all.current = operands[0];
	return contexts_save(&all, e);
}

static int run_rm(struct cmd_ctx *ctx, const void *flags _unused_, size_t n, char **operands, struct err *e)
{
	struct contexts all;

	for (size_t i = 0; i < n; i++) {
		struct contexts_entry *one;

		if (load_named(ctx, operands[i], &all, e) < 0)
			return -1;
		one = contexts_get(&all, operands[i]);
		memmove(one, one + 1, (size_t)(all.items + all.n - one - 1) * sizeof(*one));
		all.n--;
		if (all.current && strcmp(all.current, operands[i]) == 0)
			all.current = NULL;
		if (contexts_save(&all, e) < 0)
			return -1;
	}
	return 0;
}

static int print_json(const struct contexts *all, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(1u << 20);
	struct json_out o;

	json_out_init(&o, &b);
	json_out_array(&o);
	for (size_t i = 0; i < all->n; i++) {
		json_out_object(&o);
		json_out_kz(&o, "name", all->items[i].name);
		json_out_kz(&o, "url", all->items[i].url);
		json_out_kz(&o, "ca", all->items[i].ca);
		json_out_kbool(&o, "current", all->current && strcmp(all->current, all->items[i].name) == 0);
		json_out_end(&o, '}');
	}
	json_out_end(&o, ']');
	buf_putc(&b, '\n');
	return b.bad ? err_set(e, ERR_INTERNAL, "out of memory") : show_bytes(STDOUT_FILENO, buf_view(&b), e);
}

static int run_ls(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_,
		  char **operands _unused_, struct err *e)
{
	static const char *const titles[] = { "", "NAME", "URL" };
	_cleanup_(show_table_done) struct show_table t = { 0 };
	struct contexts all;

	if (contexts_load(&ctx->arena, &all, e) < 0)
		return -1;
	if (ctx->json)
		return print_json(&all, e);
	show_table_init(&t, titles, ELEMS(titles));
	for (size_t i = 0; i < all.n; i++)
		show_table_add(&t, (struct view[]){ all.current && strcmp(all.current, all.items[i].name) == 0
							    ? VIEW("*")
							    : VIEW(" "),
						    view_of(all.items[i].name), view_of(all.items[i].url) });
	return show_table_print(&t, e);
}

const struct cmd cmd_login = {
	.name = "login",
	.operands = "URL",
	.summary = "remember a daemon and a key for it, and use it from now on",
	.help = "The key comes from --key-file, PADDOCK_API_KEY, PADDOCK_KEY_FILE or a prompt. It is kept "
		"in\n"
		"~/.config/paddock/contexts.json, which only you can read. --ca is remembered, too.",
	.opts = LOGIN_OPTS,
	.n_opts = ELEMS(LOGIN_OPTS),
	.flags_size = sizeof(struct login_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.run = run_login,
};

const struct cmd cmd_context_use = {
	.name = "context use",
	.operands = "CONTEXT",
	.summary = "use this daemon from now on",
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.run = run_use,
};

const struct cmd cmd_context_ls = {
	.name = "context ls",
	.operands = "",
	.summary = "list the daemons that `login` remembers",
	.lead = OPTS_ANYWHERE,
	.json = true,
	.run = run_ls,
};

const struct cmd cmd_context_rm = {
	.name = "context rm",
	.operands = "CONTEXT…",
	.summary = "forget daemons and their keys",
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = SIZE_MAX,
	.run = run_rm,
};
