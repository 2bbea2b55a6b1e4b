/*
 * paddock sandkasten VERB: the command line of Sandkasten, each verb by the command of ours that does it. A
 * link named `sandkasten` to this program makes `sandkasten VERB` work as it is written.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cmd.h"
#include "fd.h"
#include "nearest.h"
#include "num.h"
#include "rnd.h"
#include "text.h"

#include "poison.h"

#define WORDS_MAX   64
#define KEY_BYTES   20
#define FILE_NAME   "sandkasten.yaml"
#define FILE_SYSTEM "/etc/sandkasten/" FILE_NAME
#define PID_FILE    "/run/sandkasten.pid"
#define READY_MAX   4096

/* What is ours by another name. */
static const struct {
	const char *verb, *second; /* second NULL: none */
	const char *command[3];
} same[] = {
	{ "ps", NULL, { "ls" } },
	{ "rm", NULL, { "rm" } },
	{ "logs", NULL, { "logs" } },
	{ "doctor", NULL, { "doctor" } },
	{ "security", NULL, { "doctor" } },
	{ "version", NULL, { "version" } },
	{ "image", "list", { "image", "ls" } },
	{ "image", "delete", { "image", "rm" } },
};

/* This very program again, with other words. */
static int become(const char *const *command, char **rest, struct err *e)
{
	char *argv[WORDS_MAX] = { (char *)"paddock" };
	size_t n = 1;

	for (; *command && n < WORDS_MAX - 1; command++)
		argv[n++] = (char *)*command;
	for (; *rest && n < WORDS_MAX - 1; rest++)
		argv[n++] = *rest;
	if (*rest)
		return err_set(e, ERR_INVALID, "too many words");
	execv("/proc/self/exe", argv);
	return err_sys(e, ERR_INTERNAL, errno, "cannot run paddock");
}

/* ---- daemon, stop ---- */

struct daemon_flags {
	const char *config, *log_level;
	bool detach;
};

#define AT(member) offsetof(struct daemon_flags, member)
static const struct opt daemon_opts[] = {
	{ "config", 0, OPT_TEXT, AT(config), "FILE", "" },
	{ "log-level", 0, OPT_TEXT, AT(log_level), "LEVEL", "" },
	{ "detach", 'd', OPT_FLAG, AT(detach), NULL, "" },
};
#undef AT

static int serve(const struct daemon_flags *f, struct err *e)
{
	const char *file = f->config ? f->config : access(FILE_NAME, F_OK) == 0 ? FILE_NAME : FILE_SYSTEM;
	const char *const command[] = { "serve", "--config", file, NULL };
	char *rest[] = { NULL };

	if (f->log_level)
		setenv("PADDOCK_LOG_LEVEL", f->log_level, 1);
	return become(command, rest, e);
}

/* The daemon's first line says that it is ready. */
static int await(int from, struct err *e)
{
	char line[READY_MAX];
	size_t n = 0;
	ssize_t got;

	while (n < sizeof(line) && (got = read(from, line + n, sizeof(line) - n)) > 0) {
		n += (size_t)got;
		if (memchr(line, '\n', n)) {
			printf("%.*s", (int)n, line);
			return 0;
		}
	}
	return err_set(e, ERR_UNAVAILABLE, "the daemon did not start; without -d it says why");
}

