/*
 * paddock-gate: the only way from a box to the network.
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
#include <stdlib.h>

#include "config.h"
#include "gate.h"
#include "seccomp.h"
#include "service.h"
#include "trim.h"
#include "poison.h"

enum { FD_KEEPER = 3 };

static int start(struct gate *g, struct err *e)
{
	const char *dns = getenv("PADDOCK_GATE_DNS"), *proxy = getenv("PADDOCK_GATE_PROXY"),
		   *ca = getenv("PADDOCK_GATE_CA");
	struct flows *f = &g->flows;
	struct names_setup names = { 0 };
	uint32_t uid;

	if (service_number("PADDOCK_GATE_UID", &uid, e) < 0 || service_close_from(FD_KEEPER + 1, e) < 0)
		return -1;
	if (proxy && *proxy &&
	    config_listen(view_skip(view_of(proxy), 7), &f->upstream, &f->upstream_len) < 0)
		return err_set(e, ERR_INVALID, "gate.upstream_proxy is not an address");
	if (dns && *dns && config_listen(view_of(dns), &names.server, &names.server_len) < 0)
		return err_set(e, ERR_INVALID, "gate.dns is not an address with a port");
	f->ops = &boxes_flows_ops;
	f->loop = flow_setup(f, e) < 0 ? NULL : loop_new(e);
	f->intercepts = f->loop ? intercept_setup(f->loop, ca ? ca : "", e) : NULL;
	f->names = f->intercepts ? names_new(f->loop, &names, e) : NULL;
	service_limit_fds(0);
	if (!f->names || service_drop("uids.gate", uid, seccomp_gate, e) < 0)
		return -1;
	map_init(&g->tenants);
	g->verdicts = BUF_INIT(256u * 1024);
	int r = link_start(&g->keeper, f->loop, FD_KEEPER, true, &boxes_keeper_ops);
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
	return service_run(g.flows.loop);
}
