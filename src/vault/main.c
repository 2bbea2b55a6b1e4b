/*
 * paddock-vault: stores secrets, encrypted.
 *
 * Peers:        paddock-api (sets secrets, reads what is mounted, says what the others may
 *               have), paddock-gate (asks for one secret for one host of one box) and paddock-ai
 *               (asks for the key of one request), each by a stream that the keeper made and
 *               passed here; the keeper, by fd 3, which brings those streams and nothing else.
 * Holds:        the master key, the authority's key, and a value while it is asked for.
 * Runs as:      uids.vault of the configuration; started as root by the keeper, it drops
 *               before it reads a key.
 * Capabilities: none, in all five sets; no_new_privs.
 * Files:        DATA/vault, by Landlock; all memory is locked, nothing is dumped.
 * Calls:        src/os/seccomp_vault.c: no sockets are made, nothing is executed.
 * Never:        answers the gate without a grant, or paddock-ai without a ticket; writes a
 *               value unsealed.
 *
 * fds at the start: 3 the keeper's channel, 4 the directory DATA/vault, 5… credentials,
 * PADDOCK_VAULT_KEYS of them: the master key, and the one before it.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "confine.h"
#include "fd.h"
#include "lock.h"
#include "log.h"
#include "seccomp.h"
#include "service.h"
#include "trim.h"
#include "vault.h"
#include "wire_gen.h"
#include "poison.h"

enum { FD_KEEPER = 3, FD_DIR = 4, FD_KEYS = 5 };

#define KEYS_MAX 2
#define NOFILE   64

/* Should: end as `uid` with its fds, its directory and the calls of its filter, with all memory
 * locked, now and later. Mustn't: read a key in between, or go on when a step fails. */
static int drop(uint32_t uid, const void *state, size_t size, struct err *e)
{
	if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){ NOFILE, NOFILE }) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot set a limit");
	(void)!setrlimit(RLIMIT_MEMLOCK,
			 &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }); /* lock.c lives with less */
	if (confine_identity("uids.vault", uid, -1, e) < 0 || lock_memory(state, size, e) < 0)
		return -1;
	return confine_reach(&(struct landlock_rule){ .fd = FD_DIR, .access = LANDLOCK_WRITE }, 1,
			     seccomp_vault, e);
}

/* ---- the keeper ---- */

static void on_frame(struct link *l, const struct frame *f, int fd)
{
	struct vault *v = CONTAINER(l, struct vault, keeper);
	struct arena a = ARENA_INIT(4096);
	struct wire_vault_peer m;

	if (f->kind == FRAME_EVENT && f->type == WIRE_TYPE_VAULT_PEER && fd >= 0 &&
	    pb_decode(&wire_vault_peer_msg, f->body, 0, &a, &m) == 0)
		calls_accept(v, m.role, TAKE_FD(fd));
	fd_close(fd);
	arena_done(&a);
}

static void on_closed(struct link *l, int error)
{
	(void)error;
	loop_stop(CONTAINER(l, struct vault, keeper)->loop, EXIT_SUCCESS);
}

static const struct link_ops keeper_ops = { .on_frame = on_frame, .on_closed = on_closed };

/* ---- wiring ---- */

static int read_environment(uint32_t *ret_uid, uint32_t *ret_keys, struct err *e)
{
	if (service_number("PADDOCK_VAULT_UID", ret_uid, e) < 0 ||
	    service_number("PADDOCK_VAULT_KEYS", ret_keys, e) < 0)
		return -1;
	if (*ret_keys > KEYS_MAX)
		return err_set(e, ERR_INTERNAL, "PADDOCK_VAULT_KEYS must be at most %d", KEYS_MAX);
	return service_close_from(FD_KEYS + *ret_keys, e);
}

/* What is wrong with the keys or the files is said to everybody who asks, until it is put right. */
static int open_all(struct vault *v, unsigned n_keys, struct err *e)
{
	const int fds[KEYS_MAX] = { FD_KEYS, FD_KEYS + 1 };
	unsigned resealed;

	v->dir = FD_DIR;
	if (mkdirat(FD_DIR, "secrets", 0700) < 0 && errno != EEXIST)
		return err_sys(e, ERR_UNAVAILABLE, errno, "cannot make the directory of the secrets");
	v->secrets = openat(FD_DIR, "secrets", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (v->secrets < 0)
		return err_sys(e, ERR_UNAVAILABLE, errno, "cannot open the directory of the secrets");
	if (master_load(v, fds, n_keys, e) < 0 || ca_open(&v->ca, v->dir, &v->keys, e) < 0 ||
	    shelf_open(&v->shelf, v->secrets, &v->keys, e) < 0 || master_settle(v, &resealed, e) < 0)
		return -1;
	if (resealed)
		log_info("%u secrets were sealed again with the new master key", resealed);
	return 0;
}

static int start(struct vault *v, struct err *e)
{
	uint32_t uid, n_keys;

	if (read_environment(&uid, &n_keys, e) < 0)
		return -1;
	/* Before the files are out of reach. */
	if (seal_init() < 0)
		return err_set(e, ERR_INTERNAL, "OpenSSL");
	if (drop(uid, v, sizeof(*v), e) < 0)
		return -1;
	v->loop = loop_new(e);
	if (!v->loop)
		return -1;
	if (open_all(v, n_keys, &v->locked) < 0)
		log_error("%s", v->locked.msg);
	for (uint32_t i = 0; i < n_keys; i++)
		fd_close(FD_KEYS + (int)i);
	int r = link_start(&v->keeper, v->loop, FD_KEEPER, true, &keeper_ops);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "the keeper's channel") : 0;
}

int main(void)
{
	static struct vault v;
	struct err e = { 0 };

	service_init("paddock-vault");
	mallopt(M_ARENA_MAX, 1);
	list_init(&v.peers);
	grants_init(&v.grants);
	tickets_init(&v.tickets);
	if (start(&v, &e) < 0)
		return service_fail(&e);
	trim_locked();
	int r = service_run(v.loop);
	for (unsigned i = 0; i < SHELF_KEYS; i++)
		seal_key_wipe(&v.keys.key[i]);
	ca_close(&v.ca);
	shelf_close(&v.shelf);
	grants_done(&v.grants);
	tickets_done(&v.tickets);
	return r;
}
