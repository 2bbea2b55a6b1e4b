/*
 * Files of a box over HTTP: downloads with ranges, and signed URLs.
 */
#pragma once

#include "file.h"
#include "http_range.h"
#include "who.h"

struct download;

/*
 * ---- download.c ----
 * The bytes of a file, whole or one range of them, as an HTTP answer wants them:
 * a promise of how many there will be, then exactly those. The caller embeds a
 * struct download (zeroed) and keeps it until `done`, on_no_range or download_cancel.
 */

struct download_ops {
	/* What it is. With a range, `range_text` is the Content-Range. */
	void (*on_info)(struct download *d, const struct file_info *info);
	/* The answer begins; -1: nobody knows how long it is. */
	void (*on_begin)(struct download *d, int64_t length);
	/* False: the client is behind; download_writable is called when it is not. */
	bool (*on_bytes)(struct download *d, struct view data);
	/* Instead of everything else: the file has no such bytes. */
	void (*on_no_range)(struct download *d, uint64_t size);
	/* e: before or, if `begun`, behind the beginning. `left` bytes of the promise are missing. */
	void (*done)(struct download *d, const struct err *e);
};

struct download {
	struct file_op op;
	const struct download_ops *ops;
	struct core *core;
	const struct actor *actor;
	struct file_place place;
	struct http_range range; /* as asked for */
	char range_text[HTTP_RANGE_TEXT];
	bool begun, exact;
	uint64_t left; /* of what was promised */
	size_t held;   /* bytes that the client has not taken yet */
};

/* `range` is the request's header; actor and place are borrowed until the end. */
int download_start(struct core *c, const struct actor *a, const struct file_place *p, struct view range,
		   const struct download_ops *ops, struct download *d, struct err *e) _must_check_;
void download_writable(struct download *d);
void download_cancel(struct download *d);

/*
 * ---- sign_url.c ----
 * Signed URLs: a path of a box, one verb, a user and an end, under an HMAC with a
 * secret of this installation. Whoever holds one needs no key for exactly that.
 */

struct signed_url {
	char box[32]; /* its id, also where the wish named it */
	char signature[SIGN_SIZE];
	int64_t expires_s; /* since 1970 */
};

/* For GET (HEAD is that, too) or PUT. The actor must be permitted to do it. */
int sign_url(struct core *c, const struct actor *a, const struct file_place *p, struct view method,
	     uint32_t seconds, struct signed_url *ret, struct err *e) _must_check_;
/* Who may do this with such a signature: somebody of the box's tenant. ERR_FORBIDDEN. */
int sign_url_check(struct core *c, const struct file_place *p, struct view method, struct view expires,
		   struct view signature, struct actor *ret, struct err *e) _must_check_;
