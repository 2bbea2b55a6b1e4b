/*
 * The REST dialect: its tables, who asks, and how an error reads.
 */
#include "rest.h"

#include "answer.h"
#include "login.h"
#include "rest_health.h"
#include "rest_impl.h"
#include "poison.h"

static const struct route *const tables[] = {
	rest_boxes_routes,
	rest_life_routes,
	rest_snapshots_routes,
	rest_workspaces_routes,
	rest_exec_routes,
	rest_procs_routes,
	rest_procs_io_routes,
	rest_shells_routes,
	rest_contexts_routes,
	rest_terminal_routes,
	rest_files_routes,
	rest_fs_routes,
	rest_search_routes,
	rest_replace_routes,
	rest_watch_routes,
	rest_form_routes,
	rest_admin_routes,
	rest_health_routes,
	rest_events_routes,
	rest_secrets_routes,
	rest_webhooks_routes,
	rest_agents_routes,
	rest_transactions_routes,
	rest_spending_routes,
	rest_walletconnect_routes,
	rest_tenants_routes,
	rest_stats_routes,
	rest_ports_routes,
	rest_tunnel_routes,
	rest_egress_routes,
	rest_links_routes,
	rest_ai_routes,
	rest_usage_routes,
	rest_audit_routes,
	NULL,
};

static bool is_of_sandbox(const struct request *r)
{
	const struct view token = request_token(r->x);

	for (enum token_kind k = TOKEN_NONE + 1; k < TOKEN_KINDS; k++)
		if (token.p && tokens_opens(r->core, k, token))
			return true;
	return false;
}

static int authenticate(struct request *r, struct err *e)
{
	/* Without a key nothing of the API tells what is there and what is not. */
	if (!r->route && !view_starts(r->x->path, "/v1/"))
		return 0;
	if (login_actor(r, e) == 0)
		return 0;
	/* The token of a sandbox is known and means something elsewhere: here it decides nothing. */
	if (r->route && view_starts(r->x->path, "/v1/transactions") && is_of_sandbox(r))
		return err_set(e, ERR_FORBIDDEN, "the token of a sandbox or an agent decides nothing");
	return -1;
}

static void fail(struct request *r, const struct err *e, const struct http_header *extra, size_t n_extra)
{
	static const struct http_header bearer = { VIEW("www-authenticate"), VIEW("Bearer") };

	if (e->code == ERR_UNAUTHORIZED) {
		extra = &bearer;
		n_extra = 1;
	}
	answer_error(r, e, extra, n_extra);
}

static const struct surface surface = {
	.heading = "",
	.routes = tables,
	.quick = rest_health_fast,
	.authenticate = authenticate,
	.fail = fail,
};

const struct dialect rest_dialect = { .name = "rest", .version = "v1", .surface = &surface };
