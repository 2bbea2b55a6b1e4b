/*
 * Searching in files, line by line: a literal, or a POSIX extended expression.
 *
 * Files are read in pieces, so a large one costs no memory; of a line that is
 * longer than a piece only its beginning is searched. What an expression may cost
 * is bounded before it is compiled: no back-references (their time has no bound),
 * and repetitions that multiply to no more than a few hundred states.
 */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdlib.h>

#include "clock.h"
#include "fd.h"
#include "glob.h"
#include "num.h"
#include "stream.h"
#include "walk.h"
#include "wire_gen.h"
#include "poison.h"

#define PATTERN_MAX 1000
#define REGEX_LINE  (16u * 1024) /* of a line, for an expression */
#define REPEAT_MAX  256
#define PIECE       (128u * 1024)
#define FILE_MAX    (16u << 20)
#define SNIFF       8192 /* a NUL in these bytes: not text */
#define TEXT_MAX    400
#define MATCH_MAX   (PATH_MAX + TEXT_MAX + 64) /* encoded */

struct grepper {
	struct stream stream;
	struct user user;
	struct walk walk;
	char pattern[PATTERN_MAX + 1], include[GLOB_MAX + 1];
	size_t pattern_n;
	bool is_regex, ignore_case;
	regex_t regex;
	bool compiled;
	uint64_t limit;
	/* the file at hand */
	int fd;
	uint64_t left, line;
	bool eof, first, in_line; /* in_line: behind the beginning of a line that was too long */
	size_t at, n;             /* of piece: searched up to here, read up to here */
	char *piece;
	struct buf batch;
	struct wire_file_grep_done sum;
};

static struct grepper *grepper_of(struct stream *s)
{
	return CONTAINER(s, struct grepper, stream);
}

/* ---- one line --------------------------------------------------------- */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

/* The pattern is in lower case already. */
static const char *find_nocase(struct view line, struct view what)
{
	for (size_t i = 0; i + what.n <= line.n; i++) {
		size_t k = 0;
		while (k < what.n && lower(line.p[i + k]) == what.p[k])
			k++;
		if (k == what.n)
			return line.p + i;
	}
	return NULL;
}

/* The byte that ends the line, a newline or the one behind the piece, may be overwritten for a moment. */
static bool find(struct grepper *g, char *line, size_t n, size_t *ret_at)
{
	struct view v = { line, n }, what = { g->pattern, g->pattern_n };
	if (!g->is_regex) {
		const char *p = g->ignore_case ? find_nocase(v, what) : memmem(v.p, v.n, what.p, what.n);
		*ret_at = p ? (size_t)(p - line) : 0;
		return p;
	}
	n = MIN(n, REGEX_LINE);
	regmatch_t m;
	char saved = line[n];
	line[n] = 0;
	bool hit = regexec(&g->regex, line, 1, &m, 0) == 0;
	line[n] = saved;
	*ret_at = hit ? (size_t)m.rm_so : 0;
	return hit;
}

static int put_match(struct grepper *g, size_t at, struct view line)
{
	struct wire_grep_match match = {
		.path = { g->walk.path, g->walk.n ? g->walk.path_n : 0 },
		.line = g->line,
		.column = at + 1,
		.text = view_head(line, TEXT_MAX),
	};
	struct wire_grep_matches one = { .matches = { .items = &match, .n = 1 } };
	return pb_encode(&wire_grep_matches_msg, &one, &g->batch);
}

/* 0: the limit is reached. */
static int take_line(struct grepper *g, char *line, size_t n)
{
	size_t at;
	g->line++;
	if (n && line[n - 1] == '\r')
		n--;
	if (!find(g, line, n, &at))
		return 1;
	if (g->limit && g->sum.matches == g->limit) {
		g->sum.truncated = true;
		return 0;
	}
	g->sum.matches++;
	int r = put_match(g, at, (struct view){ line, n });
	return r < 0 ? r : 1;
}

/* ---- one file --------------------------------------------------------- */

static void end_file(struct grepper *g)
{
	fd_close(TAKE_FD(g->fd));
}

