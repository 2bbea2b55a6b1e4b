/*
 * The machine's own addresses: its interfaces' first and second ones, networks that were made local, and all
 * that means loopback.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "own.h"
#include "poison.h"

static bool is_here(struct own *o, const char *text)
{
	struct addr a;

	assert_true(addr_parse(view_of(text), &a) >= 0);
	return own_is(o, &a, 0);
}

/* However somebody's zone spells this machine. */
static void test_this_machine(void **state)
{
	static const char *const here[] = { "127.0.0.1", "127.255.1.2",      "::1",    "0.0.0.0",
					    "::",        "::ffff:127.0.0.1", "0.1.2.3" };
	static const char *const elsewhere[] = { "8.8.8.8", "203.0.113.9", "2001:4860:4860::8888" };
	struct own o = { 0 };
	struct err e = { 0 };
	struct ifaddrs *all, *it;
	struct addr a;

	assert_int_equal(own_init(&o, &e), 0);
	for (size_t i = 0; i < ELEMS(here); i++)
		assert_true(is_here(&o, here[i]));
	for (size_t i = 0; i < ELEMS(elsewhere); i++)
		assert_false(is_here(&o, elsewhere[i]));
	assert_int_equal(getifaddrs(&all), 0);
	for (it = all; it; it = it->ifa_next)
		if (it->ifa_addr && (it->ifa_flags & IFF_UP) && it->ifa_addr->sa_family == AF_INET) {
			assert_true(addr_from_sockaddr(it->ifa_addr, &a));
			assert_true(own_is(&o, &a, 0));
		}
	freeifaddrs(all);
	close(o.route);
}

static int set_address(int fd, const char *name, const char *text)
{
	struct ifreq r = { 0 };
	struct sockaddr_in *a = (struct sockaddr_in *)(void *)&r.ifr_addr;

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	a->sin_family = AF_INET;
	inet_pton(AF_INET, text, &a->sin_addr);
	return ioctl(fd, SIOCSIFADDR, &r);
}

static int be_in_a_network_of_my_own(void)
{
	struct ifreq up = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	struct own o = { 0 };
	struct err e = { 0 };

	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return 77;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &up) < 0 || set_address(fd, "lo:1", "10.9.0.1") < 0 ||
	    set_address(fd, "lo:2", "10.9.0.2") < 0 || own_init(&o, &e) < 0)
		return 2;
	return is_here(&o, "10.9.0.1") && is_here(&o, "10.9.0.2") && !is_here(&o, "192.0.2.1") ? 0 : 1;
}

/* What the kernel sends to the second address of a network comes from the first one. */
static void test_second_address(void **state)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(be_in_a_network_of_my_own());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_this_machine),
		cmocka_unit_test(test_second_address),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
