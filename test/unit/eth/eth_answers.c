/*
 * Answers questions about src/eth, one a line, for test/it/eth/oracle.mjs, which compares the answers with
 * those of ethers. Words are separated by spaces; bytes are hex digits, "-" stands for none. An answer is a
 * line, too: "error" where the question is refused.
 */
#include <stdio.h>
#include <stdlib.h>

#include "abi.h"
#include "bip39.h"
#include "call.h"
#include "keccak.h"
#include "keystore.h"
#include "num.h"
#include "rlp.h"
#include "text.h"
#include "tx.h"
#include "typed.h"
#include "xseal.h"

#include "poison.h"

#define WORDS 16
#define LINE  (1u << 20)

static struct view words[WORDS];

static struct view bytes_of(struct arena *a, struct view digits)
{
	char *p = arena_alloc(a, digits.n / 2 + 1);

	if (view_is(digits, "-"))
		return VIEW("");
	return p && text_unhex(digits, p, digits.n / 2) == 0 ? (struct view){ p, digits.n / 2 } : VIEW_NONE;
}

static void put(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		printf("%02x", (uint8_t)v.p[i]);
	if (v.n == 0)
		putchar('-');
}

static void put_number(const struct u256 *v)
{
	char text[U256_TEXT];

	u256_text(v, text);
	printf("%s", text);
}

#define PUT(array) put((struct view){ (const char *)(array), sizeof(array) })

static int ask_keccak(struct arena *a)
{
	uint8_t hash[32];

	keccak_of(bytes_of(a, words[1]), hash);
	PUT(hash);
	return 0;
}

static int ask_address(struct arena *a)
{
	uint8_t address[ADDRESS_SIZE];
	char text[ADDRESS_TEXT];

	(void)a;
	if (address_parse(words[1], address) < 0)
		return -1;
	address_text(address, text);
	printf("%s", text);
	return 0;
}

static int ask_arithmetic(struct arena *a)
{
	struct u256 x, y;
	int r = -1;

	(void)a;
	if (u256_parse(words[2], &x) < 0 || u256_parse(words[3], &y) < 0)
		return -1;
	if (view_is(words[1], "+"))
		r = u256_add(&x, &y, &x);
	else if (view_is(words[1], "-"))
		r = u256_sub(&x, &y, &x);
	else if (view_is(words[1], "*"))
		r = u256_mul(&x, &y, &x);
	if (r == 0)
		put_number(&x);
	return r;
}

static int ask_units(struct arena *a)
{
	struct u256 v;
	uint32_t decimals;
	char text[U256_UNITS];

	(void)a;
	if (num_u32(words[2], &decimals) < 0 || u256_parse_units(words[1], decimals, &v) < 0)
		return -1;
	put_number(&v);
	u256_units(&v, decimals, text);
	printf(" %s", text);
	return 0;
}

/* sign KEY MESSAGE */
static int ask_message(struct arena *a)
{
	uint8_t hash[32], bytes[SIG_SIZE], address[ADDRESS_SIZE];
	struct sig s, back;

	sig_message_hash(bytes_of(a, words[2]), hash);
	if (sig_sign((const uint8_t *)bytes_of(a, words[1]).p, hash, &s) < 0)
		return -1;
	sig_store(&s, bytes);
	if (sig_load((struct view){ (const char *)bytes, sizeof(bytes) }, &back) < 0 ||
	    sig_recover(&back, hash, address) < 0)
		return -1;
	PUT(bytes);
	putchar(' ');
	PUT(address);
	return 0;
}

/* tx KEY TYPE CHAIN NONCE PRICE PRIORITY GAS TO VALUE DATA ACCESS */
static int ask_tx(struct arena *a)
{
	struct tx t = { 0 };
	uint64_t type;
	_cleanup_(buf_done) struct buf raw = BUF_INIT(TX_RAW_MAX);
	const struct view to = bytes_of(a, words[8]), access = bytes_of(a, words[11]);
	struct rlp list;

	if (num_u64(words[2], &type) < 0 || num_u64(words[3], &t.chain) < 0 ||
	    num_u64(words[4], &t.nonce) < 0 || u256_parse(words[5], &t.price) < 0 ||
	    u256_parse(words[6], &t.priority) < 0 || num_u64(words[7], &t.gas) < 0 ||
	    u256_parse(words[9], &t.value) < 0 || rlp_only(access, &list) < 0)
		return -1;
	t.type = (uint8_t)type;
	t.creation = to.n == 0;
	memcpy(t.to, to.p, to.n);
	t.data = bytes_of(a, words[10]);
	t.access = list.body;
	if (tx_sign(&t, (const uint8_t *)bytes_of(a, words[1]).p) < 0 || tx_encode(&t, &raw) < 0)
		return -1;
	put(buf_view(&raw));
	return 0;
}

static int ask_decode(struct arena *a)
{
	struct tx t;
	uint8_t hash[32], sender[ADDRESS_SIZE];

	if (tx_decode(bytes_of(a, words[1]), &t) < 0 || tx_hash(&t, hash) < 0 || tx_sender(&t, sender) < 0)
		return -1;
	printf("%u %llu %llu %llu ", t.type, (unsigned long long)t.chain, (unsigned long long)t.nonce,
	       (unsigned long long)t.gas);
	put_number(&t.price);
	putchar(' ');
	put_number(&t.value);
	putchar(' ');
	put(t.creation ? VIEW("") : (struct view){ (const char *)t.to, ADDRESS_SIZE });
	putchar(' ');
	put(t.data);
	putchar(' ');
	PUT(hash);
	putchar(' ');
	PUT(sender);
	return 0;
}

