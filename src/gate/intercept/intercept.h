/*
 * Interception: TLS between box and gate with a certificate of the installation's own
 * authority, TLS between gate and server with the server's certificate checked, and HTTP
 * read in between: 1.1 or 2, the same on both sides. A client that offers HTTP/2 is kept
 * waiting in its handshake until the server has said what it speaks. For hosts that a rule
 * with `inject` names, and for encrypted ClientHellos, whose true name is known in no other
 * way (flow.c). Each request is judged as one in clear is; then the secrets that its rule
 * names are put in, for this request fetched from the vault, which knows what the policy
 * allows. They are masked in everything that comes back.
 *
 *   intercept.c         the connection: its two ends of TLS, bytes in and out, judging
 *   intercept_tls.c     contexts, certificates, what is offered and chosen
 *   intercept_http.c    HTTP/1.1: requests; intercept_answer.c: answers
 *   intercept_h2.c      HTTP/2: sessions; intercept_h2_stream.c: streams
 *   intercept_vault.c   the vault: certificates, secrets
 *   inject.c, h2_head.c, place.c, mask.c    what becomes of heads and bodies: pure
 */
#pragma once

#include "flow.h"
#include "inject.h"

#define INTERCEPT_PLAIN (64u * 1024) /* of the client's that is kept before it is dealt with */

/* What clients are told by us, in either version. */
#define INTERCEPT_NO_VAULT  "paddock: the vault cannot be reached"
#define INTERCEPT_TOO_LARGE "paddock: with its secrets the request is too large or not proper"
#define INTERCEPT_IMPROPER  "paddock: the server's answer is not proper"
#define INTERCEPT_CODED     "paddock: the server's answer is compressed, and cannot be looked through for secrets"
#define INTERCEPT_CLOSED    "paddock: the server has closed the connection"

typedef struct ssl_st SSL;
struct intercept_h2;

struct intercept_tls {
	SSL *ssl;
	bool ready, failed;
};

/* In a client's hello. */
enum intercept_offer { OFFER_ASKED = 1, OFFER_H1 = 2, OFFER_H2 = 4, OFFER_OTHER = 8 };

enum intercept_step {
	IC_HEAD,     /* a request's head is awaited */
	IC_SECRETS,  /* the vault is asked */
	IC_BODY,     /* its body goes through */
	IC_SENT,     /* its answer is awaited */
	IC_SWITCHED, /* another protocol: bytes */
};

struct intercept {
	struct flow *flow;
	struct intercept_tls client, server;
	unsigned offers;         /* of the client's; 0: its hello was not seen yet */
	struct intercept_h2 *h2; /* NULL: HTTP/1.1, or not known yet */
	enum intercept_step step;
	struct buf in;               /* from the client, decrypted, not dealt with */
	struct buf answer;           /* from the server, decrypted: a head that is not whole */
	size_t in_seen, answer_seen; /* of heads that are not whole: bytes that were looked at */
	struct http_header *headers;
	struct http1_request request;
	struct http1_body body;
	struct buf collect;   /* a body that gets a new length; or the open end of a piece */
	struct buf head_text; /* the request's head, as long as the request lives */
	struct inject inject; /* of the request */
	bool rewrite, chunk;  /* the body may have placeholders; it is sent in chunks */
	bool method_head, upgrade, keep_alive;
	/* the answer */
	bool in_answer, until_end, answer_chunked;
	struct http1_body answer_body;
	struct mask mask;
	struct list waits;   /* for the vault's answers */
	unsigned asked;      /* answers of the vault that are awaited */
	const char *trouble; /* with the server's TLS */
	bool closing;        /* the client's end was said: nothing more is read */
	bool ending, away;   /* the end is near; for what the client has done */
	uint64_t taken;      /* what it has taken then */
};

/* ---- intercept.c ---- */
/* Whether there is a certificate to be had for f->name. */
bool intercept_able(const struct flow *f);
/* Instead of going opaque; f->look has the client's first bytes. */
void intercept_start(struct flow *f);
void intercept_client(struct flow *f, struct view data);
void intercept_server(struct flow *f, struct view data);
void intercept_server_ended(struct flow *f);
/* The time for the handshake with the server is over, or that for the end: true when it was not done, and the
 * client has been told; or when it is being ended. */
bool intercept_late(struct flow *f);
bool intercept_reads(const struct flow *f);
/* Everything went out: what else is there to do? */
void intercept_flushed(struct flow *f);
void intercept_free(struct flow *f);

/* Plaintext to either side; false when the flow has ended. */
bool intercept_to_client(struct flow *f, struct view data);
bool intercept_to_server(struct flow *f, struct view data);
/* An answer of our own in HTTP/1.1, and the end. */
void intercept_fail(struct flow *f, int status, const char *text);
void intercept_close(struct flow *f);
/* The end is near: a client that takes nothing of what is left is not waited for long, and shorter yet if it
 * is sent `away` for what it has done. */
void intercept_ending(struct flow *f, bool away);
/* The vault has answered. */
void intercept_leaf(struct flow *f, struct view leaf, struct view authority, const struct err *e);
/* Whether the request may go; if so with which secrets, if not what the client is told. */
const char *intercept_judge(struct flow *f, struct view method, struct view path, struct view host,
			    struct inject *j);
/* Why there is no TLS with the server. */
void intercept_trouble(const struct intercept *ic, char *text, size_t size);

/* ---- intercept_tls.c ---- */
/* Before the files of the system are out of reach. `ca`: a file of authorities besides the system's, or "".
 */
int intercept_setup(struct gate *g, const char *ca, struct err *e) _must_check_;
struct view intercept_tls_key(const struct gate *g); /* public */
bool intercept_tls_keep(struct gate *g, const char *host, struct view leaf, struct view authority);
bool intercept_tls_known(const struct gate *g, const char *host);
/* Each on bytes in memory, at its beginning; NULL: it cannot be. */
SSL *intercept_tls_inside(struct flow *f);
SSL *intercept_tls_outside(struct flow *f);
bool intercept_tls_is_h2(const SSL *ssl); /* was chosen */

/* ---- intercept_http.c ---- */
void intercept_http_client(struct intercept *ic); /* more in ic->in */
void intercept_http_revealed(struct intercept *ic, const char *name, struct view value, const struct err *e);

/* ---- intercept_answer.c ---- */
void intercept_http_server(struct intercept *ic, struct view data);
void intercept_http_ended(struct intercept *ic);

/* ---- intercept_h2.c ---- */
bool intercept_h2_start(struct intercept *ic); /* false: no memory */
void intercept_h2_free(struct intercept_h2 *h);
void intercept_h2_client(struct intercept *ic, struct view data);
void intercept_h2_server(struct intercept *ic, struct view data);
void intercept_h2_ended(struct intercept *ic); /* the server */
void intercept_h2_run(struct intercept *ic);   /* sends what is due */
void intercept_h2_revealed(struct intercept *ic, uint32_t stream, const char *name, struct view value,
			   const struct err *e);

/* ---- intercept_vault.c ---- */
void intercept_vault_open(struct gate *g, int fd);
int intercept_vault_leaf(struct flow *f, struct view public_key) _must_check_;
/* `stream`: of HTTP/2, 0: HTTP/1.1. */
int intercept_vault_reveal(struct flow *f, uint32_t stream, const char *name) _must_check_;
void intercept_vault_forget(struct flow *f);
