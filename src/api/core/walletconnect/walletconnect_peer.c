/*
 * What wallets say, and what is said to them apart from requests: proposal, settlement, changes of a session,
 * its end. A message is acknowledged to the relay when what it says is kept; until then the relay delivers it
 * again.
 */
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "config.h"
#include "core_base.h"
#include "log.h"
#include "text.h"
#include "walletconnect_impl.h"
#include "poison.h"

#define TEXT_MAX    (64u * 1024)
#define SESSION_MS  (INT64_C(604800) * 1000) /* at most, as the protocol says */
#define READ_MEMORY (4u * 1024 * 1024)

/* ---- out ---- */

static bool of_pairing(const struct wc_session *s, struct view topic)
{
	return view_is(topic, s->pairing.topic);
}

static void send_text(struct wc_session *s, bool pairing, struct view text, uint32_t tag, uint32_t ttl_s)
{
	const struct wc_message m = { .topic = view_of(pairing ? s->pairing.topic : s->topic),
				      .key = pairing ? s->pairing.key : s->key,
				      .text = text,
				      .tag = tag,
				      .ttl_s = ttl_s };
	struct err e = { 0 };

	if (walletconnect_relay_publish(s->core, &m, NULL, NULL, &e) < 0)
		log_warn("a wallet is not answered: %s", e.msg);
}

static void answer(struct wc_session *s, bool pairing, const struct wc_sign_in *in, int64_t code,
		   const char *why)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
	int r = code ? wc_sign_put_error(&text, in->id, code, why) : wc_sign_put_true(&text, in->id);

	if (r == 0)
		send_text(s, pairing, buf_view(&text), wc_sign_answer_tag(in->method),
			  wc_sign_ttl(in->method));
}

void walletconnect_peer_bye(struct wc_session *s)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
	char id[WC_ID];

	wc_relay_new_sign_id(clock_wall_ms(), id);
	if (s->topic[0] && wc_sign_put_delete(&text, id, WC_CODE_DISCONNECTED, "User disconnected.") == 0)
		send_text(s, false, buf_view(&text), wc_sign_tag(WC_DELETE), wc_sign_ttl(WC_DELETE));
}

int walletconnect_peer_propose(struct wc_session *s, void (*done)(void *arg, const struct err *e), void *arg,
			       struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
	struct arena a = ARENA_INIT(16 * 1024);
	struct view *chains = arena_array(&a, s->n_chains, sizeof(*chains));
	int r = -1;

	for (size_t i = 0; chains && i < s->n_chains; i++) {
		char name[40];
		snprintf(name, sizeof(name), "eip155:%llu", (unsigned long long)s->chains[i]);
		chains[i] = arena_view(&a, view_of(name));
	}
	const struct wc_proposal p = { .id = s->proposal,
				       .public_key = s->public,
				       .name = VIEW("Paddock"),
				       .description = VIEW("Agents that ask before they spend"),
				       .url = VIEW("http://localhost"),
				       .chains = chains,
				       .n_chains = s->n_chains,
				       .expiry_s = s->pairing.expiry_s,
				       .pairing = view_of(s->pairing.topic) };
	if (!chains || wc_sign_put_propose(&text, &p) < 0)
		err_set(e, ERR_INTERNAL, "no memory");
	else
		r = walletconnect_relay_publish(s->core,
						&(struct wc_message){ .topic = view_of(s->pairing.topic),
								      .key = s->pairing.key,
								      .text = buf_view(&text),
								      .tag = wc_sign_tag(WC_PROPOSE),
								      .ttl_s = wc_sign_ttl(WC_PROPOSE),
								      .prompt = true },
						done, arg, e);
	arena_done(&a);
	return r;
}

/* ---- what is kept before it is acknowledged ---- */

struct after {
	struct wc_session *session; /* its id is looked up again: it may be gone */
	struct core *core;
	char id[WCROOM_ID], relay_id[WC_ID], answer_id[WC_ID];
	enum wc_method method;
};

