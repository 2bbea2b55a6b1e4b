/*
 * The life of sandboxes (boxes): create, change, measure and remove them. index.h finds them.
 */
#pragma once

#include "index.h"
#include "job.h"
#include "spec.h"

struct core_posture;

/* Learns what the box has on disk (state.disk_used). The result is a const struct box *. */
struct job *boxes_measure(struct core *c, const struct actor *a, struct view id_or_name, job_done *done,
			  void *arg, struct err *e) _must_check_;

/* create.c. The result is a const struct box *. When the job is abandoned the box is removed again. */
struct job *create_box(struct core *c, const struct actor *a, const struct box_wish *w, job_done *done,
		       void *arg, struct err *e) _must_check_;

extern const uint32_t create_bounds_us[12]; /* of core_stats.create_buckets */

/* remove.c */
struct job *remove_box(struct core *c, const struct actor *a, struct view id_or_name, job_done *done,
		       void *arg, struct err *e) _must_check_;

/*
 * ---- pool.c ----
 * Boxes that are started ahead, by image.
 */

struct pool_state {
	struct view image;
	unsigned ready, wanted;
};
struct pool_sum {
	unsigned ready;
	uint64_t claims; /* since the start */
};
/* Calls it for each box that waits, one after another, and for each that is made from now on. */
void pool_ready(struct core *c, void (*on_warm)(struct core *c, const struct box *b));
/* For admins. */
int pool_each(struct core *c, const struct actor *a, void (*each)(void *arg, const struct pool_state *s),
	      void *arg, struct pool_sum *ret, struct err *e) _must_check_;

/*
 * ---- tied.c ----
 * Boxes that end with a connection (`delete_on_disconnect`): whoever holds the connection says when it is
 * gone. A restart of the api breaks every connection, so such a box does not outlive it.
 */

/* Whether the box of this id is still there for its holder. */
bool tied_is_there(struct core *c, struct view id);
/* Its connection is gone: it is removed. */
void tied_gone(struct core *c, struct view id);

/*
 * ---- life.c ----
 * A box between its creation and its removal. life.c: running, paused, stopped, and
 * the steps between them, one at a time for each box. lifetime.c: how long that goes
 * on (time to live, idleness), and what happens at the end.
 */

/* The result is a const struct box *. A box that is already so is no error. */
struct job *life_change(struct core *c, const struct actor *a, struct view id_or_name, enum life_step step,
			job_done *done, void *arg, struct err *e) _must_check_;

/*
 * ---- farewell.c ----
 * A program that runs in a box that is running, as its user, before the box is stopped or removed. The step
 * waits for it, but no longer than FAREWELL_MS.
 */

#define FAREWELL_PROGRAM ".config/paddock/farewell" /* below the user's home */
#define FAREWELL_MS      30000

/* From now on it is looked for, also by a later api: done when that is stored. */
struct job *farewell_wish(struct core *c, const struct actor *a, struct view id_or_name, job_done *done,
			  void *arg, struct err *e) _must_check_;

/* ---- lifetime.c ---- */

/* The box ends so many seconds from now; 0: never, where the configuration allows that. */
struct job *lifetime_extend(struct core *c, const struct actor *a, struct view id_or_name,
			    uint64_t ttl_seconds, job_done *done, void *arg, struct err *e) _must_check_;

/* Whether there was such a box that the actor could see, and its time has run out. */
bool lifetime_is_over(struct core *c, const struct actor *a, struct view id);

/* What is absent stays. */
struct lifetime_patch {
	struct json_strmap metadata; /* takes the place of what was there */
	struct view name;
	struct box_limits_wish limits;
	uint64_t ttl_seconds; /* from now on; 0: no end */
	bool has_ttl, has_limits;
	struct view on_end;
	bool has_metadata;
#define MEMBER(kind, name)                                                                                   \
	BOX_FIELD_##kind name;                                                                               \
	bool has_##name;
#define FIELD(kind, name, json, shown, wire, twin, pool, change, ...)                                        \
	BOX_FIELD_IF_##change(MEMBER, kind, name)
#include "box_fields.def"
#undef FIELD
#undef MEMBER
};
struct job *lifetime_change(struct core *c, const struct actor *a, struct view id_or_name,
			    const struct lifetime_patch *p, job_done *done, void *arg,
			    struct err *e) _must_check_;

