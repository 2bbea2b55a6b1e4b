/*
 * Requests that were approved here, on their way to a wallet: spend.h, "wallets elsewhere".
 *
 * A request is asked for once, whatever happens. Its number is in the vault before it is sent, so that after
 * a restart a number that is there means "perhaps sent": then its answer is awaited and nothing is sent. The
 * wallet's answer is acknowledged to the relay when the signer has it; until then the relay delivers it
 * again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "core_base.h"
#include "log.h"
#include "text.h"
#include "walletconnect_impl.h"
#include "poison.h"

#define TEXT_MAX  (256u * 1024)
#define TTL_LEAST 60

enum stage {
	ASK_NEW,      /* waits for the line */
	ASK_KEEPING,  /* its number is being written */
	ASK_SENT,     /* perhaps: its answer is awaited */
	ASK_CHECKING, /* the signature that came */
	ASK_ANSWERED, /* until the signer has it */
};

struct wc_ask {
	struct list link;
	struct core *core;
	struct wc_session *session;  /* NULL: it is over */
	struct spend_errand *errand; /* NULL: answered */
	enum stage stage;
	char request[SPEND_ID + 1], id[WC_ID];
	char relay_id[WC_ID]; /* of the answer: to be acknowledged; "": none */
	struct loop_timer timer;
	struct spend_proof *proof;
	struct buf signature;
};

static void free_ask(struct wc_ask *k)
{
	list_del(&k->link);
	loop_timer_stop(&k->timer);
	spend_proof_cancel(TAKE_PTR(k->proof));
	buf_done(&k->signature);
	free(k);
}

static struct wc_ask *find_request(struct core *c, struct view request)
{
	LIST_EACH (it, &c->walletconnect->asks) {
		struct wc_ask *k = CONTAINER(it, struct wc_ask, link);
		if (view_is(request, k->request))
			return k;
	}
	return NULL;
}

/* ---- what the vault has ---- */

static struct wc_asked *find_asked(struct wc_session *s, const char *request)
{
	for (size_t i = 0; i < s->n_asked; i++)
		if (strcmp(s->asked[i].request, request) == 0)
			return &s->asked[i];
	return NULL;
}

static bool is_used(const struct wc_session *s, const char *id)
{
	for (size_t i = 0; i < s->n_asked; i++)
		if (strcmp(s->asked[i].id, id) == 0)
			return true;
	return false;
}

static void nothing(void *arg, const struct err *e)
{
	(void)arg;
	if (e)
		log_warn("what was asked of a wallet is not kept: %s", e->msg);
}

/* The others stay in their order, by which the oldest is known. */
static void drop_asked(struct wc_session *s, struct wc_asked *a)
{
	s->n_asked--;
	memmove(a, a + 1, (size_t)(s->asked + s->n_asked - a) * sizeof(*a));
}

void walletconnect_ask_forget(struct wc_session *s, const char *request)
{
	struct wc_asked *a = s ? find_asked(s, request) : NULL;

	if (!a)
		return;
	drop_asked(s, a);
	if (s->stage == WC_OPEN)
		walletconnect_kept_put(s, nothing, NULL);
}

/* Its answer may still come, and what it says counts. */
static void mark_late(struct wc_session *s, const char *request)
{
	struct wc_asked *a = s ? find_asked(s, request) : NULL;

	if (!a || a->late || s->stage != WC_OPEN)
		return;
	a->late = true;
	walletconnect_kept_put(s, nothing, NULL);
}

/* One more can be asked for: the oldest that is late makes room. */
static bool has_room(struct wc_session *s)
{
	for (size_t i = 0; s->n_asked >= WCROOM_ASKED && i < s->n_asked; i++)
		if (s->asked[i].late)
			drop_asked(s, &s->asked[i]);
	return s->n_asked < WCROOM_ASKED;
}

/* ---- answers ---- */

static void finish(struct wc_ask *k, const struct spend_answer *w)
{
	struct spend_errand *q = TAKE_PTR(k->errand);

	loop_timer_stop(&k->timer);
	k->stage = ASK_ANSWERED;
	if (q)
		spend_elsewhere_answer(k->core, q, w);
}

