/*
 * Wallets and their keys. A key is sealed for its row (wallets:sealed:ID), is opened for one signature or one
 * export, and is wiped afterwards.
 */
#include <errno.h>
#include <stdio.h>

#include "bip39.h"
#include "keystore.h"
#include "rnd.h"
#include "signer.h"
#include "text.h"
#include "trim.h"

#include "poison.h"

#define LABEL_MAX    64
#define WALLETS_MAX  256
#define PASSWORD_MIN 8
#define EXPORT_COST  17

/* "test test test test test test test test test test test junk", m/44'/60'/0'/0/i: known to everybody. */
static const char *const test_keys[] = {
	"ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
	"59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
	"5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
	"7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
	"47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
	"8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
	"92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
	"4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
	"dbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
	"2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
};

static void row_name(struct view id, char out[64])
{
	snprintf(out, 64, "wallets:sealed:%.*s", VIEW_ARG(view_head(id, SIGNER_ID)));
}

static void read_row(struct signer_call *c, sqlite3_stmt *row, struct wallet *ret)
{
	*ret = (struct wallet){ .info = { .id = arena_view(&c->arena, db_view(row, 0)),
					  .kind = sqlite3_column_int(row, 1),
					  .label = arena_view(&c->arena, db_view(row, 2)),
					  .address = arena_view(&c->arena, db_view(row, 3)),
					  .created_ms = sqlite3_column_int64(row, 5) },
				.sealed = arena_view(&c->arena, db_view(row, 4)) };
}

int wallets_get(struct signer_call *c, struct view id, struct wallet *ret, struct err *e)
{
	sqlite3_stmt *row = db_ask(&c->s->db, DB_WALLET_GET, "t", id);
	int r = db_row(&c->s->db, row, e);

	if (r == 1)
		read_row(c, row, ret);
	db_end(row);
	if (r == 0)
		return err_set(e, ERR_NOT_FOUND, "there is no wallet %.*s", VIEW_ARG(view_head(id, 64)));
	return r < 0 ? -1 : 0;
}

int wallets_key(struct signer_call *c, const struct wallet *w, uint8_t ret[SIG_KEY], struct err *e)
{
	_cleanup_(buf_done) struct buf key = { .max = 256, .secret = true };
	char name[64];

	row_name(w->info.id, name);
	if (w->sealed.n == 0)
		return err_set(e, ERR_UNSUPPORTED, "the key of wallet %.*s is elsewhere",
			       VIEW_ARG(w->info.id));
	if (xseal_open(c->s->key, view_of(name), w->sealed, &key) < 0 || buf_len(&key) != SIG_KEY)
		return err_set(e, ERR_INTERNAL, "the key of wallet %.*s cannot be opened",
			       VIEW_ARG(w->info.id));
	memcpy(ret, buf_view(&key).p, SIG_KEY);
	return 0;
}

/* ---- adding ---- */

/* The words are what a person writes down; the key comes from them and is what is kept. */
static int make_key(const struct sgn_wallet_add *m, uint8_t key[SIG_KEY], char words[static BIP39_TEXT],
		    struct err *e)
{
	uint8_t entropy[BIP39_ENTROPY], seed[BIP39_SEED];

	if (m->words != 0 && m->words != 12 && m->words != 24)
		return err_set(e, ERR_INVALID, "a key is written down as 12 or 24 words");
	rnd_bytes(entropy, sizeof(entropy));
	int r = bip39_write(entropy, m->words == 12 ? 16 : sizeof(entropy), words) < 0
			? err_set(e, ERR_INTERNAL, "the words")
			: bip39_seed(words, VIEW(""), seed, e);
	if (r == 0)
		r = bip39_account(seed, 0, key, e);
	explicit_bzero(entropy, sizeof(entropy));
	explicit_bzero(seed, sizeof(seed));
	return r;
}

static int read_words(const struct sgn_wallet_add *m, uint8_t key[SIG_KEY], struct err *e)
{
	char words[BIP39_TEXT];
	uint8_t entropy[BIP39_ENTROPY], seed[BIP39_SEED];
	size_t n;
	int r = bip39_read(m->mnemonic, words, entropy, &n, e);

	if (r == 0)
		r = bip39_seed(words, m->passphrase, seed, e);
	if (r == 0)
		r = bip39_account(seed, m->account, key, e);
	explicit_bzero(words, sizeof(words));
	explicit_bzero(entropy, sizeof(entropy));
	explicit_bzero(seed, sizeof(seed));
	return r;
}

