/*
 * The requests that are under way: an index over what the signer keeps. It is read anew whenever the signer
 * comes (back), so that nothing depends on what this program remembers. See spends.h.
 */
#include "spends.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agents.h"
#include "clock.h"
#include "core_base.h"
#include "log.h"
#include "text.h"
#include "tx.h"
#include "poison.h"

#define RETRY_MS   500
#define RETRY_MOST 30000
#define EXPIRED_MS 150 /* behind a request's end, it is looked at */
#define SYNC_PAGE  500

const struct agent *spend_agent(struct core *c, struct view id)
{
	struct map_node *n = map_get(&c->agents->by_id, id);

	return n ? CONTAINER(n, struct agent, by_id) : NULL;
}

struct spend_node *spend_node_get(struct core *c, struct view agent, uint64_t chain, struct err *e)
{
	const struct agent *a = spend_agent(c, agent);
	struct view own = VIEW_NONE;
	char id[CHAIN_ID_MAX + 1];

	snprintf(id, sizeof(id), "eip155:%" PRIu64, chain);
	if (a)
		own = spec_map_get(&a->manifest.permissions.rpcs, view_of(id));
	return spend_node_at(c, chain, own, e);
}

struct spend_entry *spend_find(struct core *c, struct view id)
{
	struct map_node *n = map_get(&c->spends->by_id, id);

	return n ? CONTAINER(n, struct spend_entry, by_id) : NULL;
}

/* ---- what is shown ---- */

void spend_view_of(struct core *c, const struct sgn_item *item, struct spend_view *ret)
{
	const struct agent *a = spend_agent(c, item->agent);
	const struct spend_entry *x = spend_find(c, item->id);
	struct config_chain d;
	char id[CHAIN_ID_MAX + 1];

	*ret = (struct spend_view){ .item = item, .agent_name = "", .note = "" };
	if (a && !a->removing) {
		ret->tenant = a->tenant;
		ret->agent_name = a->name;
	}
	if (x) {
		ret->confirmations = x->confirmations;
		ret->stuck = x->stuck;
		ret->note = x->note;
		ret->waits = spend_has_gap(x);
		ret->waits_for = x->waits_for;
	}
	if (x && x->node) {
		ret->needed = x->node->settings.confirmations;
		return;
	}
	snprintf(id, sizeof(id), "eip155:%llu", (unsigned long long)item->chain);
	config_chain_default(view_of(id), &d);
	ret->needed = d.confirmations;
	for (size_t i = 0; i < c->config->agents.n_chains; i++)
		if (view_is(c->config->agents.chain_list[i].id, id))
			ret->needed = c->config->agents.chain_list[i].confirmations;
}

void spend_watch(struct core *c, struct spend_watch *w)
{
	list_append(&c->spends->watches, &w->link);
}

void spend_unwatch(struct spend_watch *w)
{
	if (w->link.next)
		list_del(&w->link);
}

static void tell_watches(struct core *c, const struct sgn_item *item)
{
	enum spend_change what = SPEND_CHANGED;
	struct spend_view v;

	switch (item->state) {
	case SGN_STATE_PENDING:
		what = SPEND_ASKED;
		break;
	case SGN_STATE_APPROVED:
	case SGN_STATE_DENIED:
	case SGN_STATE_REJECTED:
	case SGN_STATE_EXPIRED:
	case SGN_STATE_CANCELLED:
		what = SPEND_DECIDED;
		break;
	default:
		break;
	}
	spend_view_of(c, item, &v);
	LIST_EACH (it, &c->spends->watches) {
		struct spend_watch *w = CONTAINER(it, struct spend_watch, link);
		w->on_change(w, what, &v);
	}
}

/* ---- entries ---- */

