/*
 * The state that the files of src/api/core share. Nobody else includes this.
 */
#pragma once

#include "agents.h"
#include "ailog.h"
#include "allowances.h"
#include "audit_log.h"
#include "boxes.h"
#include "carrier.h"
#include "chains.h"
#include "core.h"
#include "events.h"
#include "outputs.h"
#include "images.h"
#include "keeper.h"
#include "keys.h"
#include "policies.h"
#include "pool.h"
#include "signer.h"
#include "spends.h"
#include "trend_ring.h"
#include "usage.h"
#include "vault.h"
#include "walletconnect_impl.h"
#include "webhooks.h"

struct core {
	struct loop *loop;
	struct store *store;
	const struct config *config;
	void (*on_ready)(void *arg);
	void (*on_lost_)(void *arg);
	void *arg;
	void (*on_lost)(struct core *c);

	struct keeper keeper;
	struct vault_channel vault;
	struct signer_channel signer;
	struct trust trust;
	struct carrier carrier;
	struct usage usage;
	struct allowances allowances;
	struct ailog ailog;
	void (*on_caller)(void *arg, const struct box *b, int fd); /* NULL: nobody takes them */
	void *caller_arg;

	struct map tenants_by_id, tenants_by_name;
	struct map keys_by_id, keys_by_hash;
	struct list keys;
	struct list logins; /* the one used last is the last */

	struct map boxes_by_id, boxes_by_name;
	struct list boxes; /* by (created, id) */
	unsigned n_boxes;  /* that are in the list */
	unsigned n_hidden; /* that are not */

	struct map snapshots_by_id, workspaces_by_id;
	struct list snapshots, workspaces, templates; /* in the order of their making */
	struct list template_starts, layers;          /* templates_start.c, templates_layer.c */
	struct list kept_steps;                       /* templates_kept.c */
	unsigned n_layers;
	uint64_t layer_bytes, log_bytes; /* of uploads; of the logs of builds */

	struct list watchers;    /* watchers.c */
	uint8_t sign_secret[32]; /* sign.c */
	bool has_sign_secret;

	struct events events;
	struct audit_log audit;
	struct trend trend;
	struct outputs outputs;
	struct webhooks webhooks;
	struct quotas quotas;
	struct sampler sampler;
	struct pool pool;
	struct {                             /* of creates: create.c */
		uint64_t since_ms, until_ms; /* counted since; it lasts until */
		unsigned n, under_way;
	} rush;
	struct {
		unsigned waits;
		void (*done)(void *arg);
		void *arg;
	} retire; /* core_retire */
	struct policies policies;

	struct agents agents;
	struct chains chains;
	struct spends spends;
	struct walletconnect walletconnect;
	struct images images;
	struct core_posture posture;
	struct core_stats stats;
	bool store_failed;         /* the last write did not reach the disk */
	char storage_wrong[192];   /* of boxes' files, as the keeper says; "": nothing */
	struct adoption *adoption; /* while starting */
	bool stopping;             /* nothing is begun any more, nothing is written */
};

/* For `done` of a store write: keeps store_failed right. */
void core_store_result(struct core *c, const struct err *e);
/* A store_done that only does that; arg is the core. */
void core_store_done(void *arg, const struct err *e);