static int import_key(const struct sgn_wallet_add *m, uint8_t key[SIG_KEY], struct err *e)
{
	if ((m->keystore.n != 0) + (m->mnemonic.n != 0) + (m->key.n != 0) != 1)
		return err_set(e, ERR_INVALID,
			       "a wallet is imported from a keystore, from words or from a key");
	if (m->mnemonic.n == 0 && (m->account || m->passphrase.n))
		return err_set(e, ERR_INVALID, "account and passphrase belong to words");
	if (m->mnemonic.n)
		return read_words(m, key, e);
	if (m->keystore.n)
		return keystore_open(m->keystore, m->password, key, e);
	if (m->key.n != SIG_KEY || !sig_key_valid((const uint8_t *)m->key.p))
		return err_set(e, ERR_INVALID, "a key has 32 bytes, and is neither 0 nor too large");
	memcpy(key, m->key.p, SIG_KEY);
	return 0;
}

static int take_key(const struct sgn_wallet_add *m, uint8_t key[SIG_KEY], char words[static BIP39_TEXT],
		    struct err *e)
{
	switch (m->kind) {
	case SGN_WALLET_KIND_TEST:
		if (m->test_index >= ELEMS(test_keys))
			return err_set(e, ERR_INVALID, "test accounts have the numbers 0 to 9");
		return text_unhex(view_of(test_keys[m->test_index]), key, SIG_KEY) < 0 ? -1 : 0;
	case SGN_WALLET_KIND_GENERATED:
		return make_key(m, key, words, e);
	case SGN_WALLET_KIND_IMPORTED:
		return import_key(m, key, e);
	default:
		return err_set(e, ERR_INVALID, "not a kind of wallet");
	}
}

/* A well-known key must not come in as somebody's own: it would be used on chains of value. */
static int refuse_known_key(const struct sgn_wallet_add *m, const uint8_t key[SIG_KEY], struct err *e)
{
	uint8_t known[SIG_KEY];

	for (size_t i = 0; m->kind == SGN_WALLET_KIND_IMPORTED && i < ELEMS(test_keys); i++)
		if (text_unhex(view_of(test_keys[i]), known, SIG_KEY) == 0 &&
		    memcmp(known, key, SIG_KEY) == 0)
			return err_set(e, ERR_FORBIDDEN,
				       "this key is known to everybody: add it as a test account");
	return 0;
}

static int store(struct signer_call *c, const struct sgn_wallet *w, struct view sealed, struct err *e)
{
	struct signer *s = c->s;
	/* What one transaction and one day may cost in fees: 0.01 and 0.1 of the native asset. */
	const struct u256 fee = u256_of(10000000000000000), day = u256_of(100000000000000000);
	char scope[LEDGER_SCOPE], fee32[32], day32[32];

	snprintf(scope, sizeof(scope), "wallet:%.*s", VIEW_ARG(w->id));
	u256_store(&fee, fee32);
	u256_store(&day, day32);
	const struct sgn_rules rules = { .scope = view_of(scope),
					 .fee_per_tx = { fee32, 32 },
					 .fee_day = { day32, 32 } };
	if (db_begin(&s->db, e) < 0 ||
	    db_do(&s->db, DB_WALLET_ADD, e, "titbbi", w->id, (int64_t)w->kind, w->label, w->address, sealed,
		  w->created_ms) < 0 ||
	    rules_store(c, &rules, e) < 0 ||
	    audit_add(s, calls_actor(c), "wallet.add", w->id, VIEW("{}"), e) < 0 ||
	    db_commit(&s->db, e) < 0) {
		db_rollback(&s->db);
		return -1;
	}
	return 0;
}

static int add_with_key(struct signer_call *c, const struct sgn_wallet_add *m, struct sgn_wallet *w,
			const uint8_t key[SIG_KEY], const char *words, struct err *e)
{
	_cleanup_(buf_done) struct buf sealed = BUF_INIT(256);
	uint8_t address[ADDRESS_SIZE];
	char name[64], backup[2 * SIG_KEY + 3] = "";

	row_name(w->id, name);
	if (refuse_known_key(m, key, e) < 0)
		return -1;
	if (sig_address(key, address) < 0 ||
	    xseal_close(c->s->key, view_of(name), (struct view){ (const char *)key, SIG_KEY }, &sealed) < 0)
		return err_set(e, ERR_INTERNAL, "the key cannot be sealed");
	w->address = (struct view){ (const char *)address, sizeof(address) };
	if (store(c, w, buf_view(&sealed), e) < 0)
		return -1;
	if (m->kind == SGN_WALLET_KIND_GENERATED) {
		memcpy(backup, "0x", 2);
		text_hex(key, SIG_KEY, backup + 2);
	}
	int r = calls_reply(c, &sgn_wallet_added_msg,
			    &(struct sgn_wallet_added){
				    .wallet = w, .backup = view_of(backup), .mnemonic = view_of(words) });
	explicit_bzero(backup, sizeof(backup));
	return r;
}

