/*
 * Command lines of sudo and su: see sudo_args.h.
 */
#include "sudo_args.h"

#include <errno.h>
#include <stdio.h>

#include "buf.h"
#include "poison.h"

#define TEXT_MAX (1u << 20)

/* Kept when the environment is reset: sudo's own list, and what makes a box's network usable. */
static const char *const kept[] = {
	"TERM",
	"COLORTERM",
	"LANG",
	"LANGUAGE",
	"LC_*",
	"TZ",
	"DISPLAY",
	"XAUTHORITY",
	"HTTP_PROXY",
	"HTTPS_PROXY",
	"ALL_PROXY",
	"NO_PROXY",
	"http_proxy",
	"https_proxy",
	"all_proxy",
	"no_proxy",
	"SSL_CERT_FILE",
	"SSL_CERT_DIR",
	"REQUESTS_CA_BUNDLE",
	"CURL_CA_BUNDLE",
	"PIP_CERT",
	"GIT_SSL_CAINFO",
	"NODE_EXTRA_CA_CERTS",
	"PIP_BREAK_SYSTEM_PACKAGES",
};

static bool is_assignment(const char *s)
{
	const char *eq = strchr(s, '=');
	return eq && eq != s && !memchr(s, '/', (size_t)(eq - s));
}

static int bad(struct err *e, const char *option)
{
	return err_set(e, ERR_INVALID, "unknown option '%.40s'", option);
}

/* ---- sudo ---- */

struct cursor {
	char **at; /* the argument that is being read */
	char *in;  /* the rest of it behind a letter */
};

/* The argument of a letter: what stands behind it, or the next word. */
static const char *argument(struct cursor *c)
{
	if (*c->in) {
		char *rest = c->in;
		c->in += strlen(c->in);
		return rest;
	}
	return c->at[1] ? *++c->at : NULL;
}

static int take_letter(char letter, struct cursor *c, struct sudo_args *s, struct err *e)
{
	const char *ignored = "";
	switch (letter) {
	case 'E':
		s->keep = true;
		return 0;
	case 'i':
		s->login = true;
		return 0;
	case 's':
		s->shell = true;
		return 0;
	case 'b':
		s->background = true;
		return 0;
	case 'H':
	case 'n':
	case 'S':
	case 'A':
	case 'B':
	case 'N':
	case 'P':
		return 0;
	case 'k':
	case 'K':
	case 'v':
		s->mode = s->mode == SUDO_RUN ? SUDO_NOTHING : s->mode;
		return 0;
	case 'l':
		s->mode = SUDO_LIST;
		return 0;
	case 'V':
		s->mode = SUDO_VERSION;
		return 0;
	case 'h':
		s->mode = SUDO_HELP;
		return 0;
	case 'u':
		s->user = argument(c);
		break;
	case 'D':
		s->cwd = argument(c);
		break;
	case 'p':
	case 'C':
	case 'T':
	case 'U':
		ignored = argument(c);
		break;
	case 'g':
	case 'e':
	case 'R':
	case 'r':
	case 't':
		return err_set(e, ERR_UNSUPPORTED, "-%c is not supported in a sandbox", letter);
	default:
		return err_set(e, ERR_INVALID, "unknown option '-%c'", letter);
	}
	return s->user && ignored && (letter != 'D' || s->cwd)
		       ? 0
		       : err_set(e, ERR_INVALID, "-%c needs an argument", letter);
}

static const struct {
	const char *name;
	char letter;
} longs[] = {
	{ "login", 'i' },
	{ "shell", 's' },
	{ "background", 'b' },
	{ "set-home", 'H' },
	{ "non-interactive", 'n' },
	{ "stdin", 'S' },
	{ "askpass", 'A' },
	{ "reset-timestamp", 'k' },
	{ "validate", 'v' },
	{ "list", 'l' },
	{ "version", 'V' },
	{ "help", 'h' },
	{ "user", 'u' },
	{ "chdir", 'D' },
	{ "prompt", 'p' },
	{ "close-from", 'C' },
	{ "group", 'g' },
	{ "edit", 'e' },
	{ "chroot", 'R' },
	{ "remove-timestamp", 'K' },
	{ "preserve-groups", 'P' },
	{ "command-timeout", 'T' },
	{ "other-user", 'U' },
};

static int take_long(const char *name, struct cursor *c, struct sudo_args *s, struct err *e)
{
	if (strcmp(name, "preserve-env") == 0) {
		s->keep = true;
		return 0;
	}
	if (strncmp(name, "preserve-env=", 13) == 0) {
		s->keep_list = name + 13;
		return 0;
	}
	char *eq = strchr(name, '=');
	size_t n = eq ? (size_t)(eq - name) : strlen(name);
	for (size_t i = 0; i < ELEMS(longs); i++)
		if (strlen(longs[i].name) == n && strncmp(longs[i].name, name, n) == 0) {
			static char none[1];
			c->in = eq ? eq + 1 : none;
			int r = take_letter(longs[i].letter, c, s, e);
			return r;
		}
	return bad(e, name);
}

