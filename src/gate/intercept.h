/*
 * Interception: TLS between box and gate with a certificate of the installation's own
 * authority, TLS between gate and server with the server's certificate checked, and
 * HTTP/1.1 read in between. For hosts that a rule with `inject` names, and for encrypted
 * ClientHellos, whose true name is known in no other way (flow.c). Each request
 * is judged as one in clear is; then the secrets that its rule names are put in, for this
 * connection fetched from the vault, which knows what the policy allows. They are masked
 * in everything that comes back.
 *
 *   intercept.c        the connection: its two ends of TLS, bytes in and out
 *   intercept_http.c   requests and answers
 *   intercept_vault.c  the vault: certificates, secrets
 *   place.c, mask.c    placeholders, masking: pure
 */
#pragma once

#include "flow.h"
#include "mask.h"
#include "place.h"

#define INTERCEPT_VALUES 32
#define INTERCEPT_PLAIN  (64u * 1024)   /* of the client's that is kept before it is dealt with */
#define INTERCEPT_BODY   (1024u * 1024) /* a body with placeholders up to here keeps a length */

typedef struct ssl_st SSL;

struct intercept_tls {
	SSL *ssl;
	bool ready, failed;
};

/* A secret that was fetched for this connection. */
struct intercept_value {
	char name[PLACE_NAME + 1];
	struct buf value; /* secret */
	bool there;
};

enum intercept_step {
	IC_HEAD,    /* a request's head is awaited */
	IC_SECRETS, /* the vault is asked */
	IC_BODY,    /* its body goes through */
	IC_SENT,    /* its answer is awaited */
	IC_SWITCHED, /* another protocol: bytes */
};

struct intercept {
	struct flow *flow;
	struct intercept_tls client, server;
	enum intercept_step step;
	struct buf in;     /* from the client, decrypted, not dealt with */
	struct buf answer; /* from the server, decrypted: a head that is not whole */
	struct http_header *headers;
	struct http1_request request;
	struct http1_body body;
	struct buf collect;  /* a body that gets a new length; or the open end of a piece */
	struct buf head_text; /* the request's head, as long as the request lives */
	struct policy_inject inject[POLICY_INJECTS]; /* of the rule that allowed the request */
	size_t n_inject;
	bool rewrite, chunk; /* the body may have placeholders; it is sent in chunks */
	bool method_head, upgrade, keep_alive;
	/* the answer */
	bool in_answer, until_end, answer_chunked;
	struct http1_body answer_body;
	struct mask mask;
	struct intercept_value values[INTERCEPT_VALUES];
	unsigned n_values, asked; /* asked: answers of the vault that are awaited */
	const char *trouble; /* with the server's TLS */
	bool closing;        /* the client's end was said: nothing more is read */
};

/* ---- intercept.c ---- */
/* Before the files of the system are out of reach. `ca`: a file of authorities besides the system's, or "". */
int intercept_setup(struct gate *g, const char *ca, struct err *e) _must_check_;
/* Whether there is a certificate to be had for f->name. */
bool intercept_able(const struct flow *f);
/* Instead of going opaque; f->look has the client's first bytes. */
void intercept_start(struct flow *f);
void intercept_client(struct flow *f, struct view data);
void intercept_server(struct flow *f, struct view data);
void intercept_server_ended(struct flow *f);
/* The time for the handshake with the server is over: true when it was not done, and the client has been told. */
bool intercept_late(struct flow *f);
bool intercept_reads(const struct flow *f);
/* Everything went out: what else is there to do? */
void intercept_flushed(struct flow *f);
void intercept_free(struct flow *f);

/* Plaintext to either side; false when the flow has ended. */
bool intercept_to_client(struct flow *f, struct view data);
bool intercept_to_server(struct flow *f, struct view data);
/* An answer of our own, and the end. */
void intercept_fail(struct flow *f, int status, const char *text);
void intercept_close(struct flow *f);
/* The vault has answered. */
void intercept_leaf(struct flow *f, struct view leaf, struct view authority, const struct err *e);

/* ---- intercept_http.c ---- */
void intercept_http_client(struct intercept *ic); /* more in ic->in */
void intercept_http_server(struct intercept *ic, struct view data);
void intercept_http_ended(struct intercept *ic);
void intercept_http_revealed(struct intercept *ic, const char *name, struct view value, const struct err *e);

/* ---- intercept_vault.c ---- */
extern const struct link_ops intercept_vault_ops;
void intercept_vault_open(struct gate *g, int fd);
int intercept_vault_leaf(struct flow *f, struct view public_key) _must_check_;
int intercept_vault_reveal(struct flow *f, const char *name) _must_check_;
void intercept_vault_forget(struct flow *f);
