/*
 * The core: the operations that clients can ask for, shared by every dialect. It authorises, acts and
 * accounts. A dialect turns its requests into calls of the core and formats the answers; it owns no
 * state. Each of the other headers in this directory is the public header of one room of the core.
 *
 * Operations that take time have a callback. An operation that the caller embeds (struct exec, struct
 * file_op, …) may be cancelled at any time before its callback; one that the core owns (a creation)
 * may be abandoned.
 */
#pragma once

#include "common.h"
#include "who.h"

struct core;

struct core_setup {
	struct loop *loop;
	struct store *store;
	const struct config *config;
	int keeper_fd;          /* taken */
	uint8_t admin_hash[32]; /* of the key in DIR/admin.key, which only the keeper knows */
	bool has_admin;
	void (*on_ready)(void *arg); /* everything is loaded and adopted */
	void (*on_lost)(void *arg);  /* the keeper is gone */
	void *arg;
};

struct core *core_new(const struct core_setup *s, struct err *e) _must_check_;
/* The end, in three steps: core_stop fails what is under way and writes no more;
 * then store_close, whose last callbacks still come here; then core_free. The
 * memory of boxes goes with the loop's next batch. */
void core_stop(struct core *c);
void core_free(struct core *c);

void core_stats(const struct core *c, struct core_stats *ret);

/* Tells the keeper that requests are accepted. */
int core_say_ready(struct core *c) _must_check_;
/* Connections of programs in boxes to the AI gateway, which the gate passes on. The fd is the callee's. */
struct box;
void core_on_caller(struct core *c, void (*on_caller)(void *arg, const struct box *b, int fd), void *arg);
/* NULL when ready, else why not. */
const char *core_not_ready(const struct core *c);

/*
 * ---- trend.c ----
 * The last ten minutes of the installation as a whole, for charts that show the past at once: a sample
 * every TREND_MS, the newest TREND_SAMPLES of them, in memory.
 */
#define TREND_MS      5000
#define TREND_SAMPLES 121

struct trend_sample {
	int64_t at_ms;
	struct core_stats stats;
	double cpu;            /* cores that all sandboxes use */
	uint64_t memory_bytes; /* of all sandboxes */
};

/* The oldest first. For who may see the metrics. */
int trend_each(const struct core *c, const struct actor *a,
	       void (*each)(void *arg, const struct trend_sample *s), void *arg, struct err *e) _must_check_;
