/*
 * What the files of the agents share: see agent.h.
 */
#pragma once

#include "agent.h"
#include "boxes.h"
#include "chains.h"
#include "exec.h"
#include "rate.h"
#include "run.h"
#include "template.h"
#include "who.h"

#define AGENT_ARENA (512u * 1024)
#define AGENT_CODE  "/agent-code"
#define AGENT_FILES "/agent-workspace"
#define AGENT_TAG   "agent"

struct agent_filter {
	char chain[CHAIN_ID_MAX + 1], id[80];
};
#define AGENT_FILTERS 64

/* What is under way with an agent. */
enum agent_step {
	AGENT_STEP_NONE,
	AGENT_STEP_SPACE, /* its workspace is being made */
	AGENT_STEP_BOX,   /* its box is being made */
	AGENT_STEP_EXEC,  /* its program is being started */
	AGENT_STEP_TERM,  /* its program was told to end */
	AGENT_STEP_GONE,  /* its box is being removed */
};

/* The version that an agent is being upgraded to. */
struct agent_next {
	struct arena arena;
	struct view text;
	struct manifest manifest;
	char consented[KEYS_ID_SIZE], reason[192];
	enum agent_next_step step;
};

struct agent {
	char id[AGENT_ID + 1], name[64];
	struct core *core;
	const struct tenant *tenant;
	struct arena arena;
	struct manifest manifest;
	struct view manifest_text;
	char consented[KEYS_ID_SIZE];
	int64_t created_ms;
	struct map_node by_id;
	struct list order;
	enum agent_status status;
	char reason[192];
	bool removing;

	/* agents_build.c, agents_upgrade.c */
	struct agent_upload *upload;
	struct agent_next *next; /* NULL: none */
	bool stale;              /* its box has an earlier image than the agent */

	/* agents_run.c */
	bool wanted; /* it should run */
	char box[BOX_ID + 1];
	enum agent_step step;
	struct job *job;     /* of the step */
	struct exec exec;    /* its program */
	bool attached;       /* exec is in use */
	struct proc_op kill; /* its signal */
	struct loop_timer timer;
	struct list waiters; /* of starts, stops and removals */
	bool again;          /* it is started again once it has stopped */
	int64_t started_ms, next_start_ms;
	uint64_t crashes;

	/* agents_log.c */
	struct list entries;
	size_t n_entries, bytes;
	struct list watches;
	struct rate lines;
	uint64_t dropped;
	struct buf partial[EXEC_CHANNELS];
	uint64_t position[EXEC_CHANNELS];

	/* agents_judge.c, agents_rpc.c */
	struct {
		uint64_t began_ms;
		unsigned n;
	} windows[AGENT_WINDOWS];
	struct agent_filter filters[AGENT_FILTERS];
	unsigned n_filters; /* that were ever put there */
	struct list calls;  /* struct agent_rpc_state */
	struct chain_holder holder;
};

struct agents {
	struct map by_id;
	struct list all;
	uint64_t last_entry;
	/* Of spending, which stands above: what an agent was allowed is taken back before it is removed, and
	 * its requests to nodes end before it is freed. */
	struct job *(*revoke)(struct core *c, struct view agent, job_done *done, void *arg, struct err *e);
	void (*rpc_end)(struct agent *a);
};

struct agent *agents_by_id(const struct core *c, struct view id); /* or NULL */
/* Somebody who acts for the agent. */
struct actor agents_actor(const struct agent *a);
/* Writes the row; `done` may be NULL. */
void agents_save(struct agent *a, store_done *done, void *arg);
void agents_template_name(const struct agent *a, char ret[32]); /* and of its workspace */

/* agents.c, of the core's life */
struct store_agent;
struct store_agent_log;
void agents_init(struct core *c);
int agents_load(struct core *c, const struct store_agent *row, struct err *e) _must_check_;
void agents_stop_all(struct core *c); /* core_stop */
void agents_done(struct core *c);

/* agents_build.c: a build of this template is over. */
void agents_built(struct core *c, const struct template *t);
void agents_build_forget(struct agent *a);
/* After a restart: what was interrupted. */
void agents_build_recover(struct agent *a);
int agents_build_prepare(struct agent *a, job_done *done, void *arg, struct err *e) _must_check_;
/* The policy of the agent's box, or (build) of the box in which its image is built. */
int agents_egress(struct agent *a, bool build, struct arena *arena, struct egress_policy *ret,
		  struct err *e) _must_check_;

/* agents_upgrade.c */
void agents_upgrade_free(struct agent *a);
int agents_upgrade_load(struct agent *a, struct view text, struct view consented, bool building,
			struct err *e) _must_check_;
/* The build for a->next is over. */
void agents_upgrade_built(struct agent *a, bool ready, const char *why);
/* After a restart: whether the newest build is ready, or another one waits. */
void agents_upgrade_recover(struct agent *a, bool ready, bool waiting);

/* agents_run.c */
void agents_run_renew(struct agent *a);  /* the image is a new one: what runs is started anew */
void agents_run_recover(struct core *c); /* the core is ready: attaches to what runs, starts what should */
void agents_run_stop(struct agent *a); /* core_stop, or the agent is being freed: cancels, and acts no more */
/* It ends for good; `done` comes when it has no box any more. */
struct job *agents_run_end(struct agent *a, job_done *done, void *arg, struct err *e) _must_check_;

/* agents_log.c */
void agents_log_init(struct agent *a);
void agents_log_done(struct agent *a);
void agents_log_load(struct core *c, const struct store_agent_log *row);
void agents_log_say(struct agent *a, enum agent_source s, enum agent_level l, const char *fmt, ...)
	_printf_(4, 5);
void agents_log_line(struct agent *a, enum agent_source s, enum agent_level l, struct view line);
/* Output of its program; and its end, with what was no whole line. */
void agents_log_output(struct agent *a, unsigned channel, struct view data);
void agents_log_output_end(struct agent *a);
/* A new program: its output is counted from 0. */
void agents_log_begin(struct agent *a);

/* agents_sign.c */
/* Whether the manifest lets the agent use this contract: ERR_FORBIDDEN. */
int agents_check_contract(const struct agent *a, const uint8_t address[20], struct err *e) _must_check_;
/* The contract that typed data is for, if it names one. */
int agents_check_typed(const struct agent *a, struct view text, struct err *e) _must_check_;
