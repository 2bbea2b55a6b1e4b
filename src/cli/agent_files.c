/*
 * See agent_files.h. The sandbox that builds the image unpacks the archive and would keep a bad one to
 * itself; it is refused here all the same, because what a person consents to is the manifest that was read
 * here.
 */
#include "agent_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent_links.h"
#include "fd.h"
#include "tar.h"

#include "poison.h"

#define BYTES_MOST   (1ull << 30)
#define ENTRIES_MOST 100000u
#define PATH_MOST    1024
#define DOCKERFILE                                                                                           \
	"a Dockerfile of its own is not supported: remove it. The image is made from the runtime and the "   \
	"lock file"

/* ---- names ---- */

/* Without "." and double slashes; false: it leads out of the archive, or is too long. */
static bool tidy(struct view v, char ret[PATH_MOST])
{
	size_t n = 0;

	if (!v.n || v.p[0] == '/')
		return false;
	while (v.p) {
		struct view part = view_split(v, '/', &v);

		if (part.n == 0 || view_is(part, "."))
			continue;
		if (view_is(part, "..") || n + part.n + 2 > PATH_MOST || memchr(part.p, 0, part.n))
			return false;
		if (n)
			ret[n++] = '/';
		memcpy(ret + n, part.p, part.n);
		n += part.n;
	}
	ret[n] = '\0';
	return true;
}

/* A symbolic link's target, from the directory that holds the link. */
static bool stays_inside(const char *link, struct view target)
{
	int depth = 0;

	if (!target.n || target.p[0] == '/')
		return false;
	for (const char *p = link; *p; p++)
		depth += *p == '/';
	while (target.p) {
		struct view part = view_split(target, '/', &target);

		if (part.n == 0 || view_is(part, "."))
			continue;
		depth += view_is(part, "..") ? -1 : 1;
		if (depth < 0)
			return false;
	}
	return true;
}

/* ---- archives ---- */

struct scan {
	struct tar_reader tar;
	uint64_t left, padding, bytes;
	size_t entries;
	struct agent_links links;
	struct buf *out;
	bool taking, found;
};

static int refuse(struct err *e, const char *name, const char *why)
{
	struct buf clean = BUF_INIT(200);

	for (const char *p = name; *p && clean.n < 120; p++)
		buf_putc(&clean, *p > ' ' && *p < 0x7f ? *p : '?');
	err_set(e, ERR_INVALID, "the archive's entry %.*s %s", VIEW_ARG(buf_view(&clean)), why);
	buf_done(&clean);
	return -1;
}

static int judge(struct scan *s, const struct tar_entry *en, struct err *e)
{
	char path[PATH_MOST], target[PATH_MOST];
	bool file = en->type == TAR_FILE;

	if (++s->entries > ENTRIES_MOST)
		return err_set(e, ERR_TOO_LARGE, "the archive has more than %u entries", ENTRIES_MOST);
	s->left = en->size;
	s->padding = tar_padding(en->size);
	s->taking = false;
	if (!tidy(en->path, path))
		return refuse(e, s->tar.name, "leads out of the archive");
	if (!file && en->type != TAR_DIRECTORY && en->type != TAR_LINK && en->type != TAR_SYMLINK)
		return refuse(e, path, "is neither a file nor a directory nor a link");
	if ((en->type == TAR_SYMLINK && !stays_inside(path, en->target)) ||
	    (en->type == TAR_LINK && !tidy(en->target, target)))
		return refuse(e, path, "is a link that leads out of the archive");
	bool hard = en->type == TAR_LINK;
	if ((hard || en->type == TAR_SYMLINK) &&
	    !agent_links_add(&s->links, path, hard ? view_of(target) : en->target, hard))
		return err_set(e, ERR_TOO_LARGE, "the archive has too many links");
	if (strcmp(path, "Dockerfile") == 0)
		return err_set(e, ERR_UNSUPPORTED, DOCKERFILE);
	if (strcmp(path, AGENT_FILES_MANIFEST) != 0)
		return 0;
	if (!file)
		return refuse(e, path, "is no file");
	if (s->found)
		return refuse(e, path, "is there twice");
	if (en->size > AGENT_FILES_MANIFEST_MAX)
		return err_set(e, ERR_TOO_LARGE, AGENT_FILES_MANIFEST " has more than %u bytes",
			       AGENT_FILES_MANIFEST_MAX);
	s->found = s->taking = true;
	return 0;
}

