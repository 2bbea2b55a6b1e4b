/*
 * See sudo_client.h. Runs with the caller's rights, of which it needs none.
 */
#include "sudo_client.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "arena.h"
#include "fd.h"
#include "num.h"
#include "sudo.h"
#include "sudo_args.h"
#include "sudo_relay.h"
#include "poison.h"

#define PASSWD_MAX (1u << 20)

static const char *program = "sudo";

static int complain(const char *what)
{
	dprintf(2, "%s: %s\n", program, what);
	return 1;
}

bool sudo_client_is(const char *argv0)
{
	const char *slash = strrchr(argv0, '/');
	argv0 = slash ? slash + 1 : argv0;
	return strcmp(argv0, "sudo") == 0 || strcmp(argv0, "su") == 0;
}

/* ---- users ---- */

struct account {
	char name[64], home[256], shell[256];
};

/* name:password:uid:gid:comment:home:shell; by name, or by number with sudo's "#". */
static bool find_account(struct view passwd, struct view who, bool by_number, struct account *ret)
{
	while (passwd.n) {
		struct view line = view_split(passwd, '\n', &passwd), field[7];
		for (unsigned i = 0; i < 7; i++)
			field[i] = view_split(line, ':', &line);
		if (!view_eq(field[by_number ? 2 : 0], who) ||
		    view_to_str(field[0], ret->name, sizeof(ret->name)) < 0)
			continue;
		if (field[5].n == 0 || view_to_str(field[5], ret->home, sizeof(ret->home)) < 0)
			memcpy(ret->home, "/", 2);
		if (field[6].n == 0 || view_to_str(field[6], ret->shell, sizeof(ret->shell)) < 0)
			memcpy(ret->shell, "/bin/sh", 8);
		return true;
	}
	return false;
}

static int find_target(struct view passwd, const char *user, struct account *ret)
{
	struct view who = view_of(user);
	bool by_number = user[0] == '#';
	if (by_number)
		who = view_skip(who, 1);
	if (find_account(passwd, who, by_number, ret))
		return 0;
	if (strcmp(user, "root") == 0) { /* an image without users */
		*ret = (struct account){ .name = "root", .home = "/", .shell = "/bin/sh" };
		return 0;
	}
	dprintf(2, "%s: unknown user %s\n", program, user);
	return -1;
}

static void find_caller(struct view passwd, struct account *ret)
{
	char number[16];
	snprintf(number, sizeof(number), "%u", (unsigned)getuid());
	if (!find_account(passwd, view_of(number), true, ret))
		memcpy(ret->name, number, sizeof(number));
}

/* ---- the request ---- */

static int make_request(const char *user, char *const *argv, const char *file, char *const *env)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(SUDO_REQUEST);
	char number[16];
	unsigned n = 0;
	while (argv[n])
		n++;
	snprintf(number, sizeof(number), "%u", n);
	const char *const head[] = { user, number, file ? file : "" };
	for (unsigned i = 0; i < ELEMS(head); i++)
		buf_append(&b, head[i], strlen(head[i]) + 1);
	for (; *argv; argv++)
		buf_append(&b, *argv, strlen(*argv) + 1);
	for (; *env; env++)
		buf_append(&b, *env, strlen(*env) + 1);
	if (b.bad)
		return -E2BIG;
	_cleanup_(closep) int fd = memfd_create("sudo", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	int r = fd_write_all(fd, b.p, b.n);
	if (r == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		r = -errno;
	return r < 0 ? r : TAKE_FD(fd);
}

static int connect_init(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "\0" SUDO_ADDRESS };
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof("\0" SUDO_ADDRESS) - 1);
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, len) < 0)
		return -errno;
	struct ucred peer;
	socklen_t n = sizeof(peer);
	/* Only PID 1 has a claim to the name; where sudo is off, anybody could take it. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || peer.pid != 1)
		return -ECONNREFUSED;
	return TAKE_FD(fd);
}

static int send_request(int socket, bool terminal, const int fds[SUDO_FDS])
{
	char packet[2] = { 'R', terminal ? SUDO_TERMINAL : 0 };
	union {
		char room[CMSG_SPACE(sizeof(int) * SUDO_FDS)];
		struct cmsghdr align;
	} control;
	memset(&control, 0, sizeof(control));
	struct iovec iov = { packet, sizeof(packet) };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * SUDO_FDS);
	memcpy(CMSG_DATA(c), fds, sizeof(int) * SUDO_FDS);
	return sendmsg(socket, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* 0 when the command runs; else 1, and why has been printed. */
