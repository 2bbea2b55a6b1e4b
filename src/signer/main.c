/*
 * paddock-signer: holds the keys of wallets, decides what they sign, and keeps the ledger.
 *
 * Peers:        paddock-api (asks, approves, reports) and the owner (keys and looser rules), each by a stream
 * that the keeper made and passed here; the keeper, by fd 3, which brings those streams and nothing else.
 * Holds:        the master key; a wallet's key for the time of one signature or one export.
 * Runs as:      uids.signer of the configuration; started as root by the keeper, it drops before it reads a
 * key. Capabilities: none, in all five sets; no_new_privs. Files:        DATA/signer, its root directory, and
 * by Landlock; all memory is locked, nothing is dumped. Calls:        src/os/seccomp_signer.c: no sockets are
 * made, nothing is executed. Never:        signs what its own policy refuses, whoever asks; loosens a rule
 * for the api; gives bytes away that it has not stored.
 *
 * fds at the start: 3 the keeper's channel, 4 the directory DATA/signer, 5 (if PADDOCK_SIGNER_KEYS is 1) a
 * credential with the master key.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "confine.h"
#include "fd.h"
#include "lock.h"
#include "log.h"
#include "seccomp.h"
#include "service.h"
#include "signer.h"
#include "trim.h"

#include "poison.h"

enum { FD_KEEPER = 3, FD_DIR = 4, FD_KEY = 5 };

#define NOFILE   64
#define DATABASE "/signer.db"

/* Should: end as `uid` in its directory with the calls of its filter, with all memory locked, now and later.
 * Mustn't: read a key in between, or go on when a step fails. The memory is locked first, while /proc can be
 * read. */
static int drop(uint32_t uid, const void *state, size_t size, struct err *e)
{
	if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){ NOFILE, NOFILE }) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot set a limit");
	(void)!setrlimit(RLIMIT_MEMLOCK,
			 &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }); /* lock.c lives with less */
	if (lock_memory(state, size, e) < 0 || confine_identity("uids.signer", uid, FD_DIR, e) < 0)
		return -1;
	return confine_reach(&(struct landlock_rule){ .fd = FD_DIR, .access = LANDLOCK_WRITE }, 1,
			     seccomp_signer, e);
}

/* ---- the keeper ---- */

static void on_frame(struct link *l, const struct frame *f, int fd)
{
	struct signer *s = CONTAINER(l, struct signer, keeper);
	struct arena a = ARENA_INIT(4096);
	struct sgn_signer_peer m;

	if (f->kind == FRAME_EVENT && f->type == SGN_SIGNER_TYPE_PEER && fd >= 0 &&
	    pb_decode(&sgn_signer_peer_msg, f->body, 0, &a, &m) == 0)
		calls_accept(s, m.role, TAKE_FD(fd));
	fd_close(fd);
	arena_done(&a);
}

static void on_closed(struct link *l, int error)
{
	(void)error;
	loop_stop(CONTAINER(l, struct signer, keeper)->loop, EXIT_SUCCESS);
}

static const struct link_ops keeper_ops = { .on_frame = on_frame, .on_closed = on_closed };

/* ---- wiring ---- */

static int open_all(struct signer *s, int key, struct err *e)
{
	if (db_open(&s->db, DATABASE, e) < 0 || master_load(s, key, e) < 0 || holds_load(s, e) < 0 ||
	    items_load_paused(s, e) < 0)
		return -1;
	items_watch(s);
	return db_flush(&s->db, e);
}

static int start(struct signer *s, struct err *e)
{
	uint32_t uid, keys;

	if (service_number("PADDOCK_SIGNER_UID", &uid, e) < 0 ||
	    service_number("PADDOCK_SIGNER_KEYS", &keys, e) < 0)
		return -1;
	if (keys > 1)
		return err_set(e, ERR_INTERNAL, "PADDOCK_SIGNER_KEYS must be at most 1");
	if (service_close_from(FD_KEY + keys, e) < 0)
		return -1;
	/* Before the files of the system are out of reach. */
	if (sig_init() < 0 || xseal_init() < 0 || sqlite3_initialize() != SQLITE_OK)
		return err_set(e, ERR_INTERNAL, "the libraries cannot be started");
	if (drop(uid, s, sizeof(*s), e) < 0)
		return -1;
	s->loop = loop_new(e);
	if (!s->loop)
		return -1;
	s->dir = FD_DIR;
	/* What is wrong with the key or the database is said to everybody who asks, until it is put right. */
	if (open_all(s, keys ? FD_KEY : -1, &s->locked) < 0)
		log_error("%s", s->locked.msg);
	if (keys)
		fd_close(FD_KEY);
	int r = link_start(&s->keeper, s->loop, FD_KEEPER, true, &keeper_ops);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "the keeper's channel") : 0;
}

#define LARGE (64 * 1024)

int main(void)
{
	static struct signer s;
	struct err e = { 0 };

	service_init("paddock-signer");
	mallopt(M_ARENA_MAX, 1);
	/* All memory is locked, of which there may be little: what is large goes back when it is freed, and
	 * leaves no holes that count. */
	mallopt(M_MMAP_THRESHOLD, LARGE);
	mallopt(M_TRIM_THRESHOLD, 2 * LARGE);
	list_init(&s.peers);
	list_init(&s.batch.answers);
	list_init(&s.batch.task.link);
	if (start(&s, &e) < 0)
		return service_fail(&e);
	trim_locked();
	int r = service_run(s.loop);
	explicit_bzero(s.key, sizeof(s.key));
	holds_done(&s);
	db_close(&s.db);
	sig_done();
	return r;
}
