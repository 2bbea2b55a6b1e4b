#include "serve_rig.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "fd.h"
#include "sha256.h"
#include "poison.h"

/* The second listener. */
static struct config_listener further = { VIEW("0.0.0.0:1"), VIEW("") };

static const struct config config = {
	.listen = VIEW("0.0.0.0:0"),
	.listeners_of = &further,
	.n_listeners = 1,
	.defaults = { .image = VIEW("machine"),
		      .user = VIEW("user"),
		      .workdir = VIEW("/workspace"),
		      .limits = { .cpu = 1, .memory_mb = 512, .pids = 256, .nofile = 1024 } },
	.max = { .limits = { .cpu = 2, .memory_mb = 4096, .pids = 1000, .nofile = 4096 },
		 .boxes = 3,
		 .exec_timeout_ms = 5000,
		 .exec_output_bytes = 1000,
		 .body_bytes = 65536 },
};

static void on_nothing(void *arg)
{
}

static void on_request(struct http_exchange *x, void *arg)
{
	struct serve_rig *r = arg;
	serve_request(r->serve, x);
}

static void on_idle(void *arg)
{
	struct serve_rig *r = arg;
	loop_stop(r->loop, 0);
}

static void on_stop(struct loop_task *t)
{
	struct serve_rig *r = CONTAINER(t, struct serve_rig, stop);
	serve_when_idle(r->serve, on_idle, r);
}

static void on_last(struct loop_timer *t)
{
	on_idle(CONTAINER(t, struct serve_rig, last));
}

static void *run(void *arg)
{
	struct serve_rig *r = arg;
	int rc = loop_run(r->loop);

	http_server_free(r->server);
	serve_free(r->serve);
	core_stop(r->core);
	store_close(r->store);
	core_free(r->core);
	/* One more batch for what was put off. */
	loop_timer_start(r->loop, &r->last, 0, on_last);
	(void)!loop_run(r->loop);
	return (void *)(intptr_t)rc;
}

static void listen_at(struct serve_rig *r, size_t i)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct http_rig *l = &r->listeners[i];
	struct err e = { 0 };

	snprintf(l->path, sizeof(l->path), "%s/%zu", r->dir, i);
	memcpy(a.sun_path, l->path, sizeof(l->path));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 64), 0);
	assert_int_equal(http_server_listen(r->server, fd, &e), 0);
}

void serve_rig_start(struct serve_rig *r, const struct dialect *const *dialects, const char *bound)
{
	static const uint8_t secret[20] = { 1, 2, 3 };
	struct http_config http = { .on_request = on_request, .arg = r };
	struct core_setup s = {
		.config = &config, .has_admin = true, .on_ready = on_nothing, .on_lost = on_nothing
	};
	struct err e = { 0 };
	pthread_t thread;
	int fds[2];

	*r = (struct serve_rig){ 0 };
	snprintf(r->dir, sizeof(r->dir), "/tmp/paddock-serve.XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	r->keeper = fds[1];
	s.keeper_fd = fds[0];
	sha256_of((struct view){ (const char *)secret, sizeof(secret) }, s.admin_hash);
	s.loop = r->loop = loop_new(&e);
	assert_non_null(r->loop);
	s.store = r->store = store_open(r->loop, r->dir, &e);
	assert_non_null(r->store);
	r->core = core_new(&s, &e);
	if (!r->core)
		fail_msg("%s", e.msg);
	r->serve = serve_new(r->core, dialects, &e);
	assert_non_null(r->serve);
	assert_int_equal(serve_bind(r->serve, 1, view_of(bound), &e), 0);
	r->server = http_server_new(r->loop, &http, &e);
	assert_non_null(r->server);
	listen_at(r, 0);
	listen_at(r, 1);
	assert_int_equal(pthread_create(&thread, NULL, run, r), 0);
	r->thread = thread;
}

void serve_rig_stop(struct serve_rig *r)
{
	static const char *const files[] = { "0", "1", "paddock.db", "paddock.db-wal", "paddock.db-shm" };
	char path[128];
	void *rc;

	loop_post(r->loop, &r->stop, on_stop);
	assert_int_equal(pthread_join(r->thread, &rc), 0);
	assert_null(rc);
	loop_free(r->loop);
	fd_close(r->keeper);
	for (size_t i = 0; i < ELEMS(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", r->dir, files[i]);
		(void)unlink(path);
	}
	assert_int_equal(rmdir(r->dir), 0);
}
