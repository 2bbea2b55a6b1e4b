/*
 * paddock cp: files and trees into or out of a sandbox, streamed; '-' is standard input
 * or output. Trees travel as tar archives. The path inside is the sandbox's business:
 * it is only percent-encoded here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "cmd.h"
#include "fd.h"
#include "progress.h"
#include "remote.h"
#include "source.h"
#include "text.h"
#include "unpack.h"

#include "poison.h"

#define UNPACK_MS (10 * 60 * 1000)

struct cp_flags {
	bool recursive;
	const char *user;
};

static const struct opt OPTS[] = {
	{ "recursive", 'r', OPT_FLAG, offsetof(struct cp_flags, recursive), NULL,
	  "copy directories and what is in them" },
	{ "user", 'u', OPT_TEXT, offsetof(struct cp_flags, user), "USER",
	  "with the rights of this user of the sandbox" },
};

/* SANDBOX:PATH, or with an empty box a local path. */
struct place {
	const char *box;
	const char *path;
};

struct copying {
	struct session *s;
	const struct cp_flags *f;
	struct arena *a;
};

/* A colon before any slash divides sandbox and path, as in scp. */
static int read_place(struct arena *a, const char *operand, struct place *ret, struct err *e)
{
	size_t n = strcspn(operand, ":/");

	*ret = (struct place){ NULL, operand };
	if (operand[n] != ':' || n == 0)
		return 0;
	*ret = (struct place){ arena_str(a, (struct view){ operand, n }), operand + n + 1 };
	if (ret->path[0] != '/')
		return err_set(e, ERR_INVALID, "the path in the sandbox must begin with '/': \"%.100s\"",
			       ret->path);
	return ret->box ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
}

static bool is_dash(const struct place *p)
{
	return !p->box && strcmp(p->path, "-") == 0;
}

/* "a" of "/x/a" and of "/x/a/"; "" of "/", "." and "..". */
static const char *base_name(struct arena *a, const char *path)
{
	size_t n = strlen(path), from;
	struct view name;

	while (n > 0 && path[n - 1] == '/')
		n--;
	for (from = n; from > 0 && path[from - 1] != '/'; from--)
		;
	name = (struct view){ path + from, n - from };
	if (view_is(name, ".") || view_is(name, ".."))
		return "";
	return arena_str(a, name);
}

static const char *join(struct arena *a, const char *dir, const char *name, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(16u << 10);
	const char *path;
	size_t n = strlen(dir);

	buf_printf(&b, "%s%s%s", dir, *name && n && dir[n - 1] != '/' ? "/" : "", name);
	path = b.bad ? NULL : arena_str(a, buf_view(&b));
	if (!path)
		err_set(e, ERR_INVALID, "the path is too long");
	return path;
}

/* The resource of a path in a sandbox. */
static int put_url(struct copying *c, struct buf *b, const struct place *p, const char *query, struct err *e)
{
	buf_puts(b, "/v1/sandboxes/");
	if (session_segment(b, p->box, e) < 0)
		return -1;
	buf_puts(b, "/files");
	text_percent(b, view_of(p->path));
	buf_puts(b, query);
	if (c->f->user) {
		buf_puts(b, *query ? "&user=" : "?user=");
		text_percent_all(b, view_of(c->f->user));
	}
	return b->bad ? err_set(e, ERR_INVALID, "the path is too long") : 0;
}

/* ---- into a sandbox ---- */

/* *ret_mode stays 0 where there is no file with permissions. */
static int open_source(const struct place *from, int64_t *ret_size, unsigned *ret_mode, struct err *e)
{
	_cleanup_(closep) int fd = -EBADF;
	struct stat st;

	fd = is_dash(from) ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(from->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, ERR_INVALID, errno, "cannot read %.120s", from->path);
	*ret_size = -1;
	*ret_mode = 0;
	if (S_ISREG(st.st_mode)) {
		off_t at = lseek(fd, 0, SEEK_CUR); /* standard input may have been read from already */

		if (at >= 0 && st.st_size > at)
			*ret_size = st.st_size - at;
		else if (at >= 0 && st.st_size > 0)
			*ret_size = 0;
		/* a size of 0 may be a lie (/proc): sent in chunks until its end */
		if (!is_dash(from))
			*ret_mode = st.st_mode & 0777;
	}
	return TAKE_FD(fd);
}

static int send(struct copying *c, struct client_request *rq, const char *name, struct err *e)
{
	_cleanup_(buf_done) struct buf answer = BUF_INIT(64u << 10);
	struct progress p;
	struct response r;
	int code;

	progress_begin(&p, &c->s->client, name, rq->body_size > 0 ? (uint64_t)rq->body_size : 0);
	code = session_send(c->s, rq, &r, e);
	if (code >= 0)
		code = client_read_all(&c->s->client, &answer, e);
	progress_end(&p, &c->s->client);
	return code;
}

