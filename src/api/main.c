/*
 * paddock-api: the program that clients talk to.
 *
 * Peers:        clients (HTTP, hostile), the keeper (trusted, by fd 3), PID 1 of
 *               each box (hostile, by fds that the keeper mints).
 * Holds:        client connections, the store, hashes of keys, the links.
 * Runs as:      uids.api of the configuration; started as root by the keeper, it
 *               drops before it reads anything of a client's.
 * Capabilities: none, in all five sets; no_new_privs.
 * Files:        DATA/store is its root, Landlock says so too; and the fds it was given.
 * Calls:        src/os/seccomp_api.c. No sockets are made, nothing is executed.
 *
 * fds at the start: 3 the keeper's channel, 4 the configuration as JSON, 5 the
 * directory DATA/store, 6… the listening sockets, PADDOCK_LISTEN_FDS of them.
 * PADDOCK_ADMIN_HASH is the SHA-256 of the key in DATA/admin.key, PADDOCK_DISK_MB the disk limit of
 * sandboxes that ask for none.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agentbox.h"
#include "agentsandbox.h"
#include "aio_dialect.h"
#include "assegai.h"
#include "config.h"
#include "core.h"
#include "dashboard.h"
#include "docs.h"
#include "drop.h"
#include "e2b.h"
#include "fd.h"
#include "http.h"
#include "log.h"
#include "loop.h"
#include "mcp.h"
#include "models.h"
#include "plane.h"
#include "rest.h"
#include "sandkasten.h"
#include "run.h"
#include "serve.h"
#include "served.h"
#include "service.h"
#include "store.h"
#include "text.h"
#include "tls.h"
#include "trim.h"
#include "poison.h"

enum { FD_KEEPER = 3, FD_CONFIG = 4, FD_STORE = 5, FD_LISTEN = 6 };

#define CONFIG_MAX (1024u * 1024)
#define LISTEN_MAX 16
#define DRAIN_MS   2000
#define RETIRE_MS  10000
#define LARGE      (1024 * 1024)

/* In the order in which they are asked; rest takes what is left. */
static const struct dialect *const dialects[] = {
	&assegai_dialect,
	&models_dialect,
	&aio_dialect,
	&agentsandbox_dialect,
	&e2b_dialect,
	&mcp_dialect,
#ifdef PADDOCK_MCP_FIXTURES
	&mcp_conformance_dialect,
#endif
	&agentbox_dialect,
	&sandkasten_dialect,
	&dashboard_dialect,
	&docs_dialect,
	&rest_dialect,
	NULL,
};

struct api {
	struct loop *loop;
	struct loop_signals signals;
	struct loop_timer drain;
	struct trim trim;
	struct arena arena;
	struct config config;
	struct store *store;
	struct core *core;
	struct serve *serve;
	struct plane *plane;
	struct tls_server *tls;
	struct http_server *server;
	uint32_t n_listen;
	int statm;
	bool draining, retiring;
};

/* ---- what it was given ---- */

static int read_config(struct api *a, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(CONFIG_MAX);
	char piece[4096];
	ssize_t n;

	if (lseek(FD_CONFIG, 0, SEEK_SET) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "the configuration");
	while ((n = read(FD_CONFIG, piece, sizeof(piece))) > 0)
		if (buf_append(&text, piece, (size_t)n) < 0)
			return err_set(e, ERR_INTERNAL, "the configuration is too large");
	if (n < 0)
		return err_sys(e, ERR_INTERNAL, errno, "the configuration");
	fd_close(FD_CONFIG);
	struct view copy = arena_view(&a->arena, buf_view(&text));
	if (!copy.p)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "the configuration");
	return config_from_json(&a->arena, copy, &a->config, e);
}

static int read_environment(struct api *a, struct core_setup *s, struct err *e)
{
	const char *hash = getenv("PADDOCK_ADMIN_HASH");
	uint32_t disk_mb;

	if (service_number("PADDOCK_LISTEN_FDS", &a->n_listen, e) < 0 ||
	    service_number("PADDOCK_DISK_MB", &disk_mb, e) < 0)
		return -1;
	a->config.defaults.limits.disk_mb = disk_mb;
	if (a->n_listen < 1 || a->n_listen > LISTEN_MAX)
		return err_set(e, ERR_INTERNAL, "PADDOCK_LISTEN_FDS must be between 1 and %d", LISTEN_MAX);
	if (hash && text_unhex(view_of(hash), s->admin_hash, sizeof(s->admin_hash)) < 0)
		return err_set(e, ERR_INTERNAL, "PADDOCK_ADMIN_HASH must be 64 hex digits");
	s->has_admin = hash != NULL;
	/* Nothing else that was inherited is ours. */
	return service_close_from(FD_LISTEN + a->n_listen, e);
}

