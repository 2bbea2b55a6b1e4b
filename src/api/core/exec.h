/*
 * Running a command in a box and collecting what it says. The caller embeds a
 * struct exec (zeroed) and keeps it until `done` or exec_cancel.
 */
#pragma once

#include "guest.h"
#include "json.h"

struct actor;
struct box;

struct exec_wish {
	struct json_strlist argv; /* exactly one of argv and command */
	struct view command;      /* for bash -c; p == NULL: absent */
	struct json_strmap env;   /* over the box's */
	struct view cwd, user;    /* empty: the box's */
	struct view input;        /* of its stdin, borrowed until `done`; p == NULL: /dev/null */
	bool streams;             /* stdin comes by exec_send and exec_end instead */
	uint64_t timeout_ms;      /* 0: the configured maximum */
};

struct exec_result {
	uint32_t exit_code;
	const char *signal; /* "SIGKILL", or NULL */
	struct view out, err;
	bool truncated, timed_out;
	uint64_t duration_us;
};

struct exec {
	struct call call;
	struct core *core;
	struct buf out, err;
	struct view input; /* what is left of it */
	bool streams, want_end;
	struct loop_timer guard;
	void (*on_room)(struct exec *x);
	void (*done)(struct exec *x, const struct exec_result *r, const struct err *e);
};

/* `done` comes later, unless this fails. on_room may be NULL. */
int exec_start(struct core *c, const struct actor *a, struct view id_or_name, const struct exec_wish *w,
	       struct exec *x, struct err *e) _must_check_;
/* The same in a box that the core holds itself. */
int exec_start_in(struct box *b, const struct exec_wish *w, struct exec *x, struct err *e) _must_check_;
/* How much was taken; on_room follows when that was not all. */
size_t exec_send(struct exec *x, struct view data);
void exec_end(struct exec *x);
/* Ends the command where it runs. Accepts one that is over or was never started. */
void exec_cancel(struct exec *x);
