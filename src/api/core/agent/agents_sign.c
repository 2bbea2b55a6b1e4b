/*
 * What agents ask the signer for: see agent.h.
 *
 * The form of a request is judged here, and what the manifest says about it. Whether anything is signed is
 * the signer's decision, which has the keys, the ledger and the limits: spend.h.
 */
#include "agents.h"

#include "core_base.h"
#include "num.h"
#include "typed.h"
#include "poison.h"

#define WEI_DIGITS   78 /* of 2^256 */
#define DATA_MOST    (128u * 1024)
#define TYPED_MEMORY (4u * 1024 * 1024)

static bool is_amount(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] < '0' || v.p[i] > '9')
			return false;
	return v.n > 0 && v.n <= WEI_DIGITS;
}

static bool is_data(struct view v)
{
	if (v.n < 2 || v.n % 2 || v.n > 2 + 2 * DATA_MOST || v.p[0] != '0' || v.p[1] != 'x')
		return false;
	for (size_t i = 2; i < v.n; i++)
		if (!(v.p[i] >= '0' && v.p[i] <= '9') && !((v.p[i] | 32) >= 'a' && (v.p[i] | 32) <= 'f'))
			return false;
	return true;
}

static int check_contract(const struct agent *a, struct view address, struct err *e)
{
	if (manifest_allows_contract(&a->manifest, address))
		return 0;
	return err_set(e, ERR_FORBIDDEN, "Contract %.*s is not among permissions.contracts of this agent",
		       VIEW_ARG(address));
}

int agents_check_transaction(const struct agent *a, const struct agent_ask *ask, struct err *e)
{
	if (!manifest_has_chain(&a->manifest, ask->chain))
		return err_set(e, ERR_FORBIDDEN, "Chain %.*s is not whitelisted for this agent",
			       (int)MIN(ask->chain.n, (size_t)CHAIN_ID_MAX), ask->chain.p);
	if (!manifest_is_address(ask->to))
		return err_set(e, ERR_INVALID, "to must be 0x and 40 hexadecimal digits");
	if (!is_amount(ask->value))
		return err_set(e, ERR_INVALID, "value must be an amount of wei in decimal digits");
	if (!is_data(ask->data))
		return err_set(e, ERR_INVALID, "data must be 0x and pairs of hexadecimal digits");
	if (ask->gas.n && !is_amount(ask->gas))
		return err_set(e, ERR_INVALID, "gasLimit must be in decimal digits");
	/* Without data it may be a payment to a person: spend_ask asks a node whether there is code. */
	return ask->data.n > 2 ? check_contract(a, ask->to, e) : 0;
}

int agents_check_contract(const struct agent *a, const uint8_t address[20], struct err *e)
{
	char text[ADDRESS_TEXT];

	address_text(address, text);
	return check_contract(a, view_of(text), e);
}

/* A signature can be an order to a contract, as a transaction is. What is no typed data, the signer refuses.
 */
int agents_check_typed(const struct agent *a, struct view text, struct err *e)
{
	struct arena arena = ARENA_INIT(TYPED_MEMORY);
	struct typed t;
	struct err ignored = { 0 };
	int r = 0;

	if (a->manifest.permissions.contracts.n && typed_parse(&arena, text, &t, &ignored) == 0 &&
	    t.has_contract)
		r = agents_check_contract(a, t.contract, e);
	arena_done(&arena);
	return r;
}