/* The certificate of the boxes' host names, where it is another one. */
static int load_ports_tls(struct api *a, struct err *e)
{
	const char *cert = arena_str(&a->arena, a->config.ports.cert),
		   *key = arena_str(&a->arena, a->config.ports.key),
		   *domain = arena_str(&a->arena, a->config.ports.domain);

	if (!a->config.ports.cert.n)
		return 0;
	if (!cert || !key || !domain)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "TLS");
	return tls_server_add(a->tls, domain, cert, key, e);
}

static int load_tls(struct api *a, struct err *e)
{
	const char *cert = arena_str(&a->arena, a->config.tls.cert),
		   *key = arena_str(&a->arena, a->config.tls.key);

	if (!a->config.tls.cert.n)
		return 0;
	if (!cert || !key)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "TLS");
	a->tls = tls_server_new(cert, key, e);
	return a->tls ? load_ports_tls(a, e) : -1;
}

static enum log_level level_of(struct view name)
{
	return view_is(name, "error")   ? LOG_LEVEL_ERROR
	       : view_is(name, "warn")  ? LOG_LEVEL_WARN
	       : view_is(name, "debug") ? LOG_LEVEL_DEBUG
					: LOG_LEVEL_INFO;
}

/* ---- requests ---- */

/* What comes from within a box, or by the listener of most dialects, is not for the ports of boxes. */
static void on_request(struct http_exchange *x, void *arg)
{
	struct api *a = arg;

	trim_soon(&a->trim);
	serve_alias(a->serve, x);
	if (x->origin.n || !serve_has_ports(a->serve, x) || !plane_request(a->plane, x))
		serve_request(a->serve, x);
}

static void on_revoked(void *arg)
{
	struct api *a = arg;

	serve_end_revoked(a->serve);
}

static void on_caller(void *arg, const struct box *b, int fd)
{
	struct api *a = arg;
	http_server_adopt(a->server, fd, b->id);
}

/* ---- events ---- */

static void on_ready(void *arg)
{
	struct api *a = arg;
	struct err e = { 0 };

	for (uint32_t i = 0; i < a->n_listen; i++)
		if (http_server_listen(a->server, FD_LISTEN + (int)i, &e) < 0) {
			log_error("%s", e.msg);
			loop_stop(a->loop, EXIT_FAILURE);
			return;
		}
	if (core_say_ready(a->core) < 0)
		loop_stop(a->loop, EXIT_FAILURE);
}