static void on_kept(void *arg, const struct err *e)
{
	struct after *w = arg;
	struct wc_session *s = NULL;

	LIST_EACH (it, &w->core->walletconnect->sessions)
		if (CONTAINER(it, struct wc_session, link) == w->session &&
		    strcmp(w->session->id, w->id) == 0)
			s = w->session;
	if (e)
		log_error("the session %s with a wallet is not kept: %s", w->id, e->msg);
	if (s && !e && !w->core->stopping && s->stage != WC_OVER) {
		const struct wc_sign_in in = { .id = view_of(w->answer_id), .method = w->method };
		s->stage = WC_OPEN;
		walletconnect_relay_ack(w->core, w->relay_id);
		answer(s, false, &in, 0, NULL);
		walletconnect_tell_signer(s);
		walletconnect_wind(w->core);
	}
	free(w);
}

static void keep(struct wc_session *s, const struct wc_sign_in *in, const char *relay_id)
{
	struct after *w = calloc(1, sizeof(*w));

	if (!w)
		return; /* the relay says it again */
	*w = (struct after){ .session = s, .core = s->core, .method = in->method };
	memcpy(w->id, s->id, sizeof(w->id));
	(void)!view_to_str(view_of(relay_id), w->relay_id, WC_ID);
	(void)!view_to_str(in->id, w->answer_id, WC_ID);
	walletconnect_kept_put(s, on_kept, w);
}

/* ---- settlement ---- */

static bool asked_for(const struct wc_session *s, uint64_t chain)
{
	for (size_t i = 0; i < s->n_chains; i++)
		if (s->chains[i] == chain)
			return true;
	return false;
}

/* Of the chains that were asked for. How many there are. */
static size_t take_accounts(struct wc_session *s, const struct wc_settlement *from)
{
	size_t n = 0;

	for (size_t i = 0; i < from->n_accounts; i++)
		n += asked_for(s, from->accounts[i].chain);
	if (!n)
		return 0;
	s->n_accounts = 0;
	for (size_t i = 0; i < from->n_accounts; i++)
		if (asked_for(s, from->accounts[i].chain))
			s->accounts[s->n_accounts++] = from->accounts[i];
	s->sends = from->sends;
	s->signs = from->signs;
	s->signs_typed = from->signs_typed;
	return n;
}

static int64_t end_of(int64_t said_s)
{
	int64_t now = clock_wall_ms();
	int64_t said = said_s > (now + SESSION_MS) / 1000 ? now + SESSION_MS : said_s * 1000;

	return said < now ? now : said;
}

static void take_settle(struct wc_session *s, const struct wc_sign_in *in, const char *relay_id)
{
	struct wc_settlement *got = calloc(1, sizeof(*got));
	struct err e = { 0 };

	if (!got)
		return;
	if (s->stage == WC_OPEN) { /* the answer was lost */
		walletconnect_relay_ack(s->core, relay_id);
		answer(s, false, in, 0, NULL);
	} else if (wc_settle_read(in->params, got, &e) < 0 || memcmp(got->controller, s->peer, WC_KEY) != 0 ||
		   !take_accounts(s, got)) {
		log_warn("a wallet's session is refused: %s",
			 e.code ? e.msg : "it has no account on a chain that was asked for");
		walletconnect_relay_ack(s->core, relay_id);
		answer(s, false, in, e.code ? WC_CODE_UNSUPPORTED : WC_CODE_CHAINS, "Unsupported session.");
		walletconnect_drop(s, "the wallet offered nothing that was asked for");
	} else {
		(void)!view_to_str(got->name, s->name, sizeof(s->name));
		(void)!view_to_str(got->url, s->url, sizeof(s->url));
		s->created_ms = clock_wall_ms();
		s->expires_ms = end_of(got->expiry_s);
		explicit_bzero(s->secret, sizeof(s->secret));
		keep(s, in, relay_id);
	}
	free(got);
}

static void take_update(struct wc_session *s, const struct wc_sign_in *in, const char *relay_id)
{
	struct wc_settlement *got = calloc(1, sizeof(*got));
	struct err e = { 0 };

	if (!got)
		return;
	if (wc_settle_namespaces(json_get(in->params, "namespaces"), got, &e) < 0 || !take_accounts(s, got)) {
		walletconnect_relay_ack(s->core, relay_id);
		answer(s, false, in, WC_CODE_CHAINS, "Unsupported accounts.");
	} else {
		s->wallets_known = false;
		keep(s, in, relay_id);
	}
	free(got);
}

