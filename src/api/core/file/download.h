/*
 * The bytes of a file, whole or one range of them, as an HTTP answer wants them:
 * a promise of how many there will be, then exactly those. The caller embeds a
 * struct download (zeroed) and keeps it until `done`, on_no_range or download_cancel.
 */
#pragma once

#include "files.h"
#include "http_range.h"

struct download;

struct download_ops {
	/* What it is. With a range, `range_text` is the Content-Range. */
	void (*on_info)(struct download *d, const struct wire_file_info *info);
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
