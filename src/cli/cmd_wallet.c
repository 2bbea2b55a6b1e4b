/*
 * paddock wallet: the keys that agents spend from, by the owner's channel (owner.h). Keys and passwords come
 * from files or the terminal, never from the command line.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "address.h"
#include "amount.h"
#include "clock.h"
#include "cmd.h"
#include "consent.h"
#include "fd.h"
#include "num.h"
#include "owner.h"
#include "password.h"
#include "show.h"
#include "text.h"

#include "poison.h"

#define FILE_MAX     (64u * 1024) /* of a key */
#define PASSWORD_MAX 1024
#define KEY_SIZE     32

struct wallet_flags {
	struct owner_flags owner; /* first */
	const char *name, *password_file, *passphrase_file, *output, *note;
	uint64_t words, account;
	bool yes, cancel_pending;
};

#define AT(member) offsetof(struct wallet_flags, member)
#define COMMAND(the_opts)                                                                                    \
	.opts = the_opts, .n_opts = ELEMS(the_opts), .more = owner_opts, .n_more = OWNER_OPTS,               \
	.flags_size = sizeof(struct wallet_flags), .lead = OPTS_ANYWHERE, .json = true
#define COMMAND_BARE                                                                                         \
	.more = owner_opts, .n_more = OWNER_OPTS, .flags_size = sizeof(struct wallet_flags),                 \
	.lead = OPTS_ANYWHERE, .json = true

/* ---- what they are shown as ---- */

static const char *kind_name(int32_t kind)
{
	static const char *const names[] = { [SGN_WALLET_KIND_TEST] = "test",
					     [SGN_WALLET_KIND_GENERATED] = "generated",
					     [SGN_WALLET_KIND_IMPORTED] = "imported",
					     [SGN_WALLET_KIND_EXTERNAL] = "external" };

	return kind > 0 && kind < (int32_t)ELEMS(names) ? names[kind] : "unknown";
}

static void address_of(const struct sgn_wallet *w, char out[ADDRESS_TEXT])
{
	out[0] = '\0';
	if (w->address.n == ADDRESS_SIZE)
		address_text((const uint8_t *)w->address.p, out);
}

static void put_wallet(struct json_out *o, const struct sgn_wallet *w)
{
	char address[ADDRESS_TEXT], created[CLOCK_RFC3339_SIZE];

	address_of(w, address);
	clock_rfc3339(w->created_ms, created);
	json_out_object(o);
	json_out_kstr(o, "id", w->id);
	json_out_kz(o, "kind", kind_name(w->kind));
	json_out_kstr(o, "label", w->label);
	json_out_kz(o, "address", address);
	json_out_kz(o, "created_at", created);
	json_out_key(o, "agents");
	json_out_array(o);
	for (size_t i = 0; i < w->agents.n; i++)
		json_out_str(o, w->agents.items[i]);
	json_out_end(o, ']');
}

static int print_buf(struct buf *b, struct err *e)
{
	buf_putc(b, '\n');
	return b->bad ? err_set(e, ERR_INTERNAL, "out of memory") : show_bytes(STDOUT_FILENO, buf_view(b), e);
}

static int open_owner(struct cmd_ctx *ctx, const struct wallet_flags *f, struct owner *o, struct err *e)
{
	ctx->arena.secret = true;
	return owner_open(o, &f->owner, &ctx->arena, e);
}

/* ---- ls ---- */

static int run_ls(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
		  struct err *e)
{
	static const char *const titles[] = { "ID", "LABEL", "KIND", "ADDRESS" };
	_cleanup_(owner_done) struct owner o = OWNER_INIT;
	_cleanup_(buf_done) struct buf out = BUF_INIT(1u << 20);
	struct sgn_wallet_list_reply list;
	struct show_table t;
	struct json_out json;

