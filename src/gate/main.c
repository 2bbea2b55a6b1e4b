/*
 * paddock-gate: the boxes' only way out.
 *
 * Peers:        boxes (hostile), by the listeners that the keeper made in their network
 *               namespaces: which box it is, is known by the listener; the keeper, by fd
 *               3; paddock-api, by a channel that the keeper hands over (it is believed
 *               about policies); paddock-vault likewise (certificates and secrets, where
 *               a policy allows them); name servers and whatever is dialled (hostile).
 * Holds:        the policies of the boxes, their connections; a secret while a connection
 *               uses it; the key of intercepted connections, new with every start.
 * Runs as:      uids.gate of the configuration; started as root by the keeper, it reads
 *               /etc/resolv.conf and drops before it reads anything else.
 * Capabilities: none, in all five sets; no_new_privs.
 * Files:        none (Landlock without a rule).
 * Calls:        src/os/seccomp_gate.c: sockets of the internet families, and waiting.
 *
 * Nothing is dialled that a rule of the box's policy does not allow, by the address that
 * was judged. It ends when the keeper closes its end; what it held closes with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config.h"
#include "intercept.h"
#include "seccomp.h"
#include "service.h"
#include "trim.h"
#include "poison.h"

#define PIPE_BYTES (1 << 20)

enum { FD_KEEPER = 3 };

static int start(struct gate *g, struct err *e)
{
	const char *dns = getenv("PADDOCK_GATE_DNS"), *proxy = getenv("PADDOCK_GATE_PROXY");
	uint32_t uid;

	if (service_number("PADDOCK_GATE_UID", &uid, e) < 0 || service_close_from(FD_KEEPER + 1, e) < 0)
		return -1;
	if (proxy && *proxy &&
	    config_listen(view_skip(view_of(proxy), 7), &g->upstream, &g->upstream_len) < 0)
		return err_set(e, ERR_INVALID, "gate.upstream_proxy is not an address");
	/* Once we are confined no socket of this family can be made. */
	g->route = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (g->route < 0)
		return err_sys(e, ERR_INTERNAL, errno, "netlink");
	if (pipe2(g->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "a pipe");
	/* More places, each of which holds a piece of a packet: otherwise 64 KiB can fill it. */
	(void)!fcntl(g->pipe[0], F_SETPIPE_SZ, PIPE_BYTES);
	g->loop = loop_new(e);
	if (!g->loop)
		return -1;
	const char *ca = getenv("PADDOCK_GATE_CA");
	if (intercept_setup(g, ca ? ca : "", e) < 0)
		return -1;
	g->names = names_new(g->loop, dns ? dns : "", e);
	service_limit_fds(0);
	if (!g->names || service_drop("uids.gate", uid, seccomp_gate, e) < 0)
		return -1;
	map_init(&g->boxes);
	map_init(&g->tenants);
	g->verdicts = BUF_INIT(256u * 1024);
	int r = link_start(&g->keeper, g->loop, FD_KEEPER, true, &boxes_keeper_ops);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "the keeper's channel") : 0;
}

int main(void)
{
	static struct gate g = { .api.io.fd = -1 };
	struct err e = { 0 };

	service_init("paddock-gate");
	if (start(&g, &e) < 0)
		return service_fail(&e);
	trim_start();
	return service_run(g.loop);
}