static int detach(const struct daemon_flags *f, struct err *e)
{
	_cleanup_(closep) int from = -EBADF, to = -EBADF;
	int ends[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char text[16];

	if (null < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot detach");
	from = ends[0];
	to = ends[1];
	pid_t pid = fork();
	if (pid < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot detach");
	if (pid == 0) {
		(void)setsid();
		if (dup2(null, 0) < 0 || dup2(to, 1) < 0)
			_exit(CMD_FAILED);
		(void)serve(f, e);
		fprintf(stderr, "sandkasten: %s\n", e->msg);
		_exit(CMD_FAILED);
	}
	fd_close(null);
	fd_close(TAKE_FD(to));
	int n = snprintf(text, sizeof(text), "%d\n", (int)pid);
	int r = fd_replace(AT_FDCWD, PID_FILE, text, (size_t)n, 0644, false);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "cannot write " PID_FILE);
	return await(from, e);
}

static int run_daemon(struct cmd_ctx *ctx, size_t n, char **words, struct err *e)
{
	struct daemon_flags f = { 0 };
	const struct opt_table tables[] = { { daemon_opts, ELEMS(daemon_opts), &f } };
	char **operands;

	if (opts_parse(&ctx->arena, tables, ELEMS(tables), OPTS_ANYWHERE, n, words, &operands, &n, e) < 0)
		return -1;
	return f.detach ? detach(&f, e) : serve(&f, e);
}

/* The number in the file may be another program's by now. */
static bool is_daemon(pid_t pid)
{
	_cleanup_(buf_done) struct buf name = BUF_INIT(64);
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	return fd_slurp(AT_FDCWD, path, &name) >= 0 && view_eq(buf_view(&name), VIEW("paddockd\n"));
}

static int run_stop(struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(64);
	_cleanup_(closep) int pidfd = -EBADF;
	struct view rest;
	uint32_t pid;

	if (fd_slurp(AT_FDCWD, PID_FILE, &text) < 0 ||
	    num_u32(view_split(buf_view(&text), '\n', &rest), &pid) < 0)
		return err_set(e, ERR_NOT_FOUND, "no daemon was started with `sandkasten daemon -d`");
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (pidfd < 0 || !is_daemon((pid_t)pid))
		return err_set(e, ERR_NOT_FOUND, "the daemon does not run");
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot stop the daemon");
	(void)unlink(PID_FILE);
	return 0;
}

/* ---- init ---- */

struct init_flags {
	const char *listen, *key, *image, *pull;
	bool skip_pull, force;
};

#define AT(member) offsetof(struct init_flags, member)
static const struct opt init_opts[] = {
	{ "listen", 0, OPT_TEXT, AT(listen), "ADDR:PORT", "" },
	{ "api-key", 0, OPT_TEXT, AT(key), "KEY", "" },
	{ "default-image", 0, OPT_TEXT, AT(image), "NAME", "" },
	{ "pull", 0, OPT_TEXT, AT(pull), "IMAGE", "" },
	{ "skip-pull", 0, OPT_FLAG, AT(skip_pull), NULL, "" },
	{ "force", 0, OPT_FLAG, AT(force), NULL, "" },
};
#undef AT

static int no_pull(struct err *e)
{
	return err_set(e, ERR_UNSUPPORTED,
		       "images are not pulled from registries yet; `paddock image import NAME FILE` takes "
		       "what `docker save` writes");
}

static int write_file(const struct init_flags *f, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(16384);
	uint8_t secret[KEY_BYTES];
	char made[3 + 2 * KEY_BYTES + 1] = "sk-";
	struct json_out o;

	rnd_bytes(secret, sizeof(secret));
	text_hex(secret, sizeof(secret), made + 3);
	/* What is JSON is YAML, too, and quoted as it must be. */
	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_kz(&o, "listen", f->listen ? f->listen : "127.0.0.1:8080");
	json_out_kz(&o, "api_key", f->key ? f->key : made);
	json_out_kz(&o, "default_image", f->image ? f->image : "base");
	json_out_key(&o, "workspace");
	json_out_object(&o);
	json_out_kbool(&o, "enabled", true);
	json_out_end(&o, '}');
	json_out_end(&o, '}');
	buf_putc(&b, '\n');
	if (b.bad)
		return err_set(e, ERR_INVALID, "the values are too long");
	struct view text = buf_view(&b);
	int r = fd_replace(AT_FDCWD, FILE_NAME, text.p, text.n, 0600, false);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "cannot write " FILE_NAME) : 0;
}

static int run_init(struct cmd_ctx *ctx, size_t n, char **words, struct err *e)
{
	struct init_flags f = { 0 };
	const struct opt_table tables[] = { { init_opts, ELEMS(init_opts), &f } };
	char **operands;

	if (opts_parse(&ctx->arena, tables, ELEMS(tables), OPTS_ANYWHERE, n, words, &operands, &n, e) < 0)
		return -1;
	if (f.pull && !f.skip_pull)
		return no_pull(e);
	if (!f.force && access(FILE_NAME, F_OK) == 0)
		return err_set(e, ERR_CONFLICT, FILE_NAME " is there already; --force writes it anew");
	if (write_file(&f, e) < 0)
		return -1;
	printf("wrote " FILE_NAME " with a key for clients; `sandkasten daemon` serves with it\n");
	return 0;
}

/* ---- the verbs ---- */

static int unknown(const char *verb, struct err *e)
{
	struct nearest near = NEAREST(view_of(verb));

	for (size_t i = 0; i < ELEMS(same); i++)
		nearest_try(&near, same[i].verb);
	nearest_try(&near, "daemon");
	nearest_try(&near, "init");
	nearest_try(&near, "stop");
	if (near.best)
		return err_set(e, ERR_INVALID, "no verb \"%.40s\"; did you mean `%s`?", verb, near.best);
	return err_set(
		e, ERR_INVALID,
		"no verb \"%.40s\"; there are daemon, init, ps, rm, stop, logs, doctor, security, image, "
		"version",
		verb);
}

static int run(struct cmd_ctx *ctx, const void *flags _unused_, size_t n, char **words, struct err *e)
{
	const char *verb = words[0], *second = n > 1 ? words[1] : "";

	if (strcmp(verb, "daemon") == 0)
		return run_daemon(ctx, n - 1, words + 1, e);
	if (strcmp(verb, "init") == 0)
		return run_init(ctx, n - 1, words + 1, e);
	if (strcmp(verb, "stop") == 0)
		return run_stop(e);
	if (strcmp(verb, "image") == 0 && strcmp(second, "pull") == 0)
		return no_pull(e);
	if (strcmp(verb, "image") == 0 && strcmp(second, "validate") == 0) {
		const char *const inspect[] = { "run", "--image", n > 2 ? words[2] : "", "--", "true", NULL };
		char *rest[] = { NULL };
		return become(inspect, rest, e); /* an image is good when a command runs in it */
	}
	for (size_t i = 0; i < ELEMS(same); i++)
		if (strcmp(verb, same[i].verb) == 0 &&
		    (!same[i].second || strcmp(second, same[i].second) == 0))
			return become(same[i].command, words + (same[i].second ? 2 : 1), e);
	return unknown(verb, e);
}

const struct cmd cmd_sandkasten = {
	.name = "sandkasten",
	.operands = "VERB [ARGUMENT…]",
	.summary = "the verbs of Sandkasten's command line",
	.help = "daemon [-d] [--config FILE] [--log-level LEVEL], stop, init, ps, rm, logs, doctor, "
		"security,\n"
		"image list, image delete, image validate, version. See docs/sandkasten.md.",
	.min = 1,
	.max = SIZE_MAX,
	.run = run,
};