	if (open_owner(ctx, flags, &o, e) < 0 ||
	    owner_call(&o, SGN_SIGNER_TYPE_WALLET_LIST, &sgn_wallet_list_msg, &(struct sgn_wallet_list){ 0 },
		       &sgn_wallet_list_reply_msg, &list, e) < 0)
		return -1;
	if (ctx->json) {
		json_out_init(&json, &out);
		json_out_array(&json);
		for (size_t i = 0; i < list.wallets.n; i++) {
			put_wallet(&json, &list.wallets.items[i]);
			json_out_end(&json, '}');
		}
		json_out_end(&json, ']');
		return print_buf(&out, e);
	}
	show_table_init(&t, titles, ELEMS(titles));
	for (size_t i = 0; i < list.wallets.n; i++) {
		const struct sgn_wallet *w = &list.wallets.items[i];
		char address[ADDRESS_TEXT];
		address_of(w, address);
		show_table_add(&t, (struct view[]){ w->id, w->label, view_of(kind_name(w->kind)),
						    show_keep(&t, view_of(address)) });
	}
	int r = show_table_print(&t, e);
	show_table_done(&t);
	return r;
}

const struct cmd cmd_wallet_ls = {
	.name = "wallet ls",
	.operands = "",
	.summary = "list the wallets",
	COMMAND_BARE,
	.run = run_ls,
};

/* ---- adding ---- */

/* What whoever has it can spend: shown once, and kept nowhere. */
static void put_backup(struct buf *out, const struct sgn_wallet_added *a)
{
	if (!a->mnemonic.n && !a->backup.n)
		return;
	buf_puts(out, "\n\nIts backup is shown now and never again:\n\n");
	if (a->mnemonic.n)
		buf_printf(out, "  %.*s\n", VIEW_ARG(a->mnemonic));
	else
		buf_printf(out, "  %.*s\n", VIEW_ARG(a->backup));
	buf_puts(out, "\nWrite it down on paper and keep it where nobody else finds it. Whoever reads it can "
		      "spend\nwhat the wallet has; without it, a lost disk is lost money.");
}

static int add(struct cmd_ctx *ctx, const struct wallet_flags *f, const struct sgn_wallet_add *m,
	       struct err *e)
{
	_cleanup_(owner_done) struct owner o = OWNER_INIT;
	_cleanup_(buf_done) struct buf out = { .max = 64u << 10, .secret = true };
	struct sgn_wallet_added added;
	struct json_out json;
	char address[ADDRESS_TEXT];

	if (open_owner(ctx, f, &o, e) < 0 || owner_call(&o, SGN_SIGNER_TYPE_WALLET_ADD, &sgn_wallet_add_msg,
							m, &sgn_wallet_added_msg, &added, e) < 0)
		return -1;
	if (!added.wallet)
		return err_set(e, ERR_INTERNAL, "the signer's answer has no wallet");
	if (ctx->json) {
		json_out_init(&json, &out);
		put_wallet(&json, added.wallet);
		if (added.mnemonic.n)
			json_out_kstr(&json, "mnemonic", added.mnemonic);
		if (added.backup.n)
			json_out_kstr(&json, "key", added.backup);
		json_out_end(&json, '}');
		return print_buf(&out, e);
	}
	address_of(added.wallet, address);
	buf_puts(&out, "wallet ");
	(void)!show_clean(&out, added.wallet->label);
	buf_printf(&out, " (%.*s): %s", VIEW_ARG(added.wallet->id), address);
	put_backup(&out, &added);
	return print_buf(&out, e);
}

static const struct opt NEW_OPTS[] = {
	{ "words", 0, OPT_COUNT, AT(words), "N", "of the backup: 12 or 24 (default: 24)" },
};

static int run_new(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	const struct wallet_flags *f = flags;

	if (f->words && f->words != 12 && f->words != 24)
		return err_set(e, ERR_INVALID, "--words must be 12 or 24");
	return add(ctx, f,
		   &(struct sgn_wallet_add){ .kind = SGN_WALLET_KIND_GENERATED,
					     .label = view_of(operands[0]),
					     .words = (uint32_t)f->words },
		   e);
}

const struct cmd cmd_wallet_new = {
	.name = "wallet new",
	.operands = "NAME",
	.summary = "make a wallet with a new key, and show its backup once",
	COMMAND(NEW_OPTS),
	.min = 1,
	.max = 1,
	.run = run_new,
};

static const struct opt IMPORT_OPTS[] = {
	{ "name", 'n', OPT_TEXT, AT(name), "NAME", "what it is called here (default: imported)" },
	{ "password-file", 0, OPT_TEXT, AT(password_file), "FILE",
	  "the password of a keystore (default: asked for)" },
	{ "passphrase-file", 0, OPT_TEXT, AT(passphrase_file), "FILE",
	  "the passphrase of words that have one" },
	{ "account", 0, OPT_COUNT, AT(account), "N", "of words: the key m/44'/60'/0'/0/N (default: 0)" },
};

