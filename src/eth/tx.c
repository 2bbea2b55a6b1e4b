/*
 * Transactions: see tx.h.
 */
#include "tx.h"

#include <errno.h>

#include "keccak.h"
#include "rlp.h"
#include "poison.h"

/* ---- reading ---- */

static int read_to(struct view *rest, struct tx *t)
{
	struct view to;

	if (rlp_bytes(rest, &to) < 0 || (to.n != 0 && to.n != ADDRESS_SIZE))
		return -EBADMSG;
	t->creation = to.n == 0;
	if (to.n)
		memcpy(t->to, to.p, ADDRESS_SIZE);
	return 0;
}

/* to, value, data */
static int read_call(struct view *rest, struct tx *t)
{
	if (read_to(rest, t) < 0 || rlp_u256(rest, &t->value) < 0 || rlp_bytes(rest, &t->data) < 0)
		return -EBADMSG;
	return t->data.n > TX_DATA_MAX ? -EBADMSG : 0;
}

static int read_signature(struct view *rest, struct tx *t, uint64_t y)
{
	if (y > 1 || rlp_u256(rest, &t->sig.r) < 0 || rlp_u256(rest, &t->sig.s) < 0 || rest->n)
		return -EBADMSG;
	if (u256_is_zero(&t->sig.r) || u256_is_zero(&t->sig.s))
		return -EBADMSG;
	t->sig.y = (uint8_t)y;
	t->is_signed = true;
	return 0;
}

static int read_legacy_tail(struct view *rest, struct tx *t)
{
	struct view again;
	uint64_t v, zero;

	if (rest->n == 0) {
		t->unprotected = true;
		return 0;
	}
	if (rlp_u64(rest, &v) < 0)
		return -EBADMSG;
	again = *rest;
	if (rlp_u64(&again, &zero) == 0 && zero == 0) { /* as it is hashed: the chain, 0, 0 */
		if (rlp_u64(&again, &zero) < 0 || zero || again.n || v == 0 || v > TX_CHAIN_MAX)
			return -EBADMSG;
		t->chain = v;
		return 0;
	}
	t->unprotected = v == 27 || v == 28;
	if (t->unprotected)
		return read_signature(rest, t, v - 27);
	if (v < 37 || (v - 35) / 2 > TX_CHAIN_MAX)
		return -EBADMSG;
	t->chain = (v - 35) / 2;
	return read_signature(rest, t, (v - 35) % 2);
}

static int read_legacy(struct view rest, struct tx *t)
{
	if (rlp_u64(&rest, &t->nonce) < 0 || rlp_u256(&rest, &t->price) < 0 || rlp_u64(&rest, &t->gas) < 0 ||
	    read_call(&rest, t) < 0)
		return -EBADMSG;
	return read_legacy_tail(&rest, t);
}

/* [[address, [key, …]], …] */
static int check_access(struct view rest)
{
	while (rest.n) {
		struct view entry, keys;
		uint8_t address[ADDRESS_SIZE], key[32];
		if (rlp_list(&rest, &entry) < 0 || rlp_fixed(&entry, address, sizeof(address)) < 0 ||
		    rlp_list(&entry, &keys) < 0 || entry.n)
			return -EBADMSG;
		while (keys.n)
			if (rlp_fixed(&keys, key, sizeof(key)) < 0)
				return -EBADMSG;
	}
	return 0;
}

/* [[chain, address, nonce, y, r, s], …], at least one */
static int check_authorizations(struct view rest)
{
	if (rest.n == 0)
		return -EBADMSG;
	while (rest.n) {
		struct view entry;
		uint8_t address[ADDRESS_SIZE];
		struct u256 chain, r, s;
		uint64_t nonce, y;
		if (rlp_list(&rest, &entry) < 0 || rlp_u256(&entry, &chain) < 0 ||
		    rlp_fixed(&entry, address, sizeof(address)) < 0 || rlp_u64(&entry, &nonce) < 0 ||
		    rlp_u64(&entry, &y) < 0 || y > 255 || rlp_u256(&entry, &r) < 0 ||
		    rlp_u256(&entry, &s) < 0 || entry.n)
			return -EBADMSG;
	}
	return 0;
}

static int read_typed(struct view rest, struct tx *t)
{
	uint64_t y;
	const bool fees = t->type != TX_ACCESS_LIST;

	if (rlp_u64(&rest, &t->chain) < 0 || t->chain == 0 || t->chain > TX_CHAIN_MAX ||
	    rlp_u64(&rest, &t->nonce) < 0 || (fees && rlp_u256(&rest, &t->priority) < 0) ||
	    rlp_u256(&rest, &t->price) < 0 || rlp_u64(&rest, &t->gas) < 0 || read_call(&rest, t) < 0 ||
	    rlp_list(&rest, &t->access) < 0 || check_access(t->access) < 0)
		return -EBADMSG;
	if (t->type == TX_SET_CODE && (t->creation || rlp_list(&rest, &t->authorizations) < 0 ||
				       check_authorizations(t->authorizations) < 0))
		return -EBADMSG;
	if (rest.n == 0)
		return 0;
	return rlp_u64(&rest, &y) < 0 ? -EBADMSG : read_signature(&rest, t, y);
}

