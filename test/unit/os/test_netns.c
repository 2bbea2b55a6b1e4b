/*
 * The gate's sockets in a live namespace, by each way that this kernel has: what comes to
 * them and with which destination, what does not, and what holds when they are closed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "child.h"
#include "fd.h"
#include "netns.h"
#include "poison.h"

#define NOT_HERE 77
#define SOON_MS  2000

static void enter(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	CHECK(unshare(CLONE_NEWNET) == 0);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &ifr) == 0);
	close(fd);
}

static socklen_t place(const char *address, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (void *)ret;
	struct sockaddr_in6 *v6 = (void *)ret;
	*ret = (struct sockaddr_storage){ 0 };
	if (strchr(address, ':')) {
		*v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port) };
		CHECK(inet_pton(AF_INET6, address, &v6->sin6_addr) == 1);
		return sizeof(*v6);
	}
	*v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
	CHECK(inet_pton(AF_INET, address, &v4->sin_addr) == 1);
	return sizeof(*v4);
}

/* 0, or -errno of the connect; within a namespace it never has to wait. */
static int dial(const char *address, uint16_t port, int *ret)
{
	struct sockaddr_storage to;
	socklen_t n = place(address, port, &to);
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0);
	int r = connect(fd, (struct sockaddr *)&to, n) < 0 ? -errno : 0;
	if (r < 0)
		close(fd);
	else
		*ret = fd;
	return r;
}

static bool ready(int fd, int ms)
{
	return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, ms) == 1;
}

static void name_of(int fd, char *dst, size_t n)
{
	struct sockaddr_storage at;
	struct sockaddr_in6 *v6 = (void *)&at;
	socklen_t len = sizeof(at);
	char text[INET6_ADDRSTRLEN];
	CHECK(getsockname(fd, (struct sockaddr *)&at, &len) == 0 && at.ss_family == AF_INET6);
	CHECK(inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text)));
	snprintf(dst, n, "%s %d", text, ntohs(v6->sin6_port));
}

/* A connection there comes to the gate's listener, which knows where it was meant to go. */
static void arrives(const struct netns_gate *g, const char *address, uint16_t port)
{
	char want[80], got[80], bytes[8] = { 0 };
	int ours, theirs;
	snprintf(want, sizeof(want), "%s%s %d", strchr(address, ':') ? "" : "::ffff:", address, port);
	CHECK(dial(address, port, &ours) == 0);
	CHECK(ready(g->tcp, SOON_MS));
	theirs = accept4(g->tcp, NULL, NULL, SOCK_CLOEXEC);
	CHECK(theirs >= 0);
	name_of(theirs, got, sizeof(got));
	if (strcmp(got, want) != 0)
		dprintf(2, "# %s instead of %s\n", got, want);
	CHECK(strcmp(got, want) == 0);
	CHECK(send(ours, "there", 5, 0) == 5 && recv(theirs, bytes, sizeof(bytes), 0) == 5 &&
	      memcmp(bytes, "there", 5) == 0);
	CHECK(send(theirs, "back", 4, 0) == 4 && recv(ours, bytes, sizeof(bytes), 0) == 4 &&
	      memcmp(bytes, "back", 4) == 0);
	close(ours);
	CHECK(recv(theirs, bytes, sizeof(bytes), 0) == 0);
	close(theirs);
}

/* A listener of the box's own gets what is meant for loopback, and only that. */
static void loopback_is_its_own(const struct netns_gate *g, const char *any, const char *loopback,
				const char *world)
{
	struct sockaddr_storage at;
	socklen_t n = place(any, 8080, &at);
	int listener = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), ours, one = 1;
	CHECK(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0);
	CHECK(bind(listener, (struct sockaddr *)&at, n) == 0 && listen(listener, 4) == 0);
	CHECK(dial(loopback, 8080, &ours) == 0);
	CHECK(ready(listener, SOON_MS) && !ready(g->tcp, 0));
	close(ours);
	close(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	arrives(g, world, 8080);
	CHECK(!ready(listener, 0));
	CHECK(dial(loopback, 8081, &ours) == -ECONNREFUSED);
	close(listener);
}

/* A question comes to the gate, and its answer from the address that was asked. */
static void questions_arrive(const struct netns_gate *g, const char *address)
{
	struct sockaddr_storage to, from;
	socklen_t n = place(address, 53, &to);
	int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char bytes[8] = { 0 };
	_Alignas(struct cmsghdr) char control[256];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct msghdr m = { .msg_name = &from,
			    .msg_namelen = sizeof(from),
			    .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	CHECK(connect(fd, (struct sockaddr *)&to, n) == 0 && send(fd, "what?", 5, 0) == 5);
	CHECK(ready(g->dns, SOON_MS) && recvmsg(g->dns, &m, 0) == 5);
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	CHECK(c && c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO);
	struct in6_pktinfo info;
	memcpy(&info, CMSG_DATA(c), sizeof(info));
	info.ipi6_ifindex = 0;
	memcpy(CMSG_DATA(c), &info, sizeof(info));
	m.msg_controllen = CMSG_SPACE(sizeof(info));
	CHECK(sendmsg(g->dns, &m, 0) == sizeof(bytes));
	CHECK(ready(fd, SOON_MS) &&
	      recv(fd, bytes, sizeof(bytes), 0) == sizeof(bytes)); /* connected: from nobody else */
	close(fd);
}

static void datagrams_are_refused(const char *address)
{
	struct sockaddr_storage to;
	socklen_t n = place(address, 443, &to);
	int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char bytes[8];
	CHECK(connect(fd, (struct sockaddr *)&to, n) == 0 && send(fd, "x", 1, 0) == 1);
	(void)ready(fd, SOON_MS);
	CHECK_FAILS(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT), ECONNREFUSED);
	close(fd);
}

