/*
 * What the files of the gateway share: models.c judges a request, models_call.c carries it out.
 */
#pragma once

#include "answer.h"
#include "box.h"
#include "http1.h"
#include "models.h"
#include "models_head.h"
#include "money.h"
#include "peer.h"
#include "prices.h"

#define MODELS_HEADERS 128

struct models {
	struct core *core;
	struct arena arena;
	struct prices prices;
	struct list calls;
};

struct models_call {
	struct models *home;
	struct request *r;
	struct http_exchange *x;
	struct loop *loop;
	struct list link;
	char box[BOX_ID + 1];
	enum models_style style;
	enum ask_provider provider;
	const struct config_provider *place;
	const struct ask_endpoint *ep;
	struct view path; /* below /api/PROVIDER */
	struct buf body;  /* the client's */
	struct ask ask;
	char model[132];           /* ask.model */
	const struct price *price; /* NULL: free */
	struct usage_call usage;
	bool reserved; /* `usage` must be settled */
	bool sent;     /* the provider may have seen it */

	/* models_call.c */
	struct job *key;
	struct carrier_dial dial;
	struct loop_io io; /* has the fd only while something is awaited */
	int fd;
	struct loop_timer timer;
	struct buf out; /* of the body, not yet sent */
	char *in;       /* the head as it comes */
	size_t n_in;
	struct http1_response head;
	struct http_header headers[MODELS_HEADERS];
	struct http1_body unpack;
	enum http1_framing framing;
	struct meter meter;
	bool metered;  /* `meter` is in use */
	bool answered; /* http_begin */
	bool full;     /* the client does not take more */
	bool keeps;    /* its text is kept */
	bool said_cut, heard_cut;
	struct buf said, heard; /* the client's body and what was answered, so far as they are kept */
	uint64_t began_ms;
	int status;
	const char *finish; /* how it ended; NULL: it broke */
};

/* Borrows the key, connects, passes; settles and ends by itself. The body has been judged. */
void models_call_start(struct models_call *k);
/* Of the request whose own it is. */
void models_call_gone(struct request *r);
void models_call_release(struct request *r);
void models_call_writable(struct models_call *k);
/* Refuses, or breaks an answer that has begun; frees. retry: seconds, 0: it is not worth trying again. */
void models_call_refuse(struct models_call *k, int status, const char *code, const char *message,
			unsigned retry);
void models_call_fail(struct models_call *k, const struct err *e);