/* A keystore, a key of 64 digits, or words. */
static int read_import(const struct wallet_flags *f, struct view text, uint8_t key[KEY_SIZE],
		       struct buf *password, struct sgn_wallet_add *m, struct err *e)
{
	struct view hex = view_starts(text, "0x") ? view_skip(text, 2) : text;

	if (text.n && text.p[0] == '{') {
		m->keystore = text;
		if (password_read(f->password_file, "password of the keystore", false, password, e) < 0)
			return -1;
		m->password = buf_view(password);
	} else if (hex.n == 2 * KEY_SIZE && text_unhex(hex, key, KEY_SIZE) == 0) {
		m->key = (struct view){ (const char *)key, KEY_SIZE };
	} else if (memchr(text.p, ' ', text.n)) {
		if (f->passphrase_file &&
		    password_read(f->passphrase_file, "passphrase", false, password, e) < 0)
			return -1;
		m->mnemonic = text;
		m->passphrase = buf_view(password);
		m->account = (uint32_t)f->account;
	} else {
		return err_set(e, ERR_INVALID,
			       "a file to import is a keystore (JSON), 12 to 24 words, or a key of "
			       "64 hexadecimal digits");
	}
	return 0;
}

static int run_import(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		      struct err *e)
{
	_cleanup_(buf_done) struct buf file = { .max = FILE_MAX, .secret = true };
	_cleanup_(buf_done) struct buf password = { .max = PASSWORD_MAX, .secret = true };
	const struct wallet_flags *f = flags;
	struct sgn_wallet_add m = { .kind = SGN_WALLET_KIND_IMPORTED,
				    .label = view_of(f->name ? f->name : "imported") };
	uint8_t key[KEY_SIZE];

	if (password_slurp(operands[0], &file, e) < 0)
		return -1;
	for (size_t i = 0; i < file.n; i++)
		if (file.p[i] == '\n' || file.p[i] == '\r')
			file.p[i] = ' '; /* words may stand on several lines */
	int r = read_import(f, view_trim(buf_view(&file)), key, &password, &m, e);
	if (r == 0)
		r = add(ctx, f, &m, e);
	explicit_bzero(key, sizeof(key));
	return r;
}

const struct cmd cmd_wallet_import = {
	.name = "wallet import",
	.operands = "FILE",
	.summary = "add a wallet from a keystore, words, or a key (-: standard input)",
	COMMAND(IMPORT_OPTS),
	.min = 1,
	.max = 1,
	.run = run_import,
};

static const struct opt TEST_OPTS[] = {
	{ "name", 'n', OPT_TEXT, AT(name), "NAME", "what it is called here (default: test-N)" },
};

static int run_test(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	const struct wallet_flags *f = flags;
	uint32_t index;
	char name[32];

	if (num_u32(view_of(operands[0]), &index) < 0 || index > 9)
		return err_set(e, ERR_INVALID, "test accounts have the numbers 0 to 9");
	snprintf(name, sizeof(name), "test-%u", index);
	return add(ctx, f,
		   &(struct sgn_wallet_add){ .kind = SGN_WALLET_KIND_TEST,
					     .label = view_of(f->name ? f->name : name),
					     .test_index = index },
		   e);
}

const struct cmd cmd_wallet_test = {
	.name = "wallet test",
	.operands = "N",
	.summary = "add a well-known account of development chains (31337, 1337)",
	COMMAND(TEST_OPTS),
	.min = 1,
	.max = 1,
	.run = run_test,
};

static int run_external(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
			struct err *e)
{
	struct sgn_wallet_add m = { .kind = SGN_WALLET_KIND_EXTERNAL, .label = view_of(operands[1]) };

	return amount_address(&ctx->arena, view_of(operands[0]), &m.address, e) < 0 ? -1
										    : add(ctx, flags, &m, e);
}

const struct cmd cmd_wallet_external = {
	.name = "wallet external",
	.operands = "ADDRESS NAME",
	.summary = "add a wallet whose key is elsewhere: in a browser or a phone",
	COMMAND_BARE,
	.min = 2,
	.max = 2,
	.run = run_external,
};

/* ---- export, rm ---- */

