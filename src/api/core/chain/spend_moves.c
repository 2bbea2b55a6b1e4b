/*
 * Moves out of logs and traces: see spend_moves.h.
 */
#include "spend_moves.h"

#include <errno.h>
#include <inttypes.h>

#include "abi.h"
#include "buf.h"
#include "call.h"
#include "spend_read.h"
#include "text.h"
#include "typed.h"
#include "poison.h"

#define WORD        32
#define TEXT_MOST   160
#define DATA_MOST   (64u * 1024)
#define TRACE_MOST  48 /* frames within frames */
#define ACTUAL_MOST 8u
#define TYPED_MOST  (4u * 1024 * 1024)

enum event { NO_EVENT, TRANSFER, APPROVAL, FOR_ALL, SINGLE, BATCH };
static const struct {
	uint8_t topic[WORD];
	enum event event;
} events[] = {
	{ "\xdd\xf2\x52\xad\x1b\xe2\xc8\x9b\x69\xc2\xb0\x68\xfc\x37\x8d\xaa\x95\x2b\xa7\xf1\x63\xc4\xa1\x16"
	  "\x28\xf5\x5a\x4d\xf5\x23\xb3\xef",
	  TRANSFER },
	{ "\x8c\x5b\xe1\xe5\xeb\xec\x7d\x5b\xd1\x4f\x71\x42\x7d\x1e\x84\xf3\xdd\x03\x14\xc0\xf7\xb2\x29\x1e"
	  "\x5b\x20\x0a\xc8\xc7\xc3\xb9\x25",
	  APPROVAL },
	{ "\x17\x30\x7e\xab\x39\xab\x61\x07\xe8\x89\x98\x45\xad\x3d\x59\xbd\x96\x53\xf2\x00\xf2\x20\x92\x04"
	  "\x89\xca\x2b\x59\x37\x69\x6c\x31",
	  FOR_ALL },
	{ "\xc3\xd5\x81\x68\xc5\xae\x73\x97\x73\x1d\x06\x3d\x5b\xbf\x3d\x65\x78\x54\x42\x73\x43\xf4\xc0\x83"
	  "\x24\x0f\x7a\xac\xaa\x2d\x0f\x62",
	  SINGLE },
	{ "\x4a\x39\xdc\x06\xd4\xc0\xdb\xc6\x4b\x70\xaf\x90\xfd\x69\x8a\x23\x3a\x51\x8a\xa5\xd0\x7e\x59\x5d"
	  "\x98\x3b\x8c\x05\x26\xc8\xf7\xfb",
	  BATCH },
};

struct event_log {
	uint8_t asset[ADDRESS_SIZE];
	uint8_t topics[4][WORD];
	size_t n_topics;
	struct view data;
};

static struct view keep(struct spend_moves *m, const void *p, size_t n)
{
	return arena_view(m->arena, (struct view){ p, n });
}

static int add_move(struct spend_moves *m, const uint8_t asset[ADDRESS_SIZE], const uint8_t *from,
		    const uint8_t *to, const struct u256 *amount, bool approval)
{
	uint8_t be[U256_BYTES];

	if (!address_eq(from, m->account) && (approval || !address_eq(to, m->account)))
		return 0;
	if (m->n == SPEND_MOVES_MAX)
		return -E2BIG;
	if (!m->items)
		m->items = arena_array(m->arena, SPEND_MOVES_MAX, sizeof(*m->items));
	if (!m->items)
		return -ENOMEM;
	u256_store(amount, be);
	struct sgn_move *x = &m->items[m->n];
	*x = (struct sgn_move){ .asset = keep(m, asset, ADDRESS_SIZE),
				.from = keep(m, from, ADDRESS_SIZE),
				.to = keep(m, to, ADDRESS_SIZE),
				.amount = keep(m, be, sizeof(be)),
				.approval = approval };
	if (!x->asset.p || !x->from.p || !x->to.p || !x->amount.p)
		return -ENOMEM;
	m->n++;
	return 0;
}

/* ---- logs ---- */

static int read_hex(struct arena *a, const struct json *j, struct view *ret)
{
	if (!j || j->type != JSON_STRING || !view_starts(j->text, "0x") || j->text.n % 2 ||
	    j->text.n > 2 + 2 * DATA_MOST)
		return -EINVAL;
	size_t n = j->text.n / 2 - 1;
	char *p = arena_alloc(a, n + 1);
	if (!p)
		return -ENOMEM;
	*ret = (struct view){ p, n };
	return text_unhex(view_skip(j->text, 2), p, n);
}

