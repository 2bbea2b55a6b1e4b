/*
 * paddock forward: local ports that lead to ports of a box. Each connection is
 * carried by a process of its own, which ends with us.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "cmd.h"
#include "fd.h"
#include "forward.h"
#include "num.h"

#include "poison.h"

#define PORTS_MAX 16
#define BACKLOG   64

struct mapping {
	unsigned local, remote;
	int fd;
};

/* "8080:80", or "80" for the same on both sides; 0 on our side is any that is free. */
static int read_mapping(const char *text, struct mapping *ret, struct err *e)
{
	struct view rest, first = view_split(view_of(text), ':', &rest);
	uint32_t local, remote;

	if (num_u32(first, &local) < 0 || local > UINT16_MAX || num_u32(rest.p ? rest : first, &remote) < 0 ||
	    remote < 1 || remote > UINT16_MAX)
		return err_set(e, ERR_INVALID, "'%.60s' is not LOCAL:PORT", text);
	*ret = (struct mapping){ local, remote, -EBADF };
	return 0;
}

static int listen_on(struct mapping *m, struct err *e)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)m->local),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(at);
	int on = 1;

	m->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (m->fd < 0)
		return err_sys(e, ERR_INTERNAL, errno, "socket");
	(void)setsockopt(m->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(m->fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(m->fd, BACKLOG) < 0 ||
	    getsockname(m->fd, (struct sockaddr *)&at, &n) < 0)
		return err_sys(e, ERR_CONFLICT, errno, "127.0.0.1:%u", m->local);
	m->local = ntohs(at.sin_port);
	return 0;
}

/* In a child: one connection. */
static _noreturn_ void carry(struct session *s, const char *box, const struct mapping *m, int fd,
			     pid_t parent)
{
	struct err e = { 0 };

	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(CMD_FAILED);
	s->client.fd = -1; /* the parent's, whatever it is */
	int r = forward_carry(s, box, m->remote, fd, &e);
	/* That our own program hung up is its business. */
	if (r < 0 && e.code != ERR_CANCELLED)
		fprintf(stderr, "paddock: %s:%u: %s\n", box, m->remote, e.msg);
	_exit(r < 0 ? CMD_FAILED : 0);
}

static void accept_one(struct session *s, const char *box, const struct mapping *m)
{
	pid_t me = getpid();
	int fd = accept4(m->fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (fork() == 0)
		carry(s, box, m, fd, me);
	fd_close(fd); /* where there is no process for it, it is refused by this */
}

static int serve(struct session *s, const char *box, struct mapping *maps, size_t n, struct err *e)
{
	struct pollfd fds[PORTS_MAX];

	for (size_t i = 0; i < n; i++) {
		fds[i] = (struct pollfd){ .fd = maps[i].fd, .events = POLLIN };
		printf("127.0.0.1:%u -> %s:%u\n", maps[i].local, box, maps[i].remote);
	}
	fflush(stdout);
	for (;;) {
		if (poll(fds, n, -1) < 0 && errno != EINTR)
			return err_sys(e, ERR_INTERNAL, errno, "poll");
		for (size_t i = 0; i < n; i++)
			if (fds[i].revents)
				accept_one(s, box, &maps[i]);
	}
}

static int run(struct cmd_ctx *ctx, const void *flags _unused_, size_t n, char **operands, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	struct mapping maps[PORTS_MAX];
	size_t n_maps = n - 1, opened = 0;
	struct json *box;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n_maps; i++)
		r = read_mapping(operands[i + 1], &maps[i], e);
	if (r < 0 || session_open(&s, &ctx->session, &ctx->arena, e) < 0 ||
	    session_get(&s, "/v1/sandboxes/", operands[0], &box, e) < 0)
		return -1;
	sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = SIG_IGN, .sa_flags = SA_NOCLDWAIT }, NULL);
	while (r == 0 && opened < n_maps)
		r = listen_on(&maps[opened++], e);
	if (r == 0)
		r = serve(&s, operands[0], maps, n_maps, e);
	while (opened > 0)
		fd_close(maps[--opened].fd);
	return r;
}

const struct cmd cmd_forward = {
	.name = "forward",
	.operands = "SANDBOX LOCAL:PORT…",
	.summary = "lead local ports to ports of a sandbox",
	.help = "Listens on 127.0.0.1 until interrupted. One number stands for both; 0 as LOCAL is any\n"
		"port that is free. What is forwarded is printed, a line for each.",
	.lead = OPTS_ANYWHERE,
	.min = 2,
	.max = 1 + PORTS_MAX,
	.client = true,
	.run = run,
};
