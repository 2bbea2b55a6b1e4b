/*
 * What the keeper and the api say about boxes: listeners, policies, ends. And what a
 * box may still do by time and number.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fd.h"
#include "intercept.h"
#include "log.h"
#include "wire_gen.h"
#include "poison.h"

#define NAMES          512 /* addresses that are remembered for a box */
#define REFILL_MS      50
#define USED_MS        100                /* after which the api is told what was used, */
#define USED_STEP      (4u * 1024 * 1024) /* or at once */
#define QUESTIONS      50.0               /* to DNS in a second */
#define QUESTIONS_MOST 200.0

/* ---- the table ---- */

static struct box *box_get(struct gate *g, struct view id)
{
	struct map_node *n = map_get(&g->boxes, id);
	return n ? CONTAINER(n, struct box, node) : NULL;
}

static struct box *box_need(struct gate *g, struct view id)
{
	struct box *b = box_get(g, id);
	if (b)
		return b;
	b = calloc(1, sizeof(*b));
	if (!b || view_to_str(id, b->id, sizeof(b->id)) < 0 ||
	    map_put(&g->boxes, &b->node, view_of(b->id)) < 0) {
		free(b);
		return NULL;
	}
	b->gate = g;
	b->tcp.fd = b->dns.fd = b->steer = -1;
	b->questions_left = QUESTIONS_MOST;
	list_init(&b->flows);
	list_init(&b->questions);
	return b;
}

void box_free(struct box *b)
{
	LIST_EACH (it, &b->flows)
		flow_end(CONTAINER(it, struct flow, link), true);
	server_cancel_all(b, NULL);
	loop_timer_stop(&b->refill);
	loop_io_close(&b->tcp);
	loop_io_close(&b->dns);
	fd_close(b->steer);
	policy_free(b->policy);
	share_leave(&b->gate->tenants, &b->share);
	for (unsigned i = 0; i < b->n_names; i++)
		free(b->names[i].name);
	free(b->names);
	map_del(&b->gate->boxes, &b->node);
	free(b);
}

/* A box that nobody serves and nobody has a policy for is forgotten. */
static void box_put(struct box *b)
{
	if (b->tcp.fd < 0 && b->dns.fd < 0 && b->steer < 0 && !b->policy)
		box_free(b);
}

/* ---- limits ---- */

static void refill(struct box *b)
{
	uint64_t now = loop_now(b->gate->loop), passed = now - b->tokens_ms;
	const struct policy *p = b->policy;

	if (b->tokens_ms == 0)
		passed = 1000;
	if (passed == 0)
		return;
	b->tokens_ms = now;
	passed = MIN(passed, 1000u);
	b->questions_left = MIN(QUESTIONS_MOST, b->questions_left + QUESTIONS * (double)passed / 1000);
	if (p && p->bytes_per_second)
		b->bytes_left = MIN(p->bytes_per_second, b->bytes_left + p->bytes_per_second * passed / 1000);
	if (p && p->connects_per_second)
		b->connects_left =
			MIN((double)p->connects_per_second,
			    b->connects_left + (double)p->connects_per_second * (double)passed / 1000);
}

static void on_refill(struct loop_timer *t)
{
	struct box *b = CONTAINER(t, struct box, refill);
	refill(b);
	if (b->tcp.fd >= 0) /* stopped when there were no fds left */
		(void)!loop_io_want(&b->tcp, EPOLLIN);
	LIST_EACH (it, &b->flows) {
		struct flow *f = CONTAINER(it, struct flow, link);
		if (f->throttled) {
			f->throttled = false;
			flow_wants(f);
		}
	}
}

bool box_may_connect(struct box *b)
{
	refill(b);
	if (!b->policy || !b->policy->connects_per_second)
		return true;
	if (b->connects_left < 1)
		return false;
	b->connects_left -= 1;
	return true;
}

bool box_may_ask(struct box *b)
{
	refill(b);
	if (b->questions_left < 1)
		return false;
	b->questions_left -= 1;
	return true;
}

