/*
 * Delivery: see webhooks.h. A webhook has at most two requests in progress, a first attempt and a
 * retry. State is written before it is acted upon: an event is behind the position, among the stored
 * retries, or delivered.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "fd.h"
#include "keeper.h"
#include "log.h"
#include "sha256.h"
#include "text.h"
#include "webhooks_impl.h"
#include "wire_gen.h"
#include "poison.h"

#define KEEPER_MS   10000
#define POST_MS     15000 /* paddock-hook itself gives up before */
#define REOPEN_MS   1000
#define BACKOFF_MS  1000
#define BACKOFF_MAX (10 * 60 * 1000)
#define GIVE_UP_MS  (24ll * 60 * 60 * 1000)
#define BODY_MAX    (64u * 1024)
#define HMAC_BLOCK  64

static void open_hook(struct core *c);

/* ---- HMAC-SHA256 (RFC 2104) ---- */

static void hmac(struct view key, const struct view *parts, size_t n, uint8_t ret[SHA256_SIZE])
{
	uint8_t block[HMAC_BLOCK] = { 0 }, pad[HMAC_BLOCK];
	struct sha256 s;

	if (key.n > HMAC_BLOCK)
		sha256_of(key, block);
	else
		memcpy(block, key.p, key.n);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < HMAC_BLOCK; i++)
			pad[i] = block[i] ^ (round ? 0x5c : 0x36);
		sha256_init(&s);
		sha256_add(&s, pad, sizeof(pad));
		for (size_t i = 0; !round && i < n; i++)
			sha256_add(&s, parts[i].p, parts[i].n);
		if (round)
			sha256_add(&s, ret, SHA256_SIZE);
		sha256_end(&s, ret);
	}
	explicit_bzero(block, sizeof(block));
	explicit_bzero(pad, sizeof(pad));
}

static void sign(const struct webhook *w, struct view body, char *dst, size_t size)
{
	char seconds[24], hex[2 * SHA256_SIZE + 1];
	uint8_t mac[SHA256_SIZE];

	snprintf(seconds, sizeof(seconds), "%lld", (long long)(clock_wall_ms() / 1000));
	const struct view parts[] = { view_of(seconds), VIEW("."), body };
	hmac(view_of(w->secret), parts, ELEMS(parts), mac);
	text_hex(mac, sizeof(mac), hex);
	snprintf(dst, size, "t=%s,v1=%s", seconds, hex);
}

/* ---- what became of an attempt ---- */

static void note(struct webhook *w, const struct delivery *d, unsigned status, const char *error, bool last)
{
	const struct event *v = events_get(w->core, d->event);
	struct webhook_attempt *t = &w->log[w->log_at];

	*t = (struct webhook_attempt){ .event = v ? v->number : d->number,
				       .type = v ? v->type : EVENT_NONE,
				       .at_ms = clock_wall_ms(),
				       .attempt = d->attempts,
				       .status = status,
				       .took_ms = (uint32_t)(clock_mono_ms() - d->began_ms),
				       .last = last };
	snprintf(t->error, sizeof(t->error), "%s", error);
	w->log_at = (w->log_at + 1) % WEBHOOKS_LOG;
	w->log_n = MIN(w->log_n + 1, (unsigned)WEBHOOKS_LOG);
}

static void drop_retry(struct delivery *d)
{
	struct webhook *w = d->hook;

	store_delivery_delete(w->core->store, view_of(w->id), d->event, core_store_done, w->core);
	list_del(&d->link);
	w->n_retries--;
	if (w->retry == d)
		w->retry = NULL;
	mux_cancel(&d->call);
	free(d);
}

static void store_retry(const struct delivery *d)
{
	const struct webhook *w = d->hook;

	store_delivery_put(w->core->store,
			   &(struct store_delivery){ .webhook = view_of(w->id),
						     .event = d->event,
						     .attempts = d->attempts,
						     .first_ms = d->first_ms,
						     .next_ms = d->next_ms },
			   core_store_done, w->core);
}

static int64_t backoff(unsigned attempts)
{
	unsigned doublings = MIN(attempts - 1, 20u);
	return MIN((int64_t)BACKOFF_MS << doublings, (int64_t)BACKOFF_MAX);
}

static void move_on(struct webhook *w, uint64_t event)
{
	w->position = event;
	store_webhook_move(w->core->store, view_of(w->id), event, core_store_done, w->core);
}

