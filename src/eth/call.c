/*
 * What a call would spend: see call.h. The table at the end of the first part lists the functions; each
 * has the reader of its arguments, which adds effects.
 */
#include "call.h"

#include <stdio.h>

#include "abi.h"
#include "text.h"
#include "poison.h"

#define TREE_MAX   (32u * 1024)
#define MEMORY_MAX (1024u * 1024)

struct frame {
	struct call *c;
	struct arena *arena;
	const uint8_t *account, *to;
	const uint8_t *sender; /* who calls `to`: our account, or a wrapper */
	struct u256 value;
	unsigned depth;     /* of wrappers around it */
	struct u256 *inner; /* native value that calls within wrappers send */
};

const char *call_class_name(enum call_class c)
{
	static const char *const names[] = {
		[CALL_NATIVE] = "native",       [CALL_ERC20_TRANSFER] = "erc20_transfer",
		[CALL_APPROVAL] = "approval",   [CALL_NFT] = "nft",
		[CALL_WRAPPED] = "wrapped",     [CALL_MESSAGE] = "message",
		[CALL_UNKNOWN] = "unknown",     [CALL_CREATION] = "creation",
		[CALL_DANGEROUS] = "dangerous",
	};

	return (size_t)c < ELEMS(names) && names[c] ? names[c] : "unknown";
}

static void call_worsen(struct call *c, enum call_class to)
{
	c->class = MAX(c->class, to);
}

/* The last place is the native value's, so that nothing crowds it out. */
bool call_add(struct call *c, const struct call_effect *e)
{
	if (c->n == CALL_EFFECTS - 1) {
		c->crowded = true;
		call_worsen(c, CALL_UNKNOWN);
		return false;
	}
	c->effects[c->n++] = *e;
	return true;
}

static void add(struct frame *f, const uint8_t *asset, struct u256 amount, const uint8_t *to, bool approval)
{
	struct call_effect e = { .amount = amount,
				 .approval = approval,
				 .unlimited = approval && u256_bits(&amount) == 256 };

	memcpy(e.asset, asset, ADDRESS_SIZE);
	memcpy(e.to, to, ADDRESS_SIZE);
	/* An approval of nothing takes one back; of an ERC-721 token it is one of the token 0. */
	if (!u256_is_zero(&amount) || approval)
		(void)call_add(f->c, &e);
}

/* What a wrapper calls, or who is given control. Once for each address, unless it is sent value. */
static void add_target(struct frame *f, const uint8_t *to, struct u256 value)
{
	struct call_effect e = { .amount = value, .target = true };
	bool known = address_eq(to, f->to);

	for (unsigned i = 0; i < f->c->n; i++)
		known |= f->c->effects[i].target && address_eq(f->c->effects[i].to, to);
	if (known && u256_is_zero(&value))
		return;
	memcpy(e.asset, address_native, ADDRESS_SIZE);
	memcpy(e.to, to, ADDRESS_SIZE);
	(void)call_add(f->c, &e);
}

/* What the one who calls gives; a permit is of whoever has signed it. */
static void add_approval(struct frame *f, const uint8_t *asset, struct u256 amount, const uint8_t *to,
			 bool permit)
{
	const unsigned n = f->c->n;

	add(f, asset, amount, to, true);
	if (f->c->n == n)
		return;
	memcpy(f->c->effects[n].keeper, f->to, ADDRESS_SIZE);
	f->c->effects[n].others = !permit && !address_eq(f->sender, f->account);
}

static bool ours(const struct frame *f, const struct abi *address)
{
	return address_eq(abi_address(address), f->account);
}

/* Out of our account; or out of another's, with an allowance that it gave us to spend. */
static bool takes(const struct frame *f, const struct abi *from, const struct abi *to)
{
	return ours(f, from) || !ours(f, to);
}

/* ---- tokens ---- */

