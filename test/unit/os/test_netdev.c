/*
 * Counters of interfaces: the kernel's text, what is none, and a live namespace.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

#include "netdev.h"
#include "poison.h"

#define HEAD                                                                                                 \
	"Inter-|   Receive                                                |  Transmit\n"                     \
	" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n"

static void test_text(void **state)
{
	struct netdev_usage u;

	assert_int_equal(
		netdev_parse(VIEW(HEAD
				  "    lo:     100       3    0    0    0     0          0         0      "
				  "200       3    0    0    0     0       0          0\n"),
			     &u),
		0);
	assert_true(u.rx_bytes == 100 && u.tx_bytes == 200);
	/* several, and a name that touches its first number */
	assert_int_equal(
		netdev_parse(VIEW(HEAD "lo:1 0 0 0 0 0 0 0 2 0\neth0:18446744073709551 0 0 0 0 0 0 0 40 0\n"),
			     &u),
		0);
	assert_true(u.rx_bytes == 18446744073709552 && u.tx_bytes == 42);
	assert_int_equal(netdev_parse(VIEW(HEAD), &u), 0);
	assert_true(u.rx_bytes == 0 && u.tx_bytes == 0);
	static const struct view bad[] = { VIEW("lo: 1 2 3\n"), VIEW("lo: x 0 0 0 0 0 0 0 2\n"),
					   VIEW("lo:\n"), VIEW("lo: 1 0 0 0 0 0 0 0 -2\n") };
	for (size_t i = 0; i < ELEMS(bad); i++)
		assert_int_equal(netdev_parse(bad[i], &u), -EBADMSG);
}

static void test_live(void **state)
{
	struct netdev_usage before, after;
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(9),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char data[1000] = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(netdev_usage(getpid(), &before), 0);
	assert_int_equal(sendto(fd, data, sizeof(data), 0, (struct sockaddr *)&to, sizeof(to)), sizeof(data));
	assert_int_equal(netdev_usage(getpid(), &after), 0);
	assert_true(after.tx_bytes >= before.tx_bytes + sizeof(data));
	close(fd);
	assert_true(netdev_usage(-1, &after) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_text), cmocka_unit_test(test_live) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
