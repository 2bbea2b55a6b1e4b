/*
 * The core, as all of its rooms share it: the loop, the store, the configuration and whether it stops. Each
 * room keeps what it owns in a struct of its own, which only its own header defines: to a room that may not
 * include that header it is a pointer without contents. core.c stands on top and allocates all of them.
 */
#pragma once

#include "common.h"

struct core {
	struct loop *loop;
	struct store *store;
	const struct config *config;
	bool stopping;     /* nothing is begun any more, nothing is written */
	bool store_failed; /* the last write did not reach the disk */
	struct core_posture posture;
	struct core_stats stats;

	/* What the rooms own, from below. */
	struct who *who;
	struct audit_log *audit;
	struct quotas *quotas;
	struct keeper *keeper;
	struct vault_channel *vault;
	struct signer_channel *signer;
	struct carrier *carrier;
	struct events *events;
	struct webhooks *webhooks;
	struct boxes *boxes;
	struct snapshots *snapshots;
	struct workspaces *workspaces;
	struct images *images;
	struct policies *policies;
	struct trust *trust;
	struct rush *rush;
	struct retire *retire;
	struct pool *pool;
	struct sampler *sampler;
	struct outputs *outputs;
	struct watchers *watchers;
	struct templates *templates;
	struct usage *usage;
	struct allowances *allowances;
	struct ailog *ailog;
	struct chains *chains;
	struct agents *agents;
	struct spends *spends;
	struct walletconnect *walletconnect;
	struct trend *trend;
	struct startup *startup;
};

/* For `done` of a store write: keeps store_failed right. */
void core_store_result(struct core *c, const struct err *e);
/* A store_done that only does that; arg is the core. */
void core_store_done(void *arg, const struct err *e);
