/*
 * PID 1's side of sudo: see sudo.h.
 */
#include "sudo.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "fd.h"
#include "init.h"
#include "launch.h"
#include "num.h"
#include "oom.h"
#include "tree.h"
#include "user.h"
#include "poison.h"

#define OFF_SWITCH    "/etc/paddock/no-sudo"
#define PATIENCE_MS   10000 /* until a client has said what it wants */
#define REGULAR_LEAST 1000  /* uids of people, as Debian counts them; 65534 is nobody */
#define NOBODY        65534
#define SEALS         (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)

struct sudo {
	struct init *init;
	struct list node; /* of init->sudos */
	struct loop_io io;
	struct loop_timer patience;
	struct loop_task freeing;
	pid_t pid; /* 0: nothing runs */
	bool gone; /* the client; freed when the command is reaped */
	uid_t uid; /* the client's */
};

/* ---- requests --------------------------------------------------------- */

static bool next_string(struct view *rest, struct view *ret)
{
	const char *end = rest->n ? memchr(rest->p, 0, rest->n) : NULL;
	if (!end)
		return false;
	*ret = (struct view){ rest->p, (size_t)(end - rest->p) };
	*rest = view_skip(*rest, ret->n + 1);
	return true;
}

static size_t count_strings(struct view text)
{
	size_t n = 0;
	for (size_t i = 0; i < text.n; i++)
		n += text.p[i] == 0;
	return n;
}

int sudo_read_request(struct view text, struct arena *a, struct wire_start *ret, const char **ret_file)
{
	struct view user, number, file;
	uint32_t argc;
	size_t n = count_strings(text);
	if (!next_string(&text, &user) || !next_string(&text, &number) || !next_string(&text, &file) ||
	    num_u32(number, &argc) < 0 || argc == 0 || argc > n - 3)
		return -EBADMSG;
	struct wire_start s = { .user = user, .cwd = VIEW("/") };
	s.argv.items = arena_array(a, argc, sizeof(struct view));
	s.env.items = arena_array(a, n - 3 - argc + 1, sizeof(struct wire_env_var));
	if (!s.argv.items || !s.env.items)
		return -ENOMEM;
	while (s.argv.n < argc && next_string(&text, &s.argv.items[s.argv.n]))
		s.argv.n++;
	for (struct view one; next_string(&text, &one);) {
		struct view value, name = view_split(one, '=', &value);
		if (name.n && name.n < one.n)
			s.env.items[s.env.n++] = (struct wire_env_var){ name, value };
	}
	if (s.argv.n < argc || text.n || s.argv.items[0].n == 0 || user.n == 0)
		return -EBADMSG;
	*ret = s;
	*ret_file = file.n ? file.p : NULL; /* ends with the NUL that separates it */
	return 0;
}

/* Sealed, so that neither its size nor its bytes change under us, and no read can wait. */
static int slurp_request(int fd, struct buf *out)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 || st.st_size <= 0 ||
	    st.st_size > SUDO_REQUEST)
		return -EBADMSG;
	char *p = buf_reserve(out, (size_t)st.st_size);
	if (!p)
		return -ENOMEM;
	ssize_t n = pread(fd, p, (size_t)st.st_size, 0);
	if (n != st.st_size)
		return -EBADMSG;
	buf_commit(out, (size_t)n);
	return 0;
}

/* ---- who may ---------------------------------------------------------- */

/* Root and people may; the accounts of services may not, unless they are in one of sudo's groups. */
static bool may(uid_t uid)
{
	if (uid == 0 || (uid >= REGULAR_LEAST && uid != NOBODY))
		return true;
	char number[16], room[16];
	struct user u;
	struct user_names names;
	bool found = false;
	snprintf(number, sizeof(number), "%u", uid);
	if (user_find(view_of(number), &u, NULL) < 0)
		return false;
	user_names_load(&names);
	for (unsigned i = 0; i < u.n_groups && !found; i++) {
		struct view group = user_group_of(&names, u.groups[i], room);
		found = view_is(group, "sudo") || view_is(group, "wheel");
	}
	user_names_done(&names);
	return found;
}

/* ---- a client --------------------------------------------------------- */

static void run_free(struct loop_task *task)
{
	free(CONTAINER(task, struct sudo, freeing));
}

static void hang_up(struct sudo *s)
{
	if (s->gone)
		return;
	s->gone = true;
	loop_timer_stop(&s->patience);
	loop_io_close(&s->io);
	s->init->n_sudo_clients--;
}

static void end(struct sudo *s)
{
	hang_up(s);
	list_del(&s->node);
	loop_defer(s->init->loop, &s->freeing, run_free);
}

/* The client is gone: killed, since one that is well waits for its command. */
static void lost(struct sudo *s)
{
	hang_up(s);
	if (s->pid)
		tree_kill(s->pid);
	else
		end(s);
}