static int upload_file(struct copying *c, const struct place *from, const struct place *to, struct err *e)
{
	_cleanup_(buf_done) struct buf url = BUF_INIT(64u << 10);
	_cleanup_(closep) int fd = -EBADF;
	struct client_request rq = {
		.method = "PUT",
		.content_type = "application/octet-stream",
		.streamed = true,
		.timeout_ms = SESSION_CALL_MS,
	};
	unsigned mode = 0;
	char query[32] = "";

	fd = open_source(from, &rq.body_size, &mode, e);
	if (fd < 0)
		return -1;
	if (mode)
		snprintf(query, sizeof(query), "?mode=%04o", mode);
	if (put_url(c, &url, to, query, e) < 0)
		return -1;
	rq.path = buf_view(&url);
	rq.body_fd = fd;
	return send(c, &rq, from->path, e);
}

static int upload_tree(struct copying *c, const struct place *from, const struct place *to, struct err *e)
{
	_cleanup_(buf_done) struct buf url = BUF_INIT(64u << 10);
	_cleanup_(source_done) struct source source = SOURCE_INIT;
	struct client_request rq = {
		.method = "PUT",
		.content_type = "application/x-tar",
		.streamed = true,
		.body_size = -1,
		.at_end = source_check,
		.ctx = &source,
		.timeout_ms = UNPACK_MS,
	};

	if (put_url(c, &url, to, "?archive=tar", e) < 0 ||
	    source_open_dir(&source, from->path, NULL, &(struct source_wish){ 0 }, e) < 0)
		return -1;
	rq.path = buf_view(&url);
	rq.body_fd = source.fd;
	return send(c, &rq, from->path, e);
}

static int upload(struct copying *c, const struct place *from, struct place to, bool into, struct err *e)
{
	struct stat st = { 0 };

	if (!is_dash(from) && stat(from->path, &st) < 0)
		return err_sys(e, ERR_INVALID, errno, "cannot read %.120s", from->path);
	if (S_ISDIR(st.st_mode) && !c->f->recursive)
		return err_set(e, ERR_INVALID, "%.120s is a directory; -r copies it with what is in it",
			       from->path);
	if (into) {
		if (is_dash(from))
			return err_set(e, ERR_INVALID, "\"%.100s\" is a directory; give the file's path",
				       to.path);
		to.path = join(c->a, to.path, base_name(c->a, from->path), e);
		if (!to.path)
			return -1;
	}
	return S_ISDIR(st.st_mode) ? upload_tree(c, from, &to, e) : upload_file(c, from, &to, e);
}

/* ---- out of a sandbox ---- */

/* Writes the answer to a file that is only touched now that there is one. A new
 * file gets the permissions of the box's, as far as our umask lets it. */
static int save(struct session *s, const char *path, unsigned mode, struct err *e)
{
	_cleanup_(closep) int fd = -EBADF;
	bool made = true;

	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode ? mode | S_IWUSR : 0666);
	if (fd < 0 && errno == EEXIST) {
		made = false;
		fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	}
	if (fd < 0)
		return err_sys(e, ERR_INVALID, errno, "cannot write %.120s", path);
	if (client_read_to_fd(&s->client, fd, e) < 0) {
		if (made)
			(void)unlink(path);
		return err_wrap(e, "%.60s", path);
	}
	/* What a full disk or a network file system has to say, it says now. */
	if (close(TAKE_FD(fd)) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot write %.120s", path);
	return 0;
}

static int download_file(struct copying *c, const struct place *from, const struct place *to, struct err *e)
{
	_cleanup_(buf_done) struct buf url = BUF_INIT(64u << 10);
	struct client_request rq = { .method = "GET", .timeout_ms = SESSION_CALL_MS };
	struct progress p;
	struct response r;
	int code;

	if (put_url(c, &url, from, "", e) < 0)
		return -1;
	rq.path = buf_view(&url);
	if (session_send(c->s, &rq, &r, e) < 0)
		return -1;
	progress_begin(&p, &c->s->client, from->path, r.framing == RESPONSE_LENGTH ? r.length : 0);
	code = is_dash(to) ? client_read_to_fd(&c->s->client, STDOUT_FILENO, e)
			   : save(c->s, to->path, r.mode, e);
	progress_end(&p, &c->s->client);
	return code;
}

static int read_archive(struct copying *c, struct unpack *u, struct err *e)
{
	struct view data;
	int r;

	while ((r = client_read(&c->s->client, &data, e)) > 0)
		if (unpack_take(u, data, e) < 0) {
			client_close(&c->s->client);
			return -1;
		}
	return r < 0 ? -1 : unpack_end(u, e);
}

