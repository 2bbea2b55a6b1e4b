/*
 * The boxes that live, as the keeper knows them, and what lies in their run
 * directories: RUN/boxes/ID/{init.sock,pid,state}. `state` is the last thing
 * written at a start and holds a BoxState: a directory without it is a start
 * that did not finish.
 */
#pragma once

#include <sys/types.h>

#include "list.h"
#include "loop.h"
#include "map.h"
#include "walls.h"
#include "wire_gen.h"

struct keeper;
struct keeper_box;

/* What waits for a box's end. */
typedef void box_ended(struct keeper *k, struct keeper_box *b);

struct keeper_box {
	struct map_node node; /* by id */
	struct loop_io exit;  /* pidfd */
	struct keeper *keeper;
	struct spec spec;
	struct spec_workspaces *workspaces; /* spec.workspaces: its own */
	char image[80];                     /* digest */
	struct walls_box in;                /* the walls that it lives in, and its process there */
	uint64_t started;
	uint32_t slot;
	bool dying;                /* somebody asked for its end */
	box_ended *on_end;         /* called when it is gone, before it is freed */
	uint32_t features;         /* FEATURE_BITs that it was started with */
	struct netns_gate gate;    /* its sockets for the gate, until its start is answered */
	struct list gate_wait;     /* of keeper.gate_queue: the gate does not have its sockets yet */
	uint32_t stream;           /* of the call that waits for it, or 0 */
	bool copying, keep_frozen; /* copying.c: it stands still; it stays so afterwards */
	char commit_name[80], commit_digest[80]; /* for ImageCommit */
	char *commit_config;                     /* the same; freed when it is kept */
	size_t commit_config_size;
};

struct box_table {
	struct map by_id;
};

struct keeper_box *box_table_get(struct box_table *t, struct view id);

/* Workspaces outlive the request that named them. */
int box_table_take(struct keeper_box *b, const struct spec_workspaces *w) _must_check_;
void box_table_free(struct keeper_box *b);

/* The plain fields of a message. */
void box_table_fields(const struct wire_box_spec *w, struct spec *s);
/* Fills a message from a box; `parts` are room for what it points to. */
struct box_table_parts {
	struct wire_box_spec spec;
	struct wire_limits limits;
	struct wire_workspace_mount workspaces[SPEC_WORKSPACES];
};
void box_table_state(const struct keeper_box *b, struct wire_box_state *m, struct box_table_parts *parts);
/* RUN/boxes/ID/state and pid. */
int box_table_save(const struct keeper_box *b, int run_box) _must_check_;
/* -ENOENT: no state; -ESRCH: the process is gone; -EBADMSG. Its pidfd is opened on success; its walls are
 * the caller's to find, by spec.backend. */
int box_table_load(int run_box, struct keeper_box *b) _must_check_;