/* The first try of an event failed: from now on it is a retry, and the next event has its turn. */
static void begin_retries(struct webhook *w)
{
	struct delivery *d = calloc(1, sizeof(*d));

	if (!d)
		return; /* it stays the first */
	if (w->n_retries >= WEBHOOKS_RETRIES)
		LIST_EACH (it, &w->retries) {
			struct delivery *old = CONTAINER(it, struct delivery, link);
			if (old == w->retry)
				continue;
			log_warn("webhook %s: event %llu is given up, too many wait", w->id,
				 (unsigned long long)old->event);
			drop_retry(old);
			break;
		}
	d->hook = w;
	d->event = w->first.event;
	d->number = w->first.number;
	d->attempts = w->first.attempts;
	d->first_ms = w->first.first_ms;
	d->next_ms = clock_wall_ms() + backoff(d->attempts);
	list_append(&w->retries, &d->link);
	w->n_retries++;
	store_retry(d);
	move_on(w, d->event);
}

static void settle(struct delivery *d, unsigned status, const char *error)
{
	struct webhook *w = d->hook;
	bool ok = status >= 200 && status < 300, first = d == &w->first;

	d->attempts++;
	if (ok) {
		w->delivered++;
		note(w, d, status, "", true);
		if (first)
			move_on(w, d->event);
		else
			drop_retry(d);
		return;
	}
	w->failed++;
	int64_t next = clock_wall_ms() + backoff(d->attempts);
	bool over = next - d->first_ms > GIVE_UP_MS;
	note(w, d, status, error, over);
	if (first) {
		begin_retries(w);
	} else if (over) {
		log_warn("webhook %s: event %llu is given up after %u attempts", w->id,
			 (unsigned long long)d->event, d->attempts);
		drop_retry(d);
	} else {
		d->next_ms = next;
		store_retry(d);
		w->retry = NULL;
	}
}

static int on_posted(struct call *call, const struct frame *f, int fd)
{
	struct delivery *d = CONTAINER(call, struct delivery, call);
	struct webhook *w = d->hook;
	struct arena a = ARENA_INIT(4096);
	struct wire_hook_posted reply;
	char error[96] = "";
	int r = mux_reply(call, f, &wire_hook_posted_msg, &a, &reply);

	if (r >= 0) {
		unsigned status = reply.status <= 999 ? reply.status : 0;
		snprintf(error, sizeof(error), "%.*s", (int)MIN(reply.error.n, sizeof(error) - 1),
			 reply.error.p);
		if (!error[0] && (status < 200 || status >= 300))
			snprintf(error, sizeof(error), "the answer was %u", status);
		settle(d, status, error);
	}
	arena_done(&a);
	if (r >= 0)
		webhooks_send(w);
	return r;
}

/* paddock-hook is gone or says nothing: whether it was sent nobody knows, so it is sent again. */
static void on_post_fail(struct call *call, const struct err *e)
{
	struct delivery *d = CONTAINER(call, struct delivery, call);
	struct webhook *w = d->hook;

	if (d == w->retry)
		w->retry = NULL;
	if (e->code == ERR_TIMEOUT && !w->core->stopping) {
		settle(d, 0, "no answer in time");
		webhooks_send(w);
	}
}

static const struct call_ops post_ops = { .on_reply = on_posted, .on_fail = on_post_fail };

/* ---- sending ---- */

static int post(struct delivery *d, const struct event *v)
{
	struct webhook *w = d->hook;
	struct buf body = BUF_INIT(BODY_MAX);
	char signature[128], id[KEYS_ID_SIZE + 24];
	struct webhook_url u;
	int r = events_to_json(&(struct actor){ .tenant = w->tenant, .role = STORE_ROLE_USER }, v, &body);

	if (r >= 0)
		r = webhooks_read_url(view_of(w->url), &u, NULL);
	if (r >= 0) {
		sign(w, buf_view(&body), signature, sizeof(signature));
		snprintf(id, sizeof(id), "%s-%llu", w->id, (unsigned long long)v->number);
		d->number = v->number;
		struct wire_hook_post msg = { .host = u.host,
					      .port = u.port,
					      .tls = u.tls,
					      .authority = u.authority,
					      .target = u.target,
					      .signature = view_of(signature),
					      .event = view_of(events_name(v->type)),
					      .delivery = view_of(id),
					      .body = buf_view(&body) };
		d->began_ms = clock_mono_ms();
		d->call.ops = &post_ops;
		r = mux_call(&w->core->webhooks->mux, &d->call, WIRE_TYPE_HOOK_POST, POST_MS, POST_MS,
			     &wire_hook_post_msg, &msg);
	}
	buf_done(&body);
	return r;
}

static void send_first(struct webhook *w)
{
	const struct actor tenant = { .tenant = w->tenant, .role = STORE_ROLE_USER };
	const struct event_filter f = { .types = w->types };
	const struct event *v = events_next(w->core, &tenant, &f, w->position);

	if (mux_is_open(&w->first.call))
		return;
	if (!v) {
		w->position = MAX(w->position, events_last(w->core)); /* on disk with the next delivery */
		return;
	}
	w->first.event = v->id;
	w->first.attempts = 0;
	w->first.first_ms = clock_wall_ms();
	(void)!post(&w->first, v);
}