static void erc20(struct frame *f, enum call_class class)
{
	call_worsen(f->c, class);
	if (f->depth == 0)
		f->c->erc20 = true;
}

static void on_transfer(struct frame *f, const struct abi *a)
{
	erc20(f, CALL_ERC20_TRANSFER);
	add(f, f->to, abi_u256(&a[1]), abi_address(&a[0]), false);
}

static void on_transfer_from(struct frame *f, const struct abi *a)
{
	const struct u256 amount = abi_u256(&a[2]);

	erc20(f, CALL_ERC20_TRANSFER);
	/* Nothing of an ERC-20 token is the token 0 of an ERC-721. */
	if (takes(f, &a[0], &a[1]))
		add(f, f->to, u256_is_zero(&amount) ? u256_of(1) : amount, abi_address(&a[1]), false);
}

/* EIP-3009: somebody else's is what they have signed themselves. */
static void on_authorised(struct frame *f, const struct abi *a)
{
	erc20(f, CALL_ERC20_TRANSFER);
	if (ours(f, &a[0]))
		add(f, f->to, abi_u256(&a[2]), abi_address(&a[1]), false);
}

static void on_approve(struct frame *f, const struct abi *a)
{
	erc20(f, CALL_APPROVAL);
	add_approval(f, f->to, abi_u256(&a[1]), abi_address(&a[0]), false);
}

static void on_decrease(struct frame *f, const struct abi *a)
{
	(void)a;
	erc20(f, CALL_APPROVAL);
}

static void on_permit(struct frame *f, const struct abi *a)
{
	erc20(f, CALL_APPROVAL);
	if (ours(f, &a[0]))
		add_approval(f, f->to, abi_u256(&a[2]), abi_address(&a[1]), true);
}

/* DAI's: all or nothing. */
static void on_permit_dai(struct frame *f, const struct abi *a)
{
	const struct u256 allowed = abi_u256(&a[4]);

	erc20(f, CALL_APPROVAL);
	if (ours(f, &a[0]) && !u256_is_zero(&allowed))
		add_approval(f, f->to, U256_MAX, abi_address(&a[1]), true);
}

static void on_burn(struct frame *f, const struct abi *a)
{
	erc20(f, CALL_ERC20_TRANSFER);
	add(f, f->to, abi_u256(&a[0]), address_zero, false);
}

/* Permit2: the token is an argument. */
static void on_p2_approve(struct frame *f, const struct abi *a)
{
	erc20(f, CALL_APPROVAL);
	add_approval(f, abi_address(&a[0]), abi_u256(&a[2]), abi_address(&a[1]), false);
}

static void on_p2_transfer(struct frame *f, const struct abi *a)
{
	erc20(f, CALL_ERC20_TRANSFER);
	if (takes(f, &a[0], &a[1]))
		add(f, abi_address(&a[3]), abi_u256(&a[2]), abi_address(&a[1]), false);
}

static void on_p2_permit(struct frame *f, const struct abi *a)
{
	const struct abi *details = a[1].items[0].items;

	erc20(f, CALL_APPROVAL);
	if (ours(f, &a[0]))
		add_approval(f, abi_address(&details[0]), abi_u256(&details[1]), abi_address(&a[1].items[1]),
			     true);
}

static void on_p2_permit_transfer(struct frame *f, const struct abi *a)
{
	const struct abi *permitted = a[0].items[0].items;

	erc20(f, CALL_ERC20_TRANSFER);
	if (takes(f, &a[2], &a[1].items[0]))
		add(f, abi_address(&permitted[0]), abi_u256(&permitted[1]), abi_address(&a[1].items[0]),
		    false);
}

static void on_nft(struct frame *f, const struct abi *a)
{
	call_worsen(f->c, CALL_NFT);
	if (takes(f, &a[0], &a[1]))
		add(f, f->to, u256_of(1), abi_address(&a[1]), false);
}

