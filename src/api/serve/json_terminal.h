/*
 * A login shell on a terminal, over a WebSocket whose messages are JSON objects with a `type`. Which messages
 * there are is the dialect's; what they do is here.
 */
#pragma once

#include "resize.h"
#include "run.h"
#include "text_pieces.h"
#include "typed.h"
#include "ws.h"

struct json_terminal;

struct json_terminal_ops {
	void (*begun)(struct json_terminal *t); /* the connection is open, and the shell runs */
	/* It is over; the connection is closed behind this. */
	void (*ended)(struct json_terminal *t, const struct exec_result *res, const struct err *e);
	/* A message; false and e: it is none. */
	bool (*message)(struct json_terminal *t, const struct json *doc, struct arena *a, struct err *e);
};

/* The first member of a dialect's own. */
struct json_terminal {
	struct ws w;
	struct exec exec;
	struct text_pieces pieces;
	char process[16];
	struct resize size;
	struct typed typed;
	struct loop_timer timer; /* the dialect's; stopped at the end */
	const struct json_terminal_ops *ops;
};

/* Answers. `box` is its id or name, and lives as long as the request; `size` that of the whole. */
void json_terminal_start(struct request *r, size_t size, struct view box,
			 const struct json_terminal_ops *ops);
/* {"type": type, key: value}; key NULL: without it. */
void json_terminal_say(struct json_terminal *t, const char *type, const char *key, struct view value);
bool json_terminal_input(struct json_terminal *t, struct view text, struct err *e);
void json_terminal_resize(struct json_terminal *t, uint64_t cols, uint64_t rows);
