/*
 * The store's tables about calls to models: what they used, a row for each day, box,
 * provider and model; what is reserved for those that are under way, so that a crash
 * does not make them free; the newest of those that are over, one by one; and what tenants
 * may use. The rules of store.h hold here too.
 */
#pragma once

#include "store.h"

struct store_usage {
	int64_t day; /* since 1970 */
	struct view tenant, box, provider, model;
	uint64_t requests, estimated, input, cache_read, cache_write, output;
	int64_t cost;      /* nano-dollars */
	struct view agent; /* whose box it was; may be empty */
};

struct store_ai_call {
	uint64_t id; /* given by the caller */
	int64_t day;
	struct view tenant, box, provider, model;
	uint64_t tokens; /* of its input, about */
	int64_t cost;    /* at most */
	int64_t at_ms;   /* 0: of an older version */
	struct view endpoint;
};

/* Its text, where that is kept. */
struct store_ai_bodies {
	struct view request, response;
	bool kept, request_cut, response_cut; /* cut: there was more */
};

struct store_ai_log {
	uint64_t id; /* the call's */
	int64_t at_ms, duration_ms;
	struct view tenant, box, provider, endpoint, model, finish;
	uint64_t status, estimated, input, cache_read, cache_write, output;
	int64_t cost;
	struct store_ai_bodies bodies;
};

struct store_ai_limits {
	struct view tenant, limits; /* limits: JSON */
};

void store_usage_put(struct store *s, const struct store_usage *u, store_done *done,
		     void *arg); /* or replace */
void store_usage_trim(struct store *s, int64_t first_kept, store_done *done, void *arg);
void store_ai_call_put(struct store *s, const struct store_ai_call *c, store_done *done, void *arg);
void store_ai_call_delete(struct store *s, uint64_t id, store_done *done, void *arg);
void store_ai_log_put(struct store *s, const struct store_ai_log *l, store_done *done, void *arg);
void store_ai_log_delete(struct store *s, uint64_t id, store_done *done, void *arg);
void store_ai_bodies_delete(struct store *s, uint64_t id, store_done *done, void *arg); /* the call stays */
void store_ai_limits_put(struct store *s, const struct store_ai_limits *l, store_done *done,
			 void *arg); /* or replace */
void store_ai_limits_delete(struct store *s, struct view tenant, store_done *done, void *arg);