/* One that is there, with this address, is the answer; WALLETS_MAX of all kinds is the limit. */
static int find_external(struct signer_call *c, struct view address, struct sgn_wallet *ret, struct err *e)
{
	sqlite3_stmt *row = db_ask(&c->s->db, DB_WALLET_LIST, "");
	struct wallet w;
	unsigned n = 0;
	bool found = false;
	int r;

	while ((r = db_row(&c->s->db, row, e)) == 1) {
		read_row(c, row, &w);
		n++;
		if (w.info.kind == SGN_WALLET_KIND_EXTERNAL && view_eq(w.info.address, address)) {
			*ret = w.info;
			found = true;
		}
	}
	db_end(row);
	if (r == 0 && !found && n >= WALLETS_MAX)
		return err_set(e, ERR_QUOTA, "there are %d wallets: remove one first", WALLETS_MAX);
	return r < 0 ? -1 : found;
}

static int add_external(struct signer_call *c, const struct sgn_wallet_add *m, struct sgn_wallet *w,
			struct err *e)
{
	w->address = m->address;
	if (m->address.n != ADDRESS_SIZE)
		return err_set(e, ERR_INVALID, "an external wallet has an address");
	int r = find_external(c, m->address, w, e);
	if (r < 0 || (r == 0 && store(c, w, VIEW(""), e) < 0))
		return -1;
	return calls_reply(c, &sgn_wallet_added_msg, &(struct sgn_wallet_added){ .wallet = w });
}

int wallets_call_add(struct signer_call *c, const void *msg, struct err *e)
{
	const struct sgn_wallet_add *m = msg;
	uint8_t key[SIG_KEY];
	char id[SIGNER_ID], words[BIP39_TEXT] = "";
	struct sgn_wallet w = { .kind = m->kind, .label = m->label, .created_ms = moment_now(c->s) };

	if (m->label.n < 1 || m->label.n > LABEL_MAX || !text_is_utf8(m->label))
		return err_set(e, ERR_INVALID, "a wallet's label has 1 to %d bytes", LABEL_MAX);
	rnd_name(id, 16);
	w.id = view_of(id);
	if (m->kind == SGN_WALLET_KIND_EXTERNAL)
		return add_external(c, m, &w, e);
	/* An external wallet spends nothing until the owner's rules name it. A key is another matter. */
	if (c->role != SGN_SIGNER_ROLE_OWNER)
		return err_set(e, ERR_FORBIDDEN, "keys are added by the owner alone");
	int r = take_key(m, key, words, e);
	if (r == 0)
		r = add_with_key(c, m, &w, key, words, e);
	explicit_bzero(key, sizeof(key));
	explicit_bzero(words, sizeof(words));
	trim_locked(); /* libcrypto's part in this is needed once in a while */
	return r;
}

/* ---- the others ---- */

static bool has_wallet(const struct sgn_rules *r, struct view id)
{
	for (size_t i = 0; i < r->wallets.n; i++)
		if (view_eq(r->wallets.items[i].wallet, id))
			return true;
	return false;
}

static int add_agent(struct arena *a, struct sgn_wallet *w, struct view scope, struct err *e)
{
	struct view *more = arena_array(a, w->agents.n + 1, sizeof(*more));
	struct view id = arena_view(a, view_skip(scope, strlen("agent:")));

	if (!more || !id.p)
		return err_set(e, ERR_TOO_LARGE, "too many agents");
	if (w->agents.n)
		memcpy(more, w->agents.items, w->agents.n * sizeof(*more));
	more[w->agents.n++] = id;
	w->agents.items = more;
	return 0;
}