static void on_1155(struct frame *f, const struct abi *a)
{
	call_worsen(f->c, CALL_NFT);
	if (takes(f, &a[0], &a[1]))
		add(f, f->to, abi_u256(&a[3]), abi_address(&a[1]), false);
}

static void on_1155_batch(struct frame *f, const struct abi *a)
{
	call_worsen(f->c, CALL_NFT);
	for (size_t i = 0; takes(f, &a[0], &a[1]) && i < a[3].n; i++)
		add(f, f->to, abi_u256(&a[3].items[i]), abi_address(&a[1]), false);
}

static void on_operator(struct frame *f, const struct abi *a)
{
	const struct u256 on = abi_u256(&a[1]);

	call_worsen(f->c, u256_is_zero(&on) ? CALL_APPROVAL : CALL_DANGEROUS);
	if (!u256_is_zero(&on))
		add_target(f, abi_address(&a[0]), U256_ZERO);
}

static void on_dangerous(struct frame *f, const struct abi *a)
{
	call_worsen(f->c, CALL_DANGEROUS);
	add_target(f, abi_address(&a[0]), U256_ZERO);
}

static void on_opaque(struct frame *f, const struct abi *a)
{
	(void)a;
	call_worsen(f->c, CALL_UNKNOWN);
}

static void on_wrap(struct frame *f, const struct abi *a)
{
	(void)a;
	call_worsen(f->c, CALL_WRAPPED);
}

/* ---- wrappers ---- */

static void read_call(struct frame *f, struct view data);

static void within_by(struct frame *f, const uint8_t *sender, const uint8_t *to, struct u256 value,
		      struct view data)
{
	struct frame sub = *f;

	sub.sender = sender;

	call_worsen(f->c, CALL_WRAPPED);
	add_target(f, to, value);
	*f->inner = u256_add_sat(f->inner, &value);
	if (++sub.depth > CALL_DEPTH) {
		call_worsen(f->c, CALL_UNKNOWN);
		return;
	}
	sub.to = to;
	sub.value = value;
	read_call(&sub, data);
}

static void within(struct frame *f, const uint8_t *to, struct u256 value, struct view data)
{
	within_by(f, f->to, to, value, data);
}

/* The contract calls itself for whoever called it: each call has the same target and, since it is the outer
 * one's, no value. */
static void multicall(struct frame *f, const struct abi *calls)
{
	call_worsen(f->c, CALL_WRAPPED);
	for (size_t i = 0; i < calls->n; i++)
		within_by(f, f->sender, f->to, U256_ZERO, calls->items[i].bytes);
}

static void on_multicall(struct frame *f, const struct abi *a)
{
	multicall(f, &a[0]);
}

static void on_multicall_until(struct frame *f, const struct abi *a)
{
	multicall(f, &a[1]);
}

static void on_aggregate3(struct frame *f, const struct abi *a)
{
	call_worsen(f->c, CALL_WRAPPED);
	for (size_t i = 0; i < a[0].n; i++) {
		const struct abi *call = a[0].items[i].items;
		within(f, abi_address(&call[0]), U256_ZERO, call[2].bytes);
	}
}

static void on_safe(struct frame *f, const struct abi *a)
{
	const struct u256 operation = abi_u256(&a[3]), gas_price = abi_u256(&a[6]);

	/* Another contract's code with the safe's funds; or a refund of gas out of them, of any amount, to
	 * anybody. */
	if (!u256_is_zero(&operation) || !u256_is_zero(&gas_price))
		call_worsen(f->c, CALL_DANGEROUS);
	if (!u256_is_zero(&gas_price))
		add_target(f, abi_address(&a[8]), U256_ZERO);
	within(f, abi_address(&a[0]), abi_u256(&a[1]), a[2].bytes);
}

