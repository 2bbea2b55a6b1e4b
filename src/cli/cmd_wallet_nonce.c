/*
 * paddock wallet nonce, paddock wallet abandon: the way out where a wallet waits for transactions that nobody
 * sends, because a node was started anew, or said once that there were more.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "amount.h"
#include "cmd.h"
#include "consent.h"
#include "num.h"
#include "owner.h"
#include "show.h"

#include "poison.h"

struct nonce_flags {
	struct owner_flags owner; /* first */
	const char *note;
	bool yes;
};

#define AT(member) offsetof(struct nonce_flags, member)

static int print(struct buf *b, struct err *e)
{
	buf_putc(b, '\n');
	return b->bad ? err_set(e, ERR_INTERNAL, "out of memory") : show_bytes(STDOUT_FILENO, buf_view(b), e);
}

static int say(struct cmd_ctx *ctx, const struct sgn_wallet *w, uint64_t chain,
	       const struct sgn_nonce_reply *reply, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT(4096);
	struct json_out json;

	if (!ctx->json) {
		buf_printf(&out, "The next transaction of %.*s on eip155:%llu gets ", VIEW_ARG(w->id),
			   (unsigned long long)chain);
		if (reply->known)
			buf_printf(&out, "nonce %llu, or the node's if that is higher",
				   (unsigned long long)reply->next);
		else
			buf_puts(&out, "the nonce that the node names: none was signed");
		return print(&out, e);
	}
	json_out_init(&json, &out);
	json_out_object(&json);
	json_out_kstr(&json, "wallet", w->id);
	json_out_ku64(&json, "chain", chain);
	json_out_key(&json, "next");
	if (reply->known)
		json_out_u64(&json, reply->next);
	else
		json_out_null(&json);
	json_out_end(&json, '}');
	return print(&out, e);
}

static int run_nonce(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e)
{
	_cleanup_(owner_done) struct owner o = OWNER_INIT;
	const struct nonce_flags *f = flags;
	struct sgn_nonce m = { .set = n == 3 };
	struct sgn_nonce_reply reply;
	struct sgn_wallet w;

	if (amount_chain(view_of(operands[1]), &m.chain, e) < 0)
		return -1;
	if (m.set && (num_u64(view_of(operands[2]), &m.next) < 0 || m.next >= INT64_MAX / 2))
		return err_set(e, ERR_INVALID, "\"%.32s\" is no nonce", operands[2]);
	if (owner_open(&o, &f->owner, &ctx->arena, e) < 0 || owner_wallet(&o, operands[0], &w, e) < 0)
		return -1;
	if (m.set && !f->yes)
		fputs("What was signed with this nonce and those behind it, and is not mined yet, may be "
		      "replaced by "
		      "what comes next. Look at the chain first.\n",
		      stderr);
	m.wallet = w.id;
	if ((m.set && consent_ask(f->yes, "Set it?", e) < 0) ||
	    owner_call(&o, SGN_SIGNER_TYPE_NONCE, &sgn_nonce_msg, &m, &sgn_nonce_reply_msg, &reply, e) < 0)
		return -1;
	return say(ctx, &w, m.chain, &reply, e);
}

static int run_abandon(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		       struct err *e)
{
	_cleanup_(owner_done) struct owner o = OWNER_INIT;
	_cleanup_(buf_done) struct buf out = BUF_INIT(16u << 10);
	const struct nonce_flags *f = flags;
	const struct view id = view_of(operands[0]);
	struct sgn_item_reply reply;
	struct json_out json;

	if (owner_open(&o, &f->owner, &ctx->arena, e) < 0 ||
	    owner_call(&o, SGN_SIGNER_TYPE_GET, &sgn_get_msg, &(struct sgn_get){ .id = id },
		       &sgn_item_reply_msg, &reply, e) < 0)
		return -1;
	if (!f->yes && reply.item) {
		(void)!show_clean(&out, reply.item->summary);
		buf_printf(&out,
			   "\nIt has nonce %llu. It is not sent again, and counts until something else was "
			   "mined with "
			   "its nonce: whoever has its bytes can still send it.\n",
			   (unsigned long long)reply.item->nonce);
		if (show_bytes(STDERR_FILENO, buf_view(&out), e) < 0)
			return -1;
	}
	if (consent_ask(f->yes, "Give it up?", e) < 0 ||
	    owner_call(&o, SGN_SIGNER_TYPE_ABANDON, &sgn_abandon_msg,
		       &(struct sgn_abandon){ .id = id, .note = view_of(f->note) }, &sgn_item_reply_msg,
		       &reply, e) < 0)
		return -1;
	if (!ctx->json)
		return 0;
	buf_clear(&out);
	json_out_init(&json, &out);
	json_out_object(&json);
	json_out_kstr(&json, "abandoned", id);
	json_out_end(&json, '}');
	return print(&out, e);
}

static const struct opt NONCE_OPTS[] = {
	{ "yes", 'y', OPT_FLAG, AT(yes), NULL, "without a question" },
};
static const struct opt ABANDON_OPTS[] = {
	{ "note", 0, OPT_TEXT, AT(note), "TEXT", "why, for the audit log" },
	{ "yes", 'y', OPT_FLAG, AT(yes), NULL, "without a question" },
};

const struct cmd cmd_wallet_nonce = {
	.name = "wallet nonce",
	.operands = "WALLET CHAIN [NEXT]",
	.summary = "show or set the nonce of a wallet's next transaction",
	.help = "For a wallet whose transactions wait for ones that nobody sends: after the node of a "
		"development\n"
		"chain was started anew, or when a node named a nonce that is too high. Give up what waits "
		"with\n"
		"`paddock wallet abandon`, then set the nonce that the chain expects.",
	.opts = NONCE_OPTS,
	.n_opts = ELEMS(NONCE_OPTS),
	.more = owner_opts,
	.n_more = OWNER_OPTS,
	.flags_size = sizeof(struct nonce_flags),
	.lead = OPTS_ANYWHERE,
	.json = true,
	.min = 2,
	.max = 3,
	.run = run_nonce,
};

const struct cmd cmd_wallet_abandon = {
	.name = "wallet abandon",
	.operands = "REQUEST",
	.summary = "give up a transaction that waits for one that nobody sends",
	.help = "It is not sent again, and counts as spent until something else was mined with its nonce:\n"
		"whoever has its bytes can still send it. Then `paddock wallet settle` releases it.",
	.opts = ABANDON_OPTS,
	.n_opts = ELEMS(ABANDON_OPTS),
	.more = owner_opts,
	.n_more = OWNER_OPTS,
	.flags_size = sizeof(struct nonce_flags),
	.lead = OPTS_ANYWHERE,
	.json = true,
	.min = 1,
	.max = 1,
	.run = run_abandon,
};
