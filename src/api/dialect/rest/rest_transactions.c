/*
 * /v1/transactions, /v1/wallets, /v1/chains, /v1/signer: what agents spend, and who decides on it.
 */
#include "rest_impl.h"
#include "poison.h"

static void none(struct request *r)
{
	struct err e = { 0 };

	err_set(&e, ERR_UNSUPPORTED, "this installation has no signer: nothing can be signed or sent");
	answer_fail(r, &e);
}

const struct route rest_transactions_routes[] = {
	{ "GET", "/v1/transactions", none, .query = "agent state chain asset limit after format" },
	{ "GET", "/v1/transactions/{id}", none },
	{ "POST", "/v1/transactions/{id}/approve", none, .body = ROUTE_JSON, .audit = "transaction.approve",
	  .audit_body = true },
	{ "POST", "/v1/transactions/{id}/reject", none, .body = ROUTE_JSON, .audit = "transaction.reject",
	  .audit_body = true },
	{ "POST", "/v1/transactions/{id}/cancel", none, .body = ROUTE_JSON, .audit = "transaction.cancel",
	  .audit_body = true },
	{ "POST", "/v1/transactions/{id}/speed-up", none, .body = ROUTE_JSON, .audit = "transaction.speed_up",
	  .audit_body = true },
	{ "POST", "/v1/transactions/{id}/wallet", none, .body = ROUTE_JSON, .audit = "transaction.wallet",
	  .audit_body = true },
	{ "GET", "/v1/wallets", none },
	{ "GET", "/v1/wallets/{id}/spending", none },
	{ "GET", "/v1/chains", none },
	{ "GET", "/v1/agents/{id}/limits", none },
	{ "PUT", "/v1/agents/{id}/limits", none, .body = ROUTE_JSON, .audit = "agent.limits",
	  .audit_body = true },
	{ "GET", "/v1/agents/{id}/spending", none },
	{ "GET", "/v1/signer", none },
	{ "PUT", "/v1/signer", none, .body = ROUTE_JSON, .audit = "signer.pause", .audit_body = true },
	{ "GET", "/v1/signer/audit", none, .query = "after limit verify" },
	{ 0 },
};
