/*
 * paddock-ai: sends calls to model providers.
 *
 * Peers:        paddock-api (trusted to say what is sent where, by fd 3), the keeper (by
 *               fd 4, brings streams to the vault), paddock-vault (gives the key of a request
 *               for which there is a ticket), a name server and the providers of the
 *               configuration.
 * Holds:        a provider's key, from the vault's answer to the end of the stream, in
 *               which it is overwritten.
 * Runs as:      uids.ai of the configuration; started as root by the keeper, it reads
 *               /etc/hosts, /etc/resolv.conf and the certificate authorities, and drops
 *               before it reads anything else.
 * Capabilities: none, in all five sets; no_new_privs; not dumpable.
 * Files:        none (Landlock without a rule); a netlink socket, opened before, which tells
 *               this machine's addresses.
 * Calls:        src/os/seccomp_hook.c and socketpair.
 *
 * It reads no HTTP: the api gives it a head, gets a stream, and the bytes go through,
 * but for those of the key.
 * It ends when the api or the keeper closes its end.
 */
#include <stdlib.h>

#include "ai.h"
#include "fd.h"
#include "log.h"
#include "seccomp.h"
#include "service.h"
#include "wire_gen.h"
#include "poison.h"

enum { FD_API = 3, FD_KEEPER = 4 };

#define NOFILE 4096

static void on_frame(struct link *l, const struct frame *f, int fd)
{
	struct ai *h = CONTAINER(l, struct ai, api);
	struct err e = { 0 };

	fd_close(fd);
	if (f->kind != FRAME_CALL)
		return; /* CANCEL: it ends with the stream, or soon */
	if (f->type == WIRE_TYPE_AI_DIAL) {
		trim_soon(&h->trim);
		dial_start(h, f);
		return;
	}
	err_set(&e, ERR_UNSUPPORTED, "paddock-ai does not know call %u", f->type);
	(void)!link_fail(l, f->type, f->stream, &e);
}

static void on_closed(struct link *l, int error)
{
	struct ai *h = CONTAINER(l, struct ai, api);
	loop_stop(h->loop, EXIT_SUCCESS);
}

static const struct link_ops api_ops = { .on_frame = on_frame, .on_closed = on_closed };

static void on_keeper_frame(struct link *l, const struct frame *f, int fd)
{
	if (f->kind == FRAME_EVENT && f->type == WIRE_TYPE_AI_VAULT && fd >= 0)
		key_open(CONTAINER(l, struct ai, keeper), TAKE_FD(fd));
	fd_close(fd);
}

static void on_keeper_closed(struct link *l, int error)
{
	(void)error;
	loop_stop(CONTAINER(l, struct ai, keeper)->loop, EXIT_SUCCESS);
}

static const struct link_ops keeper_ops = { .on_frame = on_keeper_frame, .on_closed = on_keeper_closed };

static int start(struct ai *h, struct err *e)
{
	const char *ca_file = getenv("PADDOCK_AI_CA_FILE");
	uint32_t uid;

	if (service_number("PADDOCK_AI_UID", &uid, e) < 0 || service_close_from(FD_KEEPER + 1, e) < 0)
		return -1;
	h->loop = h->trim.loop = loop_new(e);
	h->names = h->loop ? names_new(h->loop, &(struct names_setup){ .hosts = true }, e) : NULL;
	if (!h->names || own_init(&h->own, e) < 0)
		return -1;
	h->tls = tls_client_load(ca_file ? ca_file : "", e);
	if (!h->tls)
		log_warn("no https to providers: %s", e->msg);
	service_limit_fds(NOFILE);
	if (service_drop("uids.ai", uid, seccomp_ai, e) < 0)
		return -1;
	int r = link_start(&h->api, h->loop, FD_API, true, &api_ops);
	if (r == 0)
		r = link_start(&h->keeper, h->loop, FD_KEEPER, true, &keeper_ops);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "the channels") : 0;
}

int main(void)
{
	struct ai h = { 0 };
	struct err e = { 0 };

	service_init("paddock-ai");
	if (start(&h, &e) < 0)
		return service_fail(&e);
	trim_start(); /* reading the certificate authorities took more than they are */
	return service_run(h.loop);
}