static int take(struct scan *s, struct view in, struct err *e)
{
	struct tar_entry en;
	int r = 0;

	s->bytes += in.n;
	if (s->bytes > BYTES_MOST)
		return err_set(e, ERR_TOO_LARGE, "the archive has more than %llu bytes when it is unpacked",
			       BYTES_MOST);
	while (in.n && r >= 0) {
		if (s->left || s->padding) {
			uint64_t *rest = s->left ? &s->left : &s->padding;
			size_t n = (size_t)MIN(*rest, (uint64_t)in.n);

			if (s->left && s->taking && buf_append(s->out, in.p, n) < 0)
				return err_set(e, ERR_TOO_LARGE, AGENT_FILES_MANIFEST " is too large");
			*rest -= n;
			in = view_skip(in, n);
			continue;
		}
		r = tar_read(&s->tar, &in, &en);
		if (r < 0)
			return err_set(e, ERR_INVALID, "this is no tar archive: %s", s->tar.why);
		if (r > 0)
			r = judge(s, &en, e);
	}
	return r;
}

static int scan_all(struct source *source, struct scan *s, struct err *e)
{
	char piece[64 * 1024];
	ssize_t n;

	while ((n = read(source->fd, piece, sizeof(piece))) > 0)
		if (take(s, (struct view){ piece, (size_t)n }, e) < 0)
			return -1;
	if (n < 0)
		return err_sys(e, ERR_INVALID, errno, "the archive");
	if (source_check(source, e) < 0)
		return -1;
	if (s->left || s->padding || !tar_may_end(&s->tar))
		return err_set(e, ERR_INVALID, "the archive is cut off");
	if (!s->found)
		return err_set(e, ERR_INVALID, "the archive has no " AGENT_FILES_MANIFEST " at its top");
	const char *bad = agent_links_find_bad(&s->links);
	return bad ? refuse(e, bad, "is a link that may lead out of the archive through another link") : 0;
}

int agent_files_manifest_fd(int fd, const char *name, struct buf *out, struct err *e)
{
	_cleanup_(source_done) struct source source = SOURCE_INIT;
	struct scan s = { .out = out, .links = AGENT_LINKS_INIT };
	int again = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (again < 0 || lseek(again, 0, SEEK_SET) < 0) {
		fd_close(again);
		return err_sys(e, ERR_INVALID, errno, "%.120s", name);
	}
	if (source_open_fd(&source, again, name, e) < 0)
		return -1;
	tar_reader_init(&s.tar);
	int r = scan_all(&source, &s, e);
	tar_reader_done(&s.tar);
	agent_links_done(&s.links);
	return r;
}

/* ---- directories ---- */

static int slurp(int dir, const char *name, struct buf *out, struct err *e)
{
	_cleanup_(closep) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	char piece[4096];
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, ERR_INVALID, errno, "%s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%s is no file", name);
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		if (buf_append(out, piece, (size_t)n) < 0)
			return err_set(e, ERR_TOO_LARGE, "%s is too large", name);
	return n < 0 ? err_sys(e, ERR_INTERNAL, errno, "%s", name) : 0;
}

/* tar knows the patterns of .gitignore, but not those that take something back. */
static int check_ignored(int dir, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(1u << 20);
	struct view rest;

	if (faccessat(dir, ".gitignore", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (slurp(dir, ".gitignore", &text, e) < 0)
		return -1;
	rest = buf_view(&text);
	while (rest.p) {
		struct view line = view_split(rest, '\n', &rest);
		if (line.n && line.p[0] == '!')
			return err_set(e, ERR_UNSUPPORTED,
				       ".gitignore has a line that begins with \"!\", which is not "
				       "understood here: make an archive of what is to be installed");
	}
	return 0;
}

bool agent_files_is_archive(const char *name)
{
	static const char *const suffixes[] = { ".tar",  ".tar.gz", ".tgz", ".tar.zst",
						".tzst", ".tar.xz", ".txz" };
	size_t n = strlen(name);

	for (size_t i = 0; i < ELEMS(suffixes); i++) {
		size_t k = strlen(suffixes[i]);
		if (n > k && strcmp(name + n - k, suffixes[i]) == 0)
			return true;
	}
	return false;
}

int agent_files_manifest(const char *path, struct buf *out, struct err *e)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, ERR_INVALID, errno, "%.120s", path);
	if (S_ISREG(st.st_mode))
		return agent_files_manifest_fd(fd, path, out, e);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_INVALID, "%.120s is neither a directory nor an archive", path);
	if (faccessat(fd, "Dockerfile", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return err_set(e, ERR_UNSUPPORTED, DOCKERFILE);
	if (check_ignored(fd, e) < 0)
		return err_wrap(e, "%.80s", path);
	out->max = AGENT_FILES_MANIFEST_MAX;
	return slurp(fd, AGENT_FILES_MANIFEST, out, e) < 0 ? err_wrap(e, "%.80s", path) : 0;
}

int agent_files_open(struct source *s, const char *path, struct err *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_sys(e, ERR_INVALID, errno, "%.120s", path);
	if (!S_ISDIR(st.st_mode))
		return source_open(s, path, e);
	return source_open_dir(s, path, NULL, &(struct source_wish){ .quiet = true, .project = true }, e);
}
