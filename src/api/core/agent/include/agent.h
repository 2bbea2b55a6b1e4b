/*
 * Agents: programs that are installed from a manifest, run in a sandbox of their own, and reach chains and
 * models through the daemon alone.
 */
#pragma once

#include "chain.h"
#include "job.h"
#include "json.h"
#include "list.h"
#include "manifest.h"

struct actor;
struct box;
struct core;
struct tenant;

/*
 * ---- agents.c ----
 * The agents: an index in memory over what the store holds. agents.c has the index, agents_build.c takes an
 * agent's files and builds its image, agents_run.c starts, watches and ends it, agents_log.c keeps what it
 * logs, agents_judge.c says what it may do.
 */

#define AGENT_ID    20
#define AGENTS_MOST 200 /* of a tenant */

enum agent_status {
	AGENT_NONE,
	AGENT_WAITING,  /* for its files */
	AGENT_BUILDING, /* its image */
	AGENT_FAILED,   /* there is no image */
	AGENT_STOPPED,
	AGENT_STARTING,
	AGENT_RUNNING,
	AGENT_STOPPING,
	AGENT_CRASHED, /* waits for its next start */
	AGENT_STATUSES
};
const char *agents_status_name(enum agent_status s);

enum agent_next_step {
	AGENT_NEXT_NONE,
	AGENT_NEXT_WAITING, /* for its files */
	AGENT_NEXT_BUILDING,
	AGENT_NEXT_FAILED,
};

struct agent;
/* What a client may know of an agent. */
struct agent_view {
	const char *id, *name, *box, *reason, *consented; /* box: "" while it has none */
	const struct tenant *tenant;
	const struct manifest *manifest;
	enum agent_status status;
	int64_t created_ms, started_ms, next_start_ms; /* 0: none */
	uint64_t crashes;                              /* in a row */
	/* Of an upgrade that is under way or has failed; next_step AGENT_NEXT_NONE: there is none. */
	enum agent_next_step next_step;
	const struct manifest *next;
	const char *next_reason;
};
const char *agents_next_name(enum agent_next_step s);
void agents_show(const struct agent *a, struct agent_view *ret);

struct agent_wish {
	const struct json *manifest;
	struct view name; /* empty: made from the manifest's */
};
/* Judges a manifest as an installation would: by itself, the configuration and the limits of this machine. It
 * lives in the arena. */
int agents_preview(struct core *c, const struct actor *a, const struct json *manifest, struct arena *arena,
		   struct manifest *ret, struct err *e) _must_check_;
/* Somebody has seen what it asks for, and consents. The result is a const struct agent *, which waits for its
 * files. */
struct job *agents_create(struct core *c, const struct actor *a, const struct agent_wish *w, job_done *done,
			  void *arg, struct err *e) _must_check_;
/* By id, or by name within the actor's tenant. */
struct agent *agents_find(struct core *c, const struct actor *a, int act, struct view ref,
			  struct err *e) _must_check_;
int agents_each(struct core *c, const struct actor *a, void (*each)(void *arg, const struct agent *a),
		void *arg, struct err *e) _must_check_;
/* Also its image and its workspace. */
struct job *agents_remove(struct core *c, const struct actor *a, struct view ref, job_done *done, void *arg,
			  struct err *e) _must_check_;

/* ---- agents_upgrade.c ---- */

/* What the next manifest asks for beyond this one, as strings into an open array (may be NULL): how much it
 * is. */
size_t agents_upgrade_asks(const struct manifest *now, const struct manifest *next, struct json_out *o);
/* Somebody has seen that, and consents: the agent waits for the files of its new version, and goes on. The
 * result is a const struct agent *. */
struct job *agents_upgrade(struct core *c, const struct actor *a, struct view ref,
			   const struct json *manifest, job_done *done, void *arg,
			   struct err *e) _must_check_;

/* ---- agents_build.c ---- */

/* Its files, as a tar archive. Once committed, the build goes on by itself. */
struct agent_upload;
struct agent_upload *agents_upload_open(struct core *c, const struct actor *a, struct view ref,
					struct err *e) _must_check_;
int agents_upload_write(struct agent_upload *u, struct view data, struct err *e) _must_check_;
/* Ends the upload in any case. The result is a const struct agent *, whose image is being built. */
struct job *agents_upload_commit(struct agent_upload *u, job_done *done, void *arg,
				 struct err *e) _must_check_;
void agents_upload_abort(struct agent_upload *u);