static enum event event_of(const struct event_log *l)
{
	for (size_t i = 0; l->n_topics && i < ELEMS(events); i++)
		if (memcmp(events[i].topic, l->topics[0], WORD) == 0)
			return events[i].event;
	return NO_EVENT;
}

static int read_log(struct arena *a, const struct json *j, struct event_log *ret)
{
	const struct json *topics = json_get(j, "topics");
	struct view v;

	*ret = (struct event_log){ 0 };
	if (!topics || topics->type != JSON_ARRAY || topics->n > 4)
		return -EINVAL;
	int r = read_hex(a, json_get(j, "address"), &v);
	if (r < 0 || v.n != ADDRESS_SIZE)
		return r < 0 ? r : -EINVAL;
	memcpy(ret->asset, v.p, ADDRESS_SIZE);
	for (; ret->n_topics < topics->n; ret->n_topics++)
		if (spend_read_hash(&topics->items[ret->n_topics], ret->topics[ret->n_topics]) < 0)
			return -EINVAL;
	/* What is of no interest may be as long as it likes. */
	const struct json *data = json_get(j, "data");
	if (event_of(ret) == NO_EVENT)
		return data && data->type == JSON_STRING && view_starts(data->text, "0x") &&
				       data->text.n % 2 == 0
			       ? 0
			       : -EINVAL;
	return read_hex(a, data, &ret->data);
}

/* The sum of a TransferBatch. */
static struct u256 sum_of(struct spend_moves *m, struct view data)
{
	struct u256 sum = U256_ZERO;
	struct abi args;

	if (abi_decode(m->arena, "uint256[],uint256[]", data, &args) < 0)
		return U256_MAX;
	for (size_t i = 0; i < args.items[1].n; i++) {
		const struct u256 one = abi_u256(&args.items[1].items[i]);
		sum = u256_add_sat(&sum, &one);
	}
	return sum;
}

static int add_log(struct spend_moves *m, const struct event_log *l)
{
	const struct u256 one = u256_of(1), all = U256_MAX;
	const uint8_t *t1 = l->topics[1] + 12, *t2 = l->topics[2] + 12, *t3 = l->topics[3] + 12;
	const enum event event = event_of(l);
	struct u256 n = U256_ZERO;

	switch (event) {
	case TRANSFER:
	case APPROVAL:
		if (l->n_topics == 4) /* ERC-721 */
			n = one;
		else if (l->n_topics == 3 && l->data.n == WORD)
			n = u256_load(l->data.p);
		else
			return 0;
		return add_move(m, l->asset, t1, t2, &n, event == APPROVAL);
	case FOR_ALL:
		if (l->n_topics != 3 || l->data.n != WORD)
			return 0;
		n = u256_load(l->data.p);
		return add_move(m, l->asset, t1, t2, u256_is_zero(&n) ? &n : &all, true);
	case SINGLE:
		if (l->n_topics != 4 || l->data.n != 2 * (size_t)WORD)
			return 0;
		n = u256_load(l->data.p + WORD);
		return add_move(m, l->asset, t2, t3, &n, false);
	case BATCH:
		if (l->n_topics != 4)
			return 0;
		n = sum_of(m, l->data);
		return add_move(m, l->asset, t2, t3, &n, false);
	case NO_EVENT:
		break;
	}
	return 0;
}