/* Only what can be read without waiting and is not too large. */
static void begin_file(struct grepper *g, int dir, const char *name, int flags)
{
	struct stat st;
	g->fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
	if (g->fd < 0 || fstat(g->fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX) {
		end_file(g);
		g->sum.skipped++;
		return;
	}
	g->left = FILE_MAX;
	g->line = 0;
	g->at = g->n = 0;
	g->eof = g->in_line = false;
	g->first = true;
}

/* Reads on behind what is left of the piece. False: the file is over, or is to be skipped. */
static bool read_more(struct grepper *g)
{
	memmove(g->piece, g->piece + g->at, g->n - g->at);
	g->n -= g->at;
	g->at = 0;
	ssize_t n = read(g->fd, g->piece + g->n, MIN(PIECE - g->n, g->left));
	if (n < 0) {
		g->sum.skipped++;
		return false;
	}
	g->eof = n == 0;
	g->left -= (uint64_t)n;
	g->n += (size_t)n;
	if (g->first && memchr(g->piece, 0, MIN(g->n, SNIFF))) {
		g->sum.skipped++;
		return false;
	}
	g->sum.files += g->first;
	g->first = false;
	return true;
}

/* The next line, or a piece more of the file. 0: the limit is reached. */
static int step_file(struct grepper *g)
{
	char *start = g->piece + g->at, *end = memchr(start, '\n', g->n - g->at);
	size_t n = end ? (size_t)(end - start) : g->n - g->at;
	bool full = g->n - g->at == PIECE;
	if (!end && !full && !g->eof) {
		if (!read_more(g))
			end_file(g);
		return 1;
	}
	if (!end && n == 0) {
		end_file(g);
		return 1;
	}
	bool rest = g->in_line; /* of a line whose beginning was searched */
	g->in_line = !end;
	g->at += n + (end != NULL);
	return rest ? 1 : take_line(g, start, n);
}

/* ---- the tree --------------------------------------------------------- */

static int step_walk(struct grepper *g)
{
	struct walk_entry en;
	int r = walk_next(&g->walk, &en);
	if (r <= 0 || r == WALK_LEAVE)
		return r < 0 ? r : r == WALK_LEAVE;
	if (en.type == DT_DIR) {
		r = walk_enter(&g->walk);
		return r == -ENOMEM || r == -EMFILE || r == -ENFILE ? r : 1;
	}
	if (en.type == DT_REG &&
	    (!g->include[0] ||
	     glob_match(view_of(g->include), (struct view){ g->walk.path, g->walk.path_n })))
		begin_file(g, en.dir, en.name, O_NOFOLLOW);
	return 1;
}

/* 0: done, 1: there is more. */
static int advance(struct grepper *g)
{
	if (g->fd >= 0)
		return step_file(g);
	return g->walk.n ? step_walk(g) : 0;
}

static int fill(struct grepper *g, size_t room)
{
	uint64_t until = clock_mono_ns() + FILE_STEP_NS;
	int r = user_enter(&g->user);
	if (r < 0)
		return r;
	do {
		r = 1;
		for (int i = 0; r > 0 && i < 16 && buf_len(&g->batch) + MATCH_MAX <= room; i++)
			r = advance(g);
	} while (r > 0 && buf_len(&g->batch) + MATCH_MAX <= room && clock_mono_ns() < until);
	user_leave();
	return r;
}

static void on_step(struct stream *s)
{
	struct grepper *g = grepper_of(s);
	size_t room = stream_room(s);
	if (room < MATCH_MAX)
		return; /* on_ready comes back */
	int r = fill(g, room);
	if (r < 0) {
		file_fail(s, r, g->walk.path);
		return;
	}
	if (buf_len(&g->batch))
		stream_data(s, 0, buf_view(&g->batch));
	buf_clear(&g->batch);
	if (r == 0)
		stream_finish(s, &wire_file_grep_done_msg, &g->sum);
	else
		stream_again(s);
}

static void grepper_free(struct stream *s)
{
	struct grepper *g = grepper_of(s);
	end_file(g);
	walk_done(&g->walk);
	buf_done(&g->batch);
	if (g->compiled)
		regfree(&g->regex);
	free(g->piece);
	free(g);
}

static const struct stream_ops grepper_ops = {
	.on_step = on_step,
	.on_ready = stream_again,
	.on_cancel = file_on_cancel,
	.free = grepper_free,
};

/* ---- the beginning ---------------------------------------------------- */

/* What "{m,n}" stands for at most; 0: it is no repetition. */
static uint64_t repetition(struct view v)
{
	struct view rest, high, body = view_split(view_skip(v, 1), '}', &rest);
	uint64_t low_n = 0, high_n = 0;
	struct view low = view_split(body, ',', &high);
	if (!rest.p || num_u64(low, &low_n) < 0)
		return 0;
	if (high.n && num_u64(high, &high_n) < 0)
		return 0;
	return MAX(MAX(low_n, high_n), 1);
}

static int check_regex(struct view v, struct err *e)
{
	uint64_t product = 1;
	for (size_t i = 0; i < v.n; i++) {
		if (v.p[i] == '\\' && i + 1 < v.n) {
			if (v.p[++i] >= '1' && v.p[i] <= '9')
				return err_set(e, ERR_INVALID, "pattern: back-references are not supported");
			continue;
		}
		uint64_t n = v.p[i] == '{' ? repetition(view_skip(v, i)) : 0;
		if (n > REPEAT_MAX || (n && (product *= n) > REPEAT_MAX))
			return err_set(e, ERR_INVALID, "pattern: its repetitions multiply to more than %d",
				       REPEAT_MAX);
	}
	return 0;
}

static int compile(struct grepper *g, struct err *e)
{
	char why[100];
	int flags = REG_EXTENDED | REG_NEWLINE | (g->ignore_case ? REG_ICASE : 0);
	if (check_regex((struct view){ g->pattern, g->pattern_n }, e) < 0)
		return -1;
	int r = regcomp(&g->regex, g->pattern, flags);
	g->compiled = r == 0;
	if (r == 0)
		return 0;
	regerror(r, &g->regex, why, sizeof(why));
	return err_set(e, ERR_INVALID, "pattern: %s", why);
}

static int set_up(struct grepper *g, const struct wire_file_grep *msg, struct err *e)
{
	if (msg->pattern.n == 0 || view_to_str(msg->pattern, g->pattern, sizeof(g->pattern)) < 0)
		return err_set(e, ERR_INVALID, "pattern must have 1 to %d bytes and no NUL", PATTERN_MAX);
	if (view_to_str(msg->include, g->include, sizeof(g->include)) < 0)
		return err_set(e, ERR_INVALID, "include must have at most %d bytes and no NUL", GLOB_MAX);
	g->pattern_n = msg->pattern.n;
	g->is_regex = msg->regex;
	g->ignore_case = msg->ignore_case;
	g->limit = msg->limit;
	g->piece = malloc(PIECE + 1);
	if (!g->piece)
		return err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
	for (size_t i = 0; !g->is_regex && g->ignore_case && i < g->pattern_n; i++)
		g->pattern[i] = lower(g->pattern[i]);
	return g->is_regex ? compile(g, e) : 0;
}

/* As the user. */
static int begin(struct grepper *g, const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode)) {
		begin_file(g, AT_FDCWD, path, 0);
		return 0;
	}
	if (!S_ISDIR(st.st_mode))
		return -EINVAL;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : walk_start(&g->walk, fd);
}

int file_grep(const struct conn_call *call, struct err *e)
{
	const struct wire_file_grep *msg = call->msg;
	struct file_target t;
	struct grepper *g = calloc(1, sizeof(*g));
	if (!g)
		return err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
	g->fd = -1;
	buf_init(&g->batch, FRAME_DATA_MAX);
	int r = set_up(g, msg, e);
	if (r == 0)
		r = file_enter(&t, call, msg->path, msg->user, false, e);
	if (r == 0) {
		g->user = t.user;
		r = begin(g, t.path);
		user_leave();
		if (r < 0)
			file_error(e, r, t.path);
	}
	if (r < 0) {
		grepper_free(&g->stream);
		return -1;
	}
	stream_open(&g->stream, call, &grepper_ops);
	on_step(&g->stream);
	return 0;
}
