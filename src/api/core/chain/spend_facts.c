/*
 * What the signer must know of the chain before it decides: one batch to a node, and a trace where the node
 * has no eth_simulateV1. See spend_node.h.
 */
#include "spend_node.h"

#include <errno.h>

#include "core_base.h"
#include "spend_moves.h"
#include "text.h"
#include "poison.h"

#define MEMORY  (8u * 1024 * 1024)
#define TX_MOST (600u * 1024)
#define GWEI    1000000000u
#define WORD    (2 * (size_t)U256_BYTES) /* as digits */

static void put_hex(struct buf *b, const char *key, struct view v)
{
	char *p;

	buf_printf(b, "%s\"%s\":\"0x", buf_len(b) > 1 ? "," : "", key);
	p = buf_reserve(b, 2 * v.n + 1);
	if (p) {
		text_hex(v.p, v.n, p);
		buf_commit(b, 2 * v.n);
	}
	buf_putc(b, '"');
}

/* A quantity has no zeros in front. */
static void put_value(struct buf *b, struct view value)
{
	char digits[2 * U256_BYTES + 1];
	size_t skip = 0;

	text_hex(value.p, MIN(value.n, (size_t)U256_BYTES), digits);
	while (digits[skip] == '0')
		skip++;
	buf_printf(b, ",\"value\":\"0x%s\"", digits[skip] ? digits + skip : "0");
}

static void finish(struct spend_facts *f, const struct err *e)
{
	struct err copy = e ? *e : (struct err){ 0 };

	f->done(f, e ? &copy : NULL);
}

/* ---- allowances ---- */

static void ask_allowances(struct spend_facts *f)
{
	char asset[ADDRESS_TEXT], own[2 * ADDRESS_SIZE + 1], spender[2 * ADDRESS_SIZE + 1];

	text_hex(f->account, ADDRESS_SIZE, own);
	f->first_approval = f->call.n;
	for (size_t i = 0; i < f->n_approvals; i++) {
		address_text(f->approvals[i].asset, asset);
		text_hex(f->approvals[i].spender, ADDRESS_SIZE, spender);
		spend_call_add(&f->call, "eth_call", /* allowance(address,address) */
			       "[{\"to\":\"%s\",\"data\":\"0xdd62ed3e%024d%s%024d%s\"},\"latest\"]", asset, 0,
			       own, 0, spender);
	}
}

/* For people's eyes alone: what is not an amount is left out, and the card says that it is not known. */
static void read_allowances(struct spend_facts *f)
{
	struct sgn_move *out = f->n_approvals ? arena_array(&f->arena, f->n_approvals, sizeof(*out)) : NULL;

	f->facts.allowances.items = out;
	for (size_t i = 0; out && i < f->n_approvals; i++) {
		const struct json *r = f->call.said[f->first_approval + i].result;
		const struct spend_approval *a = &f->approvals[i];
		char *amount = arena_alloc(&f->arena, U256_BYTES);
		if (!r || r->type != JSON_STRING || r->text.n != 2 + WORD || !view_starts(r->text, "0x") ||
		    !amount || text_unhex(view_skip(r->text, 2), amount, U256_BYTES) < 0)
			continue;
		out[f->facts.allowances.n++] =
			(struct sgn_move){ .asset = { (const char *)a->asset, ADDRESS_SIZE },
					   .from = { (const char *)f->account, ADDRESS_SIZE },
					   .to = { (const char *)a->spender, ADDRESS_SIZE },
					   .amount = { amount, U256_BYTES },
					   .approval = true };
	}
}

/* Of a development chain: it tells whether the node was started anew. */
static void read_genesis(struct spend_facts *f)
{
	struct spend_block b;
	const struct json *r = f->at_genesis ? f->call.said[f->at_genesis].result : NULL;

	if (r && r->type == JSON_OBJECT && spend_read_block(r, &b) == 0 && b.number == 0)
		f->facts.genesis =
			arena_view(&f->arena, (struct view){ (const char *)b.hash, sizeof(b.hash) });
}

static void on_trace(struct spend_call *k, const struct err *e)
{
	struct spend_facts *f = CONTAINER(k, struct spend_facts, trace);

	/* Without a trace there is the estimate: the item says so, and what needs more is refused. */
	if (!e)
		(void)!spend_read_trace(&f->arena, &k->said[1], f->account, &f->facts);
	finish(f, NULL);
}