static const struct opt EXPORT_OPTS[] = {
	{ "password-file", 0, OPT_TEXT, AT(password_file), "FILE",
	  "the password that the keystore gets (default: asked for twice)" },
	{ "output", 'o', OPT_TEXT, AT(output), "FILE", "write it there, readable by root alone" },
};

static int write_file(const char *path, struct view v, struct err *e)
{
	_cleanup_(closep) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0600);

	if (fd < 0)
		return err_sys(e, ERR_INVALID, errno, "%.100s", path);
	if (show_bytes(fd, v, e) < 0)
		return -1;
	return fsync(fd) < 0 ? err_sys(e, ERR_STORAGE, errno, "%.100s", path) : 0;
}

static int run_export(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		      struct err *e)
{
	_cleanup_(owner_done) struct owner o = OWNER_INIT;
	_cleanup_(buf_done) struct buf password = { .max = PASSWORD_MAX, .secret = true };
	const struct wallet_flags *f = flags;
	struct sgn_wallet_exported out;
	struct sgn_wallet w;

	if (open_owner(ctx, f, &o, e) < 0 || owner_wallet(&o, operands[0], &w, e) < 0 ||
	    password_read(f->password_file, "password of the new keystore", true, &password, e) < 0 ||
	    owner_call(&o, SGN_SIGNER_TYPE_WALLET_EXPORT, &sgn_wallet_export_msg,
		       &(struct sgn_wallet_export){ .id = w.id, .password = buf_view(&password) },
		       &sgn_wallet_exported_msg, &out, e) < 0)
		return -1;
	if (f->output)
		return write_file(f->output, out.keystore, e);
	return show_bytes(STDOUT_FILENO, out.keystore, e) < 0 ? -1 : show_bytes(STDOUT_FILENO, VIEW("\n"), e);
}

const struct cmd cmd_wallet_export = {
	.name = "wallet export",
	.operands = "WALLET",
	.summary = "write a wallet's key as a keystore that a password protects",
	COMMAND(EXPORT_OPTS),
	.min = 1,
	.max = 1,
	.run = run_export,
};

static const struct opt RM_OPTS[] = {
	{ "yes", 'y', OPT_FLAG, AT(yes), NULL, "without a question" },
};

static void warn_removal(const struct sgn_wallet *w)
{
	if (w->kind == SGN_WALLET_KIND_GENERATED || w->kind == SGN_WALLET_KIND_IMPORTED)
		fputs("The key is destroyed. Without its backup, what the wallet has is lost.\n", stderr);
	for (size_t i = 0; i < w->agents.n; i++)
		fprintf(stderr, "The agent %.*s spends from it, and could no longer.\n",
			VIEW_ARG(w->agents.items[i]));
}

static int run_rm(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	_cleanup_(owner_done) struct owner o = OWNER_INIT;
	_cleanup_(buf_done) struct buf out = BUF_INIT(4096);
	const struct wallet_flags *f = flags;
	struct sgn_wallet w;
	struct json_out json;

	if (open_owner(ctx, f, &o, e) < 0 || owner_wallet(&o, operands[0], &w, e) < 0)
		return -1;
	if (!f->yes || w.agents.n)
		warn_removal(&w);
	if (consent_ask(f->yes, "Remove it?", e) < 0 ||
	    owner_call(&o, SGN_SIGNER_TYPE_WALLET_REMOVE, &sgn_wallet_remove_msg,
		       &(struct sgn_wallet_remove){ .id = w.id }, &sgn_wallet_removed_msg, NULL, e) < 0)
		return -1;
	if (!ctx->json)
		return 0;
	json_out_init(&json, &out);
	json_out_object(&json);
	json_out_kstr(&json, "removed", w.id);
	json_out_end(&json, '}');
	return print_buf(&out, e);
}

const struct cmd cmd_wallet_rm = {
	.name = "wallet rm",
	.operands = "WALLET",
	.summary = "remove a wallet and destroy its key",
	COMMAND(RM_OPTS),
	.min = 1,
	.max = 1,
	.run = run_rm,
};

/* ---- the kill switch ---- */

