/*
 * What was dropped: no node knew it for long. Whoever has its bytes can send it again, the wallet first of
 * all, and the owner may have settled it meanwhile. So it is looked for from time to time, less and less
 * often, and when a node knows it, it is under way as before and counts. See spends.h.
 *
 * One that was signed here was given up by the owner. A node that waits for what comes before it knows it all
 * along: it is under way again when it is mined, and over when something else was mined with its nonce.
 */
#include "spends.h"

#include <stdio.h>

#include "clock.h"
#include "core_base.h"
#include "log.h"
#include "text.h"
#include "poison.h"

#define RARELY_MS (10 * 60 * 1000)
#define SLOWER    10 /* times the polls of what is under way, to begin with */

bool spend_is_lost(struct spend_entry *x)
{
	const int64_t now = clock_wall_ms();

	if (!x->unknown_ms)
		x->unknown_ms = now;
	return now - x->unknown_ms > 1000ll * x->node->settings.lost_s;
}

static void on_time(struct loop_timer *t)
{
	spend_drive(CONTAINER(t, struct spend_entry, timer));
}

static void later(struct spend_entry *x)
{
	const uint64_t pause = (uint64_t)x->node->settings.poll_ms * SLOWER << MIN(x->failures, 10u);

	x->failures++;
	x->busy = false;
	loop_timer_start(x->core->loop, &x->timer, MIN(pause, (uint64_t)RARELY_MS), on_time);
}

static void on_looked_for(struct spend_call *k, const struct err *e)
{
	struct spend_entry *x = CONTAINER(k, struct spend_work, call)->entry;
	const size_t n = 1 + x->n_tried;
	bool back = false;
	uint64_t count;

	for (size_t i = 1; !e && i < MIN(k->n, n); i++)
		back |= k->said[i].result && k->said[i].result->type == JSON_OBJECT;
	const bool used =
		!e && !back && k->n > n && spend_read_u64(k->said[n].result, &count) == 0 && count > x->nonce;
	spend_call_done(k);
	if (used) {
		spend_report(x, &(struct sgn_report){ .state = SGN_STATE_REPLACED,
						      .note = VIEW("another transaction has its nonce") });
		return;
	}
	if (!back) {
		later(x);
		return;
	}
	log_warn("transaction %s: it was dropped, and is there again", x->id);
	x->verified = false; /* what was sent is compared anew */
	x->unknown_ms = 0;
	x->failures = 0;
	spend_report(x,
		     &(struct sgn_report){ .state = SGN_STATE_BROADCAST, .note = VIEW("it was sent again") });
}

void spend_watch_dropped(struct spend_entry *x)
{
	char hash[2 * SPEND_HASH + 1], account[ADDRESS_TEXT];
	const bool ours = buf_len(&x->raw) > 0;

	if (!x->n_tried || !spend_ready(x))
		return;
	x->busy = true;
	spend_call_init(&x->work->call, x->node);
	for (size_t i = 0; i < x->n_tried; i++) {
		text_hex(x->tried[i].hash, SPEND_HASH, hash);
		spend_call_add(&x->work->call,
			       ours ? "eth_getTransactionReceipt" : "eth_getTransactionByHash", "[\"0x%s\"]",
			       hash);
	}
	if (ours && x->has_nonce) {
		address_text(x->account, account);
		spend_call_add(&x->work->call, "eth_getTransactionCount", "[\"%s\",\"latest\"]", account);
	}
	spend_call_go(&x->work->call, on_looked_for);
}
