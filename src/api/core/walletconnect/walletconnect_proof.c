/*
 * Whether a signature that a wallet sent is the account's: by the key of the account, or, where the account
 * is a contract, by asking it (EIP-1271).
 */
#include <errno.h>
#include <stdlib.h>

#include "chains.h"
#include "config.h"
#include "core_state.h"
#include "num.h"
#include "sig.h"
#include "text.h"
#include "typed.h"
#include "walletconnect_impl.h"
#include "poison.h"

#define MEMORY      (4u * 1024 * 1024)
#define MAGIC       "1626ba7e" /* isValidSignature(bytes32,bytes), and what it answers */
#define NOT_OURS    "the wallet's signature is not the account's"
#define MESSAGE_MAX (128u * 1024)

struct wc_proof {
	struct core *core;
	wc_proof_done *done;
	void *arg;
	struct chain_call call;
	struct buf body;
	bool starting, over; /* the node's answer may come before the question is out */
};

/* ---- what was to be signed ---- */

static int hash_message(const struct json *params, uint8_t ret[SIG_HASH])
{
	const struct json *hex = params->n >= 1 ? &params->items[0] : NULL;
	_cleanup_(buf_done) struct buf bytes = BUF_INIT(MESSAGE_MAX);

	if (!hex || hex->type != JSON_STRING || !view_starts(hex->text, "0x") || hex->text.n % 2)
		return -EINVAL;
	size_t n = (hex->text.n - 2) / 2;
	char *room = buf_reserve(&bytes, n + 1);
	if (!room || text_unhex(view_skip(hex->text, 2), room, n) < 0)
		return -EINVAL;
	buf_commit(&bytes, n);
	sig_message_hash(buf_view(&bytes), ret);
	return 0;
}

static int hash_typed(struct arena *a, const struct json *params, uint8_t ret[SIG_HASH])
{
	const struct json *doc = params->n >= 2 ? &params->items[1] : NULL;
	_cleanup_(buf_done) struct buf text = BUF_INIT(2 * TYPED_JSON_MAX);
	struct typed t;
	struct json_out o;
	struct err e = { 0 };

	if (!doc)
		return -EINVAL;
	if (doc->type == JSON_STRING) {
		buf_add(&text, doc->text);
	} else {
		json_out_init(&o, &text);
		json_out_value(&o, doc);
	}
	if (text.bad || typed_parse(a, buf_view(&text), &t, &e) < 0)
		return -EINVAL;
	memcpy(ret, t.digest, SIG_HASH);
	return 0;
}

static int hash_of(const struct spend_errand *q, uint8_t ret[SIG_HASH])
{
	struct arena a = ARENA_INIT(MEMORY);
	struct json *params;
	struct err e = { 0 };
	int r = json_parse(&a, q->params, &params, &e) < 0 || params->type != JSON_ARRAY ? -EINVAL
		: strcmp(q->method, "personal_sign") == 0 ? hash_message(params, ret)
							  : hash_typed(&a, params, ret);

	arena_done(&a);
	return r;
}

static bool signed_by_key(const uint8_t account[ADDRESS_SIZE], const uint8_t hash[SIG_HASH],
			  struct view signature)
{
	uint8_t who[ADDRESS_SIZE];
	struct sig s;

	return sig_load(signature, &s) == 0 && sig_recover(&s, hash, who) == 0 && address_eq(who, account);
}

/* ---- asking the contract ---- */

static void end(struct wc_proof *p, bool valid, const char *why)
{
	wc_proof_done *done = p->done;
	void *arg = p->arg;

	p->over = true;
	if (!p->starting) {
		buf_done(&p->body);
		free(p);
	}
	done(arg, valid, why);
}

static void on_called(struct chain_call *k, char *body, size_t n, const struct err *e)
{
	struct wc_proof *p = CONTAINER(k, struct wc_proof, call);
	struct arena a = ARENA_INIT(MEMORY);
	struct json *doc;
	struct err bad = { 0 };
	bool valid = false;

	if (!e && json_parse(&a, (struct view){ body, n }, &doc, &bad) == 0) {
		const struct json *r = json_get(doc, "result");
		valid = r && r->type == JSON_STRING && r->text.n == 66 &&
			view_eq_nocase(view_head(r->text, 10), VIEW("0x" MAGIC));
	}
	arena_done(&a);
	end(p, valid, e ? "the node did not say whether the signature is valid" : NOT_OURS);
}

static int put_call(struct wc_proof *p, const struct spend_errand *q, const uint8_t hash[SIG_HASH],
		    struct view signature)
{
	char account[ADDRESS_TEXT], hex[2 * SIG_HASH + 1], byte[3];

	address_text(q->account, account);
	text_hex(hash, SIG_HASH, hex);
	buf_printf(&p->body,
		   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_call\",\"params\":[{\"to\":\"%s\","
		   "\"data\":\"0x" MAGIC "%s%064x%064zx",
		   account, hex, 64, signature.n);
	for (size_t i = 0; i < (signature.n + 31) / 32 * 32; i++) {
		text_hex(i < signature.n ? signature.p + i : "", 1, byte);
		buf_puts(&p->body, byte);
	}
	return buf_puts(&p->body, "\"},\"latest\"]}");
}

static const struct config_chain *chain_of(const struct core *c, uint64_t chain)
{
	for (size_t i = 0; i < c->config->agents.n_chains; i++) {
		uint64_t n;
		if (num_u64(config_chain_number(c->config->agents.chain_list[i].id), &n) == 0 && n == chain)
			return &c->config->agents.chain_list[i];
	}
	return NULL;
}

struct wc_proof *walletconnect_proof_start(struct core *c, const struct spend_errand *q,
					   struct view signature, wc_proof_done *done, void *arg)
{
	const struct config_chain *chain = chain_of(c, q->chain);
	uint8_t hash[SIG_HASH];

	if (sig_init() < 0 || hash_of(q, hash) < 0) {
		done(arg, false, "what was signed cannot be checked");
		return NULL;
	}
	if (signed_by_key(q->account, hash, signature)) {
		done(arg, true, NULL);
		return NULL;
	}
	struct wc_proof *p = chain ? calloc(1, sizeof(*p)) : NULL;
	if (!p) {
		done(arg, false, NOT_OURS);
		return NULL;
	}
	*p = (struct wc_proof){ .core = c, .done = done, .arg = arg, .body = BUF_INIT(64 * 1024) };
	if (put_call(p, q, hash, signature) < 0) {
		end(p, false, NOT_OURS);
		return NULL;
	}
	p->call = (struct chain_call){
		.urls = chain->rpc, .n = chain->n_rpc, .body = buf_view(&p->body), .done = on_called
	};
	p->starting = true;
	chains_post(c, &p->call);
	p->starting = false;
	if (!p->over)
		return p;
	buf_done(&p->body);
	free(p);
	return NULL;
}

void walletconnect_proof_cancel(struct wc_proof *p)
{
	if (!p)
		return;
	chains_cancel(&p->call);
	buf_done(&p->body);
	free(p);
}
