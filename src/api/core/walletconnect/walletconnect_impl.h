/*
 * Shared by the files of this room: see walletconnect.h.
 *
 * What is said of a session lives in the vault, sealed: its key, its accounts, its end, and which requests
 * were sent to the wallet. It is written before it is acted upon. A pairing lives five minutes, in memory
 * alone.
 */
#pragma once

#include "peer.h"
#include "spend_elsewhere.h"
#include "spend_late.h"
#include "walletconnect.h"
#include "wc_identity.h"
#include "wc_sign.h"
#include "websocket.h"

#define WCROOM_SESSIONS 64
#define WCROOM_CHAINS   64
#define WCROOM_ID       24
#define WCROOM_ASKED    32 /* requests of a session that are under way */

struct core;
struct wc_ask;

/* ---- walletconnect_relay.c: the line to the relay ---- */

enum wc_line_state { WC_LINE_OFF, WC_LINE_DIALLING, WC_LINE_SHAKING, WC_LINE_OPEN, WC_LINE_WAITING };

struct wc_line {
	enum wc_line_state state;
	struct carrier_dial dial;
	struct loop_io io;
	struct loop_timer timer; /* of the state */
	struct loop_timer pulse;
	struct loop_task checking;
	bool check_due;
	struct buf out, in; /* in: the head, then a message */
	struct websocket ws;
	struct list
		waiting; /* publications that the relay has not confirmed, and their topics: struct wc_post */
	char accept[WEBSOCKET_ACCEPT];
	unsigned failures;
	uint64_t heard_ms;
	char why[160]; /* it is not open */
};

/* ---- sessions ---- */

enum wc_stage {
	WC_PAIRING,  /* the proposal is on its way */
	WC_SETTLING, /* the wallet has answered it, and has yet to say what it offers */
	WC_OPEN,
	WC_OVER, /* it is being removed */
};

/* A request that was sent, as the vault has it. */
struct wc_asked {
	char request[SPEND_ID + 1], id[WC_ID];
	bool late; /* it was given up; an answer that comes all the same is believed */
};

struct wc_session {
	struct core *core;
	struct list link;
	struct loop_task freeing;
	enum wc_stage stage;
	char id[WCROOM_ID], label[WALLETCONNECT_LABEL_MAX + 1];
	uint64_t chains[WCROOM_CHAINS]; /* that were asked for */
	size_t n_chains;
	int64_t created_ms, expires_ms;

	struct wc_pairing pairing;
	uint8_t secret[WC_KEY], public[WC_KEY]; /* until it is settled */
	char proposal[WC_ID];
	struct job *job; /* of walletconnect_connect, until the relay has the proposal */

	char topic[WC_TOPIC]; /* "": none yet */
	uint8_t key[WC_KEY], peer[WC_KEY];
	char name[WC_TEXT_MAX + 1], url[WC_TEXT_MAX + 1];
	struct wc_account accounts[WC_ACCOUNTS];
	size_t n_accounts;
	bool sends, signs, signs_typed;
	struct wc_asked asked[WCROOM_ASKED];
	size_t n_asked;
	bool wallets_known; /* the signer has its accounts */
};

struct walletconnect {
	struct core *core;
	struct list sessions; /* in the order of their making */
	unsigned n;
	struct list asks, late;
	struct wc_line line;
	bool loaded, loading;
	uint8_t seed[WC_SEED];
	bool has_seed;
	struct loop_timer timer; /* the next end of a session */
	struct loop_timer again; /* loading */
	struct spend_elsewhere backend;
	struct spend_watch watch;
	struct signer_watch signer;
};

void walletconnect_init(struct core *c);
void walletconnect_start(struct core *c); /* the core is ready */
void walletconnect_stop(struct core *c);
void walletconnect_done(struct core *c);

