/*
 * What a signature over typed data would spend: see call.h. A kind is known by the whole text of its type,
 * since that is what the contract compares; the name of the type alone means nothing.
 */
#include "call.h"
#include "typed.h"

#include "poison.h"

#define TREE_MAX 4096

#define TOKEN   "TokenPermissions(address token,uint256 amount)"
#define DETAILS "PermitDetails(address token,uint160 amount,uint48 expiration,uint48 nonce)"
#define AUTHORISE                                                                                            \
	"(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"

static int address_at(const struct json *j, const char *key, uint8_t ret[ADDRESS_SIZE])
{
	const struct json *v = json_get(j, key);

	return v && v->type == JSON_STRING ? address_parse(v->text, ret) : -1;
}

static bool is_account(const struct json *j, const char *key, const uint8_t *account)
{
	uint8_t a[ADDRESS_SIZE];

	return address_at(j, key, a) == 0 && address_eq(a, account);
}

/* typed_parse checked the types of all members, so that they can be read. */
static bool add(struct call *c, const uint8_t *asset, const struct json *amount, const struct json *to_of,
		const char *to, bool approval)
{
	struct call_effect e = { .approval = approval };

	memcpy(e.asset, asset, ADDRESS_SIZE);
	if (!amount || typed_uint(amount, &e.amount) < 0 || address_at(to_of, to, e.to) < 0)
		return false;
	e.unlimited = approval && u256_bits(&e.amount) >= 160; /* uint160's highest, too */
	return call_add(c, &e);
}

static bool read_permit(const struct typed *t, const uint8_t *account, struct call *c)
{
	return is_account(t->message, "owner", account) &&
	       add(c, t->contract, json_get(t->message, "value"), t->message, "spender", true);
}

static bool read_permit_dai(const struct typed *t, const uint8_t *account, struct call *c)
{
	const struct json *allowed = json_get(t->message, "allowed");
	struct call_effect e = { .amount = U256_MAX, .approval = true, .unlimited = true };

	memcpy(e.asset, t->contract, ADDRESS_SIZE);
	if (!is_account(t->message, "holder", account) || address_at(t->message, "spender", e.to) < 0)
		return false;
	return !allowed->boolean || call_add(c, &e);
}

static bool add_token(struct call *c, const struct json *token, const struct json *message)
{
	uint8_t asset[ADDRESS_SIZE];

	return address_at(token, "token", asset) == 0 &&
	       add(c, asset, json_get(token, "amount"), message, "spender", true);
}

/* One of Permit2's tokens, or a list of them. */
static bool add_tokens(struct call *c, const struct json *tokens, const struct json *message)
{
	bool ok = tokens != NULL;

	if (ok && tokens->type == JSON_OBJECT)
		return add_token(c, tokens, message);
	for (size_t i = 0; ok && i < tokens->n; i++)
		ok = add_token(c, &tokens->items[i], message);
	return ok;
}

static bool read_details(const struct typed *t, const uint8_t *account, struct call *c)
{
	(void)account; /* who signs is who gives */
	return add_tokens(c, json_get(t->message, "details"), t->message);
}

static bool read_permitted(const struct typed *t, const uint8_t *account, struct call *c)
{
	(void)account;
	return add_tokens(c, json_get(t->message, "permitted"), t->message);
}

static bool read_authorisation(const struct typed *t, const uint8_t *account, struct call *c)
{
	return is_account(t->message, "from", account) &&
	       add(c, t->contract, json_get(t->message, "value"), t->message, "to", false);
}

static const struct {
	const char *signature;
	enum call_class class;
	bool (*read)(const struct typed *t, const uint8_t *account, struct call *c);
} kinds[] = {
	{ "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)", CALL_APPROVAL,
	  read_permit },
	{ "Permit(address holder,address spender,uint256 nonce,uint256 expiry,bool allowed)", CALL_APPROVAL,
	  read_permit_dai },
	{ "PermitSingle(PermitDetails details,address spender,uint256 sigDeadline)" DETAILS, CALL_APPROVAL,
	  read_details },
	{ "PermitBatch(PermitDetails[] details,address spender,uint256 sigDeadline)" DETAILS, CALL_APPROVAL,
	  read_details },
	{ "PermitTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 "
	  "deadline)" TOKEN,
	  CALL_APPROVAL, read_permitted },
	{ "PermitBatchTransferFrom(TokenPermissions[] permitted,address spender,uint256 nonce,uint256 "
	  "deadline)" TOKEN,
	  CALL_APPROVAL, read_permitted },
	{ "TransferWithAuthorization" AUTHORISE, CALL_ERC20_TRANSFER, read_authorisation },
	{ "ReceiveWithAuthorization" AUTHORISE, CALL_ERC20_TRANSFER, read_authorisation },
};

/* Signatures that hand over an account or run any call. No rule for typed data allows them. */
static const char *const dangerous[] = {
	"SafeTx",     "SafeMessage",      "UserOperation", "PackedUserOperation",
	"Delegation", "SignedDelegation", "Authorization", "MetaTransaction",
	"Execute",    "ForwardRequest",   "SetCode"
};

void call_read_typed(const struct typed *t, const uint8_t *account, struct call *ret)
{
	*ret = (struct call){ .class = CALL_UNKNOWN, .tree = BUF_INIT(TREE_MAX) };
	buf_puts(&ret->tree, "sign ");
	buf_add(&ret->tree, view_head(t->signature, TREE_MAX / 2));
	buf_putc(&ret->tree, '\n');
	for (size_t i = 0; i < ELEMS(dangerous); i++)
		if (view_is(t->primary, dangerous[i]))
			ret->class = CALL_DANGEROUS;
	for (size_t i = 0; i < ELEMS(kinds); i++) {
		if (!view_is(t->signature, kinds[i].signature) || !t->has_contract)
			continue;
		ret->class = kinds[i].class;
		if (!kinds[i].read(t, account, ret))
			ret->class = CALL_UNKNOWN;
		for (unsigned k = 0; k < ret->n; k++) {
			memcpy(ret->effects[k].keeper, t->contract, ADDRESS_SIZE);
			ret->effects[k].once = kinds[i].read == read_permitted;
		}
	}
}
