/*
 * Interception: TLS between box and gate with a certificate of the installation's own
 * authority, TLS between gate and server with the server's certificate checked, and HTTP
 * read in between: 1.1 or 2, the same on both sides. A client that offers HTTP/2 is kept
 * waiting in its handshake until the server has said what it speaks. For hosts that a rule
 * with `inject` names, and for encrypted ClientHellos, whose true name is known in no other
 * way (flow/look.c). Each request is judged as one in clear is; then the secrets that its rule
 * names are put in, for this request fetched from the vault, which knows what the policy
 * allows. They are masked in everything that comes back.
 *
 *   conn.h              what it sees of a connection, and asks of it: flow/ answers
 *   intercept.c         the connection: its two ends of TLS (src/net), bytes in and out, judging
 *   intercept_http.c    HTTP/1.1: requests; intercept_answer.c: answers
 *   intercept_h2.c      HTTP/2: sessions; intercept_h2_stream.c: streams
 *   intercept_vault.c   the vault: certificates, secrets
 *   inject.c, h2_head.c, place.c, mask.c    what becomes of heads and bodies: pure
 */
#pragma once

#include "conn.h"
#include "loop.h"

struct intercepts; /* what all of them share: keys, certificates, the channel to the vault */

/* Before the files of the system are out of reach. `ca`: a file of authorities besides the system's, or "".
 */
struct intercepts *intercept_setup(struct loop *loop, const char *ca, struct err *e) _must_check_;
/* Takes the fd; the old channel is closed. */
void intercept_vault_open(struct intercepts *all, int fd);

/* Whether there is a certificate to be had for this host. */
bool intercept_able(const struct intercepts *all, const char *host);
/* c->look has the client's first bytes. */
void intercept_start(struct intercepts *all, struct conn *c);
void intercept_client(struct conn *c, struct view data);
void intercept_server(struct conn *c, struct view data);
void intercept_server_ended(struct conn *c);
/* The time for the handshake with the server is over, or that for the end: true when it was not done, and the
 * client has been told; or when it is being ended. */
bool intercept_late(struct conn *c);
bool intercept_reads(const struct conn *c);
/* Everything went out: what else is there to do? */
void intercept_flushed(struct conn *c);
/* It has ended: the vault's answers go nowhere. */
void intercept_forget(struct conn *c);
void intercept_free(struct conn *c); /* also of one that was never started */
