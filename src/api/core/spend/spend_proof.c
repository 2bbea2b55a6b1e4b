/*
 * Whether a signature that a wallet elsewhere made is the account's: by the key of the account, or, where the
 * account is a contract, by asking it (EIP-1271). See spends.h.
 */
#include "spends.h"

#include <errno.h>
#include <stdlib.h>

#include "core_base.h"
#include "sig.h"
#include "text.h"
#include "typed.h"
#include "poison.h"

#define MEMORY   (4u * 1024 * 1024)
#define MAGIC    "1626ba7e" /* isValidSignature(bytes32,bytes), and what it answers */
#define NOT_OURS "the wallet's signature is not the account's"

struct spend_proof {
	spend_proof_done *done;
	void *arg;
	struct spend_call call;
	bool starting, over; /* the node's answer may come before the question is out */
};

int spend_proof_digest(const struct sgn_item *i, uint8_t ret[SPEND_HASH])
{
	struct arena a = ARENA_INIT(MEMORY);
	struct typed t;
	struct err e = { 0 };
	int r = 0;

	memset(ret, 0, SPEND_HASH);
	if (i->kind == SGN_REQUEST_KIND_MESSAGE)
		sig_message_hash(i->data, ret);
	else if (i->kind != SGN_REQUEST_KIND_TYPED || typed_parse(&a, i->data, &t, &e) < 0)
		r = -EINVAL;
	else
		memcpy(ret, t.digest, SPEND_HASH);
	arena_done(&a);
	return r;
}

static bool signed_by_key(const uint8_t account[ADDRESS_SIZE], const uint8_t digest[SIG_HASH],
			  struct view signature)
{
	uint8_t who[ADDRESS_SIZE];
	struct sig s;

	return sig_load(signature, &s) == 0 && sig_recover(&s, digest, who) == 0 && address_eq(who, account);
}

/* ---- asking the contract ---- */

static void release(struct spend_proof *p)
{
	spend_call_done(&p->call);
	free(p);
}

static void on_called(struct spend_call *k, const struct err *e)
{
	struct spend_proof *p = CONTAINER(k, struct spend_proof, call);
	const struct json *r = e ? NULL : k->said[1].result;
	spend_proof_done *done = p->done;
	void *arg = p->arg;
	struct err why = { 0 };

	if (e)
		err_set(&why, ERR_UNAVAILABLE, "no node says whether the signature is valid: %.120s", e->msg);
	else if (!r || r->type != JSON_STRING || r->text.n != 66 ||
		 !view_eq_nocase(view_head(r->text, 10), VIEW("0x" MAGIC)))
		err_set(&why, ERR_INVALID, NOT_OURS);
	p->over = true;
	if (!p->starting)
		release(p);
	done(arg, why.code ? &why : NULL);
}

static void ask_contract(struct spend_proof *p, const uint8_t *of, const uint8_t digest[SPEND_HASH],
			 struct view signature, struct spend_node *node)
{
	char account[ADDRESS_TEXT], hash[2 * SPEND_HASH + 1], bytes[2 * SPEND_SIGNATURE_MAX + 1];
	const size_t padding = (32 - signature.n % 32) % 32;

	address_text(of, account);
	text_hex(digest, SPEND_HASH, hash);
	text_hex(signature.p, signature.n, bytes);
	spend_call_init(&p->call, node);
	spend_call_add(&p->call, "eth_call",
		       "[{\"to\":\"%s\",\"data\":\"0x" MAGIC "%s%064x%064zx%s%.*s\"},\"latest\"]", account,
		       hash, 64, signature.n, bytes, (int)(2 * padding),
		       "00000000000000000000000000000000000000000000000000000000000000");
	spend_call_go(&p->call, on_called);
}

struct spend_proof *spend_proof_start(const struct spend_prover *who, const uint8_t digest[SPEND_HASH],
				      struct view signature, spend_proof_done *done, void *arg)
{
	struct spend_proof *p = NULL;
	struct spend_node *node = NULL;
	struct err e = { 0 };

	if (sig_init() < 0 || signature.n == 0 || signature.n > SPEND_SIGNATURE_MAX) {
		err_set(&e, ERR_INVALID, "a signature has 1 to %d bytes", SPEND_SIGNATURE_MAX);
	} else if (signed_by_key(who->account, digest, signature)) {
		done(arg, NULL);
		return NULL;
	} else {
		node = spend_node_get(who->core, who->agent, who->chain, &e);
		p = node ? calloc(1, sizeof(*p)) : NULL;
		if (node && !p)
			err_sys(&e, ERR_INTERNAL, ENOMEM, "signature");
	}
	if (!p) {
		done(arg, &e);
		return NULL;
	}
	p->done = done;
	p->arg = arg;
	p->starting = true;
	ask_contract(p, who->account, digest, signature, node);
	p->starting = false;
	if (!p->over)
		return p;
	release(p);
	return NULL;
}

struct spend_proof *spend_elsewhere_check(struct spend_errand *q, struct view signature,
					  spend_proof_done *done, void *arg)
{
	const struct spend_entry *x = CONTAINER(q, struct spend_entry, errand);

	return spend_proof_start(&(struct spend_prover){ x->core, view_of(x->agent), x->chain, x->account },
				 q->digest, signature, done, arg);
}

void spend_proof_cancel(struct spend_proof *p)
{
	if (p)
		release(p);
}