size_t box_allowance(struct box *b, size_t want)
{
	const struct policy *p = b->policy;

	if (!p || !p->bytes_per_second)
		return want;
	refill(b);
	if (b->bytes_left == 0 && !loop_timer_active(&b->refill))
		loop_timer_start(b->gate->loop, &b->refill, REFILL_MS, on_refill);
	return (size_t)MIN((uint64_t)want, b->bytes_left);
}

uint64_t box_used(const struct box *b)
{
	return b->bytes_before + b->bytes_in + b->bytes_out;
}

static bool untold(const struct box *b)
{
	return b->policy && b->policy->max_bytes && box_used(b) != b->bytes_told;
}

/* What was used outlives a gate: the api keeps it. Without a way to it the next byte tries again. */
static void tell_used(struct gate *g)
{
	struct wire_gate_use uses[64];
	struct wire_gate_used m = { .boxes = { uses, 0 } };

	loop_timer_stop(&g->tell_used);
	for (struct map_node *n = map_first(&g->boxes); n; n = map_next(&g->boxes, n)) {
		struct box *b = CONTAINER(n, struct box, node);
		if (!untold(b) || !link_open(&g->api))
			continue;
		b->bytes_told = box_used(b);
		uses[m.boxes.n++] = (struct wire_gate_use){ view_of(b->id), b->bytes_told };
		if (m.boxes.n == ELEMS(uses)) {
			(void)!link_send_msg(&g->api, WIRE_TYPE_GATE_USED, FRAME_EVENT, 0, 0, 0,
					     &wire_gate_used_msg, &m);
			m.boxes.n = 0;
		}
	}
	if (m.boxes.n)
		(void)!link_send_msg(&g->api, WIRE_TYPE_GATE_USED, FRAME_EVENT, 0, 0, 0, &wire_gate_used_msg,
				     &m);
}

static void on_tell_used(struct loop_timer *t)
{
	tell_used(CONTAINER(t, struct gate, tell_used));
}

static void tell_used_soon(struct box *b)
{
	struct gate *g = b->gate;

	if (!untold(b))
		return;
	if (box_used(b) - b->bytes_told >= USED_STEP)
		tell_used(g);
	else if (!loop_timer_active(&g->tell_used))
		loop_timer_start(g->loop, &g->tell_used, USED_MS, on_tell_used);
}

void box_count(struct box *b, bool out, size_t n)
{
	*(out ? &b->bytes_out : &b->bytes_in) += n;
	b->bytes_left -= MIN(b->bytes_left, n);
	tell_used_soon(b);
}

/* ---- names of addresses ---- */

void box_remember(struct box *b, const struct addr *a, const char *name)
{
	if (box_was_told(b, a, view_of(name)) && view_is(box_name(b, a), name))
		return;
	if (!b->names)
		b->names = calloc(NAMES, sizeof(*b->names));
	char *copy = b->names ? strdup(name) : NULL;
	if (!copy)
		return;
	struct box_name *n = &b->names[b->next_name];
	free(n->name);
	*n = (struct box_name){ *a, copy };
	b->next_name = (b->next_name + 1) % NAMES;
	b->n_names = MIN(b->n_names + 1, NAMES);
}

/* The latest one. */
struct view box_name(const struct box *b, const struct addr *a)
{
	for (unsigned i = 0; i < b->n_names; i++) {
		const struct box_name *n = &b->names[(b->next_name + NAMES - 1 - i) % NAMES];
		if (addr_eq(&n->addr, a))
			return view_of(n->name);
	}
	return VIEW("");
}

bool box_was_told(const struct box *b, const struct addr *a, struct view name)
{
	for (unsigned i = 0; i < b->n_names; i++)
		if (addr_eq(&b->names[i].addr, a) && view_is(name, b->names[i].name))
			return true;
	return false;
}

void box_later(struct box *b)
{
	(void)!loop_io_want(&b->tcp, 0);
	if (!loop_timer_active(&b->refill))
		loop_timer_start(b->gate->loop, &b->refill, REFILL_MS, on_refill);
}

/* ---- the keeper ---- */