static int read_sudo(char **argv, struct sudo_args *s, struct err *e)
{
	struct cursor c = { .at = argv };
	for (c.at = argv; *c.at; c.at++) {
		char *word = *c.at;
		if (strcmp(word, "--") == 0) {
			c.at++;
			break;
		}
		if (word[0] != '-' || !word[1])
			break;
		if (word[1] == '-') {
			if (take_long(word + 2, &c, s, e) < 0)
				return -1;
			continue;
		}
		for (c.in = word + 1; *c.in;) {
			char letter = *c.in++;
			if (take_letter(letter, &c, s, e) < 0)
				return -1;
		}
	}
	for (s->sets = c.at; *c.at && is_assignment(*c.at); c.at++)
		s->n_sets++;
	s->argv = c.at;
	while (s->argv[s->argc])
		s->argc++;
	if (s->argc && s->mode == SUDO_NOTHING)
		s->mode = SUDO_RUN; /* sudo -k COMMAND */
	if (s->mode == SUDO_RUN && !s->argc && !s->login && !s->shell)
		return err_set(e, ERR_INVALID,
			       "no command: sudo [-E] [-i | -s] [-n] [-u USER] [VAR=VALUE] COMMAND …");
	return 0;
}

/* ---- su ---- */

static int read_su(char **argv, struct sudo_args *s, struct err *e)
{
	bool named = false;
	char **at = argv;
	s->keep = true;
	s->shell = true;
	for (; *at; at++) {
		const char *w = *at;
		if (strcmp(w, "--") == 0) {
			at++;
			break;
		}
		if (strcmp(w, "-") == 0 || strcmp(w, "-l") == 0 || strcmp(w, "--login") == 0) {
			s->login = true;
			s->keep = false;
		} else if ((strcmp(w, "-c") == 0 || strcmp(w, "--command") == 0) && at[1]) {
			s->command = *++at;
		} else if (strncmp(w, "--command=", 10) == 0) {
			s->command = w + 10;
		} else if ((strcmp(w, "-s") == 0 || strcmp(w, "--shell") == 0) && at[1]) {
			s->program = *++at;
		} else if (strncmp(w, "--shell=", 8) == 0) {
			s->program = w + 8;
		} else if (strcmp(w, "-m") == 0 || strcmp(w, "-p") == 0 || strcmp(w, "-P") == 0 ||
			   strcmp(w, "--preserve-environment") == 0 || strcmp(w, "--pty") == 0) {
			continue;
		} else if (strcmp(w, "-V") == 0 || strcmp(w, "--version") == 0) {
			s->mode = SUDO_VERSION;
		} else if (strcmp(w, "-h") == 0 || strcmp(w, "--help") == 0) {
			s->mode = SUDO_HELP;
		} else if (w[0] == '-' && w[1]) {
			return bad(e, w);
		} else if (!named) {
			named = true;
			s->user = w;
		} else {
			break;
		}
	}
	if (!named && *at)
		s->user = *at++;
	s->argv = at; /* the shell's own arguments */
	while (s->argv[s->argc])
		s->argc++;
	return 0;
}

int sudo_args_read(int argc, char **argv, struct arena *a, struct sudo_args *ret, struct err *e)
{
	static char *none[1];
	(void)a;
	const char *name = argc ? strrchr(argv[0], '/') : NULL;
	name = name ? name + 1 : argc ? argv[0] : "sudo";
	struct sudo_args s = { .user = "root", .su = strcmp(name, "su") == 0 };
	char **rest = argc ? argv + 1 : none;
	int r = s.su ? read_su(rest, &s, e) : read_sudo(rest, &s, e);
	if (r == 0 && !s.user[0])
		r = err_set(e, ERR_INVALID, "the user's name is empty");
	if (r == 0)
		*ret = s;
	return r;
}

/* ---- the command ---- */

/* A shell's -c takes one string: words are joined, and what it would interpret is escaped, as sudo does. */
static char *join(const struct sudo_args *s, struct arena *a)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	for (unsigned i = 0; i < s->argc; i++) {
		if (i)
			buf_putc(&b, ' ');
		for (const char *p = s->argv[i]; *p; p++) {
			bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
				     (*p >= '0' && *p <= '9') || strchr("_-$./", *p) || *p & 0x80;
			if (!plain)
				buf_putc(&b, '\\');
			buf_putc(&b, *p);
		}
	}
	return b.bad ? NULL : arena_str(a, buf_view(&b));
}

