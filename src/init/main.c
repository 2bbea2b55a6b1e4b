/*
 * paddock-init: PID 1 of every box.
 *
 * Role       starts and ends processes, reads and writes files, for whoever
 *            connects; collects every child. Never exits.
 * Peers      paddock-api, by connections that paddockd mints from the path of
 *            the listening socket, which only the host can see. Programs in the
 *            box cannot reach it. Programs of the box by the socket of sudo.h.
 * Holds      fd 3, the listening socket; 0, 1, 2 are /dev/null; what space.h takes of the
 *            environment: the listener of the seccomp filter, figures of the disk.
 * Runs as    uid 0 of the box's user namespace with a few capabilities
 *            (chown, dac_override, fowner, fsetid, kill, setgid, setuid,
 *            net_bind_service), an empty bounding set, no_new_privs, and the
 *            box's seccomp filter and Landlock rules, set by paddockd before
 *            it executes this from a sealed memfd.
 * Otherwise  the same program is /usr/bin/sudo and /usr/bin/su of the box, when it
 *            is called by those names: sudo_client.c.
 * Trusted    by nobody: it shares its kernel view with hostile programs. What it
 *            says concerns its own box alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cpus.h"
#include "fd.h"
#include "init.h"
#include "num.h"
#include "space.h"
#include "sudo.h"
#include "sudo_client.h"
#include "poison.h"

#define LISTEN_FD 3

static void set_signals(void)
{
	/* Others come to PID 1 only from the host, and mean nothing to it. */
	static const int ignored[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGPIPE, SIGALRM,
				       SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	for (size_t i = 0; i < ELEMS(ignored); i++)
		(void)sigaction(ignored[i], &ignore, NULL);
}

/* Descriptors that we open must not become somebody's stdin. */
static void fill_standard_fds(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", O_RDWR);
	(void)fcntl(LISTEN_FD, F_SETFD, FD_CLOEXEC);
}

int main(int argc, char **argv, char **env)
{
	if (argc && sudo_client_is(argv[0]))
		return sudo_client_main(argc, argv, env);
	set_signals();
	fill_standard_fds();
	umask(022);
	(void)setsid();
	(void)chdir("/");
	(void)syscall(SYS_setgroups, (size_t)0, NULL);
	oom_shelter();
	/* Root of the box must not attach to it, nor anybody to a child that still has its memory. */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);

	static struct init init;
	if (init_start(&init, LISTEN_FD, NULL) < 0)
		return 1;
	init.box = init.unsettled = getpid() == 1;
	bool sudo = true;
	for (int i = 1; i < argc; i++) {
		sudo &= strcmp(argv[i], "no-sudo") != 0;
		uint32_t n;
		if (strncmp(argv[i], "cpus=", 5) == 0 && num_u32(view_of(argv[i] + 5), &n) == 0)
			cpus_limit(n);
		if (strncmp(argv[i], "thrash=", 7) == 0 && num_u32(view_of(argv[i] + 7), &n) == 0)
			oom_limit(n);
	}
	space_start(&init, env);
	if (sudo)
		sudo_start(&init);
	for (;;) {
		int r = loop_run(init.loop); /* comes back only when epoll_wait fails */
		(void)r;
	}
}
