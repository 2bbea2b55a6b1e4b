/*
 * Answers that no errand waits for: the api was started anew and has not asked again yet, or the request was
 * given up. In the first case they wait for the errand. In the second the wallet may have sent the money all
 * the same, and the signer learns it. Until then the relay keeps them.
 */
#include <stdlib.h>

#include "core_base.h"
#include "log.h"
#include "text.h"
#include "walletconnect_impl.h"
#include "poison.h"

#define ANSWER_MAX (64u * 1024)

void walletconnect_late_free(struct wc_late *y)
{
	list_del(&y->link);
	buf_done(&y->text);
	buf_done(&y->signature);
	free(y);
}

static struct wc_late *find(struct wc_session *s, struct view id)
{
	LIST_EACH (it, &s->core->walletconnect->late) {
		struct wc_late *y = CONTAINER(it, struct wc_late, link);
		if (y->session == s && view_is(id, y->id))
			return y;
	}
	return NULL;
}

static void on_said(struct spend_late *l, enum spend_late_end end)
{
	struct wc_late *y = CONTAINER(l, struct wc_late, said);

	y->busy = false;
	if (end == SPEND_LATE_DONE && y->session) {
		walletconnect_relay_ack(l->core, y->relay_id);
		walletconnect_ask_forget(y->session, l->id);
	}
	if (end == SPEND_LATE_DONE || !y->session)
		walletconnect_late_free(y);
}

static void look(struct wc_late *y)
{
	if (y->busy || !y->session)
		return;
	y->busy = true;
	spend_late_start(&y->said);
}

void walletconnect_late_look(struct core *c)
{
	LIST_EACH (it, &c->walletconnect->late)
		look(CONTAINER(it, struct wc_late, link));
}

static void read_answer(struct wc_late *y)
{
	const struct view text = buf_view(&y->text);
	const size_t n = text.n >= 2 && text.n % 2 == 0 && view_starts(text, "0x") ? (text.n - 2) / 2 : 0;
	struct spend_answer *w = &y->said.answer;

	if (y->kind == WC_SIGN_ERROR) {
		w->kind = y->code == WC_CODE_EXPIRED ? SPEND_NO_ANSWER : SPEND_REFUSED;
		return;
	}
	char *room = n ? buf_reserve(&y->signature, n) : NULL;
	if (room && text_unhex(view_skip(text, 2), room, n) == 0) {
		buf_commit(&y->signature, n);
		w->signature = buf_view(&y->signature);
	}
	if (text.n == 66 && view_starts(text, "0x") &&
	    text_unhex(view_skip(text, 2), w->hash, sizeof(w->hash)) == 0)
		w->kind = SPEND_SENT;
}

void walletconnect_late_keep(struct wc_session *s, const struct wc_asked *asked, const struct wc_answer *a,
			     struct view relay_id)
{
	struct wc_late *y = asked ? find(s, view_of(asked->id)) : NULL;

	if (y) { /* the relay says it again, on another line */
		(void)!view_to_str(relay_id, y->relay_id, WC_ID);
		look(y);
		return;
	}
	y = asked ? calloc(1, sizeof(*y)) : NULL;
	if (!y)
		return; /* not acknowledged: it comes again */
	*y = (struct wc_late){ .session = s,
			       .kind = a->kind,
			       .code = a->code,
			       .text = BUF_INIT(ANSWER_MAX),
			       .signature = BUF_INIT(SPEND_SIGNATURE_MAX),
			       .said = { .core = s->core, .done = on_said } };
	memcpy(y->id, asked->id, sizeof(y->id));
	memcpy(y->said.id, asked->request, sizeof(y->said.id));
	(void)!view_to_str(relay_id, y->relay_id, WC_ID);
	buf_add(&y->text, a->text);
	read_answer(y);
	list_append(&s->core->walletconnect->late, &y->link);
	look(y);
}

struct wc_late *walletconnect_late_take(struct wc_session *s, const char *id)
{
	struct wc_late *y = find(s, view_of(id));

	if (y && y->busy)
		spend_late_stop(&y->said);
	return y;
}

/* What the signer is being told goes on: it may be money. */
void walletconnect_late_end(struct wc_session *s)
{
	LIST_EACH (it, &s->core->walletconnect->late) {
		struct wc_late *y = CONTAINER(it, struct wc_late, link);
		if (y->session != s)
			continue;
		y->session = NULL;
		if (!y->busy)
			walletconnect_late_free(y);
	}
}

void walletconnect_late_stop(struct core *c)
{
	LIST_EACH (it, &c->walletconnect->late) {
		struct wc_late *y = CONTAINER(it, struct wc_late, link);
		if (y->busy)
			spend_late_stop(&y->said);
		walletconnect_late_free(y);
	}
}