static void entry_free(struct spend_entry *x)
{
	struct err e = { 0 };

	err_set(&e, ERR_UNAVAILABLE, "the daemon is going down");
	spend_unfollow(x);
	spend_elsewhere_end(x);
	spend_end_waiters(x, &e);
	signer_cancel(&x->ask);
	if (x->work) {
		spend_facts_done(&x->work->facts);
		spend_call_done(&x->work->call);
		free(x->work);
	}
	loop_timer_stop(&x->timer);
	map_del(&x->core->spends->by_id, &x->by_id);
	buf_done(&x->raw);
	buf_done(&x->params);
	free(x);
}

static struct spend_entry *entry_new(struct core *c, const struct sgn_item *item)
{
	struct spend_entry *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->core = c;
	x->raw = BUF_INIT(TX_RAW_MAX);
	x->params = BUF_INIT(TX_RAW_MAX * 2 + 4096);
	list_init(&x->waiters);
	list_init(&x->following);
	if (view_to_str(item->id, x->id, sizeof(x->id)) < 0 ||
	    view_to_str(item->agent, x->agent, sizeof(x->agent)) < 0 ||
	    map_put(&c->spends->by_id, &x->by_id, view_of(x->id)) < 0) {
		log_error("a request cannot be followed: out of memory");
		free(x);
		return NULL;
	}
	return x;
}

/* Whether these bytes take the place of what was asked for, and do nothing. */
static bool cancels(const struct sgn_item *item, struct view raw)
{
	struct tx t;
	struct u256 value;

	if (item->kind != SGN_REQUEST_KIND_TX || tx_decode(raw, &t) < 0 || t.creation || t.data.n ||
	    !u256_is_zero(&t.value) || item->from.n != ADDRESS_SIZE ||
	    !address_eq(t.to, (const uint8_t *)item->from.p))
		return false;
	return !(view_eq(item->to, item->from) && u256_load_view(item->value, &value) == 0 &&
		 u256_is_zero(&value));
}

static void add_tried(struct spend_entry *x, const struct sgn_item *item, struct view hash, struct view raw)
{
	if (hash.n != SPEND_HASH)
		return;
	for (size_t i = 0; i < x->n_tried; i++)
		if (memcmp(x->tried[i].hash, hash.p, SPEND_HASH) == 0)
			return;
	if (x->n_tried == SPEND_ATTEMPTS) { /* the first one may still be mined: it stays */
		memmove(&x->tried[1], &x->tried[2], (SPEND_ATTEMPTS - 2) * sizeof(x->tried[0]));
		x->n_tried--;
	}
	struct spend_tried *t = &x->tried[x->n_tried++];
	memcpy(t->hash, hash.p, SPEND_HASH);
	t->cancels = raw.n && cancels(item, raw);
}

static void copy_item(struct spend_entry *x, const struct sgn_item *item)
{
	x->kind = item->kind;
	x->chain = item->chain;
	if (item->generation) {
		x->nonce = item->nonce;
		x->has_nonce = true;
	}
	x->expires_ms = item->expires_ms;
	if (item->from.n == ADDRESS_SIZE)
		memcpy(x->account, item->from.p, ADDRESS_SIZE);
	for (size_t i = 0; i < item->attempts.n; i++)
		add_tried(x, item, item->attempts.items[i].hash, item->attempts.items[i].raw);
	add_tried(x, item, item->hash, item->raw);
	if (item->raw.n && !view_eq(item->raw, buf_view(&x->raw))) {
		buf_clear(&x->raw);
		(void)!buf_add(&x->raw, item->raw);
	}
	x->state = item->state;
	if (x->state != SGN_STATE_AWAITING_WALLET)
		x->answered = (struct spend_answer){ 0 };
}

/* Nothing comes of it any more, whatever happens to the chain. */
static bool is_done(const struct sgn_item *item)
{
	return spend_is_over(item) && !(spend_ended_in_block(item->state) && !item->sure &&
					item->kind == SGN_REQUEST_KIND_TX && item->hash.n == SPEND_HASH);
}

struct spend_entry *spend_learn(struct core *c, const struct sgn_item *item)
{
	struct spend_entry *x = spend_find(c, item->id);
	const bool new = !x, changed = !x || x->state != item->state;

