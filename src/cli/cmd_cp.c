/*
 * paddock cp: one file into or out of a box, streamed; '-' is standard input or
 * output. The path inside is the box's business: it is only percent-encoded here.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "cmd.h"
#include "fd.h"
#include "text.h"

#include "poison.h"

/* BOX:PATH, or with an empty box a local path. */
struct place {
	struct view box;
	const char *path;
};

/* A colon before any slash divides box and path, as in scp. */
static struct place read_place(const char *operand)
{
	size_t n = strcspn(operand, ":/");

	if (operand[n] == ':' && n > 0)
		return (struct place){ { operand, n }, operand + n + 1 };
	return (struct place){ VIEW_NONE, operand };
}

static bool is_dash(const struct place *p)
{
	return strcmp(p->path, "-") == 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The resource of a file in a box. A path that ends in '/' gets `name` appended. */
static int put_url(struct buf *b, struct arena *a, const struct place *p, const char *name, struct err *e)
{
	const char *box = arena_str(a, p->box);

	if (!box)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (p->path[0] != '/')
		return err_set(e, ERR_INVALID, "the path in the box must begin with '/': \"%.100s\"",
			       p->path);
	buf_puts(b, "/v1/sandboxes/");
	if (session_segment(b, box, e) < 0)
		return -1;
	buf_puts(b, "/files");
	text_percent(b, view_of(p->path));
	if (p->path[strlen(p->path) - 1] == '/') {
		if (!name || !*name || strcmp(name, "-") == 0)
			return err_set(e, ERR_INVALID, "\"%.100s\" names a directory; give the file's path",
				       p->path);
		text_percent(b, view_of(name));
	}
	return b->bad ? err_set(e, ERR_INVALID, "the path is too long") : 0;
}

/* *ret_mode stays 0 where there is no file with permissions. */
static int open_source(const struct place *from, int64_t *ret_size, unsigned *ret_mode, struct err *e)
{
	_cleanup_(closep) int fd = -EBADF;
	struct stat st;

	fd = is_dash(from) ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(from->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, ERR_INVALID, errno, "cannot read %.120s", from->path);
	if (S_ISDIR(st.st_mode))
		return err_set(e, ERR_INVALID,
			       "%.120s is a directory; cp copies single files (use tar through exec)",
			       from->path);
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

static int upload(struct cmd_ctx *ctx, struct session *s, const struct place *from, const struct place *to,
		  struct err *e)
{
	_cleanup_(buf_done) struct buf url = BUF_INIT(64u << 10);
	_cleanup_(buf_done) struct buf answer = BUF_INIT(64u << 10);
	_cleanup_(closep) int fd = -EBADF;
	struct client_request rq = {
		.method = "PUT",
		.content_type = "application/octet-stream",
		.streamed = true,
		.timeout_ms = SESSION_CALL_MS,
	};
	struct response r;
	unsigned mode = 0;

	if (put_url(&url, &ctx->arena, to, base_name(from->path), e) < 0)
		return -1;
	fd = open_source(from, &rq.body_size, &mode, e);
	if (fd < 0)
		return -1;
	if (mode)
		buf_printf(&url, "?mode=%04o", mode);
	if (url.bad)
		return err_set(e, ERR_INVALID, "the path is too long");
	rq.path = buf_view(&url);
	rq.body_fd = fd;
	if (session_send(s, &rq, &r, e) < 0)
		return -1;
	return client_read_all(&s->client, &answer, e);
}

/* `path`, or the file of that name in it when it is a directory. */
static const char *local_target(struct arena *a, const struct place *from, const char *path, struct err *e)
{
	struct buf b = BUF_INIT(8192);
	struct stat st;
	const char *ret = path;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		buf_printf(&b, "%s/%s", path, base_name(from->path));
		ret = b.bad ? NULL : arena_str(a, buf_view(&b));
		buf_done(&b);
	}
	if (!ret)
		err_set(e, ERR_INVALID, "the path is too long");
	return ret;
}

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

static int download(struct cmd_ctx *ctx, struct session *s, const struct place *from, const struct place *to,
		    struct err *e)
{
	_cleanup_(buf_done) struct buf url = BUF_INIT(64u << 10);
	struct client_request rq = { .method = "GET", .timeout_ms = SESSION_CALL_MS };
	const char *path = NULL;
	struct response r;

	if (put_url(&url, &ctx->arena, from, NULL, e) < 0)
		return -1;
	if (!is_dash(to)) {
		path = local_target(&ctx->arena, from, to->path, e);
		if (!path)
			return -1;
	}
	rq.path = buf_view(&url);
	if (session_send(s, &rq, &r, e) < 0)
		return -1;
	return path ? save(s, path, r.mode, e) : client_read_to_fd(&s->client, STDOUT_FILENO, e);
}

static int run(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_, char **operands,
	       struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	struct place from = read_place(operands[0]), to = read_place(operands[1]);

	if (!from.box.n == !to.box.n)
		return err_set(e, ERR_INVALID, "exactly one of the two must be in a box (BOX:/PATH)");
	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	return from.box.n ? download(ctx, &s, &from, &to, e) : upload(ctx, &s, &from, &to, e);
}

const struct cmd cmd_cp = {
	.name = "cp",
	.operands = "BOX:PATH FILE | FILE BOX:PATH",
	.summary = "copy a file out of or into a box",
	.help = "FILE may be '-' for standard input or output. Directories are not copied yet.",
	.lead = OPTS_ANYWHERE,
	.min = 2,
	.max = 2,
	.client = true,
	.run = run,
};
