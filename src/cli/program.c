/*
 * Finding and executing paddockd. It gets a clean slate: our PADDOCK_* variables
 * are in the configuration already (and one of them may be a key), so they do
 * not go on; nor does any fd but the three standard ones and the configuration.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fd.h"
#include "program.h"

#include "poison.h"

#define CONFIG_FD 3

extern char **environ;

static int try_path(const char *dir, size_t n, const char *below, const char *name,
		    char ret[PROGRAM_PATH_MAX])
{
	int len = snprintf(ret, PROGRAM_PATH_MAX, "%.*s%s/%s", (int)n, dir, below, name);

	if (len < 0 || len >= PROGRAM_PATH_MAX)
		return -ENAMETOOLONG;
	return access(ret, X_OK) == 0 ? 0 : -errno;
}

int program_find(const char *name, char ret[PROGRAM_PATH_MAX], struct err *e)
{
	char self[PROGRAM_PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *slash;
	size_t dir;

	if (n < 0)
		return err_sys(e, ERR_INTERNAL, errno, "/proc/self/exe");
	self[n] = '\0';
	slash = strrchr(self, '/');
	dir = slash ? (size_t)(slash - self) : 0;
	if (try_path(self, dir, "", name, ret) == 0 ||
	    try_path(self, dir, "/../libexec/paddock", name, ret) == 0)
		return 0;
	return err_set(e, ERR_NOT_FOUND, "%s is neither beside %.80s nor in ../libexec/paddock", name, self);
}

static int sealed_config(struct view config, struct err *e)
{
	_cleanup_(closep) int fd = memfd_create("paddock-config", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return err_sys(e, ERR_INTERNAL, errno, "memfd_create");
	r = fd_write_all(fd, config.p, config.n);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "cannot write the configuration");
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0 ||
	    lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot seal the configuration");
	return TAKE_FD(fd);
}

static void drop_variables(void)
{
	char **to = environ;

	for (char **from = environ; *from; from++)
		if (strncmp(*from, "PADDOCK_", strlen("PADDOCK_")) != 0)
			*to++ = *from;
	*to = NULL;
}

/* Opens what is missing of 0 to 2, so that no later fd becomes one of them. */
static int fill_standard_fds(struct err *e)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR); /* without O_CLOEXEC on purpose */
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return err_sys(e, ERR_INTERNAL, errno, "/dev/null");
	fd_close(fd);
	return 0;
}

int program_become(const char *path, char *const argv[], struct view config, struct err *e)
{
	_cleanup_(closep) int fd = -EBADF;

	if (fill_standard_fds(e) < 0)
		return -1;
	fd = sealed_config(config, e);
	if (fd < 0)
		return -1;
	if (fd == CONFIG_FD) {
		if (fcntl(fd, F_SETFD, 0) < 0)
			return err_sys(e, ERR_INTERNAL, errno, "fcntl");
	} else if (dup2(fd, CONFIG_FD) < 0) {
		return err_sys(e, ERR_INTERNAL, errno, "dup2");
	}
	if (close_range(CONFIG_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "close_range");
	drop_variables();
	execv(path, argv);
	return err_sys(e, ERR_INTERNAL, errno, "cannot execute %.120s", path);
}

int program_run(const char *path, char *const argv[], struct view config, struct err *e)
{
	posix_spawn_file_actions_t actions;
	_cleanup_(closep) int fd = sealed_config(config, e);
	int status, r;
	pid_t pid;

	if (fd < 0)
		return -1;
	/* A dup2 to itself would leave it close-on-exec. */
	if (fd == CONFIG_FD) {
		int other = fcntl(fd, F_DUPFD_CLOEXEC, CONFIG_FD + 1);
		if (other < 0)
			return err_sys(e, ERR_INTERNAL, errno, "fcntl");
		fd_close(fd);
		fd = other;
	}
	r = posix_spawn_file_actions_init(&actions);
	if (r == 0) {
		r = posix_spawn_file_actions_adddup2(&actions, fd, CONFIG_FD);
		if (r == 0)
			r = posix_spawn(&pid, path, &actions, NULL, argv, environ);
		(void)posix_spawn_file_actions_destroy(&actions);
	}
	if (r != 0)
		return err_sys(e, ERR_INTERNAL, r, "cannot execute %.120s", path);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, ERR_INTERNAL, errno, "waitpid");
	if (!WIFEXITED(status))
		return err_set(e, ERR_INTERNAL, "%s ended by signal %d", argv[0], WTERMSIG(status));
	return WEXITSTATUS(status);
}