static int download_tree(struct copying *c, const struct place *from, const struct place *to, struct err *e)
{
	_cleanup_(buf_done) struct buf url = BUF_INIT(64u << 10);
	struct client_request rq = { .method = "GET", .timeout_ms = SESSION_CALL_MS };
	struct progress p;
	struct response r;
	struct unpack u;
	int root, code;

	if (is_dash(to))
		return err_set(e, ERR_INVALID, "a directory cannot be written to standard output");
	if (put_url(c, &url, from, "?archive=tar", e) < 0)
		return -1;
	rq.path = buf_view(&url);
	if (session_send(c->s, &rq, &r, e) < 0)
		return -1;
	if (mkdir(to->path, 0777) < 0 && errno != EEXIST)
		return err_sys(e, ERR_INVALID, errno, "cannot make %.120s", to->path);
	root = open(to->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_sys(e, ERR_INVALID, errno, "%.120s", to->path);
	unpack_init(&u, root);
	progress_begin(&p, &c->s->client, from->path, 0);
	code = read_archive(c, &u, e);
	progress_end(&p, &c->s->client);
	if (code >= 0 && u.skipped)
		fprintf(stderr, "paddock: %s: skipped %llu that are neither files, directories nor links\n",
			from->path, (unsigned long long)u.skipped);
	unpack_done(&u);
	return code;
}

static int download(struct copying *c, const struct place *from, struct place to, bool into, struct err *e)
{
	struct remote_info info = { REMOTE_FILE, 0 };

	if (c->f->recursive && remote_stat(c->s, from->box, from->path, &info, e) < 0)
		return -1;
	if (into) {
		to.path = join(c->a, to.path, base_name(c->a, from->path), e);
		if (!to.path)
			return -1;
	}
	if (info.type == REMOTE_DIR)
		return download_tree(c, from, &to, e);
	if (download_file(c, from, &to, e) < 0) {
		bool wants_r = !c->f->recursive && strstr(e->msg, "directory") && !strstr(e->msg, "-r");

		return wants_r ? err_set(e, ERR_INVALID,
					 "%.100s is a directory; -r copies it with what is in it", from->path)
			       : -1;
	}
	return 0;
}

/* ---- both ---- */

/* Whether things are copied into the target, not over it. */
static int target_is_dir(struct copying *c, const struct place *to, bool *ret, struct err *e)
{
	struct remote_info info;
	struct stat st;
	size_t n = strlen(to->path);

	*ret = n > 0 && to->path[n - 1] == '/';
	if (is_dash(to))
		return 0;
	if (!to->box) {
		*ret |= stat(to->path, &st) == 0 && S_ISDIR(st.st_mode);
		return 0;
	}
	if (remote_stat(c->s, to->box, to->path, &info, e) < 0)
		return -1;
	*ret |= info.type == REMOTE_DIR;
	return 0;
}

static int copy_pattern(struct copying *c, const struct place *from, const struct place *to, bool into,
			struct err *e)
{
	const char **paths;
	size_t n;

	if (remote_glob(c->s, from->box, from->path, &paths, &n, e) < 0)
		return -1;
	if (n > 1 && !into)
		return err_set(e, ERR_INVALID, "%.80s fits %zu paths, and %.80s is not a directory",
			       from->path, n, to->path);
	for (size_t i = 0; i < n; i++)
		if (download(c, &(struct place){ from->box, paths[i] }, *to, into, e) < 0)
			return -1;
	return 0;
}

static int copy_one(struct copying *c, const struct place *from, const struct place *to, bool into,
		    struct err *e)
{
	struct remote_info info;

	if (!from->box)
		return upload(c, from, *to, into, e);
	/* A file may be called so. */
	if (!remote_is_pattern(from->path))
		return download(c, from, *to, into, e);
	if (remote_stat(c->s, from->box, from->path, &info, e) < 0)
		return -1;
	return info.type != REMOTE_NONE ? download(c, from, *to, into, e)
					: copy_pattern(c, from, to, into, e);
}

static int run(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	struct copying c = { .s = &s, .f = flags, .a = &ctx->arena };
	struct place to, from;
	bool into;

	if (read_place(c.a, operands[n - 1], &to, e) < 0)
		return -1;
	for (size_t i = 0; i + 1 < n; i++) {
		if (read_place(c.a, operands[i], &from, e) < 0)
			return -1;
		if (!from.box == !to.box)
			return err_set(e, ERR_INVALID,
				       "exactly one side must be in a sandbox (SANDBOX:/PATH)");
	}
	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0 || target_is_dir(&c, &to, &into, e) < 0)
		return -1;
	if (n > 2 && !into)
		return err_set(e, ERR_INVALID, "%.120s is not a directory", to.path);
	for (size_t i = 0; i + 1 < n; i++)
		if (read_place(c.a, operands[i], &from, e) < 0 || copy_one(&c, &from, &to, into, e) < 0)
			return -1;
	return 0;
}

const struct cmd cmd_cp = {
	.name = "cp",
	.operands = "SANDBOX:PATH|FILE… SANDBOX:PATH|FILE",
	.summary = "copy files out of or into a sandbox",
	.help = "FILE may be '-' for standard input or output. A target that is a directory, or ends\n"
		"in '/', gets the files under their own names. Patterns ('*', '?', '[…]') of paths in\n"
		"a sandbox are matched there; quote them.",
	.opts = OPTS,
	.n_opts = ELEMS(OPTS),
	.flags_size = sizeof(struct cp_flags),
	.lead = OPTS_ANYWHERE,
	.min = 2,
	.max = SIZE_MAX,
	.client = true,
	.run = run,
};