static void tell(struct sudo *s, const void *p, size_t n)
{
	if (!s->gone)
		(void)!send(s->io.fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void refuse(struct sudo *s, const char *why)
{
	char text[256];
	int n = snprintf(text, sizeof(text), "E%s", why);
	tell(s, text, (size_t)MIN(n, (int)sizeof(text) - 1));
	end(s);
}

static int launch(struct sudo *s, int fds[SUDO_FDS], bool terminal, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(SUDO_REQUEST);
	_cleanup_(arena_done) struct arena a = ARENA_INIT(8u << 20);
	struct wire_start msg;
	const char *file;
	int r = slurp_request(fds[0], &text);
	if (r == 0)
		r = sudo_read_request(buf_view(&text), &a, &msg, &file);
	if (r < 0)
		return err_set(e, ERR_INVALID, "PID 1 does not understand the request");
	struct user user;
	struct launch plan = { .user = &user,
			       .fds = { fds[2], fds[3], fds[4] },
			       .control = { -1, -1 },
			       .terminal = terminal,
			       .cwd_fd = &fds[1] };
	char name[64];
	(void)!view_to_str(view_head(msg.argv.items[0], sizeof(name) - 1), name, sizeof(name));
	if (user_find(msg.user, &user, e) < 0 || launch_prepare(&plan, &msg, &a, e) < 0)
		return -1;
	if (file) {
		plan.paths[0] = (char *)file;
		plan.paths[1] = NULL;
	}
	if (launch_run(&plan, &s->pid, e) == 0)
		return 0;
	if (e->code == ERR_NOT_FOUND)
		err_set(e, ERR_NOT_FOUND, "%s: command not found", name);
	return -1;
}

static void on_request(struct sudo *s, int fds[SUDO_FDS], bool terminal)
{
	struct err e = { 0 };
	loop_timer_stop(&s->patience);
	if (!may(s->uid)) { /* only now: a socket that is closed with something unread loses the answer */
		refuse(s,
		       "this user may not become another; root, people (uid 1000 and above) and members of "
		       "the group sudo may");
		return;
	}
	if (launch(s, fds, terminal, &e) < 0) {
		s->pid = 0;
		refuse(s, e.msg);
		return;
	}
	oom_offer(s->pid);
	tell(s, "S", 1);
}

/* One packet and what came with it; the number of bytes, 0 at the end. */
static ssize_t take_packet(int fd, char *p, size_t size, int fds[SUDO_FDS])
{
	union {
		char room[CMSG_SPACE(sizeof(int) * SUDO_FDS)];
		struct cmsghdr align;
	} control;
	struct iovec iov = { p, size };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	unsigned have = 0;
	for (struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
			int got;
			memcpy(&got, CMSG_DATA(c) + at, sizeof(got));
			if (have < SUDO_FDS)
				fds[have++] = got;
			else
				fd_close(got);
		}
	}
	return n;
}

static void on_client(struct loop_io *io, uint32_t events)
{
	struct sudo *s = CONTAINER(io, struct sudo, io);
	(void)events;
	char packet[8];
	int fds[SUDO_FDS] = { -1, -1, -1, -1, -1 };
	ssize_t n = take_packet(io->fd, packet, sizeof(packet), fds);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == 2 && packet[0] == 'R' && !s->pid && fds[SUDO_FDS - 1] >= 0)
		on_request(s, fds, packet[1] & SUDO_TERMINAL);
	else if (n == 2 && packet[0] == 'K' && s->pid)
		(void)kill(-s->pid, packet[1]); /* an invalid number is refused by the kernel */
	else
		lost(s);
	for (unsigned i = 0; i < SUDO_FDS; i++)
		fd_close(fds[i]);
}

static void on_impatience(struct loop_timer *t)
{
	lost(CONTAINER(t, struct sudo, patience));
}

void sudo_reaped(struct init *in, int pid, int status)
{
	LIST_EACH (it, &in->sudos) {
		struct sudo *s = CONTAINER(it, struct sudo, node);
		if (s->pid != pid)
			continue;
		uint32_t w = (uint32_t)status;
		const unsigned char said[] = { 'X', w & 255, w >> 8 & 255, w >> 16 & 255, w >> 24 };
		tell(s, said, sizeof(said));
		s->pid = 0;
		end(s);
		return;
	}
}

/* ---- the socket ------------------------------------------------------- */

static void on_accept(struct loop_io *io, uint32_t events)
{
	struct init *in = CONTAINER(io, struct init, sudo);
	(void)events;
	_cleanup_(closep) int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred who;
	socklen_t len = sizeof(who);
	if (fd < 0 || in->n_sudo_clients >= SUDO_CLIENTS ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
		return;
	struct sudo *s = calloc(1, sizeof(*s));
	if (!s || loop_io_start(in->loop, &s->io, fd, EPOLLIN, on_client) < 0) {
		free(s);
		return;
	}
	(void)TAKE_FD(fd);
	s->init = in;
	in->n_sudo_clients++;
	list_append(&in->sudos, &s->node);
	s->uid = who.uid;
	loop_timer_start(in->loop, &s->patience, PATIENCE_MS, on_impatience);
}

void sudo_start(struct init *in)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "\0" SUDO_ADDRESS };
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof("\0" SUDO_ADDRESS) - 1);
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, SUDO_CLIENTS) < 0 ||
	    loop_io_start(in->loop, &in->sudo, fd, EPOLLIN, on_accept) < 0)
		return;
	(void)TAKE_FD(fd);
}

void sudo_look(struct init *in)
{
	if (in->sudo.fd >= 0 && access(OFF_SWITCH, F_OK) == 0)
		loop_io_close(&in->sudo);
}

void sudo_stop(struct init *in)
{
	LIST_EACH (it, &in->sudos)
		end(CONTAINER(it, struct sudo, node));
	loop_io_close(&in->sudo);
}