/* Nothing is released: the wallet may have signed. */
static void give_up(struct wc_ask *k, const char *why)
{
	finish(k, &(struct spend_answer){ .kind = SPEND_TIMEOUT, .note = why });
}

static void refuse(struct wc_ask *k, const char *why)
{
	finish(k, &(struct spend_answer){ .kind = SPEND_REFUSED, .note = why });
}

static void on_time(struct loop_timer *t)
{
	struct wc_ask *k = CONTAINER(t, struct wc_ask, timer);

	if (k->stage == ASK_NEW || k->stage == ASK_KEEPING)
		walletconnect_ask_forget(k->session, k->request);
	give_up(k, "the wallet did not answer in time");
}

static void on_proof(void *arg, const struct err *e)
{
	struct wc_ask *k = arg;

	k->proof = NULL;
	if (!e)
		finish(k,
		       &(struct spend_answer){ .kind = SPEND_SIGNED, .signature = buf_view(&k->signature) });
	else if (e->code == ERR_INVALID) /* it is somebody else's */
		finish(k, &(struct spend_answer){ .kind = SPEND_FOREIGN, .note = e->msg });
	else
		give_up(k, e->msg);
}

static void take_signature(struct wc_ask *k, struct view text)
{
	size_t n = text.n >= 2 && text.p[0] == '0' && text.p[1] == 'x' ? (text.n - 2) / 2 : 0;
	char *room;

	k->signature = BUF_INIT(SPEND_SIGNATURE_MAX);
	room = n ? buf_reserve(&k->signature, n) : NULL;
	if (!room || text_unhex(view_skip(text, 2), room, n) < 0) {
		finish(k, &(struct spend_answer){ .kind = SPEND_FOREIGN,
						  .note = "the wallet's answer is no signature" });
		return;
	}
	buf_commit(&k->signature, n);
	k->stage = ASK_CHECKING;
	struct spend_proof *p = spend_elsewhere_check(k->errand, buf_view(&k->signature), on_proof, k);
	if (p)
		k->proof = p;
}

static void take_error(struct wc_ask *k, const struct wc_answer *a)
{
	_cleanup_(buf_done) struct buf why = BUF_INIT(512);

	buf_printf(&why, "the wallet says (%" PRId64 ") ", a->code);
	text_quote(&why, a->text, 120);
	buf_putc(&why, 0);
	if (a->code == WC_CODE_EXPIRED)
		give_up(k, "the wallet says that the request has expired");
	else
		refuse(k, buf_view(&why).p);
}

static void take_answer(struct wc_ask *k, const struct wc_answer *a)
{
	struct spend_answer w = { .kind = SPEND_SENT };

	if (a->kind == WC_SIGN_ERROR)
		take_error(k, a);
	else if (strcmp(k->errand->method, "eth_sendTransaction") != 0)
		take_signature(k, a->text);
	else if (a->text.n == 66 && view_starts(a->text, "0x") &&
		 text_unhex(view_skip(a->text, 2), w.hash, sizeof(w.hash)) == 0)
		finish(k, &w);
	else
		give_up(k, "the wallet's answer is no transaction's hash");
}

bool walletconnect_ask_answer(struct wc_session *s, const struct wc_sign_in *in, struct view relay_id)
{
	const struct wc_answer a = { .kind = in->kind,
				     .code = in->code,
				     .text = in->kind == WC_SIGN_ERROR ? in->text
					     : in->result && in->result->type == JSON_STRING
						     ? in->result->text
						     : VIEW("") };

	LIST_EACH (it, &s->core->walletconnect->asks) {
		struct wc_ask *k = CONTAINER(it, struct wc_ask, link);
		if (k->session != s || !view_is(in->id, k->id))
			continue;
		if (k->stage == ASK_ANSWERED && !k->relay_id[0]) { /* it was given up a moment ago */
			walletconnect_late_keep(s, find_asked(s, k->request), &a, relay_id);
			return true;
		}
		(void)!view_to_str(relay_id, k->relay_id, WC_ID);
		if (k->stage == ASK_SENT)
			take_answer(k, &a);
		return true;
	}
	for (size_t i = 0; i < s->n_asked; i++)
		if (view_is(in->id, s->asked[i].id)) {
			walletconnect_late_keep(s, &s->asked[i], &a, relay_id);
			return true;
		}
	if (in->kind == WC_SIGN_RESULT && a.text.n)
		log_warn("session %s: a wallet answers what nobody waits for any more", s->id);
	return false;
}

