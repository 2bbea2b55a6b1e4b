/*
 * Pairings and sessions with wallets: see walletconnect.h. walletconnect_relay.c has the line to the relay,
 * walletconnect_peer.c what wallets say, walletconnect_ask.c the requests to them, walletconnect_late.c
 * answers out of time, walletconnect_kept.c what survives a restart.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "address.h"
#include "audit.h"
#include "clock.h"
#include "config.h"
#include "core_base.h"
#include "log.h"
#include "num.h"
#include "rnd.h"
#include "text.h"
#include "walletconnect_impl.h"
#include "who.h"
#include "poison.h"

#define PAIRING_MS 300000
#define LOOK_MS    3600000 /* timers are not longer than this */
#define RELOAD_MS  2000

/* ---- looking ---- */

struct wc_session *walletconnect_by_topic(struct core *c, struct view topic)
{
	LIST_EACH (it, &c->walletconnect->sessions) {
		struct wc_session *s = CONTAINER(it, struct wc_session, link);
		if (s->stage != WC_OVER && (view_is(topic, s->topic) || view_is(topic, s->pairing.topic)))
			return s;
	}
	return NULL;
}

static struct wc_session *find(struct core *c, struct view id)
{
	LIST_EACH (it, &c->walletconnect->sessions) {
		struct wc_session *s = CONTAINER(it, struct wc_session, link);
		if (s->stage != WC_OVER && view_is(id, s->id))
			return s;
	}
	return NULL;
}

/* Wallets belong to the installation, not to a tenant. */
static int permit(struct core *c, const struct actor *a, struct err *e)
{
	if (auth_permit(a, ACT_TENANTS, NULL, e) < 0)
		return -1;
	if (!c->config->agents.walletconnect.project_id.n)
		return err_set(e, ERR_UNSUPPORTED,
			       "WalletConnect is off: set agents.walletconnect.project_id to the id of your "
			       "project");
	return 0;
}

/* Nobody is told that there is no session before they were read. */
static int await_loaded(const struct core *c, struct err *e)
{
	return c->walletconnect->loaded || !c->config->agents.walletconnect.project_id.n
		       ? 0
		       : err_set(e, ERR_UNAVAILABLE, "the sessions with wallets are being read; try again");
}

/* ---- the end ---- */

static void wipe(struct wc_session *s)
{
	explicit_bzero(s->pairing.key, sizeof(s->pairing.key));
	explicit_bzero(s->secret, sizeof(s->secret));
	explicit_bzero(s->key, sizeof(s->key));
	free(s);
}

static void run_free(struct loop_task *t)
{
	wipe(CONTAINER(t, struct wc_session, freeing));
}

static void release(struct wc_session *s)
{
	s->stage = WC_OVER;
	list_del(&s->link);
	s->core->walletconnect->n--;
	loop_defer(s->core->loop, &s->freeing, run_free);
	walletconnect_relay_check(s->core);
	walletconnect_wind(s->core);
}

static void on_removed(void *arg, const struct err *e)
{
	(void)arg;
	if (e && e->code != ERR_NOT_FOUND)
		log_warn("a session with a wallet is not forgotten: %s", e->msg);
}

void walletconnect_drop(struct wc_session *s, const char *why)
{
	struct core *c = s->core;

	if (s->stage == WC_OVER)
		return;
	log_info("WalletConnect: %s %s: %s", s->stage == WC_OPEN ? "session" : "pairing", s->id, why);
	if (s->stage == WC_OPEN || s->stage == WC_SETTLING)
		walletconnect_kept_remove(c, s->id, on_removed, NULL);
	s->stage = WC_OVER;
	walletconnect_relay_forget(c, s);
	walletconnect_ask_end(s, why);
	release(s);
}

static void on_wind(struct loop_timer *t)
{
	struct core *c = CONTAINER(t, struct walletconnect, timer)->core;
	int64_t now = clock_wall_ms();

	LIST_EACH (it, &c->walletconnect->sessions) {
		struct wc_session *s = CONTAINER(it, struct wc_session, link);
		if (s->stage == WC_OPEN && s->expires_ms <= now)
			walletconnect_drop(s, "its time is over");
		else if ((s->stage == WC_PAIRING || s->stage == WC_SETTLING) &&
			 s->pairing.expiry_s * 1000 <= now)
			walletconnect_drop(s, "no wallet answered in time");
	}
	walletconnect_wind(c);
}