static void get_trace(struct spend_facts *f)
{
	spend_call_init(&f->trace, f->call.node);
	f->trace.at = f->call.at; /* the same node */
	spend_call_add(&f->trace, "debug_traceCall",
		       "[%.*s,\"latest\",{\"tracer\":\"callTracer\",\"tracerConfig\":{\"withLog\":true}}]",
		       VIEW_ARG(buf_view(&f->tx)));
	spend_call_go(&f->trace, on_trace);
}

static void on_said(struct spend_call *k, const struct err *e)
{
	struct spend_facts *f = CONTAINER(k, struct spend_facts, call);
	struct spend_read_from from = { .said = k->said, .tx = f->is_tx, .loopback = k->loopback };
	const struct u256 gwei = u256_of(GWEI), most = u256_of(k->node->settings.max_fee_gwei);
	struct err failed = { 0 };
	bool trace = false;

	if (e) {
		finish(f, e);
		return;
	}
	memcpy(from.account, f->account, ADDRESS_SIZE);
	(void)!u256_mul(&gwei, &most, &from.max_fee);
	arena_done(&f->arena);
	if (spend_read_facts(&f->arena, &from, &f->facts, &trace, &failed) < 0) {
		spend_call_next(k, &failed);
		return;
	}
	read_genesis(f);
	read_allowances(f);
	k->node->head = f->facts.block;
	if (trace)
		get_trace(f);
	else
		finish(f, NULL);
}

void spend_facts_get(struct spend_facts *f, struct spend_node *n, const struct spend_meaning *m,
		     void (*done)(struct spend_facts *f, const struct err *e))
{
	char own[ADDRESS_TEXT], to[ADDRESS_TEXT] = "";
	struct spend_call *k = &f->call;

	*f = (struct spend_facts){ .arena = ARENA_INIT(MEMORY),
				   .tx = BUF_INIT(TX_MOST),
				   .is_tx = m->kind == SGN_REQUEST_KIND_TX,
				   .done = done };
	memcpy(f->account, m->account, ADDRESS_SIZE);
	address_text(m->account, own);
	spend_call_init(k, n);
	spend_call_add(k, "eth_getBlockByNumber", "[\"latest\",false]");
	spend_call_add(k, "eth_getCode", "[\"%s\",\"latest\"]", own);
	if (f->is_tx) {
		struct view tx;
		buf_putc(&f->tx, '{');
		put_hex(&f->tx, "from", (struct view){ (const char *)m->account, ADDRESS_SIZE });
		if (m->to.n == ADDRESS_SIZE) {
			put_hex(&f->tx, "to", m->to);
			address_text((const uint8_t *)m->to.p, to);
		}
		put_value(&f->tx, m->value);
		put_hex(&f->tx, "data", m->data);
		buf_putc(&f->tx, '}');
		tx = buf_view(&f->tx);
		spend_call_add(k, "eth_getTransactionCount", "[\"%s\",\"pending\"]", own);
		spend_call_add(k, "eth_getBalance", "[\"%s\",\"latest\"]", own);
		spend_call_add(k, "eth_getCode", "[\"%s\",\"latest\"]", *to ? to : own);
		spend_call_add(k, "eth_maxPriorityFeePerGas", "[]");
		spend_call_add(k, "eth_feeHistory", "[\"0x5\",\"latest\",[50]]");
		spend_call_add(k, "eth_gasPrice", "[]");
		spend_call_add(k, "eth_estimateGas", "[%.*s]", VIEW_ARG(tx));
		spend_call_add(k, "eth_simulateV1",
			       "[{\"blockStateCalls\":[{\"calls\":[%.*s]}],\"traceTransfers\":true,"
			       "\"validation\":false},\"latest\"]",
			       VIEW_ARG(tx));
	}
	if (f->is_tx && (n->chain == 31337 || n->chain == 1337)) {
		f->at_genesis = k->n;
		spend_call_add(k, "eth_getBlockByNumber", "[\"0x0\",false]");
	}
	f->n_approvals = spend_moves_approvals(m->kind, m->account, m->to, m->data, f->approvals);
	ask_allowances(f);
	spend_call_go(k, on_said);
}

void spend_facts_done(struct spend_facts *f)
{
	if (!f->done)
		return;
	spend_call_done(&f->call);
	spend_call_done(&f->trace);
	buf_done(&f->tx);
	arena_done(&f->arena);
	*f = (struct spend_facts){ 0 };
}
