/*
 * Starting and reaching paddock-vault: see vault.h.
 */
#include "vault.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "child.h"
#include "clock.h"
#include "fd.h"
#include "log.h"
#include "wire_gen.h"
#include "poison.h"

#define AGAIN_MS  500 /* one that dies at once is not started in a tight loop */
#define STEADY_MS 2000
#define JOIN_MS   20

/* systemd's: files in a directory that only we can read. */
static const char *const credentials[] = { "paddock-master-key", "paddock-master-key-old" };

static unsigned open_credentials(int fds[ELEMS(credentials)])
{
	const char *dir = getenv("CREDENTIALS_DIRECTORY");
	char path[512];
	unsigned n = 0;

	/* Without the new one the old one means nothing. */
	while (dir && n < ELEMS(credentials) &&
	       snprintf(path, sizeof(path), "%s/%s", dir, credentials[n]) < (int)sizeof(path)) {
		fds[n] = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (fds[n] < 0)
			break;
		n++;
	}
	return n;
}

static void on_again(struct loop_timer *t)
{
	vault_start(CONTAINER(t, struct keeper, vault_again));
}

static void again(struct keeper *k)
{
	bool steady = clock_mono_ms() - k->vault_started_ms > STEADY_MS;
	if (!k->stopping)
		loop_timer_start(k->loop, &k->vault_again, steady ? 0 : AGAIN_MS, on_again);
}

static void on_ended(struct loop_io *io, uint32_t events)
{
	(void)events;
	struct keeper *k = CONTAINER(io, struct keeper, vault_exit);
	int fd = io->fd, status = 0;

	loop_io_stop(io);
	fd_close(fd);
	(void)waitpid(k->vault_pid, &status, 0);
	link_stop(&k->vault);
	k->vault_pid = 0;
	if (k->stopping)
		return;
	if (WIFSIGNALED(status))
		log_warn("paddock-vault ended by signal %d, starting it again", WTERMSIG(status));
	else
		log_warn("paddock-vault ended with %d, starting it again", WEXITSTATUS(status));
	again(k);
}

static void on_frame(struct link *l, const struct frame *f, int fd)
{
	(void)l;
	(void)f;
	fd_close(fd); /* it has nothing to say to us */
}

static void on_closed(struct link *l, int error)
{
	(void)error;
	link_stop(l); /* its end is noticed by its pidfd */
}

static const struct link_ops ops = { .on_frame = on_frame, .on_closed = on_closed };

static int start(struct keeper *k)
{
	int pair[2], pidfd, fds[2 + ELEMS(credentials)];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	_cleanup_(closep) int ours = pair[0];
	_cleanup_(closep) int theirs = pair[1];
	_cleanup_(closep) int dir = openat(k->data, "vault", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0)
		return -errno;
	fds[0] = theirs;
	fds[1] = dir;
	unsigned n = open_credentials(fds + 2);
	char uid[48], keys[48];
	snprintf(uid, sizeof(uid), "PADDOCK_VAULT_UID=%llu", (unsigned long long)k->config->uids.vault);
	snprintf(keys, sizeof(keys), "PADDOCK_VAULT_KEYS=%u", n);
	char *const argv[] = { (char[]){ "paddock-vault" }, NULL };
	char *const envp[] = { uid, keys, NULL };
	int r = child_exec(k, "paddock-vault", argv, envp, fds, 2 + n, &k->vault_pid, &pidfd);
	for (unsigned i = 0; i < n; i++)
		fd_close(fds[2 + i]);
	if (r < 0) {
		k->vault_pid = 0;
		return r;
	}
	r = loop_io_start(k->loop, &k->vault_exit, pidfd, EPOLLIN, on_ended);
	if (r < 0) {
		(void)kill(k->vault_pid, SIGKILL);
		(void)waitpid(k->vault_pid, NULL, 0);
		k->vault_pid = 0;
		fd_close(pidfd);
		return r;
	}
	return link_start(&k->vault, k->loop, TAKE_FD(ours), true, &ops);
}

void vault_start(struct keeper *k)
{
	k->vault_started_ms = clock_mono_ms();
	int r = start(k);
	if (r < 0) {
		log_error("cannot start paddock-vault: %s", strerror(-r));
		if (k->vault_pid)
			(void)kill(k->vault_pid, SIGKILL);
		else
			again(k);
	} else {
		vault_join_gate(k);
		vault_join_ai(k);
	}
}

int vault_connect(struct keeper *k, int32_t role, int *ret_fd)
{
	int pair[2];
	struct wire_vault_peer m = { .role = role };

	if (!link_open(&k->vault))
		return -ENOTCONN;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	_cleanup_(closep) int ours = pair[0];
	int r = link_send_msg_fd(&k->vault, WIRE_TYPE_VAULT_PEER, FRAME_EVENT, 0, 0, &wire_vault_peer_msg, &m,
				 pair[1]);
	if (r < 0)
		return r;
	*ret_fd = TAKE_FD(ours);
	return 0;
}

static void on_join(struct loop_timer *t)
{
	vault_join_gate(CONTAINER(t, struct keeper, vault_join));
}

void vault_join_ai(struct keeper *k)
{
	int fd;

	if (!link_open(&k->vault) || !link_open(&k->ai))
		return;
	int r = vault_connect(k, WIRE_VAULT_ROLE_AI, &fd);
	if (r == 0)
		r = link_send_msg_fd(&k->ai, WIRE_TYPE_AI_VAULT, FRAME_EVENT, 0, 0, &wire_ai_vault_msg,
				     &(struct wire_ai_vault){ 0 }, fd);
	if (r < 0)
		log_error("paddock-ai has no channel to paddock-vault: %s", strerror(-r));
}

void vault_join_gate(struct keeper *k)
{
	int fd;

	if (!link_open(&k->vault) || !link_open(&k->gate))
		return;
	if (k->gate.n_out_fds >= LINK_FDS) { /* sockets of boxes are on their way: after them */
		loop_timer_start(k->loop, &k->vault_join, JOIN_MS, on_join);
		return;
	}
	int r = vault_connect(k, WIRE_VAULT_ROLE_GATE, &fd);
	if (r == 0)
		r = link_send_msg_fd(&k->gate, WIRE_TYPE_GATE_VAULT, FRAME_EVENT, 0, 0, &wire_gate_vault_msg,
				     &(struct wire_gate_vault){ 0 }, fd);
	if (r < 0)
		log_error("paddock-gate has no channel to paddock-vault: %s", strerror(-r));
}
