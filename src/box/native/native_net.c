/*
 * The network namespaces of boxes: see native.h. Made in this process, which steps into a
 * new one, puts the gate's sockets there and goes home.
 */
#include "native.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fd.h"
#include "native_child.h"
#include "poison.h"

static void go_home(const struct native *n)
{
	if (setns(n->host_net, CLONE_NEWNET) < 0)
		abort(); /* a keeper without its network would be of no use */
}

/* In a new namespace. */
static int furnish(int proc, enum netns_capture how, bool check, struct native_net *ret)
{
	/* /proc/sys/net is that of whoever looks. */
	int r = native_child_network(proc);
	if (r == 0)
		r = netns_gate_make(how, &ret->gate);
	if (r < 0)
		return r;
	if (check)
		r = netns_gate_check(&ret->gate);
	ret->ns = r < 0 ? -1 : open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (r == 0 && ret->ns < 0)
		r = -errno;
	if (r < 0)
		netns_gate_close(&ret->gate);
	return r;
}

static int make_net(const struct native *n, enum netns_capture how, bool check, struct native_net *ret)
{
	_cleanup_(closep) int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (n->host_net < 0)
		return -EBADF;
	if (proc < 0 || unshare(CLONE_NEWNET) < 0)
		return -errno;
	int r = furnish(proc, how, check, ret);
	go_home(n);
	return r;
}

bool native_refill(struct native *n)
{
	if (n->n_nets >= MIN(n->wanted_nets, ELEMS(n->nets)) ||
	    make_net(n, n->capture, false, &n->nets[n->n_nets]) < 0)
		return false;
	n->n_nets++;
	return n->n_nets < n->wanted_nets;
}

int native_gate(struct native *n, pid_t pid, int pidfd, enum netns_capture how, struct netns_gate *ret)
{
	char path[48];
	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	_cleanup_(closep) int ns = open(path, O_RDONLY | O_CLOEXEC);
	struct stat theirs, ours;
	if (ns < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	if (fstat(ns, &theirs) < 0 || fstat(n->host_net, &ours) < 0)
		return -errno;
	/* It lives, so the number was not another's when we looked; and what we do must never be done to the
	 * host. */
	if (poll(&(struct pollfd){ .fd = pidfd, .events = POLLIN }, 1, 0) != 0 ||
	    theirs.st_ino == ours.st_ino)
		return -ESRCH;
	if (setns(ns, CLONE_NEWNET) < 0)
		return -errno;
	int r = netns_gate_make(how, ret);
	go_home(n);
	return r;
}

/* ---- which way ---- */

/* Tried for real, in a namespace that is thrown away. */
static int try_capture(const struct native *n, enum netns_capture how)
{
	struct native_net net;
	int r = make_net(n, how, how != NETNS_PROXY, &net);
	if (r < 0)
		return r;
	fd_close(net.ns);
	netns_gate_close(&net.gate);
	return 0;
}

static void add_part(struct posture *p, bool ok, bool have, const char *how, const int why[NETNS_CAPTURES])
{
	struct buf text = BUF_INIT(512);
	buf_printf(&text, "%s", how);
	for (unsigned i = 0; i < NETNS_CAPTURES; i++)
		if (why[i] < 0)
			buf_printf(&text, "; no %s: %s", netns_capture_name((enum netns_capture)i),
				   strerror(-why[i]));
	buf_append(&text, "", 1);
	posture_feature(p, FEATURE_CAPTURE, have, 0, text.bad ? how : text.p);
	if (ok && !have) /* as the configuration wishes */
		p->parts[p->n - 1].ok = true;
	buf_done(&text);
}

int native_capture(struct native *n, struct view wish, struct posture *p, struct err *e)
{
	static const char *const how[NETNS_CAPTURES] = { [NETNS_SK_LOOKUP] = "sk_lookup programs",
							 [NETNS_NFT] = "nf_tables rules",
							 [NETNS_PROXY] = "none: proxy port and DNS alone" };
	enum netns_capture named = netns_capture_named(wish);
	int why[NETNS_CAPTURES] = { 0 };
	n->capture = NETNS_UNKNOWN;
	for (enum netns_capture it = NETNS_SK_LOOKUP; it <= NETNS_PROXY && !n->capture; it++) {
		if (named && it != named)
			continue;
		why[it] = try_capture(n, it);
		if (why[it] == 0)
			n->capture = it;
	}
	if (named && !n->capture)
		return err_sys(e, ERR_WALLS, why[named], "egress.capture: %s is not to be had here",
			       netns_capture_name(named));
	if (!n->capture)
		return err_sys(e, ERR_WALLS, why[NETNS_PROXY],
			       "no network namespace with sockets for the gate");
	add_part(p, named || n->capture != NETNS_PROXY, n->capture != NETNS_PROXY, how[n->capture], why);
	return 0;
}