/* Packed: operation (1), to (20), value (32), length (32), data. */
static void on_multisend(struct frame *f, const struct abi *a)
{
	struct view rest = a[0].bytes;

	call_worsen(f->c, CALL_WRAPPED);
	while (rest.n) {
		if (rest.n < 85) {
			call_worsen(f->c, CALL_UNKNOWN);
			return;
		}
		const struct u256 length = u256_load(rest.p + 53);
		if (rest.p[0] != 0)
			call_worsen(f->c, CALL_DANGEROUS);
		if (!u256_fits_u64(&length) || length.w[0] > rest.n - 85) {
			call_worsen(f->c, CALL_UNKNOWN);
			return;
		}
		within(f, (const uint8_t *)rest.p + 1, u256_load(rest.p + 21),
		       (struct view){ rest.p + 85, (size_t)length.w[0] });
		rest = view_skip(rest, 85 + (size_t)length.w[0]);
	}
}

static void on_execute(struct frame *f, const struct abi *a)
{
	within(f, abi_address(&a[0]), abi_u256(&a[1]), a[2].bytes);
}

static void execute_batch(struct frame *f, const struct abi *calls)
{
	call_worsen(f->c, CALL_WRAPPED);
	for (size_t i = 0; i < calls->n; i++) {
		const struct abi *call = calls->items[i].items;
		within(f, abi_address(&call[0]), abi_u256(&call[1]), call[2].bytes);
	}
}

static void on_execute_batch(struct frame *f, const struct abi *a)
{
	execute_batch(f, &a[0]);
}

/* ERC-7579: the first byte of the mode is 0 for one call (packed), 1 for several, 0xff for a delegated one.
 */
static void on_execute_mode(struct frame *f, const struct abi *a)
{
	const struct view data = a[1].bytes;
	struct abi args;

	if (a[0].bytes.p[0] == 0 && data.n >= 52)
		within(f, (const uint8_t *)data.p, u256_load(data.p + 20), view_skip(data, 52));
	else if (a[0].bytes.p[0] == 1 && abi_decode(f->arena, "(address,uint256,bytes)[]", data, &args) == 0)
		execute_batch(f, &args.items[0]);
	else
		call_worsen(f->c, (uint8_t)a[0].bytes.p[0] == 0xff ? CALL_DANGEROUS : CALL_UNKNOWN);
}

/* ---- the table ---- */