	if (!x && !is_done(item))
		x = entry_new(c, item);
	if (x) {
		if (changed) {
			loop_timer_stop(&x->timer);
			x->failures = 0;
			if (!new && !x->refused)
				x->note[0] = 0;
		}
		copy_item(x, item);
	}
	if (changed && !(new && item->attached))
		tell_watches(c, item);
	if (!x)
		return NULL;
	spend_tell_agents(x, item);
	if (!is_done(item))
		return x;
	entry_free(x);
	return NULL;
}

/* ---- steps ---- */

static void on_timer(struct loop_timer *t)
{
	struct spend_entry *x = CONTAINER(t, struct spend_entry, timer);

	x->look |= x->state == SGN_STATE_PENDING || x->state == SGN_STATE_AWAITING_WALLET ||
		   x->state == SGN_STATE_APPROVED;
	spend_drive(x);
}

static void await_end(struct spend_entry *x)
{
	const int64_t left = x->expires_ms - clock_wall_ms();

	loop_timer_start(x->core->loop, &x->timer, (uint64_t)MAX(left, (int64_t)0) + EXPIRED_MS, on_timer);
}

/* Nodes write such texts: whoever shows one shows one line. */
void spend_note(struct spend_entry *x, const char *why)
{
	struct view all = view_head(view_of(why), sizeof(x->note) - 1);
	const size_t n = text_utf8_prefix(all);

	if (why == x->note)
		return;
	for (size_t i = 0; i < n; i++)
		x->note[i] = (unsigned char)why[i] < ' ' || why[i] == 0x7f ? ' ' : why[i];
	x->note[n] = '\0';
}

void spend_later(struct spend_entry *x, const char *why)
{
	const uint64_t pause = MIN((uint64_t)RETRY_MS << MIN(x->failures, 10u), (uint64_t)RETRY_MOST);

	x->failures++;
	x->busy = false;
	spend_note(x, why);
	loop_timer_start(x->core->loop, &x->timer, pause, on_timer);
}

void spend_step_over(struct spend_entry *x)
{
	x->busy = false;
	spend_drive(x);
}

static void on_looked(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct spend_entry *x = CONTAINER(a, struct spend_entry, ask);
	const struct sgn_item_reply *m = reply;

	x->busy = false;
	if (e || !m->item) {
		x->look = true;
		if (e && e->code == ERR_NOT_FOUND)
			entry_free(x);
		else if (e && e->code != ERR_UNAVAILABLE)
			spend_later(x, e->msg);
		return; /* the signer is away: it is read anew when it is back */
	}
	x->look = false;
	x = spend_learn(x->core, m->item);
	if (x)
		spend_drive(x);
}

/* Asks the signer what it is, and learns it. */
static void spend_look(struct spend_entry *x)
{
	struct err e = { 0 };

	x->look = true;
	x->busy = true;
	if (signer_call(x->core, &x->ask, SGN_SIGNER_TYPE_GET, &sgn_get_msg,
			&(struct sgn_get){ .id = view_of(x->id) }, &sgn_item_reply_msg, on_looked, &e) < 0)
		spend_later(x, e.msg);
}

static void on_reported(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct spend_entry *x = CONTAINER(a, struct spend_entry, ask);
	const struct sgn_item_reply *m = reply;

	x->busy = false;
	x->look = true;
	if (e && e->code != ERR_UNAVAILABLE)
		log_warn("transaction %s: %s", x->id, e->msg);
	if (!e && m->item) {
		x->look = false;
		x = spend_learn(x->core, m->item);
	}
	if (x)
		spend_drive(x);
}

void spend_report(struct spend_entry *x, const struct sgn_report *r)
{
	struct sgn_report m = *r;
	struct err e = { 0 };

	m.id = view_of(x->id);
	x->busy = true;
	if (signer_call(x->core, &x->ask, SGN_SIGNER_TYPE_REPORT, &sgn_report_msg, &m, &sgn_item_reply_msg,
			on_reported, &e) < 0)
		spend_later(x, e.msg);
}