/* ---- sending ---- */

static void publish(struct wc_ask *k)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
	const struct spend_errand *q = k->errand;
	int64_t left = (q->until_ms - clock_wall_ms()) / 1000;
	char chain[40];
	struct err e = { 0 };

	snprintf(chain, sizeof(chain), "eip155:%" PRIu64, q->chain);
	k->stage = ASK_SENT;
	if (wc_sign_put_request(&text, k->id, view_of(chain), q->method, q->params, q->until_ms / 1000) < 0)
		err_set(&e, ERR_TOO_LARGE, "the request is too large for the wallet");
	if (e.code ||
	    walletconnect_relay_publish(k->core,
					&(struct wc_message){ .topic = view_of(k->session->topic),
							      .key = k->session->key,
							      .text = buf_view(&text),
							      .tag = wc_sign_tag(WC_REQUEST),
							      .ttl_s = (uint32_t)MAX(left, TTL_LEAST),
							      .prompt = true },
					NULL, NULL, &e) < 0)
		refuse(k, e.msg);
}

struct written {
	struct core *core;
	char request[SPEND_ID + 1];
};

static void on_written(void *arg, const struct err *e)
{
	struct written *w = arg;
	struct wc_ask *k = find_request(w->core, view_of(w->request));

	if (k && k->stage == ASK_KEEPING && !w->core->stopping) {
		if (e)
			refuse(k, e->msg);
		else
			publish(k);
	}
	free(w);
}

static bool can(const struct wc_session *s, const char *method)
{
	return strcmp(method, "eth_sendTransaction") == 0    ? s->sends
	       : strcmp(method, "personal_sign") == 0        ? s->signs
	       : strcmp(method, "eth_signTypedData_v4") == 0 ? s->signs_typed
							     : false;
}

static void go(struct wc_ask *k)
{
	struct wc_session *s = k->session;
	struct written *w;

	if (k->stage != ASK_NEW || k->core->walletconnect->line.state != WC_LINE_OPEN)
		return;
	if (!can(s, k->errand->method)) {
		refuse(k, "the wallet does not offer this kind of signature");
		return;
	}
	if (!has_room(s)) {
		refuse(k, "too many requests wait for this wallet");
		return;
	}
	w = calloc(1, sizeof(*w));
	if (!w) {
		refuse(k, "no memory");
		return;
	}
	do
		wc_relay_new_sign_id(clock_wall_ms(), k->id);
	while (is_used(s, k->id));
	w->core = k->core;
	memcpy(w->request, k->request, sizeof(w->request));
	struct wc_asked *a = &s->asked[s->n_asked++];
	*a = (struct wc_asked){ 0 };
	memcpy(a->request, k->request, sizeof(a->request));
	memcpy(a->id, k->id, sizeof(a->id));
	k->stage = ASK_KEEPING;
	walletconnect_kept_put(s, on_written, w);
}

void walletconnect_ask_go(struct core *c)
{
	LIST_EACH (it, &c->walletconnect->asks)
		go(CONTAINER(it, struct wc_ask, link));
}

static void attach(struct wc_ask *k, const struct wc_asked *a)
{
	memcpy(k->id, a->id, sizeof(k->id));
	k->stage = ASK_SENT;
	struct wc_late *y = walletconnect_late_take(k->session, k->id);
	if (!y)
		return;
	memcpy(k->relay_id, y->relay_id, sizeof(k->relay_id));
	take_answer(k, &(struct wc_answer){ y->kind, y->code, buf_view(&y->text) });
	walletconnect_late_free(y);
}

/* ---- the backend ---- */

static struct wc_session *find_session(struct core *c, const uint8_t account[20], uint64_t chain)
{
	struct wc_session *best = NULL;

	LIST_EACH (it, &c->walletconnect->sessions) {
		struct wc_session *s = CONTAINER(it, struct wc_session, link);
		for (size_t i = 0; s->stage == WC_OPEN && i < s->n_accounts; i++)
			if (s->accounts[i].chain == chain && memcmp(s->accounts[i].address, account, 20) == 0)
				best = s; /* the newest */
	}
	return best;
}