static const struct function {
	struct call_selector s;
	void (*read)(struct frame *f, const struct abi *args);
} functions[] = {
	/* clang-format off */
	{ { { 0xa9, 0x05, 0x9c, 0xbb }, "transfer", "address,uint256" }, on_transfer },
	{ { { 0x23, 0xb8, 0x72, 0xdd }, "transferFrom", "address,address,uint256" }, on_transfer_from },
	{ { { 0x09, 0x5e, 0xa7, 0xb3 }, "approve", "address,uint256" }, on_approve },
	{ { { 0x39, 0x50, 0x93, 0x51 }, "increaseAllowance", "address,uint256" }, on_approve },
	{ { { 0xa4, 0x57, 0xc2, 0xd7 }, "decreaseAllowance", "address,uint256" }, on_decrease },
	{ { { 0xa2, 0x2c, 0xb4, 0x65 }, "setApprovalForAll", "address,bool" }, on_operator },
	{ { { 0xd5, 0x05, 0xac, 0xcf }, "permit", "address,address,uint256,uint256,uint8,bytes32,bytes32" }, on_permit },
	{ { { 0x8f, 0xcb, 0xaf, 0x0c }, "permit", "address,address,uint256,uint256,bool,uint8,bytes32,bytes32" }, on_permit_dai },
	{ { { 0x87, 0x51, 0x7c, 0x45 }, "approve", "address,address,uint160,uint48" }, on_p2_approve },
	{ { { 0x36, 0xc7, 0x85, 0x16 }, "transferFrom", "address,address,uint160,address" }, on_p2_transfer },
	{ { { 0x2b, 0x67, 0xb5, 0x70 }, "permit", "address,((address,uint160,uint48,uint48),address,uint256),bytes" }, on_p2_permit },
	{ { { 0x30, 0xf2, 0x8b, 0x7a }, "permitTransferFrom", "((address,uint256),uint256,uint256),(address,uint256),address,bytes" }, on_p2_permit_transfer },
	{ { { 0xd0, 0xe3, 0x0d, 0xb0 }, "deposit", "" }, on_wrap },
	{ { { 0x2e, 0x1a, 0x7d, 0x4d }, "withdraw", "uint256" }, on_wrap },
	{ { { 0xac, 0x96, 0x50, 0xd8 }, "multicall", "bytes[]" }, on_multicall },
	{ { { 0x5a, 0xe4, 0x01, 0xdc }, "multicall", "uint256,bytes[]" }, on_multicall_until },
	{ { { 0x82, 0xad, 0x56, 0xcb }, "aggregate3", "(address,bool,bytes)[]" }, on_aggregate3 },
	{ { { 0x6a, 0x76, 0x12, 0x02 }, "execTransaction", "address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes" }, on_safe },
	{ { { 0x8d, 0x80, 0xff, 0x0a }, "multiSend", "bytes" }, on_multisend },
	{ { { 0xb6, 0x1d, 0x27, 0xf6 }, "execute", "address,uint256,bytes" }, on_execute },
	{ { { 0x34, 0xfc, 0xd5, 0xbe }, "executeBatch", "(address,uint256,bytes)[]" }, on_execute_batch },
	{ { { 0xe9, 0xae, 0x5c, 0x53 }, "execute", "bytes32,bytes" }, on_execute_mode },
	{ { { 0x35, 0x93, 0x56, 0x4c }, "execute", "bytes,bytes[],uint256" }, on_opaque },
	{ { { 0x76, 0x5e, 0x82, 0x7f }, "handleOps", "(address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)[],address" }, on_opaque },
	{ { { 0x42, 0x84, 0x2e, 0x0e }, "safeTransferFrom", "address,address,uint256" }, on_nft },
	{ { { 0xb8, 0x8d, 0x4f, 0xde }, "safeTransferFrom", "address,address,uint256,bytes" }, on_nft },
	{ { { 0xf2, 0x42, 0x43, 0x2a }, "safeTransferFrom", "address,address,uint256,uint256,bytes" }, on_1155 },
	{ { { 0x2e, 0xb2, 0xc2, 0xd6 }, "safeBatchTransferFrom", "address,address,uint256[],uint256[],bytes" }, on_1155_batch },
	{ { { 0xe3, 0xee, 0x16, 0x0e }, "transferWithAuthorization", "address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32" }, on_authorised },
	{ { { 0xef, 0x55, 0xbe, 0xc6 }, "receiveWithAuthorization", "address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32" }, on_authorised },
	{ { { 0x40, 0x00, 0xae, 0xa0 }, "transferAndCall", "address,uint256,bytes" }, on_transfer },
	{ { { 0xca, 0xe9, 0xca, 0x51 }, "approveAndCall", "address,uint256,bytes" }, on_approve },
	{ { { 0x9b, 0xd9, 0xbb, 0xc6 }, "send", "address,uint256,bytes" }, on_transfer },
	{ { { 0x95, 0x9b, 0x8c, 0x3f }, "authorizeOperator", "address" }, on_dangerous },
	{ { { 0x42, 0x96, 0x6c, 0x68 }, "burn", "uint256" }, on_burn },
	{ { { 0xf2, 0xfd, 0xe3, 0x8b }, "transferOwnership", "address" }, on_dangerous },
	{ { { 0x36, 0x59, 0xcf, 0xe6 }, "upgradeTo", "address" }, on_dangerous },
	{ { { 0x4f, 0x1e, 0xf2, 0x86 }, "upgradeToAndCall", "address,bytes" }, on_dangerous },
	/* clang-format on */
};

