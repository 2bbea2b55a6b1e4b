/*
 * A server that answers GET /health and echoes what is posted, for measuring and
 * for trying src/api/http by hand. Not installed.
 *
 *   http_demo PORT [CERT KEY]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "fd.h"
#include "http.h"
#include "num.h"
#include "tls.h"
#include "poison.h"

static void echo_body(struct http_exchange *x, struct view data, bool last)
{
	if (!http_write(x, data))
		http_body_pause(x);
	if (last)
		http_end(x);
}

static void echo_abort(struct http_exchange *x)
{
}

static const struct http_ops echo = {
	.on_body = echo_body,
	.on_abort = echo_abort,
	.on_writable = http_body_resume,
};

static void on_request(struct http_exchange *x, void *arg)
{
	if (view_is(x->path, "/health")) {
		http_reply(x, 200, "application/json", VIEW("{\"status\":\"ok\"}\n"), NULL, 0);
	} else if (view_is(x->path, "/echo")) {
		x->ops = &echo;
		http_begin(x, 200, "application/octet-stream", x->content_length, NULL, 0);
	} else {
		http_reply(x, 404, "text/plain", VIEW("no such page\n"), NULL, 0);
	}
}

static int listen_on(uint32_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 1024) < 0)
		return -errno;
	return fd;
}

int main(int argc, char **argv)
{
	struct err e = { 0 };
	uint32_t port;
	if (argc < 2 || num_u32(view_of(argv[1]), &port) < 0)
		return 2;
	struct loop *l = loop_new(&e);
	struct http_config cfg = { .on_request = on_request };
	if (argc == 4)
		cfg.tls = tls_server_new(argv[2], argv[3], &e);
	struct http_server *s = l && !e.code ? http_server_new(l, &cfg, &e) : NULL;
	int fd = listen_on(port);
	if (!s || fd < 0 || http_server_listen(s, fd, &e) < 0) {
		fprintf(stderr, "http_demo: %s\n", e.code ? e.msg : "cannot listen");
		return 1;
	}
	printf("ready\n");
	fflush(stdout);
	return loop_run(l);
}
