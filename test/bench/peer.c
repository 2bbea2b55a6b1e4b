/*
 * Both ends of the plain connections that the bench of the gate makes: as little of a
 * server and a client as possible, so that what is measured is what lies between them.
 *
 *	peer serve PORT                 PORT: one byte back for one byte; PORT + 1: bytes without end
 *	peer dial HOST PORT ROUNDS      nanoseconds from connect to the byte that came back, one a line
 *	peer pull HOST PORT BYTES       nanoseconds for so many of them
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char block[256 * 1024];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int listen_on(unsigned port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 1024) < 0)
		die("listen");
	return fd;
}

static void serve(unsigned port)
{
	int echo = listen_on(port), flood = listen_on(port + 1);

	signal(SIGPIPE, SIG_IGN);
	if (fork() == 0) {
		for (int fd; (fd = accept(flood, NULL, NULL)) >= 0; close(fd))
			while (write(fd, block, sizeof(block)) > 0)
				;
		exit(0);
	}
	puts("ready");
	fflush(stdout);
	for (int fd; (fd = accept(echo, NULL, NULL)) >= 0; close(fd)) {
		char byte;
		if (read(fd, &byte, 1) == 1 && write(fd, &byte, 1) < 0)
			continue;
	}
}

static int dial(const char *host, unsigned port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (inet_pton(AF_INET, host, &to.sin_addr) != 1 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		serve((unsigned)strtoul(argv[2], NULL, 10));
	if (argc != 5)
		return 2;
	unsigned port = (unsigned)strtoul(argv[3], NULL, 10);
	long long count = strtoll(argv[4], NULL, 10);
	if (strcmp(argv[1], "dial") == 0) {
		for (; count > 0; count--) {
			char byte = 'x';
			uint64_t begun = now_ns();
			int fd = dial(argv[2], port);
			if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
				die("no answer");
			printf("%llu\n", (unsigned long long)(now_ns() - begun));
			close(fd);
		}
	} else {
		uint64_t begun = now_ns();
		int fd = dial(argv[2], port);
		while (count > 0) {
			ssize_t n = read(fd, block, sizeof(block));
			if (n <= 0)
				die("the stream ended");
			count -= n;
		}
		printf("%llu\n", (unsigned long long)(now_ns() - begun));
	}
	return 0;
}
