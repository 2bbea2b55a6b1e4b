/*
 * The owner's channel: calls to paddock-signer over RUN/owner.sock, on the machine itself and as root.
 * Keys are added and limits loosened there and nowhere else (docs/design/spending.md).
 */
#pragma once

#include "arena.h"
#include "err.h"
#include "opts.h"
#include "session.h"
#include "signer_gen.h"

/* First in the flags of every command that opens the channel. */
struct owner_flags {
	const char *run_dir;
	const struct session_flags *session; /* of a command that asks the daemon, too; else NULL */
};
enum { OWNER_OPTS = 1 };
extern const struct opt owner_opts[OWNER_OPTS];

struct owner {
	int fd;
	uint32_t stream;
	struct arena *arena;
};
#define OWNER_INIT ((struct owner){ .fd = -EBADF })

int owner_open(struct owner *o, const struct owner_flags *f, struct arena *a, struct err *e) _must_check_;
void owner_done(struct owner *o);
/* One call and its answer, which lives in the arena. `reply` may be NULL. */
int owner_call(struct owner *o, uint16_t type, const struct pb_msg *request_msg, const void *msg,
	       const struct pb_msg *reply_msg, void *reply, struct err *e) _must_check_;

/* For a command that asks both: whether the daemon of the session is the one of this channel. By the chain of
 * the audit log, which no two signers share. */
int owner_same(struct owner *o, struct session *s, struct err *e) _must_check_;

/* A wallet by its id, or by its label where only one has it. */
int owner_wallet(struct owner *o, const char *name, struct sgn_wallet *ret, struct err *e) _must_check_;
int owner_rules(struct owner *o, const char *scope, struct sgn_rules *ret, struct err *e) _must_check_;
int owner_put_rules(struct owner *o, struct sgn_rules *r, struct err *e) _must_check_;
