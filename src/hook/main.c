/*
 * paddock-hook: delivers webhooks.
 *
 * Peers:        paddock-api (trusted to say what is sent where, by fd 3), a name server
 *               and whoever a webhook names (hostile).
 * Holds:        nothing: no keys, no secrets, no files. A signature comes with the request.
 * Runs as:      uids.hook of the configuration; started as root by the keeper, it reads
 *               /etc/hosts, /etc/resolv.conf and the certificate authorities, and drops
 *               before it reads anything else.
 * Capabilities: none, in all five sets; no_new_privs.
 * Files:        none (Landlock without a rule).
 * Calls:        src/os/seccomp_hook.c: sockets of the internet families, and waiting.
 *
 * It reaches a network and can do nothing else. It ends when the api closes its end.
 */
#include <stdlib.h>

#include "hook.h"
#include "log.h"
#include "seccomp.h"
#include "service.h"
#include "wire_gen.h"
#include "poison.h"

enum { FD_API = 3 };

#define NOFILE 1024

static void on_frame(struct link *l, const struct frame *f, int fd)
{
	struct hook *h = CONTAINER(l, struct hook, api);
	struct err e = { 0 };

	if (f->kind != FRAME_CALL)
		return; /* CANCEL: it ends by itself, and soon */
	if (f->type == WIRE_TYPE_HOOK_POST) {
		post_start(h, f);
		return;
	}
	err_set(&e, ERR_UNSUPPORTED, "paddock-hook does not know call %u", f->type);
	(void)!link_fail(l, f->type, f->stream, &e);
}

static void on_closed(struct link *l, int error)
{
	struct hook *h = CONTAINER(l, struct hook, api);
	loop_stop(h->loop, EXIT_SUCCESS);
}

static const struct link_ops ops = { .on_frame = on_frame, .on_closed = on_closed };

static int start(struct hook *h, struct err *e)
{
	const char *refuse = getenv("PADDOCK_HOOK_REFUSE"), *ca_file = getenv("PADDOCK_HOOK_CA_FILE");
	uint32_t uid;

	if (service_number("PADDOCK_HOOK_UID", &uid, e) < 0 || service_close_from(FD_API + 1, e) < 0)
		return -1;
	h->refuse = view_of(refuse ? refuse : "private");
	h->loop = loop_new(e);
	h->names = h->loop ? names_new(h->loop, &(struct names_setup){ .hosts = true }, e) : NULL;
	if (!h->names)
		return -1;
	h->tls = tls_client_load(ca_file ? ca_file : "", e);
	if (!h->tls)
		log_warn("no https for webhooks: %s", e->msg); /* plain HTTP goes on */
	service_limit_fds(NOFILE);
	if (service_drop("uids.hook", uid, seccomp_hook, e) < 0)
		return -1;
	int r = link_start(&h->api, h->loop, FD_API, false, &ops);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "the api's channel") : 0;
}

int main(void)
{
	struct hook h = { 0 };
	struct err e = { 0 };

	service_init("paddock-hook");
	if (start(&h, &e) < 0)
		return service_fail(&e);
	/* Deliveries that are under way end with the program; the api has them, and sends them again. */
	return service_run(h.loop);
}