void walletconnect_wind(struct core *c)
{
	int64_t now = clock_wall_ms(), next = LOOK_MS;

	if (c->stopping)
		return;
	LIST_EACH (it, &c->walletconnect->sessions) {
		const struct wc_session *s = CONTAINER(it, struct wc_session, link);
		int64_t left = (s->stage == WC_OPEN ? s->expires_ms : s->pairing.expiry_s * 1000) - now;
		next = MIN(next, MAX(left, 0));
	}
	if (c->walletconnect->n)
		loop_timer_start(c->loop, &c->walletconnect->timer, (uint64_t)next + 1, on_wind);
	else
		loop_timer_stop(&c->walletconnect->timer);
}

/* ---- the signer's wallets ---- */

struct wallet_add {
	struct signer_ask ask;
	struct core *core;
	char session[WCROOM_ID];
	bool last;
};

static void on_added(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct wallet_add *w = CONTAINER(a, struct wallet_add, ask);
	struct wc_session *s = find(w->core, view_of(w->session));

	if (e)
		log_warn("the signer does not know a wallet of session %s: %s", w->session, e->msg);
	else if (s && w->last)
		s->wallets_known = true;
	if (s && !e && w->last)
		spend_elsewhere_changed(w->core);
	free(w);
}

static void add_wallet(struct wc_session *s, const uint8_t address[20], bool last)
{
	struct wallet_add *w = calloc(1, sizeof(*w));
	const char *label = s->label[0] ? s->label : s->name[0] ? s->name : "WalletConnect";
	struct view text = view_head(view_of(label), WALLETCONNECT_LABEL_MAX);
	struct err e = { 0 };

	if (!w)
		return;
	w->core = s->core;
	w->last = last;
	memcpy(w->session, s->id, sizeof(w->session));
	const struct sgn_wallet_add m = { .kind = SGN_WALLET_KIND_EXTERNAL,
					  .label = view_head(text, text_utf8_prefix(text)),
					  .address = { (const char *)address, 20 } };
	if (signer_call(s->core, &w->ask, SGN_SIGNER_TYPE_WALLET_ADD, &sgn_wallet_add_msg, &m,
			&sgn_wallet_added_msg, on_added, &e) < 0) {
		log_warn("the signer does not know a wallet of session %s: %s", s->id, e.msg);
		free(w);
	}
}

/* An address that has more than one chain counts once. */
static bool is_first(const struct wc_session *s, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (memcmp(s->accounts[k].address, s->accounts[i].address, 20) == 0)
			return false;
	return true;
}

void walletconnect_tell_signer(struct wc_session *s)
{
	size_t last = 0;

	for (size_t i = 0; i < s->n_accounts; i++)
		last = is_first(s, i) ? i : last;
	for (size_t i = 0; i < s->n_accounts; i++)
		if (is_first(s, i))
			add_wallet(s, s->accounts[i].address, i == last);
}

static void on_signer(struct signer_watch *w, bool is_open)
{
	struct core *c = CONTAINER(w, struct walletconnect, signer)->core;

	LIST_EACH (it, &c->walletconnect->sessions) {
		struct wc_session *s = CONTAINER(it, struct wc_session, link);
		if (is_open && s->stage == WC_OPEN && !s->wallets_known)
			walletconnect_tell_signer(s);
	}
	if (is_open)
		walletconnect_late_look(c);
}

/* ---- a pairing ---- */

struct connecting {
	struct job job;
	struct core *core;
	char id[WCROOM_ID];
};

static void on_proposed(void *arg, const struct err *e)
{
	struct wc_session *s = arg;
	struct connecting *w = CONTAINER(TAKE_PTR(s->job), struct connecting, job);
	_cleanup_(buf_done) struct buf uri = { .max = 1024, .secret = true };
	struct err failed = { 0 };
	struct qr *qr = calloc(1, sizeof(*qr));

	wc_crypto_uri(&s->pairing, &uri);
	if (e)
		failed = *e;
	else if (!qr || uri.bad || qr_encode(buf_view(&uri), qr) < 0)
		err_set(&failed, ERR_INTERNAL, "no memory");
	const struct walletconnect_pairing p = {
		.id = s->id, .uri = buf_view(&uri), .expires_ms = s->pairing.expiry_s * 1000, .qr = qr
	};
	job_finish(&w->job, &p, failed.code ? &failed : NULL);
	if (failed.code)
		walletconnect_drop(s, "the relay does not have the proposal");
	free(qr);
	free(w);
}