static int set_pause(struct cmd_ctx *ctx, const struct wallet_flags *f, bool paused, struct err *e)
{
	_cleanup_(owner_done) struct owner o = OWNER_INIT;
	_cleanup_(buf_done) struct buf out = BUF_INIT(4096);
	struct sgn_paused reply;
	struct json_out json;

	if (open_owner(ctx, f, &o, e) < 0 ||
	    owner_call(&o, SGN_SIGNER_TYPE_PAUSE, &sgn_pause_msg,
		       &(struct sgn_pause){ .paused = paused, .cancel_pending = f->cancel_pending },
		       &sgn_paused_msg, &reply, e) < 0)
		return -1;
	if (!ctx->json)
		return 0;
	json_out_init(&json, &out);
	json_out_object(&json);
	json_out_kbool(&json, "paused", paused);
	json_out_ku64(&json, "cancelled", reply.cancelled);
	json_out_end(&json, '}');
	return print_buf(&out, e);
}

static const struct opt PAUSE_OPTS[] = {
	{ "cancel-pending", 0, OPT_FLAG, AT(cancel_pending), NULL, "cancel the requests that wait as well" },
};

static int run_pause(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
		     struct err *e)
{
	return set_pause(ctx, flags, true, e);
}

static int run_resume(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
		      struct err *e)
{
	return set_pause(ctx, flags, false, e);
}

const struct cmd cmd_wallet_pause = {
	.name = "wallet pause",
	.operands = "",
	.summary = "the kill switch: nothing is signed any more, for any agent",
	COMMAND(PAUSE_OPTS),
	.run = run_pause,
};

const struct cmd cmd_wallet_resume = {
	.name = "wallet resume",
	.operands = "",
	.summary = "end the kill switch",
	COMMAND_BARE,
	.run = run_resume,
};

/* ---- settle ---- */

static const struct opt SETTLE_OPTS[] = {
	{ "note", 0, OPT_TEXT, AT(note), "TEXT", "why, for the audit log" },
	{ "yes", 'y', OPT_FLAG, AT(yes), NULL, "without a question" },
};

/* What it is about, as the signer says it. */
static int say_request(const struct sgn_item *i, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT(16u << 10);
	char hash[2 * 32 + 1] = "";

	(void)!show_clean(&out, i->summary);
	buf_puts(&out, "\nIt counts as spent until you say that it ended without spending. Look at the chain "
		       "first.\n");
	if (i->hash.n == 32) {
		text_hex((const uint8_t *)i->hash.p, 32, hash);
		buf_printf(&out, "Its transaction: 0x%s on eip155:%llu\n", hash,
			   (unsigned long long)i->chain);
	}
	return show_bytes(STDERR_FILENO, buf_view(&out), e);
}

static int run_settle(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		      struct err *e)
{
	_cleanup_(owner_done) struct owner o = OWNER_INIT;
	_cleanup_(buf_done) struct buf out = BUF_INIT(4096);
	const struct wallet_flags *f = flags;
	struct sgn_item_reply reply;
	struct json_out json;

	if (open_owner(ctx, f, &o, e) < 0 ||
	    owner_call(&o, SGN_SIGNER_TYPE_GET, &sgn_get_msg, &(struct sgn_get){ .id = view_of(operands[0]) },
		       &sgn_item_reply_msg, &reply, e) < 0)
		return -1;
	if (!f->yes && reply.item && say_request(reply.item, e) < 0)
		return -1;
	if (consent_ask(f->yes, "Count it no longer?", e) < 0 ||
	    owner_call(&o, SGN_SIGNER_TYPE_SETTLE, &sgn_settle_msg,
		       &(struct sgn_settle){ .id = view_of(operands[0]), .note = view_of(f->note) },
		       &sgn_item_reply_msg, &reply, e) < 0)
		return -1;
	if (!ctx->json)
		return 0;
	json_out_init(&json, &out);
	json_out_object(&json);
	json_out_kstr(&json, "settled", view_of(operands[0]));
	json_out_end(&json, '}');
	return print_buf(&out, e);
}

const struct cmd cmd_wallet_settle = {
	.name = "wallet settle",
	.operands = "REQUEST",
	.summary = "no longer count what a request that ended did not spend",
	.help = "For requests that were dropped, replaced, reverted or failed. Look at the chain first: a\n"
		"transaction that was signed can be sent by whoever has its bytes.",
	COMMAND(SETTLE_OPTS),
	.min = 1,
	.max = 1,
	.run = run_settle,
};