/* Those whose rules name each wallet: who could spend nothing without it. */
static int read_agents(struct signer_call *c, struct sgn_wallet_list_reply *out, struct err *e)
{
	_cleanup_(arena_done) struct arena one = ARENA_INIT(1u << 20);
	sqlite3_stmt *row = db_ask(&c->s->db, DB_RULES_AGENTS, "");
	struct sgn_rules rules;
	int r;

	while ((r = db_row(&c->s->db, row, e)) == 1) {
		arena_reset(&one);
		rules = (struct sgn_rules){ 0 };
		if (pb_decode(&sgn_rules_msg, db_view(row, 1), 0, &one, &rules) < 0)
			continue; /* damaged ones allow nothing: rules_load */
		for (size_t i = 0; r == 1 && i < out->wallets.n; i++)
			if (has_wallet(&rules, out->wallets.items[i].id) &&
			    add_agent(&c->arena, &out->wallets.items[i], db_view(row, 0), e) < 0)
				r = -1;
		if (r < 0)
			break;
	}
	db_end(row);
	return r < 0 ? -1 : 0;
}

int wallets_call_list(struct signer_call *c, const void *msg, struct err *e)
{
	struct sgn_wallet_list_reply out = { .wallets.items = arena_array(&c->arena, WALLETS_MAX,
									  sizeof(*out.wallets.items)) };
	sqlite3_stmt *row = db_ask(&c->s->db, DB_WALLET_LIST, "");
	struct wallet w;
	int r = 0;

	(void)msg;
	while (out.wallets.items && out.wallets.n < WALLETS_MAX && (r = db_row(&c->s->db, row, e)) == 1) {
		read_row(c, row, &w);
		out.wallets.items[out.wallets.n++] = w.info;
	}
	db_end(row);
	if (r < 0 || (c->role == SGN_SIGNER_ROLE_OWNER && read_agents(c, &out, e) < 0))
		return -1;
	return calls_reply(c, &sgn_wallet_list_reply_msg, &out);
}

int wallets_call_export(struct signer_call *c, const void *msg, struct err *e)
{
	const struct sgn_wallet_export *m = msg;
	_cleanup_(buf_done) struct buf json = BUF_INIT(KEYSTORE_JSON_MAX);
	struct wallet w;
	uint8_t key[SIG_KEY];

	if (m->password.n < PASSWORD_MIN)
		return err_set(e, ERR_INVALID, "the password must have at least %d bytes", PASSWORD_MIN);
	if (wallets_get(c, m->id, &w, e) < 0)
		return -1;
	if (w.info.kind == SGN_WALLET_KIND_TEST)
		return err_set(e, ERR_UNSUPPORTED, "a test account's key is known to everybody");
	if (wallets_key(c, &w, key, e) < 0)
		return -1;
	int r = keystore_make(key, m->password, EXPORT_COST, &json, e);
	explicit_bzero(key, sizeof(key));
	trim_locked();
	if (r < 0)
		return -1;
	if (db_begin(&c->s->db, e) < 0 ||
	    audit_add(c->s, calls_actor(c), "wallet.export", m->id, VIEW("{}"), e) < 0 ||
	    db_commit(&c->s->db, e) < 0) {
		db_rollback(&c->s->db);
		return -1;
	}
	return calls_reply(c, &sgn_wallet_exported_msg,
			   &(struct sgn_wallet_exported){ .keystore = buf_view(&json) });
}

static int busy(struct signer_call *c, struct view id, struct err *e)
{
	sqlite3_stmt *row = db_ask(&c->s->db, DB_WALLET_BUSY, "t", id);
	int r = db_row(&c->s->db, row, e);

	db_end(row);
	return r == 1 ? err_set(e, ERR_STATE, "requests of this wallet are under way") : r;
}

int wallets_call_remove(struct signer_call *c, const void *msg, struct err *e)
{
	const struct sgn_wallet_remove *m = msg;
	struct wallet w;

	if (wallets_get(c, m->id, &w, e) < 0 || busy(c, m->id, e) < 0)
		return -1;
	if (db_begin(&c->s->db, e) < 0 || db_do(&c->s->db, DB_WALLET_REMOVE, e, "t", m->id) < 0 ||
	    audit_add(c->s, calls_actor(c), "wallet.remove", m->id, VIEW("{}"), e) < 0 ||
	    db_commit(&c->s->db, e) < 0) {
		db_rollback(&c->s->db);
		return -1;
	}
	return calls_reply(c, &sgn_wallet_removed_msg, &(struct sgn_wallet_removed){ 0 });
}
