/*
 * What the files of the REST dialect share: the tables of routes, each with its
 * handlers. Requests and answers are those of src/api/serve.
 */
#pragma once

#include "answer.h"
#include "dialect.h"
#include "who.h"

/* Each ends with a NULL method. */
extern const struct route rest_boxes_routes[], rest_life_routes[], rest_snapshots_routes[],
	rest_workspaces_routes[], rest_exec_routes[], rest_procs_routes[], rest_procs_io_routes[],
	rest_shells_routes[], rest_contexts_routes[], rest_terminal_routes[], rest_files_routes[],
	rest_fs_routes[], rest_search_routes[], rest_replace_routes[], rest_watch_routes[],
	rest_form_routes[], rest_admin_routes[], rest_health_routes[], rest_events_routes[],
	rest_agents_routes[], rest_webhooks_routes[], rest_secrets_routes[], rest_tenants_routes[],
	rest_stats_routes[], rest_ports_routes[], rest_tunnel_routes[], rest_egress_routes[],
	rest_links_routes[], rest_ai_routes[], rest_usage_routes[], rest_transactions_routes[],
	rest_spending_routes[], rest_walletconnect_routes[], rest_audit_routes[];
