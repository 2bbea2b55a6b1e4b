/*
 * Shared by the files of interception: see intercept.h.
 */
#pragma once

#include "http1.h"
#include "inject.h"
#include "intercept.h"
#include "mux.h"
#include "tls.h"

#define INTERCEPT_LINGER_MS 60000        /* at the end, while its client takes nothing of what is left */
#define INTERCEPT_AWAY_MS   10000        /* if it is we who end it, whatever it takes */
#define INTERCEPT_PLAIN     (64u * 1024) /* of the client's that is kept before it is dealt with */

/* What clients are told by us, in either version. */
#define INTERCEPT_NO_VAULT  "paddock: the vault cannot be reached"
#define INTERCEPT_TOO_LARGE "paddock: with its secrets the request is too large or not proper"
#define INTERCEPT_IMPROPER  "paddock: the server's answer is not proper"
#define INTERCEPT_CODED     "paddock: the server's answer is compressed, and cannot be looked through for secrets"
#define INTERCEPT_CLOSED    "paddock: the server has closed the connection"

struct intercept_h2;

struct intercept_tls {
	struct tls_conn *conn;
	bool ready, failed;
};

struct intercepts {
	struct loop *loop;
	struct mux vault;           /* intercept_vault.c */
	struct tls_mint *inside;    /* to boxes */
	struct tls_client *outside; /* to servers */
};

enum intercept_step {
	IC_HEAD,     /* a request's head is awaited */
	IC_SECRETS,  /* the vault is asked */
	IC_BODY,     /* its body goes through */
	IC_SENT,     /* its answer is awaited */
	IC_SWITCHED, /* another protocol: bytes */
};

struct intercept {
	struct conn *conn;
	struct intercepts *all;
	struct intercept_tls client, server;
	unsigned offers;         /* enum tls_offer: of the client's; 0: its hello was not seen yet */
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
/* Plaintext to either side; false when the flow has ended. */
bool intercept_to_client(struct conn *c, struct view data);
bool intercept_to_server(struct conn *c, struct view data);
/* An answer of our own in HTTP/1.1, and the end. */
void intercept_fail(struct conn *c, int status, const char *text);
void intercept_close(struct conn *c);
/* The end is near: a client that takes nothing of what is left is not waited for long, and shorter yet if it
 * is sent `away` for what it has done. */
void intercept_ending(struct conn *c, bool away);
/* The vault has answered. */
void intercept_leaf(struct conn *c, struct view leaf, struct view authority, const struct err *e);
/* Whether the request may go; if so with which secrets, if not what the client is told. */
const char *intercept_judge(struct conn *c, struct view method, struct view path, struct view host,
			    struct inject *j);
/* Why there is no TLS with the server. */
void intercept_trouble(const struct intercept *ic, char *text, size_t size);

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
int intercept_vault_leaf(struct intercept *ic, struct view public_key) _must_check_;
/* `stream`: of HTTP/2, 0: HTTP/1.1. */
int intercept_vault_reveal(struct intercept *ic, uint32_t stream, const char *name) _must_check_;
