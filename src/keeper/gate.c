/*
 * Starting paddock-gate and giving it what it serves: see gate.h.
 */
#include "gate.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "child.h"
#include "clock.h"
#include "fd.h"
#include "log.h"
#include "vault.h"
#include "wire_gen.h"
#include "poison.h"

#define AGAIN_MS    200
#define STEADY_MS   2000
#define FDS_PER_BOX 3

static void pump_later(struct keeper *k);

/* ---- the sockets of boxes ---- */

static void send_fd(struct keeper *k, const struct keeper_box *b, int32_t kind, int *fd)
{
	struct wire_gate_box m = { .id = view_of(b->spec.id),
				   .kind = kind,
				   .host = view_of(b->spec.hostname) };
	if (*fd >= 0)
		(void)!link_send_msg_fd(&k->gate, WIRE_TYPE_GATE_BOX, FRAME_EVENT, 0, 0, &wire_gate_box_msg,
					&m, TAKE_FD(*fd));
}

/* A queue that is not empty fails the link when too many fds wait in it: one box at a time. */
static bool ready(const struct keeper *k)
{
	return link_open(&k->gate) && k->gate.n_out_fds == 0 && FDS_PER_BOX <= LINK_FDS;
}

static void hand_over(struct keeper *k, const struct keeper_box *b, struct netns_gate *g)
{
	send_fd(k, b, WIRE_GATE_FD_DNS, &g->dns);
	send_fd(k, b, WIRE_GATE_FD_STEER, &g->steer);
	send_fd(k, b, WIRE_GATE_FD_TCP, &g->tcp);
	netns_gate_close(g);
}

static void on_again(struct loop_timer *t)
{
	struct keeper *k = CONTAINER(t, struct keeper, gate_again);
	if (!k->gate_pid)
		gate_start(k);
	LIST_EACH (it, &k->gate_failed) {
		list_del(it);
		list_append(&k->gate_queue, it);
	}
	pump_later(k);
}

/* What this machine does not do, as opposed to what it cannot do at the moment. */
static bool is_missing(int r)
{
	static const int errors[] = { EPERM, EACCES, ENOSYS, EINVAL, ENOENT, EOPNOTSUPP, EPROTONOSUPPORT };
	for (size_t i = 0; i < ELEMS(errors); i++)
		if (r == -errors[i])
			return true;
	return false;
}

/* A box goes on with the way that it began with. If that is gone it has what needs none. */
static int make_sockets(struct keeper *k, const struct keeper_box *b, struct netns_gate *ret)
{
	int r = walls_gate(&b->in, b->in.capture, ret);
	if (!is_missing(r) || b->in.capture == NETNS_PROXY)
		return r;
	log_warn(
		"sandbox %s: connections cannot be brought to the gate by %s (%s), it has its proxy port and "
		"DNS alone",
		b->spec.id, netns_capture_name(b->in.capture), strerror(-r));
	return walls_gate(&b->in, NETNS_PROXY, ret);
}

static void on_next(struct loop_task *t)
{
	struct keeper *k = CONTAINER(t, struct keeper, gate_next);
	if (list_empty(&k->gate_queue) || !ready(k))
		return;
	struct keeper_box *b = CONTAINER(k->gate_queue.next, struct keeper_box, gate_wait);
	struct netns_gate g;
	list_del(&b->gate_wait);
	int r = make_sockets(k, b, &g);
	if (r == 0) {
		hand_over(k, b, &g);
	} else if (r != -ESRCH) {
		/* A port is taken: by the sockets of a gate that ends this moment, or by the box, for itself.
		 */
		list_append(&k->gate_failed, &b->gate_wait);
		if (!loop_timer_active(&k->gate_again))
			loop_timer_start(k->loop, &k->gate_again, AGAIN_MS, on_again);
	}
	vault_join_gate(k);
	pump_later(k);
}

static void pump_later(struct keeper *k)
{
	if (list_empty(&k->gate_next.link) && !list_empty(&k->gate_queue))
		loop_defer(k->loop, &k->gate_next, on_next);
}

/* Boxes of some backends have no way out, and so nothing for the gate to serve. */
static void enqueue(struct keeper *k, struct keeper_box *b)
{
	list_del(&b->gate_wait);
	if (b->in.walls->ops->gate)
		list_append(&k->gate_queue, &b->gate_wait);
}

void gate_box(struct keeper *k, struct keeper_box *b, struct netns_gate *g)
{
	if (g && g->tcp >= 0 && ready(k)) {
		hand_over(k, b, g);
		return;
	}
	if (g)
		netns_gate_close(g);
	enqueue(k, b);
	pump_later(k);
}