static int take_chains(struct core *c, const struct walletconnect_wish *w, struct wc_session *s,
		       struct err *e)
{
	const size_t all = c->config->agents.n_chains;

	for (size_t i = 0; i < all && s->n_chains < WCROOM_CHAINS && !w->chains.n; i++)
		if (num_u64(config_chain_number(c->config->agents.chain_list[i].id),
			    &s->chains[s->n_chains]) == 0)
			s->n_chains++;
	for (size_t i = 0; i < w->chains.n; i++) {
		bool known = false;
		for (size_t k = 0; k < all; k++)
			known |= view_eq(c->config->agents.chain_list[k].id, w->chains.items[i]);
		if (!known || s->n_chains >= WCROOM_CHAINS ||
		    num_u64(config_chain_number(w->chains.items[i]), &s->chains[s->n_chains++]) < 0)
			return err_set(e, ERR_INVALID, "chains: %.*s is not among agents.chains",
				       VIEW_ARG(view_head(w->chains.items[i], 48)));
	}
	return s->n_chains ? 0 : err_set(e, ERR_INVALID, "there are no chains: see agents.chains");
}

static struct wc_session *make(struct core *c, const struct walletconnect_wish *w, struct err *e)
{
	struct wc_session *s = calloc(1, sizeof(*s));

	if (!s) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "a pairing");
		return NULL;
	}
	*s = (struct wc_session){ .core = c, .stage = WC_PAIRING, .created_ms = clock_wall_ms() };
	if (take_chains(c, w, s, e) < 0 || (view_to_str(w->label, s->label, sizeof(s->label)) < 0 &&
					    err_set(e, ERR_INVALID, "the label is too long"))) {
		free(s);
		return NULL;
	}
	memcpy(s->id, "wc_", 4);
	rnd_name(s->id + 3, 16);
	rnd_bytes(s->pairing.key, WC_KEY);
	wc_crypto_topic(s->pairing.key, s->pairing.topic);
	wc_crypto_pair(s->secret, s->public);
	wc_relay_new_sign_id(s->created_ms, s->proposal);
	s->pairing.expiry_s = (s->created_ms + PAIRING_MS) / 1000;
	return s;
}

struct job *walletconnect_connect(struct core *c, const struct actor *a, const struct walletconnect_wish *w,
				  job_done *done, void *arg, struct err *e)
{
	if (permit(c, a, e) < 0)
		return NULL;
	if (c->walletconnect->n >= WCROOM_SESSIONS) {
		err_set(e, ERR_QUOTA, "there are %d sessions with wallets: end one first", WCROOM_SESSIONS);
		return NULL;
	}
	struct connecting *k = calloc(1, sizeof(*k));
	struct wc_session *s = k ? make(c, w, e) : NULL;
	if (!s) {
		free(k);
		return NULL;
	}
	audit_about(c, a, view_of(s->id));
	*k = (struct connecting){ .job = { .done = done, .arg = arg }, .core = c };
	s->job = &k->job;
	list_append(&c->walletconnect->sessions, &s->link);
	c->walletconnect->n++;
	if (walletconnect_peer_propose(s, on_proposed, s, e) < 0) {
		free(k);
		s->job = NULL;
		release(s);
		return NULL;
	}
	walletconnect_relay_subscribe(c, view_of(s->pairing.topic));
	walletconnect_wind(c);
	return &k->job;
}

/* ---- sessions ---- */

static void each_account(const struct walletconnect_session *v, void (*each)(void *arg, struct view account),
			 void *arg)
{
	const struct wc_session *s = v->own;

	for (size_t i = 0; i < s->n_accounts; i++) {
		char address[ADDRESS_TEXT], text[128];
		address_text(s->accounts[i].address, address);
		snprintf(text, sizeof(text), "eip155:%" PRIu64 ":%s", s->accounts[i].chain, address);
		each(arg, view_of(text));
	}
}