static const char *env_get(char **env, const char *name)
{
	size_t n = strlen(name);
	for (; *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

int sudo_args_command(const struct sudo_args *s, const struct sudo_target *t, const struct sudo_caller *c,
		      struct arena *a, char ***ret_argv, const char **ret_file)
{
	*ret_file = NULL;
	if (!s->login && !s->shell) {
		*ret_argv = s->argv;
		return 0;
	}
	const char *own = s->su || s->login ? NULL : env_get(c->env, "SHELL");
	const char *file = s->program ? s->program : own && own[0] ? own : t->shell;
	const char *slash = strrchr(file, '/');
	char **argv = arena_array(a, s->argc + 4, sizeof(char *));
	char *zero = arena_alloc(a, strlen(file) + 2);
	if (!argv || !zero)
		return -ENOMEM;
	snprintf(zero, strlen(file) + 2, "%s%s", s->login ? "-" : "", slash ? slash + 1 : file);
	unsigned n = 0;
	argv[n++] = zero;
	if (s->su && s->command) {
		argv[n++] = (char *)"-c";
		argv[n++] = (char *)s->command;
	}
	if (s->su)
		for (unsigned i = 0; i < s->argc; i++)
			argv[n++] = s->argv[i];
	if (!s->su && s->argc) {
		argv[n++] = (char *)"-c";
		argv[n++] = join(s, a);
		if (!argv[n - 1])
			return -ENOMEM;
	}
	*ret_argv = argv;
	*ret_file = file;
	return 0;
}

/* ---- the environment ---- */

struct env {
	char **items;
	unsigned n, max;
	struct arena *a;
	bool bad;
};

static void put(struct env *env, const char *name, const char *value)
{
	size_t nn = strlen(name), size = nn + strlen(value) + 2;
	char *text = arena_alloc(env->a, size);
	unsigned i = 0;
	if (!text) {
		env->bad = true;
		return;
	}
	snprintf(text, size, "%s=%s", name, value);
	while (i < env->n && strncmp(env->items[i], text, nn + 1) != 0)
		i++;
	if (i == env->max)
		env->bad = true;
	else
		env->items[i] = text;
	env->n += i == env->n && i < env->max;
}

static void put_pair(struct env *env, const char *pair)
{
	const char *eq = strchr(pair, '=');
	char name[256];
	if (!eq || view_to_str((struct view){ pair, (size_t)(eq - pair) }, name, sizeof(name)) < 0)
		return;
	put(env, name, eq + 1);
}

static bool matches(const char *pair, struct view pattern)
{
	const char *eq = strchr(pair, '=');
	struct view name = { pair, eq ? (size_t)(eq - pair) : 0 };
	if (pattern.n && pattern.p[pattern.n - 1] == '*')
		return name.n >= pattern.n - 1 && memcmp(name.p, pattern.p, pattern.n - 1) == 0;
	return view_eq(name, pattern);
}

static bool is_kept(const char *pair, const struct sudo_args *s)
{
	/* The shell's own inventions never pass, as with sudo. */
	if (strncmp(pair, "BASH_FUNC_", 10) == 0 || strncmp(pair, "BASH_ENV=", 9) == 0)
		return false;
	if (s->keep)
		return true;
	for (size_t i = 0; i < ELEMS(kept); i++)
		if (matches(pair, view_of(kept[i])) && !(s->su && strcmp(kept[i], "TERM") != 0))
			return true;
	struct view rest = view_of(s->keep_list ? s->keep_list : "");
	while (rest.n)
		if (matches(pair, view_split(rest, ',', &rest)))
			return true;
	return false;
}

static void put_sudo(struct env *env, const struct sudo_caller *c, char *const *argv)
{
	char number[16];
	_cleanup_(buf_done) struct buf command = BUF_INIT(4096);
	for (; *argv && !command.bad; argv++) {
		buf_puts(&command, *argv);
		if (argv[1])
			buf_putc(&command, ' ');
	}
	if (!command.bad) {
		buf_putc(&command, 0);
		if (!command.bad)
			put(env, "SUDO_COMMAND", buf_view(&command).p);
	}
	put(env, "SUDO_USER", c->name);
	snprintf(number, sizeof(number), "%u", c->uid);
	put(env, "SUDO_UID", number);
	snprintf(number, sizeof(number), "%u", c->gid);
	put(env, "SUDO_GID", number);
}

int sudo_args_env(const struct sudo_args *s, const struct sudo_target *t, const struct sudo_caller *c,
		  char *const *argv, struct arena *a, char ***ret)
{
	struct env env = { .a = a };
	while (c->env[env.n])
		env.n++;
	env.max = env.n + s->n_sets + 16;
	env.n = 0;
	env.items = arena_array(a, env.max + 1, sizeof(char *));
	if (!env.items)
		return -ENOMEM;
	for (char **p = c->env; *p; p++)
		if (is_kept(*p, s))
			put_pair(&env, *p);
	if (!s->su || s->login)
		put(&env, "PATH", SUDO_ARGS_PATH);
	put(&env, "HOME", t->home);
	put(&env, "SHELL", t->shell);
	if (!s->su || s->login || strcmp(t->name, "root") != 0) {
		put(&env, "USER", t->name);
		put(&env, "LOGNAME", t->name);
	}
	if (!s->su)
		put_sudo(&env, c, argv);
	for (unsigned i = 0; i < s->n_sets; i++)
		put_pair(&env, s->sets[i]);
	*ret = env.items;
	return env.bad ? -ENOMEM : 0;
}