void gate_box_gone(struct keeper *k, struct keeper_box *b)
{
	struct wire_gate_box_gone m = { .id = view_of(b->spec.id) };
	list_del(&b->gate_wait);
	if (link_open(&k->gate))
		(void)!link_send_msg(&k->gate, WIRE_TYPE_GATE_BOX_GONE, FRAME_EVENT, 0, 0, 0,
				     &wire_gate_box_gone_msg, &m);
}

int gate_open(struct keeper *k, int *ret_fd, struct err *e)
{
	int pair[2];
	if (!ready(k))
		return err_set(e, ERR_UNAVAILABLE, "paddock-gate is not there at the moment");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "socketpair");
	int r = link_send_msg_fd(&k->gate, WIRE_TYPE_GATE_API, FRAME_EVENT, 0, 0, &wire_gate_api_msg,
				 &(struct wire_gate_api){ 0 }, pair[1]);
	if (r < 0) {
		fd_close(pair[0]);
		return err_sys(e, ERR_UNAVAILABLE, r, "paddock-gate");
	}
	*ret_fd = pair[0];
	return 0;
}

/* ---- the program ---- */

static void on_frame(struct link *l, const struct frame *f, int fd)
{
	fd_close(fd); /* it has nothing to say */
}

static void on_closed(struct link *l, int error)
{
	link_stop(l); /* its end is noticed by its pidfd; it exits when the channel closes */
}

static void on_drained(struct link *l)
{
	pump_later(CONTAINER(l, struct keeper, gate));
}

static const struct link_ops ops = { .on_frame = on_frame, .on_closed = on_closed, .on_drained = on_drained };

static void on_gate_exit(struct loop_io *io, uint32_t events)
{
	struct keeper *k = CONTAINER(io, struct keeper, gate_exit);
	int fd = io->fd, status = 0;
	loop_io_stop(io);
	fd_close(fd);
	(void)waitpid(k->gate_pid, &status, 0);
	link_stop(&k->gate);
	k->gate_pid = 0;
	if (k->stopping)
		return;
	log_warn("paddock-gate ended (%s %d), starting it again", WIFSIGNALED(status) ? "signal" : "exit",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	for (struct map_node *n = map_first(&k->boxes.by_id); n; n = map_next(&k->boxes.by_id, n))
		enqueue(k, CONTAINER(n, struct keeper_box, node));
	bool steady = clock_mono_ms() - k->gate_started_ms > STEADY_MS;
	loop_timer_start(k->loop, &k->gate_again, steady ? 0 : AGAIN_MS, on_again);
}

static int start(struct keeper *k)
{
	int pair[2], pidfd;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	_cleanup_(closep) int ours = pair[0];
	_cleanup_(closep) int theirs = pair[1];
	char uid[48], dns[96], proxy[128], ca[1100];
	snprintf(uid, sizeof(uid), "PADDOCK_GATE_UID=%llu", (unsigned long long)k->config->uids.gate);
	snprintf(dns, sizeof(dns), "PADDOCK_GATE_DNS=%.*s", VIEW_ARG(k->config->gate.dns));
	snprintf(proxy, sizeof(proxy), "PADDOCK_GATE_PROXY=%.*s", VIEW_ARG(k->config->gate.upstream_proxy));
	char *const argv[] = { (char[]){ "paddock-gate" }, NULL };
	snprintf(ca, sizeof(ca), "PADDOCK_GATE_CA=%.*s", VIEW_ARG(k->config->gate.ca_file));
	char *const envp[] = { uid, dns, proxy, ca, NULL };
	int r = child_exec(k, "paddock-gate", argv, envp, &theirs, 1, &k->gate_pid, &pidfd);
	if (r < 0) {
		k->gate_pid = 0;
		return r;
	}
	r = loop_io_start(k->loop, &k->gate_exit, pidfd, EPOLLIN, on_gate_exit);
	if (r < 0) {
		(void)kill(k->gate_pid, SIGKILL);
		(void)waitpid(k->gate_pid, NULL, 0);
		fd_close(pidfd);
		k->gate_pid = 0;
		return r;
	}
	return link_start(&k->gate, k->loop, TAKE_FD(ours), true, &ops);
}

void gate_init(struct keeper *k)
{
	k->gate.io.fd = -1;
	list_init(&k->gate_queue);
	list_init(&k->gate_failed);
	list_init(&k->gate_next.link);
}

void gate_start(struct keeper *k)
{
	k->gate_started_ms = clock_mono_ms();
	int r = start(k);
	if (r < 0) { /* boxes go on without a way out */
		log_error("cannot start paddock-gate: %s", strerror(-r));
		loop_timer_start(k->loop, &k->gate_again, AGAIN_MS * 5, on_again);
		return;
	}
	pump_later(k);
}