int tx_decode(struct view raw, struct tx *ret)
{
	struct tx t = { .data = VIEW(""), .access = VIEW(""), .authorizations = VIEW("") };
	struct rlp all;

	if (raw.n == 0 || raw.n > TX_RAW_MAX)
		return -EBADMSG;
	const uint8_t first = (uint8_t)raw.p[0];
	if (first < 0xc0) {
		if (first != TX_ACCESS_LIST && first != TX_BASE_FEE && first != TX_SET_CODE)
			return first < 0x80 ? -EOPNOTSUPP : -EBADMSG;
		t.type = first;
		raw = view_skip(raw, 1);
	}
	if (rlp_only(raw, &all) < 0 || !all.list)
		return -EBADMSG;
	int r = t.type == TX_LEGACY ? read_legacy(all.body, &t) : read_typed(all.body, &t);
	if (r == 0 && t.nonce == UINT64_MAX) /* EIP-2681 */
		r = -EBADMSG;
	if (r == 0 && u256_cmp(&t.priority, &t.price) > 0) /* EIP-1559: no chain takes it */
		r = -EBADMSG;
	if (r == 0)
		*ret = t;
	return r;
}

/* ---- writing ---- */

static void put_call(struct buf *out, const struct tx *t)
{
	rlp_put_bytes(out, t->creation ? VIEW("") : (struct view){ (const char *)t->to, ADDRESS_SIZE });
	rlp_put_u256(out, &t->value);
	rlp_put_bytes(out, t->data);
}

static void put_legacy(struct buf *out, const struct tx *t, bool with_signature)
{
	rlp_put_u64(out, t->nonce);
	rlp_put_u256(out, &t->price);
	rlp_put_u64(out, t->gas);
	put_call(out, t);
	if (with_signature) {
		rlp_put_u64(out, (t->unprotected ? 27 : t->chain * 2 + 35) + t->sig.y);
		rlp_put_u256(out, &t->sig.r);
		rlp_put_u256(out, &t->sig.s);
	} else if (!t->unprotected) {
		rlp_put_u64(out, t->chain);
		rlp_put_u64(out, 0);
		rlp_put_u64(out, 0);
	}
}

static void put_typed(struct buf *out, const struct tx *t, bool with_signature)
{
	rlp_put_u64(out, t->chain);
	rlp_put_u64(out, t->nonce);
	if (t->type == TX_BASE_FEE)
		rlp_put_u256(out, &t->priority);
	rlp_put_u256(out, &t->price);
	rlp_put_u64(out, t->gas);
	put_call(out, t);
	rlp_put_list(out, t->access);
	if (with_signature) {
		rlp_put_u64(out, t->sig.y);
		rlp_put_u256(out, &t->sig.r);
		rlp_put_u256(out, &t->sig.s);
	}
}

static int encode(const struct tx *t, bool with_signature, struct buf *out)
{
	_cleanup_(buf_done) struct buf items = BUF_INIT(TX_RAW_MAX);
	const bool chain_ok = t->unprotected ? t->type == TX_LEGACY && t->chain == 0
					     : t->chain > 0 && t->chain <= TX_CHAIN_MAX;

	const bool fees_ok = t->type != TX_BASE_FEE || u256_cmp(&t->priority, &t->price) <= 0;

	if (t->type > TX_BASE_FEE || !chain_ok || !fees_ok || t->nonce == UINT64_MAX ||
	    t->data.n > TX_DATA_MAX || t->sig.y > 1)
		return -EINVAL;
	if (t->type == TX_LEGACY) {
		put_legacy(&items, t, with_signature);
	} else {
		put_typed(&items, t, with_signature);
		buf_putc(out, (char)t->type);
	}
	if (items.bad)
		return items.bad;
	rlp_put_list(out, buf_view(&items));
	return out->bad;
}

int tx_encode(const struct tx *t, struct buf *out)
{
	return encode(t, t->is_signed, out);
}

static int hash_of(const struct tx *t, bool with_signature, uint8_t ret[SIG_HASH])
{
	_cleanup_(buf_done) struct buf raw = BUF_INIT(TX_RAW_MAX + 16);
	int r = encode(t, with_signature, &raw);

	if (r == 0)
		keccak_of(buf_view(&raw), ret);
	return r;
}

int tx_sign_hash(const struct tx *t, uint8_t ret[SIG_HASH])
{
	return hash_of(t, false, ret);
}

int tx_hash(const struct tx *t, uint8_t ret[SIG_HASH])
{
	return t->is_signed ? hash_of(t, true, ret) : -EINVAL;
}

int tx_sign(struct tx *t, const uint8_t key[SIG_KEY])
{
	uint8_t hash[SIG_HASH];

	if (t->unprotected)
		return -EINVAL;
	int r = tx_sign_hash(t, hash);
	if (r == 0)
		r = sig_sign(key, hash, &t->sig);
	t->is_signed = r == 0;
	return r;
}

int tx_sender(const struct tx *t, uint8_t ret[ADDRESS_SIZE])
{
	uint8_t hash[SIG_HASH];

	if (!t->is_signed)
		return -EINVAL;
	int r = tx_sign_hash(t, hash);
	return r < 0 ? r : sig_recover(&t->sig, hash, ret);
}

int tx_fee(const struct tx *t, struct u256 *ret)
{
	const struct u256 gas = u256_of(t->gas);

	return u256_mul(&gas, &t->price, ret);
}