void spend_drive(struct spend_entry *x)
{
	if (x->busy || x->core->stopping || loop_timer_active(&x->timer) || !signer_is_open(x->core))
		return;
	if (x->look) {
		spend_look(x);
		return;
	}
	switch (x->state) {
	case SGN_STATE_PENDING:
		await_end(x);
		break;
	case SGN_STATE_APPROVED:
		spend_sign(x);
		break;
	case SGN_STATE_SIGNED:
		spend_send(x);
		break;
	case SGN_STATE_AWAITING_WALLET:
		spend_elsewhere_begin(x);
		await_end(x);
		break;
	case SGN_STATE_DROPPED:
		spend_unfollow(x);
		spend_watch_dropped(x);
		break;
	case SGN_STATE_REPLACED: /* a reorganisation may bring it back */
	case SGN_STATE_REVERTED:
	case SGN_STATE_FAILED:
		x->resend = false;
		spend_follow(x);
		break;
	default: /* it was sent */
		if (x->kind != SGN_REQUEST_KIND_TX || !x->n_tried)
			break;
		x->external |= buf_len(&x->raw) == 0;
		if (x->external && !x->verified) {
			spend_verify(x);
			break;
		}
		spend_follow(x);
		if (x->resend)
			spend_send(x);
		break;
	}
}

/* ---- the signer comes and goes ---- */

static const int32_t under_way[] = { SGN_STATE_PENDING,         SGN_STATE_APPROVED, SGN_STATE_SIGNED,
				     SGN_STATE_BROADCAST,       SGN_STATE_INCLUDED, SGN_STATE_CONFIRMED,
				     SGN_STATE_AWAITING_WALLET, SGN_STATE_DROPPED,  SGN_STATE_REPLACED,
				     SGN_STATE_REVERTED,        SGN_STATE_FAILED };

struct spend_sync {
	struct core *core;
	struct signer_ask ask;
	size_t at;
	char after[SPEND_ID + 1];
};

static void sync_page(struct spend_sync *s);

static void sync_end(struct core *c)
{
	struct spend_sync *s = TAKE_PTR(c->spends->sync);

	if (s)
		signer_cancel(&s->ask);
	free(s);
}

static void drive_all(struct core *c)
{
	for (struct map_node *n = map_first(&c->spends->by_id), *next; n; n = next) {
		next = map_next(&c->spends->by_id, n);
		spend_drive(CONTAINER(n, struct spend_entry, by_id));
	}
}

static void on_page(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct spend_sync *s = CONTAINER(a, struct spend_sync, ask);
	const struct sgn_list_reply *m = reply;
	struct core *c = s->core;

	if (e) { /* it is lost, and comes again */
		sync_end(c);
		return;
	}
	for (size_t i = 0; i < m->items.n; i++) {
		const struct sgn_item *item = &m->items.items[i];
		if (!spend_find(c, item->id) && !is_done(item)) {
			struct spend_entry *x = entry_new(c, item);
			if (!x)
				continue;
			copy_item(x, item);
			x->look = true;
			x->elsewhere_before = item->state == SGN_STATE_AWAITING_WALLET;
		}
	}
	if (m->more && m->items.n &&
	    view_to_str(m->items.items[m->items.n - 1].id, s->after, sizeof(s->after)) >= 0) {
		sync_page(s);
		return;
	}
	s->after[0] = 0;
	if (++s->at < ELEMS(under_way)) {
		sync_page(s);
		return;
	}
	sync_end(c);
	drive_all(c);
}

static void sync_page(struct spend_sync *s)
{
	struct sgn_list m = {
		.state = under_way[s->at], .after = view_of(s->after), .max = SYNC_PAGE, .unsure = true
	};
	struct err e = { 0 };

	if (signer_call(s->core, &s->ask, SGN_SIGNER_TYPE_LIST, &sgn_list_msg, &m, &sgn_list_reply_msg,
			on_page, &e) < 0)
		sync_end(s->core);
}

