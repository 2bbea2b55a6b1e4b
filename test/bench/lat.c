/*
 * Measures the latency of one HTTP/1.1 request over one keep-alive connection, with
 * as little of a client as possible, so that what is measured is the server.
 *
 *	lat HOST PORT ROUNDS REQUEST-FILE [AFTER-FILE]
 *
 * Sends the bytes of REQUEST-FILE, ROUNDS times, and prints the nanoseconds from the
 * first byte sent to the last byte of the answer, one number a line. After each, the
 * request in AFTER-FILE is made outside the timed part, with @ID@ in it replaced by
 * the "id" member of the timed answer. An answer that is not 2xx ends the program.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BUFFER (1 << 20)

static char answer[BUFFER + 1];

static void die(const char *what)
{
	fprintf(stderr, "lat: %s\n", what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static char *slurp(const char *path)
{
	char *text = calloc(1, BUFFER + 1);
	FILE *f = fopen(path, "rb");

	if (!text || !f || fread(text, 1, BUFFER, f) == 0)
		die("cannot read a request file");
	fclose(f);
	return text;
}

static int dial(const char *host, const char *port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)strtoul(port, NULL, 10)) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0 || inet_pton(AF_INET, host, &to.sin_addr) != 1 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		die("cannot connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

/* The value of a header in answer[0 … end), or NULL. */
static const char *header(const char *name, const char *end)
{
	size_t n = strlen(name);

	for (const char *p = strstr(answer, "\r\n"); p && p < end; p = strstr(p + 2, "\r\n"))
		if (strncasecmp(p + 2, name, n) == 0 && p[2 + n] == ':')
			return p + 3 + n;
	return NULL;
}

/* Whether the n bytes in answer are a whole response. */
static int complete(size_t n)
{
	const char *end, *value;

	answer[n] = 0;
	end = strstr(answer, "\r\n\r\n");
	if (!end)
		return 0;
	if (strncmp(answer + 9, "204", 3) == 0)
		return 1;
	value = header("content-length", end);
	if (value)
		return n >= (size_t)(end + 4 - answer) + strtoul(value, NULL, 10);
	if (header("transfer-encoding", end))
		return n >= 5 && memcmp(answer + n - 5, "0\r\n\r\n", 5) == 0;
	die("an answer without a length");
	return 0;
}

static void converse(int fd, const char *request, size_t length)
{
	size_t got = 0;

	if (write(fd, request, length) != (ssize_t)length)
		die("short write");
	do {
		ssize_t r = read(fd, answer + got, BUFFER - got);

		if (r <= 0)
			die("the connection broke");
		got += (size_t)r;
	} while (!complete(got));
	if (answer[9] != '2')
		die(answer);
}

/* The request of AFTER-FILE with the id of the last answer put in. */
static char *with_id(const char *template)
{
	static char made[BUFFER];
	const char *place = strstr(template, "@ID@"), *id = strstr(answer, "\"id\":");

	if (!place) {
		snprintf(made, sizeof(made), "%s", template);
		return made;
	}
	if (!id)
		die("no id in the answer");
	for (id += 5; *id && *id != '"'; id++)
		;
	id++;
	snprintf(made, sizeof(made), "%.*s%.*s%s", (int)(place - template), template, (int)strcspn(id, "\""),
		 id, place + 4);
	return made;
}

int main(int argc, char **argv)
{
	const char *request, *after;
	unsigned long rounds;
	size_t length;
	int fd;

	if (argc < 5)
		die("usage: lat HOST PORT ROUNDS REQUEST-FILE [AFTER-FILE]");
	fd = dial(argv[1], argv[2]);
	rounds = strtoul(argv[3], NULL, 10);
	request = slurp(argv[4]);
	after = argc > 5 ? slurp(argv[5]) : NULL;
	length = strlen(request);
	for (unsigned long i = 0; i < rounds; i++) {
		uint64_t begun = now_ns();

		converse(fd, request, length);
		printf("%llu\n", (unsigned long long)(now_ns() - begun));
		if (after) {
			const char *next = with_id(after);

			converse(fd, next, strlen(next));
		}
	}
	return 0;
}
