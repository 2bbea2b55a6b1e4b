/*
 * /v1/wallets/connect and /v1/wallets/sessions: wallets elsewhere, by WalletConnect.
 */
#include "rest_impl.h"
#include "poison.h"

static void none(struct request *r)
{
	struct err e = { 0 };

	err_set(&e, ERR_UNSUPPORTED, "this installation cannot connect wallets by WalletConnect");
	answer_fail(r, &e);
}

const struct route rest_walletconnect_routes[] = {
	{ "POST", "/v1/wallets/connect", none, .body = ROUTE_JSON, .audit = "wallet.connect",
	  .audit_body = true },
	{ "GET", "/v1/wallets/sessions", none },
	{ "DELETE", "/v1/wallets/sessions/{id}", none, .audit = "wallet.disconnect" },
	{ 0 },
};