static void take_extend(struct wc_session *s, const struct wc_sign_in *in, const char *relay_id)
{
	const struct json *expiry = json_get(in->params, "expiry");
	int64_t said = (clock_wall_ms() + SESSION_MS) / 1000;

	if (expiry && json_to_i64(expiry, &said) < 0)
		said = 0;
	if (end_of(said) > s->expires_ms)
		s->expires_ms = end_of(said);
	keep(s, in, relay_id);
}

/* ---- in ---- */

/* The answer to the proposal. */
static void take_response(struct wc_session *s, const struct wc_sign_in *in)
{
	struct err e = { 0 };

	if (s->stage != WC_PAIRING || !view_is(in->id, s->proposal))
		return;
	if (in->kind == WC_SIGN_ERROR) {
		walletconnect_drop(s, "the wallet's owner refused the connection");
	} else if (wc_sign_read_responder(in->result, s->peer, &e) < 0 ||
		   wc_crypto_agree(s->secret, s->peer, s->key) < 0) {
		walletconnect_drop(s, "the wallet's answer cannot be used");
	} else {
		wc_crypto_topic(s->key, s->topic);
		s->stage = WC_SETTLING;
		walletconnect_relay_subscribe(s->core, view_of(s->topic));
	}
}

static void take_pairing(struct wc_session *s, const struct wc_sign_in *in, const char *relay_id)
{
	walletconnect_relay_ack(s->core, relay_id);
	if (in->kind != WC_SIGN_REQUEST)
		take_response(s, in);
	else if (in->method == WC_PAIRING_PING)
		answer(s, true, in, 0, NULL);
	else if (in->method == WC_PAIRING_DELETE && s->stage == WC_PAIRING)
		walletconnect_drop(s, "the wallet's owner refused the connection");
	else if (in->method != WC_PROPOSE && in->method != WC_PAIRING_DELETE)
		answer(s, true, in, WC_CODE_UNSUPPORTED, "Unsupported method.");
}

static void take_request(struct wc_session *s, const struct wc_sign_in *in, const char *relay_id)
{
	/* What is kept before it is acknowledged. */
	if (in->method == WC_SETTLE) {
		take_settle(s, in, relay_id);
		return;
	}
	if (s->stage == WC_OPEN && in->method == WC_UPDATE) {
		take_update(s, in, relay_id);
		return;
	}
	if (s->stage == WC_OPEN && in->method == WC_EXTEND) {
		take_extend(s, in, relay_id);
		return;
	}
	walletconnect_relay_ack(s->core, relay_id);
	if (in->method == WC_PING || in->method == WC_EVENT) {
		answer(s, false, in, 0, NULL);
	} else if (in->method == WC_DELETE) {
		answer(s, false, in, 0, NULL);
		walletconnect_drop(s, "the wallet ended the session");
	} else {
		answer(s, false, in, in->method == WC_UNKNOWN ? WC_CODE_UNSUPPORTED : WC_CODE_UNAUTHORIZED,
		       "Unsupported method.");
	}
}

void walletconnect_peer_take(struct core *c, struct wc_session *s, const struct wc_relay_in *in)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(WC_MESSAGE_MAX);
	bool pairing = of_pairing(s, in->topic);
	struct arena a = ARENA_INIT(READ_MEMORY);
	struct wc_sign_in said;
	char relay_id[WC_ID];
	struct err e = { 0 };

	if (view_to_str(in->id, relay_id, sizeof(relay_id)) < 0)
		return;
	if (wc_crypto_open(pairing ? s->pairing.key : s->key, s->stage == WC_PAIRING ? s->secret : NULL,
			   in->envelope, &text) < 0 ||
	    wc_sign_read(&a, buf_view(&text), &said, &e) < 0) {
		log_warn("a message for session %s cannot be read", s->id);
		walletconnect_relay_ack(c, relay_id);
	} else if (pairing) {
		take_pairing(s, &said, relay_id);
	} else if (said.kind == WC_SIGN_REQUEST) {
		take_request(s, &said, relay_id);
	} else if (!walletconnect_ask_answer(s, &said, in->id)) {
		walletconnect_relay_ack(c, relay_id);
	}
	arena_done(&a);
}