/*
 * ---- stats.c ----
 * What the keeper measures. Each ends with a job.
 */

struct box_stats {
	const struct box *box;
	uint64_t memory_bytes, cpu_usec, pids, oom_kills, disk_bytes, net_rx_bytes, net_tx_bytes;
};

/* The result is a const struct box_stats *. */
struct job *stats_box(struct core *c, const struct actor *a, struct view id_or_name, job_done *done,
		      void *arg, struct err *e) _must_check_;
/* The result is a const struct core_posture *, and core_posture has it from then on. */
struct job *stats_posture(struct core *c, const struct actor *a, job_done *done, void *arg,
			  struct err *e) _must_check_;
/* Of a box that runs: the features that it was started with. The result lives as long as the call. */
struct job *stats_box_posture(struct core *c, const struct actor *a, struct view id_or_name, job_done *done,
			      void *arg, struct err *e) _must_check_;

/*
 * ---- history.c ----
 * What running boxes used, for an hour: a sample of each every ten seconds, in memory.
 * Sampling goes through a queue in which whoever was sampled waits at its end, with few
 * questions to the keeper at once, so that a thousand boxes delay nobody.
 */

#define HISTORY_PERIOD_MS 10000
#define HISTORY_SAMPLES   360

struct history_sample {
	int64_t at_ms;
	uint64_t cpu_usec;
	uint32_t memory_kb, disk_kb;
	uint32_t pids, oom_kills;
	uint32_t net_rx_kb, net_tx_kb;
};
unsigned history_count(const struct box *b);
const struct history_sample *history_get(const struct box *b, unsigned i); /* the oldest is 0 */
/* What it uses now, by its newest samples. False: it does not run, or there is none yet. */
struct history_load {
	double cpu; /* cores */
	uint64_t memory_bytes;
};
bool history_load(const struct box *b, struct history_load *ret);

/*
 * ---- fork.c ----
 * Several boxes of one, by a snapshot that nobody sees.
 */

struct fork_wish {
	uint64_t count; /* 1 … SNAPSHOTS_FORKS_MAX */
	struct json_strmap metadata;
	bool has_metadata;       /* else those of the original */
	struct view name_prefix; /* the names are PREFIX-1, …; empty: none */
	bool has_ttl;            /* else as the original had at first */
	uint64_t ttl_seconds;
};

struct fork_result {
	const struct box *const *boxes;
	size_t n;
	uint64_t stopped_us; /* how long the original stood still */
};

/* The result is a const struct fork_result *. All or none. When the job is abandoned they are removed. */
struct job *fork_box(struct core *c, const struct actor *a, struct view box, const struct fork_wish *w,
		     job_done *done, void *arg, struct err *e) _must_check_;

/*
 * ---- workspace_helper.c ----
 * The files of a workspace without a box: a hidden box mounts it and is kept for a while.
 */

/* The files of a workspace are below /workspace of the box that this gives: a const struct box *,
 * hidden, known to boxes_find by its id. `act` is ACT_WORKSPACE_READ or ACT_WORKSPACE_WRITE. */
struct job *workspace_helper(struct core *c, const struct actor *a, int act, struct view name, job_done *done,
			     void *arg, struct err *e) _must_check_;

/* ---- retire.c ---- */

/* Before an orderly end: removes the boxes that no client has, of the pool and of helpers, so that nothing of
 * ours holds the disk. `done` is called once, when they are gone. */
void retire_boxes(struct core *c, void (*done)(void *arg), void *arg);