const struct call_selector *call_selector_at(size_t i)
{
	return i < ELEMS(functions) ? &functions[i].s : NULL;
}

/* ---- reading ---- */

static void line(struct frame *f, const char *what, size_t bytes)
{
	char to[ADDRESS_TEXT], value[U256_UNITS];

	address_text(f->to, to);
	u256_text(&f->value, value);
	buf_printf(&f->c->tree, "%*s%s → %s", (int)(2 * f->depth), "", what, to);
	if (!u256_is_zero(&f->value))
		buf_printf(&f->c->tree, ", %s wei", value);
	if (bytes)
		buf_printf(&f->c->tree, ", %zu bytes that were not understood", bytes);
	buf_putc(&f->c->tree, '\n');
}

static void read_call(struct frame *f, struct view data)
{
	struct abi args;

	if (data.n == 0) {
		line(f, "value", 0);
		return;
	}
	for (size_t i = 0; data.n >= 4 && i < ELEMS(functions); i++) {
		const struct function *fn = &functions[i];
		char name[300];
		if (memcmp(fn->s.bytes, data.p, 4) != 0)
			continue;
		/* One that nobody's encoder writes may mean something else to the contract. */
		if (abi_decode(f->arena, fn->s.types, view_skip(data, 4), &args) < 0)
			break;
		snprintf(name, sizeof(name), "%s(%s)", fn->s.name, fn->s.types);
		line(f, name, 0);
		fn->read(f, args.items);
		return;
	}
	line(f, "call", data.n);
	call_worsen(f->c, CALL_UNKNOWN);
	for (unsigned i = 0; i < f->c->n; i++)
		f->c->effects[i].opaque |= f->c->effects[i].target && address_eq(f->c->effects[i].to, f->to);
}

/* The rest of the value stays with the outermost contract. Value within a wrapper may be the wrapper's own
 * money: it is ours to spend all the same. */
static void add_value(struct call *c, const uint8_t *to, struct u256 value, const struct u256 *inner)
{
	struct call_effect *e = &c->effects[c->n];
	struct u256 listed = U256_ZERO, rest;

	for (unsigned i = 0; i < c->n; i++)
		if (c->effects[i].target)
			listed = u256_add_sat(&listed, &c->effects[i].amount);
	if (u256_sub(u256_cmp(inner, &value) > 0 ? inner : &value, &listed, &rest) < 0 || u256_is_zero(&rest))
		return;
	*e = (struct call_effect){ .amount = rest };
	memcpy(e->asset, address_native, ADDRESS_SIZE);
	memcpy(e->to, to, ADDRESS_SIZE);
	c->n++;
}

/* Targets that get nothing stand behind what is spent or allowed. */
static void order(struct call *c)
{
	struct call_effect sorted[CALL_EFFECTS];
	unsigned n = 0;

	for (int bare = 0; bare < 2; bare++)
		for (unsigned i = 0; i < c->n; i++)
			if ((c->effects[i].target && u256_is_zero(&c->effects[i].amount)) == bare)
				sorted[n++] = c->effects[i];
	memcpy(c->effects, sorted, n * sizeof(*sorted));
}

void call_read(const struct call_input *in, struct call *ret)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT(MEMORY_MAX);
	struct u256 inner = U256_ZERO;

	*ret = (struct call){ .has_data = in->to && in->data.n, .tree = BUF_INIT(TREE_MAX) };
	struct frame f = { .c = ret,
			   .arena = &arena,
			   .account = in->account,
			   .sender = in->account,
			   .to = in->to ? in->to : address_zero,
			   .value = in->value,
			   .inner = &inner };
	if (!in->to) {
		call_worsen(ret, CALL_CREATION);
		line(&f, "creation", in->data.n);
	} else {
		read_call(&f, in->data);
	}
	add_value(ret, f.to, in->value, &inner);
	order(ret);
}
