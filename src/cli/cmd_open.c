/*
 * paddock open: the dashboard's page of a sandbox, in the user's browser. The address has no key in it: the
 * page asks for one where the browser has no session yet.
 *
 * A browser that runs as root would be a gift to every page, so root gets the address printed, unless BROWSER
 * says what to start.
 */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd.h"
#include "show.h"

#include "poison.h"

#define WORDS_MAX   16
#define BROWSER_MAX 1024

struct open_flags {
	bool print;
};

static const struct opt OPTS[] = {
	{ "print", 'p', OPT_FLAG, offsetof(struct open_flags, print), NULL,
	  "print the address and start no browser" },
};

/* Ours are for this program alone: one of them may hold a key. */
static char **environment(struct arena *a)
{
	size_t n = 0, kept = 0;

	while (environ[n])
		n++;
	char **out = arena_array(a, n + 1, sizeof(*out));
	for (size_t i = 0; out && i < n; i++)
		if (strncmp(environ[i], "PADDOCK_", strlen("PADDOCK_")) != 0)
			out[kept++] = environ[i];
	return out;
}

/* The command's words, with the address where it says %s or else at the end. False: it is none. */
static bool put_words(struct arena *a, struct view command, const char *url, char *words[WORDS_MAX + 2])
{
	size_t n = 0;
	bool named = false;

	for (struct view rest = command; rest.p && n < WORDS_MAX;) {
		struct view word = view_split(rest, ' ', &rest);
		if (!word.n)
			continue;
		bool is_url = view_is(word, "%s");
		words[n] = is_url ? (char *)url : arena_str(a, word);
		if (!words[n++])
			return false;
		named |= is_url;
	}
	if (!n || words[0] == url)
		return false;
	if (!named)
		words[n++] = (char *)url;
	words[n] = NULL;
	return true;
}

/* Whether it ran and found nothing to complain about. It has our terminal: some browsers live in one. */
static bool start(struct arena *a, struct view command, const char *url)
{
	char *words[WORDS_MAX + 2], **env = environment(a);
	int status;
	pid_t pid;

	if (!env || !put_words(a, command, url, words) ||
	    posix_spawnp(&pid, words[0], NULL, NULL, words, env) != 0)
		return false;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);
	return value && *value;
}

static bool start_any(struct arena *a, const char *url)
{
	const char *wish = getenv("BROWSER");

	if (wish && *wish && strlen(wish) < BROWSER_MAX) {
		for (struct view rest = view_of(wish); rest.p;)
			if (start(a, view_split(rest, ':', &rest), url))
				return true;
		return false;
	}
	if (geteuid() == 0 || !(is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")))
		return false;
	return start(a, VIEW("xdg-open"), url);
}

static int put_url(struct cmd_ctx *ctx, const char *ref, struct buf *url, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	struct json *box = NULL;

	if (ref ? session_open(&s, &ctx->session, &ctx->arena, e) < 0 ||
			    session_get(&s, "/v1/sandboxes/", ref, &box, e) < 0
		: session_find(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	buf_printf(url, "http%s://%s/", s.client.url.tls ? "s" : "", s.client.url.authority);
	if (ref) {
		const char *id = box ? arena_str(&ctx->arena, session_text(box, "id")) : NULL;
		buf_puts(url, "#/sandboxes/");
		if (session_segment(url, id ? id : "", e) < 0)
			return -1;
	}
	buf_putc(url, '\0');
	return url->bad ? err_set(e, ERR_INTERNAL, "the address is too long") : 0;
}

static int print_url(bool json, const char *url, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(4096);
	struct json_out o;

	if (json) {
		json_out_init(&o, &b);
		json_out_object(&o);
		json_out_kz(&o, "url", url);
		json_out_end(&o, '}');
	} else {
		buf_puts(&b, url);
	}
	buf_putc(&b, '\n');
	return b.bad ? err_set(e, ERR_INTERNAL, "out of memory") : show_bytes(STDOUT_FILENO, buf_view(&b), e);
}

static int run(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e)
{
	_cleanup_(buf_done) struct buf url = BUF_INIT(2048);
	const struct open_flags *f = flags;

	if (put_url(ctx, n ? operands[0] : NULL, &url, e) < 0)
		return -1;
	if (!f->print && !ctx->json && start_any(&ctx->arena, url.p))
		return 0;
	return print_url(ctx->json, url.p, e);
}

const struct cmd cmd_open = {
	.name = "open",
	.operands = "[SANDBOX]",
	.summary = "open the dashboard, or its page of a sandbox, in the browser",
	.help = "Starts $BROWSER, or xdg-open on a desktop. Prints the address if there is\n"
		"no browser to start, and for root if BROWSER is not set. The address has\n"
		"no key in it: the page asks for one.\n",
	.opts = OPTS,
	.n_opts = ELEMS(OPTS),
	.flags_size = sizeof(struct open_flags),
	.lead = OPTS_ANYWHERE,
	.max = 1,
	.client = true,
	.json = true,
	.run = run,
};
