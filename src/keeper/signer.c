/*
 * Starting and reaching paddock-signer: see signer.h.
 */
#include "signer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "clock.h"
#include "fd.h"
#include "log.h"
#include "signer_gen.h"
#include "poison.h"

#define AGAIN_MS   500 /* one that dies at once is not started in a tight loop */
#define STEADY_MS  2000
#define DIRECTORY  "signer"
#define DATABASE   "signer/signer.db"
#define CREDENTIAL "paddock-signer-key" /* of systemd: the master key, in a file that only we can read */

static int start(struct keeper *k);

/* ---- its end ---- */

static void on_again(struct loop_timer *t)
{
	signer_start(CONTAINER(t, struct keeper, signer_again));
}

static void attempt(struct keeper *k)
{
	k->signer_started_ms = clock_mono_ms();
	int r = start(k);
	if (r < 0) {
		log_error("cannot start paddock-signer: %s", strerror(-r));
		loop_timer_start(k->loop, &k->signer_again, AGAIN_MS, on_again);
	}
}

static void on_ended(struct loop_io *io, uint32_t events)
{
	struct keeper *k = CONTAINER(io, struct keeper, signer_exit);
	int status = 0;

	(void)events;
	loop_io_close(io);
	link_stop(&k->signer);
	(void)waitpid(k->signer_pid, &status, 0);
	k->signer_pid = 0;
	if (k->stopping)
		return;
	bool killed = WIFSIGNALED(status), steady = clock_mono_ms() - k->signer_started_ms > STEADY_MS;
	log_warn("paddock-signer ended %s %d, starting it again", killed ? "by signal" : "with",
		 killed ? WTERMSIG(status) : WEXITSTATUS(status));
	loop_timer_start(k->loop, &k->signer_again, steady ? 0 : AGAIN_MS, on_again);
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
	link_stop(l); /* its pidfd tells when it is over */
}

static const struct link_ops ops = { .on_frame = on_frame, .on_closed = on_closed };

/* ---- its start ---- */

/* Should: end with a directory that the signer owns and nobody else can enter. */
static int open_directory(struct keeper *k)
{
	uid_t uid = (uid_t)k->config->uids.signer;

	if (mkdirat(k->data, DIRECTORY, 0700) < 0 && errno != EEXIST)
		return -errno;
	_cleanup_(closep) int fd =
		openat(k->data, DIRECTORY, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fchown(fd, uid, uid) < 0 || fchmod(fd, 0700) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int open_credential(void)
{
	const char *dir = getenv("CREDENTIALS_DIRECTORY");
	char path[512];

	if (!dir || snprintf(path, sizeof(path), "%s/" CREDENTIAL, dir) >= (int)sizeof(path))
		return -ENOENT;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

static int execute(struct keeper *k, int channel, int *ret_pidfd)
{
	_cleanup_(closep) int dir = open_directory(k);
	_cleanup_(closep) int key = open_credential();
	char uid[48], keys[48], name[] = "paddock-signer";

	if (dir < 0)
		return dir;
	/* A key that is there and cannot be read is not the same as none: with none the signer makes one. */
	if (key < 0 && key != -ENOENT)
		return key;
	snprintf(uid, sizeof(uid), "PADDOCK_SIGNER_UID=%llu", (unsigned long long)k->config->uids.signer);
	snprintf(keys, sizeof(keys), "PADDOCK_SIGNER_KEYS=%d", key >= 0);
	char *const argv[] = { name, NULL }, *const envp[] = { uid, keys, NULL };
	const int fds[] = { channel, dir, key };
	return child_exec(k, name, argv, envp, fds, key >= 0 ? 3 : 2, &k->signer_pid, ret_pidfd);
}

static int start(struct keeper *k)
{
	int pair[2], pidfd;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	_cleanup_(closep) int ours = pair[0];
	_cleanup_(closep) int theirs = pair[1];
	int r = execute(k, theirs, &pidfd);
	if (r < 0)
		return r;
	r = loop_io_start(k->loop, &k->signer_exit, pidfd, EPOLLIN, on_ended);
	if (r == 0)
		return link_start(&k->signer, k->loop, TAKE_FD(ours), true, &ops);
	(void)kill(k->signer_pid, SIGKILL);
	(void)waitpid(k->signer_pid, NULL, 0);
	k->signer_pid = 0;
	fd_close(pidfd);
	return r;
}

static bool is_used(const struct keeper *k)
{
	return faccessat(k->data, DATABASE, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void signer_start(struct keeper *k)
{
	if (!k->signer_pid && is_used(k))
		attempt(k);
}

/* ---- its peers ---- */

int signer_ready(struct keeper *k, int32_t role, struct err *e)
{
	/* Streams that it has not taken yet wait here, and the link breaks when there are too many. The api
	 * has half of the places: it cannot keep the owner out. */
	const unsigned places = role == SGN_SIGNER_ROLE_OWNER ? LINK_FDS : LINK_FDS / 2;

	if (!k->signer_pid && !loop_timer_active(&k->signer_again) && !k->stopping)
		attempt(k);
	if (!link_open(&k->signer) || k->signer.n_out_fds >= places)
		return err_set(e, ERR_UNAVAILABLE, "paddock-signer is not there at the moment; try again");
	return 0;
}

int signer_pass(struct keeper *k, int32_t role, int fd, struct err *e)
{
	const struct sgn_signer_peer m = { .role = role };
	int r = link_send_msg_fd(&k->signer, SGN_SIGNER_TYPE_PEER, FRAME_EVENT, 0, 0, &sgn_signer_peer_msg,
				 &m, fd);
	return r < 0 ? err_sys(e, ERR_UNAVAILABLE, r, "paddock-signer") : 0;
}

int signer_open(struct keeper *k, bool wake, int *ret_fd, struct err *e)
{
	int pair[2];

	if (!wake && !k->signer_pid && !is_used(k))
		return err_set(e, ERR_NOT_FOUND, "there are no wallets");
	if (signer_ready(k, SGN_SIGNER_ROLE_API, e) < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "socketpair");
	_cleanup_(closep) int ours = pair[0];
	if (signer_pass(k, SGN_SIGNER_ROLE_API, pair[1], e) < 0)
		return -1;
	*ret_fd = TAKE_FD(ours);
	return 0;
}