static void put_fd(struct box *b, int32_t kind, int fd)
{
	struct loop_io *io = kind == WIRE_GATE_FD_TCP ? &b->tcp : kind == WIRE_GATE_FD_DNS ? &b->dns : NULL;
	int r = 0;

	if (kind == WIRE_GATE_FD_STEER) {
		fd_close(b->steer);
		b->steer = fd;
		return;
	}
	if (!io) {
		fd_close(fd);
		return;
	}
	loop_io_close(io);
	r = fd_nonblock(fd, true);
	if (r == 0)
		r = loop_io_start(b->gate->loop, io, fd, EPOLLIN,
				  io == &b->tcp ? flow_accept : server_on_question);
	/* What is accepted inherits it. The way to the box is a loopback, which loses nothing: a machine's
	 * choice for the world (BBR, with its timers) only costs there. */
	if (io == &b->tcp) {
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
		(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", sizeof("reno") - 1);
	}
	if (r < 0) {
		io->fd = -1;
		fd_close(fd);
		log_error("box %s cannot be served: %s", b->id, strerror(-r));
	}
}

/* The api's new channel. */
static void open_api(struct gate *g, int fd)
{
	link_stop(&g->api);
	for (struct map_node *n = map_first(&g->boxes); n; n = map_next(&g->boxes, n))
		CONTAINER(n, struct box, node)->synced = false;
	int r = link_start(&g->api, g->loop, fd, true, &boxes_api_ops);
	if (r < 0)
		log_error("the api's channel: %s", strerror(-r));
	verdict_flush(g);
}

static void on_keeper(struct link *l, const struct frame *f, int fd)
{
	struct gate *g = CONTAINER(l, struct gate, keeper);
	struct arena a = ARENA_INIT(4096);
	_cleanup_(closep) int mine = fd;

	if (f->kind == FRAME_EVENT && f->type == WIRE_TYPE_GATE_API && mine >= 0) {
		open_api(g, TAKE_FD(mine));
	} else if (f->kind == FRAME_EVENT && f->type == WIRE_TYPE_GATE_VAULT && mine >= 0) {
		intercept_vault_open(g, TAKE_FD(mine));
	} else if (f->kind == FRAME_EVENT && f->type == WIRE_TYPE_GATE_BOX && mine >= 0) {
		struct wire_gate_box m;
		struct box *b =
			pb_decode(&wire_gate_box_msg, f->body, 0, &a, &m) < 0 ? NULL : box_need(g, m.id);
		if (b && view_to_str(m.host, b->host, sizeof(b->host)) < 0)
			b->host[0] = 0;
		if (b)
			put_fd(b, m.kind, TAKE_FD(mine));
	} else if (f->kind == FRAME_EVENT && f->type == WIRE_TYPE_GATE_BOX_GONE) {
		struct wire_gate_box_gone m;
		struct box *b =
			pb_decode(&wire_gate_box_gone_msg, f->body, 0, &a, &m) < 0 ? NULL : box_get(g, m.id);
		if (b) {
			tell_used(g); /* it may be started again */
			box_free(b);
		}
	}
	arena_done(&a);
}

static void on_keeper_closed(struct link *l, int error)
{
	loop_stop(CONTAINER(l, struct gate, keeper)->loop, EXIT_SUCCESS);
}

const struct link_ops boxes_keeper_ops = { .on_frame = on_keeper, .on_closed = on_keeper_closed };

/* ---- the api ---- */

static int call_policy(struct gate *g, const struct frame *f, struct arena *a, struct err *e)
{
	struct wire_gate_policy m;
	struct wire_gate_policy_reply out = { 0 };
	struct policy *p;

	if (pb_decode(&wire_gate_policy_msg, f->body, 0, a, &m) < 0)
		return err_set(e, ERR_INVALID, "not a policy");
	if (!m.box.n || m.box.n >= sizeof(((struct box *)0)->id))
		return err_set(e, ERR_INVALID, "not the id of a box");
	if (policy_new(&m, &p, e) < 0)
		return -1;
	struct box *b = box_need(g, m.box);
	if (!b || share_join(&g->tenants, &b->share, m.tenant) < 0) {
		policy_free(p);
		return err_sys(e, ERR_INTERNAL, ENOMEM, "a box");
	}
	LIST_EACH (it, &b->flows) /* rules of the old policy go with it */
		CONTAINER(it, struct flow, link)->rule = NULL;
	policy_free(b->policy);
	b->policy = p;
	b->synced = true;
	/* The api may not know yet what this gate has counted, or not any more. */
	b->bytes_before += m.used_bytes > box_used(b) ? m.used_bytes - box_used(b) : 0;
	b->bytes_told = m.used_bytes;
	tell_used_soon(b);
	b->bytes_left = MIN(b->bytes_left, p->bytes_per_second);
	if (m.recheck)
		LIST_EACH (it, &b->flows) {
			struct flow *flow = CONTAINER(it, struct flow, link);
			if (!flow_still_allowed(flow)) {
				flow_end(flow, true);
				out.closed++;
			}
		}
	(void)!link_send_msg(&g->api, f->type, FRAME_REPLY, FRAME_LAST, f->stream, 0,
			     &wire_gate_policy_reply_msg, &out);
	return 0;
}

static int call_synced(struct gate *g, const struct frame *f)
{
	struct wire_gate_synced_reply out = { 0 };

	for (struct map_node *n = map_first(&g->boxes), *next; n; n = next) {
		struct box *b = CONTAINER(n, struct box, node);
		next = map_next(&g->boxes, n);
		if (b->synced || !b->policy)
			continue;
		LIST_EACH (it, &b->flows)
			flow_end(CONTAINER(it, struct flow, link), true);
		policy_free(b->policy);
		b->policy = NULL;
		out.dropped++;
		box_put(b);
	}
	(void)!link_send_msg(&g->api, f->type, FRAME_REPLY, FRAME_LAST, f->stream, 0,
			     &wire_gate_synced_reply_msg, &out);
	return 0;
}

static int call_stats(struct gate *g, const struct frame *f, struct arena *a, struct err *e)
{
	struct wire_gate_stats m;
	const struct box *b =
		pb_decode(&wire_gate_stats_msg, f->body, 0, a, &m) < 0 ? NULL : box_get(g, m.box);

	if (!b)
		return err_set(e, ERR_NOT_FOUND, "the gate does not serve this box");
	verdict_flush(g); /* so that whoever asks has what is counted here */
	struct wire_gate_stats_reply out = { .flows = b->share.n_flows,
					     .allowed = b->allowed,
					     .denied = b->denied,
					     .bytes_out = b->bytes_out,
					     .bytes_in = b->bytes_in };
	(void)!link_send_msg(&g->api, f->type, FRAME_REPLY, FRAME_LAST, f->stream, 0,
			     &wire_gate_stats_reply_msg, &out);
	return 0;
}

static void on_api(struct link *l, const struct frame *f, int fd)
{
	struct gate *g = CONTAINER(l, struct gate, api);
	struct arena a = ARENA_INIT(8u << 20);
	struct err e = { 0 };
	int r;

	fd_close(fd);
	if (f->kind != FRAME_CALL)
		return;
	if (f->type == WIRE_TYPE_GATE_POLICY)
		r = call_policy(g, f, &a, &e);
	else if (f->type == WIRE_TYPE_GATE_SYNCED)
		r = call_synced(g, f);
	else if (f->type == WIRE_TYPE_GATE_STATS)
		r = call_stats(g, f, &a, &e);
	else
		r = err_set(&e, ERR_UNSUPPORTED, "paddock-gate does not know call %u", f->type);
	if (r < 0)
		(void)!link_fail(l, f->type, f->stream, &e);
	arena_done(&a);
}

/* The policies stay: boxes go on while the api restarts. */
static void on_api_closed(struct link *l, int error)
{
	link_stop(l);
}

static void on_api_drained(struct link *l)
{
	verdict_flush(CONTAINER(l, struct gate, api));
}

const struct link_ops boxes_api_ops = { .on_frame = on_api,
					.on_closed = on_api_closed,
					.on_drained = on_api_drained };