static void captures(void *arg)
{
	enum netns_capture how = *(enum netns_capture *)arg;
	struct netns_gate g, second;
	int fd;
	enter();
	int r = netns_gate_make(how, &g);
	if (r < 0) {
		dprintf(2, "# %s is not to be had here: %s\n", netns_capture_name(how), strerror(-r));
		_exit(NOT_HERE);
	}
	CHECK((g.steer >= 0) == (how == NETNS_SK_LOOKUP));
	for (int round = 0; round < 2; round++) {
		CHECK(netns_gate_check(&g) == 0);
		arrives(&g, "198.51.100.7", 1);
		arrives(&g, "198.51.100.7", 1); /* also beside one that has just ended */
		arrives(&g, "203.0.113.9", 65535);
		arrives(&g, "10.0.0.1", NETNS_PROXY_PORT);
		arrives(&g, "169.254.169.254", 80);
		arrives(&g, "2001:db8::5", 443);
		arrives(&g, "fd00::1", 53);
		arrives(&g, "127.0.0.1", NETNS_PROXY_PORT); /* the proxy */
		arrives(&g, "::1", NETNS_PROXY_PORT);
		loopback_is_its_own(&g, "0.0.0.0", "127.9.8.7", "192.0.2.44");
		loopback_is_its_own(&g, "::", "::1", "2001:db8::44");
		questions_arrive(&g, "8.8.8.8");
		questions_arrive(&g, "127.0.0.53");
		questions_arrive(&g, "2001:db8::53");
		datagrams_are_refused("198.51.100.7");
		datagrams_are_refused("2001:db8::5");
		CHECK(netns_gate_make(how, &second) == -EADDRINUSE);

		/* Nobody listens: refused, and not delivered to anybody else. The next gate begins anew. */
		netns_gate_close(&g);
		CHECK(dial("198.51.100.7", 80, &fd) == -ECONNREFUSED &&
		      dial("2001:db8::5", 80, &fd) == -ECONNREFUSED);
		CHECK(netns_gate_make(how, &g) == 0);
	}
	netns_gate_close(&g);
}

static void run_captures(enum netns_capture how)
{
	NEED_ROOT();
	int status = child_status(captures, &how);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_HERE)
		skip();
	assert_int_equal(status, 0);
}

static void test_sk_lookup(void **state)
{
	run_captures(NETNS_SK_LOOKUP);
}

static void test_nft(void **state)
{
	run_captures(NETNS_NFT);
}

static void proxy_alone(void *arg)
{
	struct netns_gate g;
	int fd;
	enter();
	CHECK(netns_gate_make(NETNS_PROXY, &g) == 0 && g.steer == -1);
	CHECK(netns_gate_check(&g) == -ENETUNREACH);
	CHECK(dial("198.51.100.7", 80, &fd) == -ENETUNREACH && dial("2001:db8::5", 80, &fd) == -ENETUNREACH);
	arrives(&g, "127.0.0.1", NETNS_PROXY_PORT);
	arrives(&g, "::1", NETNS_PROXY_PORT);
	questions_arrive(&g, "127.0.0.1");
	netns_gate_close(&g);
}

static void test_proxy(void **state)
{
	NEED_ROOT();
	in_child(proxy_alone, NULL);
}

static void nothing_by_halves(void *arg)
{
	struct netns_gate g = NETNS_GATE_NONE;
	enter();
	int before = dup(2);
	CHECK(netns_gate_make(NETNS_UNKNOWN, &g) == -EINVAL);
	int after = dup(2);
	CHECK(g.tcp == -1 && g.dns == -1 && after == before + 1);
}

static void test_unknown(void **state)
{
	NEED_ROOT();
	in_child(nothing_by_halves, NULL);
}

static void test_names(void **state)
{
	for (int i = NETNS_SK_LOOKUP; i <= NETNS_PROXY; i++)
		assert_int_equal(netns_capture_named(view_of(netns_capture_name((enum netns_capture)i))), i);
	assert_null(netns_capture_name(NETNS_UNKNOWN));
	assert_null(netns_capture_name((enum netns_capture)NETNS_CAPTURES));
	assert_null(netns_capture_name((enum netns_capture) - 1));
	assert_int_equal(netns_capture_named(VIEW("auto")), NETNS_UNKNOWN);
	assert_int_equal(netns_capture_named(VIEW("")), NETNS_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names), cmocka_unit_test(test_sk_lookup),
					    cmocka_unit_test(test_nft), cmocka_unit_test(test_proxy),
					    cmocka_unit_test(test_unknown) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
