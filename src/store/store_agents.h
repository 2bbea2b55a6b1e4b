/*
 * The store's tables of agents and of what they log. The rules of store.h also apply here.
 */
#pragma once

#include "store.h"

struct store_agent {
	struct view id, tenant, name;
	struct view manifest;  /* JSON */
	struct view status;    /* "waiting", "building", "failed", "ready" */
	struct view reason;    /* why it failed, or ended; may be empty */
	struct view box;       /* in which it runs; may be empty */
	struct view consented; /* who consented to what it asks for: the id of a key */
	bool wanted;           /* it should run */
	uint64_t crashes;      /* in a row */
	int64_t next_start_ms; /* after a crash; 0: now */
	int64_t created_ms;
	struct view next, next_consented; /* the manifest of an upgrade that is under way, or empty */
	bool next_builds;                 /* its files are there */
};

/* ERR_CONFLICT for a name that its tenant has already. */
void store_agent_put(struct store *s, const struct store_agent *a, store_done *done,
		     void *arg); /* or replace */
/* And what it has logged. */
void store_agent_delete(struct store *s, struct view id, store_done *done, void *arg);

struct store_agent_log {
	uint64_t id; /* given by the caller; increasing */
	struct view agent;
	int64_t at_ms;
	uint32_t level, source;
	uint64_t position; /* of the output behind it */
	struct view message, data;
};
/* Nothing when the agent is gone. */
void store_agent_log_put(struct store *s, const struct store_agent_log *l, store_done *done, void *arg);
/* The entries of the agent up to this one. */
void store_agent_log_trim(struct store *s, struct view agent, uint64_t last, store_done *done, void *arg);