static void on_timer(struct loop_timer *t)
{
	webhooks_send(CONTAINER(t, struct webhook, timer));
}

static struct delivery *earliest(struct webhook *w)
{
	struct delivery *best = NULL;

	LIST_EACH (it, &w->retries) {
		struct delivery *d = CONTAINER(it, struct delivery, link);
		if (!best || d->next_ms < best->next_ms)
			best = d;
	}
	return best;
}

static void send_retry(struct webhook *w)
{
	struct delivery *d;

	while (!w->retry && (d = earliest(w))) {
		const struct event *v = events_get(w->core, d->event);
		int64_t left = d->next_ms - clock_wall_ms();
		if (!v) {
			d->began_ms = clock_mono_ms();
			note(w, d, 0, "the event is not kept any more", true);
			drop_retry(d);
			continue;
		}
		if (left > 0) {
			/* The wall's clock may be set: look again now and then. */
			loop_timer_start(w->core->loop, &w->timer, (uint64_t)MIN(left, (int64_t)60000),
					 on_timer);
			return;
		}
		if (post(d, v) < 0)
			return;
		w->retry = d;
	}
}

void webhooks_send(struct webhook *w)
{
	struct core *c = w->core;

	if (c->stopping)
		return;
	if (!c->webhooks->open) {
		open_hook(c);
		return;
	}
	send_first(w);
	send_retry(w);
}

void webhooks_send_stop(struct webhook *w)
{
	loop_timer_stop(&w->timer);
	mux_cancel(&w->first.call);
	if (w->retry)
		mux_cancel(&w->retry->call);
	w->retry = NULL;
}

/* ---- paddock-hook ---- */

static void send_all(struct core *c)
{
	LIST_EACH (it, &c->webhooks->all)
		webhooks_send(CONTAINER(it, struct webhook, order));
}

static void on_again(struct loop_timer *t)
{
	send_all(CONTAINER(t, struct webhooks, again)->core);
}

static void on_closed(struct mux *m, const struct err *why)
{
	struct core *c = CONTAINER(m, struct webhooks, mux)->core;
	struct err e = { 0 };

	log_warn("paddock-hook is gone: %s", why->msg);
	err_set(&e, ERR_UNAVAILABLE, "paddock-hook is gone");
	c->webhooks->open = false;
	mux_stop(m, &e);
	loop_timer_start(c->loop, &c->webhooks->again, REOPEN_MS, on_again);
}

static const struct mux_ops hook_ops = { .on_closed = on_closed };

static int on_opened(struct call *call, const struct frame *f, int fd)
{
	struct core *c = CONTAINER(call, struct webhooks, opening)->core;

	if (!(f->flags & FRAME_LAST) || fd < 0) {
		fd_close(fd);
		return -EBADMSG;
	}
	int r = mux_start(&c->webhooks->mux, c->loop, fd, false, &hook_ops);
	if (r < 0) {
		log_error("paddock-hook cannot be reached: %d", r);
		return 0;
	}
	c->webhooks->open = true;
	send_all(c);
	return 0;
}

static void on_open_fail(struct call *call, const struct err *e)
{
	struct core *c = CONTAINER(call, struct webhooks, opening)->core;

	if (c->stopping)
		return;
	log_warn("paddock-hook cannot be started: %s", e->msg);
	loop_timer_start(c->loop, &c->webhooks->again, 10 * REOPEN_MS, on_again);
}

static const struct call_ops open_ops = { .on_reply = on_opened, .on_fail = on_open_fail };

static void open_hook(struct core *c)
{
	struct wire_hook_open msg = { 0 };

	if (mux_is_open(&c->webhooks->opening) || loop_timer_active(&c->webhooks->again))
		return;
	c->webhooks->opening.ops = &open_ops;
	if (keeper_call(c, &c->webhooks->opening, WIRE_TYPE_HOOK_OPEN, KEEPER_MS, &wire_hook_open_msg, &msg) <
	    0)
		loop_timer_start(c->loop, &c->webhooks->again, REOPEN_MS, on_again);
}

static void on_more(struct events_watch *watch)
{
	send_all(CONTAINER(watch, struct webhooks, watch)->core);
}

void webhooks_start(struct core *c)
{
	events_watch(c, &c->webhooks->watch, on_more);
	send_all(c);
}

void webhooks_stop(struct core *c)
{
	struct err e = { 0 };

	err_set(&e, ERR_UNAVAILABLE, "the daemon is going down");
	events_unwatch(&c->webhooks->watch);
	loop_timer_stop(&c->webhooks->again);
	mux_cancel(&c->webhooks->opening);
	LIST_EACH (it, &c->webhooks->all)
		webhooks_send_stop(CONTAINER(it, struct webhook, order));
	mux_stop(&c->webhooks->mux, &e);
}