/* The session that was asked already, wherever the account is offered now. */
static struct wc_session *find_asker(struct core *c, const char *request)
{
	LIST_EACH (it, &c->walletconnect->sessions) {
		struct wc_session *s = CONTAINER(it, struct wc_session, link);
		if (s->stage == WC_OPEN && find_asked(s, request))
			return s;
	}
	return NULL;
}

static bool has(struct spend_elsewhere *b, const uint8_t account[20], uint64_t chain)
{
	return find_session(CONTAINER(b, struct walletconnect, backend)->core, account, chain) != NULL;
}

static void send_errand(struct spend_elsewhere *b, struct spend_errand *q)
{
	struct core *c = CONTAINER(b, struct walletconnect, backend)->core;
	struct wc_session *asker = find_asker(c, q->id),
			  *s = asker ? asker : find_session(c, q->account, q->chain);
	struct wc_ask *k = s ? calloc(1, sizeof(*k)) : NULL;
	int64_t left = q->until_ms - clock_wall_ms();

	if (!k || view_to_str(view_of(q->id), k->request, sizeof(k->request)) < 0) {
		free(k);
		spend_elsewhere_answer(
			c, q, &(struct spend_answer){ .kind = SPEND_REFUSED, .note = "there is no session" });
		return;
	}
	k->core = c;
	k->session = s;
	k->errand = q;
	list_append(&c->walletconnect->asks, &k->link);
	loop_timer_start(c->loop, &k->timer, left > 0 ? (uint64_t)left : 0, on_time);
	if (asker)
		attach(k, find_asked(s, k->request));
	else
		go(k);
}

static void take_back(struct spend_elsewhere *b, struct spend_errand *q)
{
	struct core *c = CONTAINER(b, struct walletconnect, backend)->core;

	LIST_EACH (it, &c->walletconnect->asks) {
		struct wc_ask *k = CONTAINER(it, struct wc_ask, link);
		if (k->errand != q)
			continue;
		const struct wc_asked *asked = k->session ? find_asked(k->session, k->request) : NULL;
		if (asked && !asked->late)
			walletconnect_ask_forget(k->session, k->request);
		free_ask(k);
	}
}

/* The signer has it: the relay may forget the answer, and so may the vault. */
static void on_change(struct spend_watch *w, enum spend_change what, const struct spend_view *v)
{
	struct core *c = CONTAINER(w, struct walletconnect, watch)->core;
	struct wc_ask *k = find_request(c, v->item->id);

	(void)what;
	char request[SPEND_ID + 1];
	const bool late = v->item->state == SGN_STATE_WALLET_TIMEOUT &&
			  view_to_str(v->item->id, request, sizeof(request)) == 0;
	if (k && k->stage == ASK_ANSWERED && v->item->state != SGN_STATE_AWAITING_WALLET &&
	    v->item->state != SGN_STATE_APPROVED) {
		if (k->relay_id[0])
			walletconnect_relay_ack(c, k->relay_id);
		if (!late || k->relay_id[0])
			walletconnect_ask_forget(k->session, k->request);
		free_ask(k);
	}
	if (late) {
		mark_late(find_asker(c, request), request);
		walletconnect_late_look(c);
	}
}

void walletconnect_ask_end(struct wc_session *s, const char *why)
{
	LIST_EACH (it, &s->core->walletconnect->asks) {
		struct wc_ask *k = CONTAINER(it, struct wc_ask, link);
		if (k->session != s)
			continue;
		k->session = NULL;
		if (k->stage == ASK_NEW || k->stage == ASK_KEEPING)
			refuse(k, why);
		else if (k->stage == ASK_SENT)
			give_up(k, why);
	}
	walletconnect_late_end(s);
}

void walletconnect_ask_init(struct core *c)
{
	struct walletconnect *w = c->walletconnect;

	list_init(&w->asks);
	list_init(&w->late);
	w->backend = (struct spend_elsewhere){
		.name = "walletconnect", .has = has, .send = send_errand, .take_back = take_back
	};
	w->watch.on_change = on_change;
}

void walletconnect_ask_stop(struct core *c)
{
	LIST_EACH (it, &c->walletconnect->asks)
		free_ask(CONTAINER(it, struct wc_ask, link));
	walletconnect_late_stop(c);
}