/* ---- agents_run.c ---- */

/* The result of all three is a const struct agent *: it runs, or its sandbox is gone. */
struct job *agents_start(struct core *c, const struct actor *a, struct view ref, job_done *done, void *arg,
			 struct err *e) _must_check_;
struct job *agents_stop(struct core *c, const struct actor *a, struct view ref, job_done *done, void *arg,
			struct err *e) _must_check_;
struct job *agents_restart(struct core *c, const struct actor *a, struct view ref, job_done *done, void *arg,
			   struct err *e) _must_check_;

/* ---- agents_log.c ---- */

#define AGENT_LOG_MESSAGE 8192
#define AGENT_LOG_DATA    (16u * 1024)

enum agent_level { AGENT_DEBUG, AGENT_INFO, AGENT_SUCCESS, AGENT_WARN, AGENT_ERROR, AGENT_LEVELS };
enum agent_source {
	AGENT_BY_ITSELF,
	AGENT_BY_STDOUT,
	AGENT_BY_STDERR,
	AGENT_BY_BUILD,
	AGENT_BY_DAEMON,
	AGENT_SOURCES
};
const char *agents_level_name(enum agent_level l);
bool agents_level(struct view name, enum agent_level *ret); /* false: there is none of this name */
const char *agents_source_name(enum agent_source s);

struct agent_entry {
	struct list link;
	uint64_t id; /* increasing, over all agents and restarts */
	int64_t at_ms;
	enum agent_level level;
	enum agent_source source;
	uint64_t position;         /* of the output behind it */
	struct view message, data; /* the agent's words: hostile. data: JSON, or empty */
	size_t size;
};
/* The first behind `after`, or NULL. */
const struct agent_entry *agents_log_next(const struct agent *a, uint64_t after);
/* Somebody who waits for more. `on_more` with gone: the agent is removed, and nobody watches any more. */
struct agent_watch {
	struct list link;
	void (*on_more)(struct agent_watch *w, bool gone);
};
void agents_log_watch(struct agent *a, struct agent_watch *w);
void agents_log_unwatch(struct agent_watch *w); /* accepts a zeroed one */
/* Of the agent itself: done when the store has it. ERR_RATE. */
struct job *agents_log_add(struct agent *a, enum agent_level level, struct view message, struct view data,
			   job_done *done, void *arg, struct err *e) _must_check_;

/* ---- agents_judge.c ---- */

/* Whose the box is, while it runs there; NULL: no agent's. */
struct agent *agents_of_box(struct core *c, const struct box *b);
/* The id of the agent that runs in the box of this id; empty: none does. */
struct view agents_id_of_box(const struct core *c, struct view box);
/* Whether these are its credentials. The connection has said already which box it is. */
bool agents_has_token(const struct agent *a, const struct box *b, struct view id,
		      struct view token) _must_check_;
/* Windows of Assegai's API, counted for each agent. False: it is one too many. */
enum agent_window { AGENT_OPENAI, AGENT_ANTHROPIC, AGENT_RPC, AGENT_WINDOWS };
bool agents_window(struct agent *a, enum agent_window w, unsigned n, unsigned *ret_wait) _must_check_;
/* Whether the agent may call a provider's models now: NULL, or why not, with a status of HTTP. */
const char *agents_refuse_model(struct agent *a, struct view provider, bool configured, int *ret_status,
				unsigned *ret_wait);

/* ---- agents_sign.c ---- */

enum agent_ask_kind { AGENT_ASK_NONE, AGENT_ASK_TRANSACTION, AGENT_ASK_MESSAGE, AGENT_ASK_TYPED };
/* What an agent asks the signer for. Everything has been checked for its form, nothing by a policy. */
struct agent_ask {
	enum agent_ask_kind kind;
	struct view chain;
	struct view to, value, data, gas; /* of a transaction; value and gas in decimal */
	struct view message;              /* of a message or typed data, as it came */
	struct view from;                 /* the account that should sign; empty: the agent's */
	struct view key, reason;          /* of idempotency; the agent's words. Both may be empty */
	struct view by;                   /* the person who asks in its stead; empty: it asks itself */
	bool revokes;                     /* who takes an allowance back */
};
/* A request for a transaction as Assegai's clients make it, or as eth_sendTransaction has it. ERR_INVALID,
 * ERR_FORBIDDEN. */
int agents_check_transaction(const struct agent *a, const struct agent_ask *ask, struct err *e) _must_check_;