static int ask_rlp(struct arena *a)
{
	if (rlp_check(bytes_of(a, words[1])) < 0)
		return -1;
	printf("ok");
	return 0;
}

static int ask_typed(struct arena *a)
{
	struct typed t;
	struct err e = { 0 };

	if (typed_parse(a, bytes_of(a, words[1]), &t, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		return -1;
	}
	PUT(t.domain_hash);
	putchar(' ');
	PUT(t.struct_hash);
	putchar(' ');
	PUT(t.digest);
	return 0;
}

static void put_abi(const struct abi *v)
{
	if (v->kind != ABI_LIST) {
		put(v->bytes);
		return;
	}
	putchar('[');
	for (size_t i = 0; i < v->n; i++) {
		if (i)
			putchar(',');
		put_abi(&v->items[i]);
	}
	putchar(']');
}

static int ask_abi(struct arena *a)
{
	struct abi v;

	if (abi_decode(a, arena_str(a, words[1]), bytes_of(a, words[2]), &v) < 0)
		return -1;
	put_abi(&v);
	return 0;
}

/* call ACCOUNT TO VALUE DATA */
static int ask_call(struct arena *a)
{
	struct call_input in = { .account = (const uint8_t *)bytes_of(a, words[1]).p,
				 .to = (const uint8_t *)bytes_of(a, words[2]).p,
				 .data = bytes_of(a, words[4]) };
	struct call c;

	if (u256_parse(words[3], &in.value) < 0)
		return -1;
	call_read(&in, &c);
	printf("%s", call_class_name(c.class));
	for (unsigned i = 0; i < c.n; i++) {
		putchar(' ');
		PUT(c.effects[i].asset);
		printf(c.effects[i].approval ? "~" : ":");
		put_number(&c.effects[i].amount);
		putchar(':');
		PUT(c.effects[i].to);
	}
	buf_done(&c.tree);
	return 0;
}

/* open PASSWORD JSON; make KEY PASSWORD */
static int ask_open(struct arena *a)
{
	uint8_t key[SIG_KEY];
	struct err e = { 0 };

	if (keystore_open(bytes_of(a, words[2]), bytes_of(a, words[1]), key, &e) < 0)
		return -1;
	PUT(key);
	return 0;
}

static int ask_make(struct arena *a)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT(KEYSTORE_JSON_MAX);
	struct err e = { 0 };

	if (keystore_make((const uint8_t *)bytes_of(a, words[1]).p, bytes_of(a, words[2]), 10, &out, &e) < 0)
		return -1;
	put(buf_view(&out));
	return 0;
}

/* words ENTROPY */
static int ask_words(struct arena *a)
{
	const struct view entropy = bytes_of(a, words[1]);
	char text[BIP39_TEXT];

	if (bip39_write((const uint8_t *)entropy.p, entropy.n, text) < 0)
		return -1;
	put(view_of(text));
	return 0;
}

/* mnemonic WORDS PASSPHRASE ACCOUNT */
static int ask_mnemonic(struct arena *a)
{
	char text[BIP39_TEXT];
	uint8_t entropy[BIP39_ENTROPY], seed[BIP39_SEED], key[SIG_KEY];
	struct err e = { 0 };
	uint32_t account;
	size_t n;

	if (num_u32(words[3], &account) < 0 || bip39_read(bytes_of(a, words[1]), text, entropy, &n, &e) < 0 ||
	    bip39_seed(text, bytes_of(a, words[2]), seed, &e) < 0 ||
	    bip39_account(seed, account, key, &e) < 0)
		return -1;
	PUT(key);
	return 0;
}

static const struct {
	const char *name;
	int (*answer)(struct arena *a);
} questions[] = {
	{ "keccak", ask_keccak }, { "address", ask_address }, { "arithmetic", ask_arithmetic },
	{ "units", ask_units },   { "message", ask_message }, { "tx", ask_tx },
	{ "decode", ask_decode }, { "rlp", ask_rlp },         { "typed", ask_typed },
	{ "abi", ask_abi },       { "call", ask_call },       { "open", ask_open },
	{ "make", ask_make },     { "words", ask_words },     { "mnemonic", ask_mnemonic },
};

static void answer(struct view rest)
{
	struct arena a = ARENA_INIT(8u << 20);
	int r = -1;

	for (unsigned i = 0; i < WORDS; i++)
		words[i] = rest.p ? view_split(rest, ' ', &rest) : VIEW("");
	for (size_t i = 0; i < ELEMS(questions); i++)
		if (view_is(words[0], questions[i].name))
			r = questions[i].answer(&a);
	printf("%s\n", r < 0 ? "error" : "");
	arena_done(&a);
}

int main(void)
{
	static char line[LINE];

	if (sig_init() < 0 || xseal_init() < 0)
		return EXIT_FAILURE;
	while (fgets(line, sizeof(line), stdin))
		answer((struct view){ line, strcspn(line, "\n") });
	return EXIT_SUCCESS;
}