static void on_lost(void *arg)
{
	struct api *a = arg;
	loop_stop(a->loop, a->draining ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void on_retired(void *arg)
{
	struct api *a = arg;
	loop_stop(a->loop, EXIT_SUCCESS);
}

static void on_retire_time(struct loop_timer *t)
{
	on_retired(CONTAINER(t, struct api, drain));
}

static void on_drained(void *arg)
{
	struct api *a = arg;

	if (a->retiring)
		return;
	a->retiring = true;
	loop_timer_start(a->loop, &a->drain, RETIRE_MS, on_retire_time);
	retire_boxes(a->core, on_retired, a);
}

static void on_drain_time(struct loop_timer *t)
{
	on_drained(CONTAINER(t, struct api, drain));
}

/* Stop accepting, finish what is under way, go. */
static void on_signal(struct loop_signals *s, int signo)
{
	struct api *a = CONTAINER(s, struct api, signals);

	if (a->draining)
		return;
	a->draining = true;
	http_server_stop_listening(a->server);
	loop_timer_start(a->loop, &a->drain, DRAIN_MS, on_drain_time);
	serve_when_idle(a->serve, on_drained, a);
}

/* ---- wiring ---- */

/* The first listener has every dialect, each further one its own. */
static int bind_listeners(struct api *a, struct err *e)
{
	if (a->n_listen != 1 + a->config.n_listeners)
		return err_set(e, ERR_INTERNAL, "the configuration and the listening sockets do not fit");
	for (unsigned i = 0; i < a->n_listen; i++)
		if (served_note(a->serve, i, FD_LISTEN + (int)i, e) < 0)
			return -1;
	for (size_t i = 0; i < a->config.n_listeners; i++) {
		a->serve->anonymous[i + 1] = a->config.listeners_of[i].anonymous;
		a->serve->boxes[i + 1] = a->config.listeners_of[i].sandbox;
		if (serve_bind(a->serve, (unsigned)i + 1, a->config.listeners_of[i].dialect, e) < 0)
			return err_wrap(e, "listeners");
	}
	return 0;
}

/* A tenant's requests, their answers and the output of its commands are one budget. */
static struct http_held held_by_commands(void *arg, uint64_t party)
{
	struct api *a = arg;
	struct outputs_held h = outputs_held(a->core, (const struct tenant *)(uintptr_t)party);

	return (struct http_held){ h.tenant, h.all };
}

static struct outputs_held held_by_requests(void *arg, const struct tenant *t)
{
	struct api *a = arg;
	struct http_held h = http_server_held(a->server, (uintptr_t)t);

	return (struct outputs_held){ h.party, h.all };
}

static int start(struct api *a, struct err *e)
{
	static const int signos[] = { SIGTERM, SIGINT };
	struct core_setup s = { .keeper_fd = FD_KEEPER, .on_ready = on_ready, .on_lost = on_lost, .arg = a };

	if (read_config(a, e) < 0 || read_environment(a, &s, e) < 0 || load_tls(a, e) < 0)
		return -1;
	log_setup("paddock-api", level_of(a->config.log_level));
	a->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC); /* out of reach soon */
	if (drop_privileges((uint32_t)a->config.uids.api, FD_STORE, e) < 0)
		return -1;

	a->loop = loop_new(e);
	if (!a->loop)
		return -1;
	int r = loop_signals_start(a->loop, &a->signals, signos, ELEMS(signos), on_signal);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "signals");
	a->store = store_open(a->loop, "/", e);
	if (!a->store)
		return -1;
	a->trim.loop = a->loop;
	s.loop = a->loop;
	s.store = a->store;
	s.config = &a->config;
	a->core = core_new(&s, e);
	a->serve = a->core ? serve_new(a->core, dialects, e) : NULL;
	a->plane = a->serve ? plane_new(a->serve, e) : NULL;
	if (!a->plane || bind_listeners(a, e) < 0)
		return -1;
	a->serve->statm = a->statm;
	struct http_config http = { .limits = { .connections = (uint32_t)a->config.max.connections },
				    .beside = held_by_commands,
				    .on_request = on_request,
				    .arg = a,
				    .tls = a->tls };
	a->server = http_server_new(a->loop, &http, e);
	a->serve->server = a->server;
	if (a->server)
		outputs_beside(a->core, held_by_requests, a);
	core_on_caller(a->core, on_caller, a);
	keys_on_revoked(a->core, on_revoked, a);
	return a->server ? 0 : -1;
}

static void stop(struct api *a)
{
	loop_timer_stop(&a->drain);
	trim_stop(&a->trim);
	core_on_caller(a->core, NULL, NULL);
	keys_on_revoked(a->core, NULL, NULL);
	outputs_beside(a->core, NULL, NULL);
	http_server_free(a->server); /* aborts what is under way */
	plane_free(a->plane);
	serve_free(a->serve);
	core_stop(a->core);
	store_close(a->store); /* waits for the last commit */
	core_free(a->core);
	tls_server_free(a->tls);
	/* One more batch for what was put off. */
	loop_timer_start(a->loop, &a->drain, 0, on_retire_time);
	(void)!loop_run(a->loop);
	loop_signals_stop(&a->signals);
	loop_free(a->loop);
	arena_done(&a->arena);
	fd_close(a->statm);
}

int main(int argc, char **argv)
{
	struct api a = { .arena = ARENA_INIT(2 * CONFIG_MAX), .statm = -EBADF };
	struct err e = { 0 };

	if (argc == 2 && strcmp(argv[1], "--routes") == 0) {
		plane_print_routes(stdout);
		serve_print_routes(stdout, dialects);
		return EXIT_SUCCESS;
	}
	service_init("paddock-api");
	/* Two threads, one of which waits for the disk; and what one large answer took goes back. */
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, LARGE);
	mallopt(M_TRIM_THRESHOLD, 2 * LARGE);
	if (start(&a, &e) < 0) {
		arena_done(&a.arena);
		return service_fail(&e);
	}
	trim_start();
	int r = service_run(a.loop);
	stop(&a);
	return r;
}