/* The one whose pairing or session has this topic, or NULL. */
struct wc_session *walletconnect_by_topic(struct core *c, struct view topic);
/* Forgets it, here and in the vault; `why` is for the log and for requests that wait. */
void walletconnect_drop(struct wc_session *s, const char *why);
/* Looks again when the next one ends. */
void walletconnect_wind(struct core *c);
/* Makes the signer know the accounts, and offers what waits for them. */
void walletconnect_tell_signer(struct wc_session *s);

/* Connects when there is anything to connect for, and closes otherwise. */
void walletconnect_relay_check(struct core *c);
void walletconnect_relay_init(struct core *c);
void walletconnect_relay_stop(struct core *c);
/* A message for a topic. It is sent again on a new line until the relay has confirmed it. */
struct wc_message {
	struct view topic;
	const uint8_t *key;
	struct view text;
	uint32_t tag, ttl_s;
	bool prompt;
};
/* `done` (may be NULL) gets e == NULL when the relay has it; it is not called after
 * walletconnect_relay_forget. */
int walletconnect_relay_publish(struct core *c, const struct wc_message *m,
				void (*done)(void *arg, const struct err *e), void *arg,
				struct err *e) _must_check_;
void walletconnect_relay_forget(struct core *c, void *arg);
/* A topic more; without a line it is subscribed to when there is one. */
void walletconnect_relay_subscribe(struct core *c, struct view topic);
void walletconnect_relay_ack(struct core *c, const char *id);

/* ---- walletconnect_peer.c: what wallets say ---- */

/* `relay_id` must be acknowledged, now or when what it says is kept. */
void walletconnect_peer_take(struct core *c, struct wc_session *s, const struct wc_relay_in *in);
int walletconnect_peer_propose(struct wc_session *s, void (*done)(void *arg, const struct err *e), void *arg,
			       struct err *e) _must_check_;
void walletconnect_peer_bye(struct wc_session *s);

/* ---- walletconnect_kept.c: the vault ---- */

typedef void wc_kept_done(void *arg, const struct err *e);
void walletconnect_kept_put(struct wc_session *s, wc_kept_done *done, void *arg);
void walletconnect_kept_remove(struct core *c, const char *id, wc_kept_done *done, void *arg);
/* Reads the sessions and the identity, which is made if there is none. */
void walletconnect_kept_load(struct core *c, wc_kept_done *done, void *arg);

/* ---- walletconnect_ask.c: requests to wallets ---- */

void walletconnect_ask_init(struct core *c);
void walletconnect_ask_stop(struct core *c);
/* An answer to a request. False: it is none that is known here. */
bool walletconnect_ask_answer(struct wc_session *s, const struct wc_sign_in *in, struct view relay_id);
/* The line is open: what waited for it goes out. */
void walletconnect_ask_go(struct core *c);
/* The session is over. */
void walletconnect_ask_end(struct wc_session *s, const char *why);
/* Nothing more is expected of it. Accepts a session that is NULL. */
void walletconnect_ask_forget(struct wc_session *s, const char *request);

/* ---- walletconnect_late.c: answers that come before their errand, or after it ---- */

struct wc_answer {
	enum wc_sign_kind kind;
	int64_t code;
	struct view text; /* the result, or the error's text */
};
struct wc_late {
	struct list link;
	struct wc_session *session; /* NULL: it is over */
	char id[WC_ID], relay_id[WC_ID];
	enum wc_sign_kind kind;
	int64_t code;
	struct buf text, signature; /* the bytes of the text, where it has any */
	struct spend_late said;
	bool busy;
};
void walletconnect_late_keep(struct wc_session *s, const struct wc_asked *asked, const struct wc_answer *a,
			     struct view relay_id);
/* The errand is there: the answer to it, or NULL. */
struct wc_late *walletconnect_late_take(struct wc_session *s, const char *id);
void walletconnect_late_free(struct wc_late *y);
/* Asks the signer what becomes of those that have no errand. */
void walletconnect_late_look(struct core *c);
void walletconnect_late_end(struct wc_session *s);
void walletconnect_late_stop(struct core *c);
