/*
 * Running things, for the core itself: see run.h.
 */
#pragma once

#include "guest.h"
#include "json.h"
#include "run.h"

struct box;
struct config;
struct shell_command;
struct wire_process_info;
struct wire_start;

/* What runs a command: a process of its own (exec.c), or a shell that is there (shells.c). */
struct exec_way {
	int (*start)(struct box *b, const struct exec_wish *w, struct exec *x, struct err *e);
	/* So much of its output was taken. */
	void (*consumed)(struct exec *x, size_t n);
	/* Nobody waits for it any more. Accepts one that is over. */
	void (*abandon)(struct exec *x);
};

/* The same in a box that the core holds itself. */
int exec_start_in(struct box *b, const struct exec_wish *w, struct exec *x, struct err *e) _must_check_;

/* Checks what all kinds have in common. */
int exec_check(const struct config *cfg, const struct exec_wish *w, struct err *e) _must_check_;
/* The environment and the user of a process in this box. */
int exec_fill_env(struct arena *a, const struct box *b, const struct exec_wish *w,
		  struct wire_start *ret) _must_check_;
