/*
 * The work is done by tar, gzip, zstd and xz as child processes: they run as the
 * user, and what they write is checked by the daemon. Each gets its input as an
 * open file, so that no name can be taken for an option.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fd.h"
#include "source.h"

#include "poison.h"

extern char **environ;

static const struct {
	const char *suffix, *program;
} UNPACKERS[] = {
	{ ".gz", "gzip" },   { ".tgz", "gzip" }, { ".zst", "zstd" },
	{ ".tzst", "zstd" }, { ".xz", "xz" },    { ".txz", "xz" },
};

static bool ends_with(const char *s, const char *suffix)
{
	size_t n = strlen(s), k = strlen(suffix);

	return n > k && strcmp(s + n - k, suffix) == 0;
}

static const char *unpacker_of(const char *path)
{
	for (size_t i = 0; i < ELEMS(UNPACKERS); i++)
		if (ends_with(path, UNPACKERS[i].suffix))
			return UNPACKERS[i].program;
	return NULL;
}

/* Starts argv with `in` (when not negative) as its input and a new pipe as its output. */
static int spawn(struct source *s, char *const argv[], int in, struct err *e)
{
	_cleanup_(closep) int from = -EBADF, to = -EBADF;
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t defaults;
	int pipes[2], r;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "pipe");
	from = pipes[0];
	to = pipes[1];
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE); /* which we ignore */
	posix_spawnattr_setsigdefault(&attr, &defaults);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
	if (in >= 0)
		posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, to, STDOUT_FILENO);
	r = posix_spawnp(&s->pid, argv[0], &files, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	if (r != 0) {
		s->pid = 0;
		return err_sys(e, ERR_INTERNAL, r, "cannot run %s", argv[0]);
	}
	s->program = argv[0];
	s->fd = TAKE_FD(from);
	s->size = -1;
	return 0;
}

/* Of a project: patterns without a slash fit every name of a path. */
static const char *const UNWANTED[] = {
	"--exclude=node_modules", "--exclude=.git",   "--exclude=.venv", "--exclude=__pycache__",
	"--exclude=.env",         "--exclude=.env.*", "--exclude=*.pyc", "--exclude-vcs-ignores",
};

/* The directory that is open, as the child's standard input. */
static int pack(struct source *s, int fd, const char *name, const struct source_wish *w, struct err *e)
{
	char owner[48], group[48], entry[300];
	char *argv[32] = { (char *)"tar", (char *)"-C", (char *)"/proc/self/fd/0", (char *)"--numeric-owner",
			   (char *)"--sort=name" };
	size_t n = 5;

	snprintf(owner, sizeof(owner), "--owner=:%llu", (unsigned long long)w->uid);
	snprintf(group, sizeof(group), "--group=:%llu", (unsigned long long)w->gid);
	/* "./": no name can be taken for an option. */
	if (snprintf(entry, sizeof(entry), "./%s", name ? name : "") >= (int)sizeof(entry))
		return err_set(e, ERR_INVALID, "the name is too long");
	if (w->owned) {
		argv[n++] = owner;
		argv[n++] = group;
	}
	if (w->readonly)
		argv[n++] = (char *)"--mode=a-w";
	for (size_t i = 0; w->project && i < ELEMS(UNWANTED); i++)
		argv[n++] = (char *)UNWANTED[i];
	if (w->quiet)
		argv[n++] = (char *)"--warning=no-file-ignored";
	argv[n++] = (char *)"-cf";
	argv[n++] = (char *)"-";
	argv[n++] = entry;
	argv[n] = NULL;
	return spawn(s, argv, fd, e);
}

int source_open_dir(struct source *s, const char *dir, const char *name, const struct source_wish *wish,
		    struct err *e)
{
	_cleanup_(closep) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, ERR_INVALID, errno, "cannot read %.120s", dir);
	return pack(s, fd, name, wish, e);
}

static uint64_t sockets; /* nftw has no room for an argument */

static int count_socket(const char *path, const struct stat *st, int type, struct FTW *at)
{
	sockets += type == FTW_F && S_ISSOCK(st->st_mode);
	return 0;
}

int source_open_fd(struct source *s, int archive, const char *name, struct err *e)
{
	_cleanup_(closep) int fd = archive;
	const char *unpacker = unpacker_of(name);
	struct stat st;

	if (unpacker) {
		char *const argv[] = { (char *)unpacker, (char *)"-dc", NULL };

		return spawn(s, argv, fd, e);
	}
	s->size = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && lseek(fd, 0, SEEK_CUR) == 0 ? st.st_size : -1;
	s->fd = TAKE_FD(fd);
	return 0;
}

int source_open(struct source *s, const char *path, struct err *e)
{
	_cleanup_(closep) int fd = -EBADF;
	struct stat st;

	fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
				    : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, ERR_INVALID, errno, "cannot read %.120s", path);
	if (S_ISDIR(st.st_mode)) {
		sockets = 0;
		(void)nftw(path, count_socket, 64,
			   FTW_PHYS | FTW_MOUNT); /* what it cannot read, tar reports */
		s->sockets = sockets;
		return pack(s, fd, NULL, &(struct source_wish){ .quiet = true }, e);
	}
	return source_open_fd(s, TAKE_FD(fd), path, e);
}

int source_check(void *source, struct err *e)
{
	struct source *s = source;
	int status;

	if (s->pid == 0)
		return 0;
	while (waitpid(s->pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, ERR_INTERNAL, errno, "waitpid");
	s->pid = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(e, ERR_INVALID, "%s failed; nothing was imported", s->program);
	return 0;
}

void source_done(struct source *s)
{
	fd_close(s->fd); /* the program, if it still writes, gets SIGPIPE */
	s->fd = -1;
	if (s->pid > 0)
		while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
			;
	s->pid = 0;
}