static void read_anew(struct core *c)
{
	sync_end(c);
	for (struct map_node *n = map_first(&c->spends->by_id); n; n = map_next(&c->spends->by_id, n)) {
		struct spend_entry *x = CONTAINER(n, struct spend_entry, by_id);
		x->look = true;
		if (!x->busy)
			loop_timer_stop(&x->timer);
	}
	c->spends->sync = calloc(1, sizeof(*c->spends->sync));
	if (!c->spends->sync)
		return;
	c->spends->sync->core = c;
	sync_page(c->spends->sync);
}

static void on_signer(struct signer_watch *w, bool is_open)
{
	struct core *c = CONTAINER(w, struct spends, watch)->core;

	if (is_open)
		read_anew(c);
}

/* ---- what the owner changes ---- */

static void nobody(void *arg, const void *result, const struct err *e)
{
	(void)arg, (void)result, (void)e;
}

static void on_changed(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct spend_op *op = CONTAINER(a, struct spend_op, ask);
	const struct sgn_item_reply *m = reply;
	struct spend_entry *x = !e && m->item ? spend_find(op->core, m->item->id) : NULL;

	if (x && x->state == m->item->state) /* what counts of it is another, which only they can see */
		tell_watches(op->core, m->item);
	x = !e && m->item ? spend_learn(op->core, m->item) : NULL;
	spend_op_end(op, NULL, e);
	if (x)
		spend_drive(x);
}

/* It is over, and what counts of it is another: those who watch are told. */
static void look_at_ended(struct core *c, struct view id)
{
	struct err e = { 0 };
	struct spend_op *op = spend_op_new(c, sizeof(*op), NULL, nobody, NULL, &e);

	if (op && signer_call(c, &op->ask, SGN_SIGNER_TYPE_GET, &sgn_get_msg, &(struct sgn_get){ .id = id },
			      &sgn_item_reply_msg, on_changed, &e) < 0)
		spend_op_end(op, NULL, &e);
}

static void on_told(struct signer_watch *w, struct view id)
{
	struct core *c = CONTAINER(w, struct spends, watch)->core;
	struct spend_entry *x = spend_find(c, id);

	if (!x || x->state == SGN_STATE_DROPPED || spend_ended_in_block(x->state)) {
		look_at_ended(c, id);
		return;
	}
	x->look = true;
	if (!x->busy)
		loop_timer_stop(&x->timer);
	spend_drive(x);
}

/* ---- life ---- */

void spend_init(struct core *c)
{
	c->agents->revoke = spend_revoke;
	c->agents->rpc_end = agents_rpc_end;
	map_init(&c->spends->by_id);
	list_init(&c->spends->watches);
	list_init(&c->spends->elsewhere);
	list_init(&c->spends->ops);
	list_init(&c->spends->kept);
}

void spend_start(struct core *c)
{
	c->spends->started = true;
	c->spends->watch.changed = on_signer;
	c->spends->watch.told = on_told;
	signer_watch(c, &c->spends->watch);
	if (signer_is_open(c))
		read_anew(c);
}

void spend_stop(struct core *c)
{
	struct err e = { 0 };

	err_set(&e, ERR_UNAVAILABLE, "the daemon is going down");
	signer_unwatch(&c->spends->watch);
	sync_end(c);
	while (!list_empty(&c->spends->ops))
		spend_op_end(CONTAINER(c->spends->ops.next, struct spend_op, link), NULL, &e);
	for (struct map_node *n; (n = map_first(&c->spends->by_id));)
		entry_free(CONTAINER(n, struct spend_entry, by_id));
	LIST_EACH (it, &c->chains->nodes)
		spend_follow_stop(CONTAINER(it, struct spend_node, link));
}

void spend_done(struct core *c)
{
	spend_forget_kept(c);
	map_done(&c->spends->by_id);
}