int spend_moves_logs(struct spend_moves *m, const struct json *logs)
{
	if (!logs || logs->type != JSON_ARRAY)
		return -EINVAL;
	for (size_t i = 0; i < logs->n; i++) {
		struct event_log l;
		int r = read_log(m->arena, &logs->items[i], &l);
		if (r == 0)
			r = add_log(m, &l);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- traces ---- */

static int read_address(const struct json *j, uint8_t ret[ADDRESS_SIZE])
{
	return j && j->type == JSON_STRING && view_starts(j->text, "0x")
		       ? text_unhex(view_skip(j->text, 2), ret, ADDRESS_SIZE)
		       : -EINVAL;
}

static bool moves_value(const struct json *type)
{
	static const char *const kinds[] = { "CALL", "CREATE", "CREATE2", "SELFDESTRUCT" };

	for (size_t i = 0; i < ELEMS(kinds); i++)
		if (type && type->type == JSON_STRING && view_is(type->text, kinds[i]))
			return true;
	return false;
}

static int add_value(struct spend_moves *m, const struct json *f)
{
	uint8_t from[ADDRESS_SIZE], to[ADDRESS_SIZE];
	struct u256 value;
	const struct json *v = json_get(f, "value");

	if (!v || v->type == JSON_NULL || !moves_value(json_get(f, "type")))
		return 0;
	if (spend_read_u256(v, &value) < 0 || read_address(json_get(f, "from"), from) < 0 ||
	    read_address(json_get(f, "to"), to) < 0)
		return -EINVAL;
	return u256_is_zero(&value) ? 0 : add_move(m, address_native, from, to, &value, false);
}

static int trace_frame(struct spend_moves *m, const struct json *f, unsigned depth)
{
	const struct json *error = json_get(f, "error"), *calls = json_get(f, "calls"),
			  *logs = json_get(f, "logs");

	if (f->type != JSON_OBJECT || depth > TRACE_MOST || !json_get(f, "type"))
		return -EINVAL;
	if (error && error->type != JSON_NULL) /* what is within it did not happen */
		return 0;
	int r = add_value(m, f);
	if (r == 0 && logs && logs->type != JSON_NULL)
		r = spend_moves_logs(m, logs);
	if (r == 0 && calls && calls->type != JSON_NULL && calls->type != JSON_ARRAY)
		r = -EINVAL;
	for (size_t i = 0; r == 0 && calls && i < calls->n; i++)
		r = trace_frame(m, &calls->items[i], depth + 1);
	return r;
}

int spend_moves_trace(struct spend_moves *m, const struct json *frame)
{
	return trace_frame(m, frame, 0);
}

/* ---- failures ---- */

static void put_plain(struct buf *b, struct view v)
{
	for (size_t i = 0; i < v.n && buf_len(b) < TEXT_MOST; i++)
		buf_putc(b, v.p[i] >= ' ' && v.p[i] < 127 ? v.p[i] : '?');
}

static bool put_revert(struct arena *a, struct buf *b, struct view data)
{
	static const char error[4] = "\x08\xc3\x79\xa0", panic[4] = "\x4e\x48\x7b\x71";
	struct abi args;

	if (data.n < 4)
		return false;
	if (memcmp(data.p, error, 4) == 0 && abi_decode(a, "string", view_skip(data, 4), &args) == 0) {
		put_plain(b, args.items[0].bytes);
		return buf_len(b) > 0;
	}
	if (memcmp(data.p, panic, 4) == 0 && data.n == 4 + WORD) {
		const struct u256 code = u256_load(data.p + 4);
		buf_printf(b, "panic 0x%02" PRIx64, code.w[0]);
		return true;
	}
	buf_printf(b, "reverted with the error 0x%02x%02x%02x%02x", (uint8_t)data.p[0], (uint8_t)data.p[1],
		   (uint8_t)data.p[2], (uint8_t)data.p[3]);
	return true;
}

struct view spend_read_failure(struct arena *a, struct view message, const struct json *data)
{
	struct buf b = BUF_INIT(2 * TEXT_MOST);
	struct view bytes = VIEW_NONE;

	if (read_hex(a, data, &bytes) < 0 || !put_revert(a, &b, bytes))
		put_plain(&b, message);
	if (buf_len(&b) == 0)
		buf_puts(&b, "it would fail");
	struct view kept = arena_view(a, buf_view(&b));
	buf_done(&b);
	return kept;
}

/* ---- what something else spends ---- */

struct sgn_effect *spend_read_actual(struct arena *a, const struct json *tx,
				     const uint8_t account[ADDRESS_SIZE], size_t *ret_n)
{
	struct call call;
	struct call_input in = { .account = account, .data = VIEW("") };
	uint8_t to[ADDRESS_SIZE];
	struct sgn_effect *out;

	(void)!spend_read_u256(json_get(tx, "value"), &in.value);
	(void)!read_hex(a, json_get(tx, "input"), &in.data);
	if (read_address(json_get(tx, "to"), to) == 0)
		in.to = to;
	call_read(&in, &call);
	out = arena_array(a, MAX(call.n, 1u), sizeof(*out));
	*ret_n = 0;
	for (unsigned i = 0; out && i < MIN(call.n, ACTUAL_MOST); i++) {
		char *p = arena_alloc(a, U256_BYTES);
		if (!p)
			break;
		u256_store(&call.effects[i].amount, p);
		out[(*ret_n)++] = (struct sgn_effect){
			.asset = arena_view(a, (struct view){ (char *)call.effects[i].asset, ADDRESS_SIZE }),
			.amount = { p, U256_BYTES },
			.to = arena_view(a, (struct view){ (char *)call.effects[i].to, ADDRESS_SIZE }),
			.approval = call.effects[i].approval
		};
	}
	buf_done(&call.tree);
	return out;
}

/* ---- approvals ---- */

static size_t take_approvals(const struct call *call, const uint8_t *contract,
			     struct spend_approval ret[SPEND_ALLOWANCES])
{
	size_t n = 0;

	for (unsigned i = 0; i < call->n && n < SPEND_ALLOWANCES; i++) {
		const struct call_effect *x = &call->effects[i];
		if (!x->approval || !address_eq(x->asset, contract))
			continue;
		memcpy(ret[n].asset, x->asset, ADDRESS_SIZE);
		memcpy(ret[n++].spender, x->to, ADDRESS_SIZE);
	}
	return n;
}

size_t spend_moves_approvals(int32_t kind, const uint8_t account[ADDRESS_SIZE], struct view to,
			     struct view data, struct spend_approval ret[SPEND_ALLOWANCES])
{
	struct arena a = ARENA_INIT(TYPED_MOST);
	struct call call = { 0 };
	struct typed t;
	struct err e = { 0 };
	size_t n = 0;

	if (kind == SGN_REQUEST_KIND_TX && to.n == ADDRESS_SIZE) {
		const uint8_t *contract = (const uint8_t *)to.p;
		call_read(&(struct call_input){ .account = account, .to = contract, .data = data }, &call);
		n = take_approvals(&call, contract, ret);
	} else if (kind == SGN_REQUEST_KIND_TYPED && typed_parse(&a, data, &t, &e) == 0 && t.has_contract) {
		call_read_typed(&t, account, &call);
		n = take_approvals(&call, t.contract, ret);
	}
	buf_done(&call.tree);
	arena_done(&a);
	return n;
}

static size_t take_given(const struct call *call, struct spend_given ret[SPEND_ALLOWANCES],
			 const char **ret_why)
{
	bool others = false, once = false;
	size_t n = 0;

	for (unsigned k = 0; k < call->n && n < SPEND_ALLOWANCES; k++) {
		const struct call_effect *x = &call->effects[k];
		if (!x->approval || u256_is_zero(&x->amount))
			continue;
		others |= x->others;
		once |= x->once;
		if (x->others || x->once)
			continue;
		memcpy(ret[n].asset, x->asset, ADDRESS_SIZE);
		memcpy(ret[n].spender, x->to, ADDRESS_SIZE);
		memcpy(ret[n++].keeper, x->keeper, ADDRESS_SIZE);
	}
	*ret_why = others ? "the allowance is that of the contract which makes the call, and only that can "
			    "take it back"
		   : once ? "the signature is for one transfer, of which no contract keeps an allowance: it "
			    "ends with its deadline"
		   : call->class >= CALL_UNKNOWN ? "what the request allows cannot be read: it gives no "
						   "allowance of a token that is known"
						 : "the request gives no allowance of a token";
	return n;
}

size_t spend_moves_given(const struct sgn_item *i, struct spend_given ret[SPEND_ALLOWANCES],
			 const char **ret_why)
{
	struct arena a = ARENA_INIT(TYPED_MOST);
	const uint8_t *account = (const uint8_t *)i->from.p;
	struct call call = { 0 };
	struct typed t;
	struct err e = { 0 };
	size_t n = 0;

	*ret_why = "the request gives no allowance of a token";
	if (i->from.n != ADDRESS_SIZE)
		return 0;
	if (i->kind == SGN_REQUEST_KIND_TX && i->to.n == ADDRESS_SIZE) {
		call_read(&(struct call_input){ .account = account,
						.to = (const uint8_t *)i->to.p,
						.data = i->data },
			  &call);
		n = take_given(&call, ret, ret_why);
	} else if (i->kind == SGN_REQUEST_KIND_TYPED && typed_parse(&a, i->data, &t, &e) == 0 &&
		   t.has_contract) {
		call_read_typed(&t, account, &call);
		n = take_given(&call, ret, ret_why);
	}
	buf_done(&call.tree);
	arena_done(&a);
	return n;
}