static int await_start(int socket)
{
	char said[257];
	ssize_t n = recv(socket, said, sizeof(said) - 1, 0);
	if (n >= 1 && said[0] == 'S')
		return 0;
	if (n < 1 || said[0] != 'E')
		return complain("PID 1 has no room for another command");
	said[n] = 0;
	return complain(said + 1);
}

/* As the command ended: by its status, or by the same signal. */
static int leave(int status)
{
	if (status < 0)
		return complain("PID 1 does not answer any more");
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	int signo = WTERMSIG(status);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, signo);
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	(void)sigaction(signo, &dfl, NULL);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)kill(getpid(), signo);
	return 128 + signo;
}

static int run(const struct sudo_args *s, const char *user, char *const *argv, const char *file,
	       char *const *env, const char *home)
{
	_cleanup_(closep) int socket = connect_init();
	if (socket < 0)
		return complain("sudo is turned off in this sandbox");
	_cleanup_(closep) int request = make_request(user, argv, file, env);
	if (request < 0)
		return complain("the command and its environment are too large");
	const char *dir = s->cwd ? s->cwd : s->login ? home : ".";
	_cleanup_(closep) int cwd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (cwd < 0 && s->login)
		cwd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (cwd < 0) {
		dprintf(2, "%s: %s: %s\n", program, dir, strerror(errno));
		return 1;
	}
	_cleanup_(closep) int signals = sudo_relay_prepare();
	struct sudo_relay r = { .socket = socket, .master = -1 };
	_cleanup_(closep) int slave = -1;
	bool terminal =
		!s->background && isatty(0) && isatty(1) && sudo_relay_terminal(&r.master, &slave) == 0;
	int err = terminal && isatty(2) ? slave : 2;
	const int fds[SUDO_FDS] = { request, cwd, terminal ? slave : 0, terminal ? slave : 1, err };
	if (signals < 0 || send_request(socket, terminal, fds) < 0)
		return complain("PID 1 does not take the request");
	closep(&slave);
	if (await_start(socket) != 0)
		return 1;
	return leave(sudo_relay_run(&r, signals));
}

/* ---- main ---- */

static int say(enum sudo_mode mode, const char *user)
{
	switch (mode) {
	case SUDO_LIST:
		printf("User %s may run the following commands in this sandbox:\n    (ALL) NOPASSWD: ALL\n",
		       user);
		break;
	case SUDO_VERSION:
		printf("%s of Paddock %s\n", program, PADDOCK_VERSION);
		break;
	case SUDO_HELP:
		printf("sudo [-E] [-i | -s] [-n] [-b] [-u USER] [-D DIRECTORY] [VAR=VALUE] COMMAND "
		       "[ARGUMENT]…\n"
		       "su [-] [-c COMMAND] [-s SHELL] [USER [ARGUMENT]…]\n"
		       "Run a command as root of this sandbox, or as another user. No password is asked "
		       "for.\n");
		break;
	case SUDO_RUN:
	case SUDO_NOTHING:
		break;
	}
	return fflush(stdout) ? 1 : 0;
}

/* Descriptors that are missing would otherwise become those that we open. */
static void fill_standard_fds(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", O_RDWR);
}

int sudo_client_main(int argc, char **argv, char **env)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT(16u << 20);
	_cleanup_(buf_done) struct buf passwd = BUF_INIT(PASSWD_MAX);
	struct sudo_args s;
	struct err e = { 0 };
	struct account account, self;
	fill_standard_fds();
	const char *slash = strrchr(argv[0], '/');
	program = slash ? slash + 1 : argv[0];
	if (sudo_args_read(argc, argv, &a, &s, &e) < 0)
		return complain(e.msg);
	if (fd_slurp(AT_FDCWD, "/etc/passwd", &passwd) < 0)
		buf_clear(&passwd);
	find_caller(buf_view(&passwd), &self);
	if (s.mode != SUDO_RUN)
		return say(s.mode, self.name);
	if (find_target(buf_view(&passwd), s.user, &account) < 0)
		return 1;
	struct sudo_target t = { account.name, account.home, account.shell };
	struct sudo_caller c = { self.name, getuid(), getgid(), env };
	char **command, **environment;
	const char *file;
	if (sudo_args_command(&s, &t, &c, &a, &command, &file) < 0 ||
	    sudo_args_env(&s, &t, &c, command, &a, &environment) < 0)
		return complain("the command and its environment are too large");
	if (s.background) {
		pid_t pid = fork();
		if (pid)
			return pid < 0 ? complain("cannot fork") : 0;
	}
	return run(&s, account.name, command, file, environment, account.home);
}