int walletconnect_each(struct core *c, const struct actor *a,
		       void (*each)(void *arg, const struct walletconnect_session *s), void *arg,
		       struct err *e)
{
	if (auth_permit(a, ACT_TENANTS, NULL, e) < 0 || await_loaded(c, e) < 0)
		return -1;
	LIST_EACH (it, &c->walletconnect->sessions) {
		const struct wc_session *s = CONTAINER(it, struct wc_session, link);
		if (s->stage == WC_OPEN)
			each(arg, &(struct walletconnect_session){ .id = s->id,
								   .name = s->name,
								   .url = s->url,
								   .created_ms = s->created_ms,
								   .expires_ms = s->expires_ms,
								   .each_account = each_account,
								   .own = s });
	}
	return 0;
}

struct ending {
	struct job job;
	struct core *core;
};

static void on_ended(void *arg, const struct err *e)
{
	struct ending *w = arg;
	bool gone = e && e->code == ERR_NOT_FOUND;

	job_finish(&w->job, NULL, gone ? NULL : e);
	free(w);
}

struct job *walletconnect_end(struct core *c, const struct actor *a, struct view id, job_done *done,
			      void *arg, struct err *e)
{
	struct wc_session *s;

	if (auth_permit(a, ACT_TENANTS, NULL, e) < 0 || await_loaded(c, e) < 0)
		return NULL;
	s = find(c, id);
	struct ending *w = s ? calloc(1, sizeof(*w)) : NULL;
	if (!w) {
		err_set(e, ERR_NOT_FOUND, "there is no session %.*s", VIEW_ARG(view_head(id, 40)));
		return NULL;
	}
	*w = (struct ending){ .job = { .done = done, .arg = arg }, .core = c };
	char name[WCROOM_ID];
	memcpy(name, s->id, sizeof(name));
	if (s->stage == WC_OPEN)
		walletconnect_peer_bye(s);
	walletconnect_drop(s, "it was ended here");
	/* Again, to know when it is gone: the first removal may still be under way. */
	walletconnect_kept_remove(c, name, on_ended, w);
	return &w->job;
}

/* ---- life ---- */

static void load(struct core *c);

static void on_reload(struct loop_timer *t)
{
	load(CONTAINER(t, struct walletconnect, again)->core);
}

static void on_loaded(void *arg, const struct err *e)
{
	struct core *c = arg;

	if (c->stopping)
		return;
	if (e) {
		log_warn("the sessions with wallets cannot be read: %s", e->msg);
		loop_timer_start(c->loop, &c->walletconnect->again, RELOAD_MS, on_reload);
		return;
	}
	c->walletconnect->loaded = true;
	on_wind(&c->walletconnect->timer);
	walletconnect_relay_check(c);
	if (signer_is_open(c))
		on_signer(&c->walletconnect->signer, true);
	spend_elsewhere_changed(c);
}

static void load(struct core *c)
{
	LIST_EACH (it, &c->walletconnect->sessions) /* of a first attempt that failed; pairings stay */
		if (CONTAINER(it, struct wc_session, link)->stage == WC_OPEN)
			release(CONTAINER(it, struct wc_session, link));
	walletconnect_kept_load(c, on_loaded, c);
}

void walletconnect_init(struct core *c)
{
	list_init(&c->walletconnect->sessions);
	walletconnect_relay_init(c);
	walletconnect_ask_init(c);
	c->walletconnect->signer.changed = on_signer;
}

void walletconnect_start(struct core *c)
{
	if (!c->config->agents.walletconnect.project_id.n)
		return;
	signer_watch(c, &c->walletconnect->signer);
	spend_elsewhere_add(c, &c->walletconnect->backend);
	spend_watch(c, &c->walletconnect->watch);
	load(c);
}

void walletconnect_stop(struct core *c)
{
	loop_timer_stop(&c->walletconnect->timer);
	loop_timer_stop(&c->walletconnect->again);
	signer_unwatch(&c->walletconnect->signer);
	spend_unwatch(&c->walletconnect->watch);
	walletconnect_relay_stop(c);
	walletconnect_ask_stop(c);
}

void walletconnect_done(struct core *c)
{
	LIST_EACH (it, &c->walletconnect->sessions) {
		struct wc_session *s = CONTAINER(it, struct wc_session, link);
		list_del(&s->link);
		free(s->job);
		wipe(s);
	}
	explicit_bzero(c->walletconnect->seed, sizeof(c->walletconnect->seed));
}
