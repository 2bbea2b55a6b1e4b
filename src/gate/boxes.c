/*
 * What the keeper and the api say about boxes: listeners, policies, ends. And what the
 * rooms below want of the program: verdicts, questions, connections for the AI gateway.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dns.h"
#include "fd.h"
#include "gate.h"
#include "log.h"
#include "wire_gen.h"
#include "poison.h"

#define USED_MS   100                /* after which the api is told what was used, */
#define USED_STEP (4u * 1024 * 1024) /* or at once */

static const struct server_ops dns_ops;

/* ---- the table ---- */

static struct gate *gate_of(const struct gate_box *b)
{
	return CONTAINER(b->all, struct gate, flows);
}

static struct gate_box *get_box(struct gate *g, struct view id)
{
	struct map_node *n = map_get(&g->flows.boxes, id);
	return n ? CONTAINER(n, struct gate_box, node) : NULL;
}

static struct gate_box *need_box(struct gate *g, struct view id)
{
	struct gate_box *b = get_box(g, id);
	if (b)
		return b;
	b = calloc(1, sizeof(*b));
	if (!b || view_to_str(id, b->id, sizeof(b->id)) < 0 ||
	    map_put(&g->flows.boxes, &b->node, view_of(b->id)) < 0) {
		free(b);
		return NULL;
	}
	box_init(b, &g->flows);
	server_init(&b->dns, g->flows.loop, g->flows.names, &dns_ops);
	return b;
}

static void drop_box(struct gate_box *b)
{
	struct gate *g = gate_of(b);

	box_done(b);
	server_done(&b->dns);
	fd_close(b->steer);
	share_leave(&g->tenants, &b->share);
	map_del(&g->flows.boxes, &b->node);
	free(b);
}

/* A box that nobody serves and nobody has a policy for is forgotten. */
static void put_box(struct gate_box *b)
{
	if (b->tcp.fd < 0 && b->dns.io.fd < 0 && b->steer < 0 && !b->policy)
		drop_box(b);
}

/* ---- what was used ---- */

static bool untold(const struct gate_box *b)
{
	return b->policy && b->policy->max_bytes && box_used(b) != b->bytes_told;
}

/* What was used outlives a gate: the api keeps it. Without a way to it the next byte tries again. */
static void tell_used(struct gate *g)
{
	struct wire_gate_use uses[64];
	struct wire_gate_used m = { .boxes = { uses, 0 } };

	loop_timer_stop(&g->tell_used);
	for (struct map_node *n = map_first(&g->flows.boxes); n; n = map_next(&g->flows.boxes, n)) {
		struct gate_box *b = CONTAINER(n, struct gate_box, node);
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

static void tell_used_soon(struct gate_box *b)
{
	struct gate *g = gate_of(b);

	if (!untold(b))
		return;
	if (box_used(b) - b->bytes_told >= USED_STEP)
		tell_used(g);
	else if (!loop_timer_active(&g->tell_used))
		loop_timer_start(g->flows.loop, &g->tell_used, USED_MS, on_tell_used);
}

/* ---- what the rooms want ---- */

static struct gate_box *box_of(struct server *s)
{
	return CONTAINER(s, struct gate_box, dns);
}

static const struct policy *dns_policy(struct server *s)
{
	return box_of(s)->policy;
}

static bool dns_may_ask(struct server *s)
{
	return box_may_ask(box_of(s));
}

static bool dns_is_own(struct server *s, const struct addr *a)
{
	return flow_is_own(box_of(s)->all, a);
}

static void dns_told(struct server *s, const struct addr *a, const char *name)
{
	box_remember(box_of(s), a, name);
}

static void dns_say(struct server *s, bool allowed, int reason, const char *name, const struct addr *a)
{
	verdict_say(box_of(s), &(struct verdict){ .allowed = allowed,
						  .reason = reason,
						  .protocol = "dns",
						  .via = "dns",
						  .name = view_of(name),
						  .addr = a,
						  .port = DNS_PORT });
}

static const struct server_ops dns_ops = {
	.policy = dns_policy, .may_ask = dns_may_ask, .is_own = dns_is_own, .told = dns_told, .say = dns_say
};

/* More fds in its queue would end the channel. Fewer only wait, for an api that is busy. */
static bool can_pass(struct gate_box *b)
{
	const struct gate *g = gate_of(b);

	return link_open(&g->api) && g->api.n_out_fds < LINK_FDS_OUT;
}

static void pass(struct gate_box *b, int fd)
{
	struct wire_gate_caller m = { .box = view_of(b->id) };

	(void)!link_send_msg_fd(&gate_of(b)->api, WIRE_TYPE_GATE_CALLER, FRAME_EVENT, 0, 0,
				&wire_gate_caller_msg, &m, fd);
}

const struct flows_ops boxes_flows_ops = {
	.say = verdict_say, .used = tell_used_soon, .can_pass = can_pass, .pass = pass
};

/* ---- the keeper ---- */

static int listen_for(struct gate_box *b, int fd)
{
	loop_io_close(&b->tcp);
	int r = fd_nonblock(fd, true);
	if (r == 0)
		r = loop_io_start(b->all->loop, &b->tcp, fd, EPOLLIN, flow_accept);
	if (r < 0) {
		b->tcp.fd = -1;
		fd_close(fd);
		return r;
	}
	/* What is accepted inherits it. The way to the box is a loopback, which loses nothing: a machine's
	 * choice for the world (BBR, with its timers) only costs there. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", sizeof("reno") - 1);
	return 0;
}

static void put_fd(struct gate_box *b, int32_t kind, int fd)
{
	int r = 0;

	if (kind == WIRE_GATE_FD_TCP) {
		r = listen_for(b, fd);
	} else if (kind == WIRE_GATE_FD_DNS) {
		r = server_serve(&b->dns, fd);
	} else if (kind == WIRE_GATE_FD_STEER) {
		fd_close(b->steer);
		b->steer = fd;
	} else {
		fd_close(fd);
	}
	if (r < 0)
		log_error("sandbox %s cannot be served: %s", b->id, strerror(-r));
}

static const struct link_ops api_ops;

/* The api's new channel. */
static void open_api(struct gate *g, int fd)
{
	link_stop(&g->api);
	for (struct map_node *n = map_first(&g->flows.boxes); n; n = map_next(&g->flows.boxes, n))
		CONTAINER(n, struct gate_box, node)->synced = false;
	int r = link_start(&g->api, g->flows.loop, fd, true, &api_ops);
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
		intercept_vault_open(g->flows.intercepts, TAKE_FD(mine));
	} else if (f->kind == FRAME_EVENT && f->type == WIRE_TYPE_GATE_BOX && mine >= 0) {
		struct wire_gate_box m;
		struct gate_box *b =
			pb_decode(&wire_gate_box_msg, f->body, 0, &a, &m) < 0 ? NULL : need_box(g, m.id);
		if (b && view_to_str(m.host, b->dns.host, sizeof(b->dns.host)) < 0)
			b->dns.host[0] = 0;
		if (b)
			put_fd(b, m.kind, TAKE_FD(mine));
	} else if (f->kind == FRAME_EVENT && f->type == WIRE_TYPE_GATE_BOX_GONE) {
		struct wire_gate_box_gone m;
		struct gate_box *b =
			pb_decode(&wire_gate_box_gone_msg, f->body, 0, &a, &m) < 0 ? NULL : get_box(g, m.id);
		if (b) {
			tell_used(g); /* it may be started again */
			drop_box(b);
		}
	}
	arena_done(&a);
}

static void on_keeper_closed(struct link *l, int error)
{
	loop_stop(CONTAINER(l, struct gate, keeper)->flows.loop, EXIT_SUCCESS);
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
	if (!m.box.n || m.box.n >= sizeof(((struct gate_box *)0)->id))
		return err_set(e, ERR_INVALID, "not the id of a sandbox");
	if (policy_new(&m, &p, e) < 0)
		return -1;
	struct gate_box *b = need_box(g, m.box);
	if (!b || share_join(&g->tenants, &b->share, m.tenant) < 0) {
		policy_free(p);
		return err_sys(e, ERR_INTERNAL, ENOMEM, "a sandbox");
	}
	flow_forget_rules(b);
	policy_free(b->policy);
	b->policy = p;
	b->synced = true;
	/* The api may not know yet what this gate has counted, or not any more. */
	b->bytes_before += m.used_bytes > box_used(b) ? m.used_bytes - box_used(b) : 0;
	b->bytes_told = m.used_bytes;
	tell_used_soon(b);
	b->bytes_left = MIN(b->bytes_left, p->bytes_per_second);
	if (m.recheck)
		out.closed = flow_recheck(b);
	(void)!link_send_msg(&g->api, f->type, FRAME_REPLY, FRAME_LAST, f->stream, 0,
			     &wire_gate_policy_reply_msg, &out);
	return 0;
}

static int call_synced(struct gate *g, const struct frame *f)
{
	struct wire_gate_synced_reply out = { 0 };

	for (struct map_node *n = map_first(&g->flows.boxes), *next; n; n = next) {
		struct gate_box *b = CONTAINER(n, struct gate_box, node);
		next = map_next(&g->flows.boxes, n);
		if (b->synced || !b->policy)
			continue;
		flow_end_all(b);
		policy_free(b->policy);
		b->policy = NULL;
		out.dropped++;
		put_box(b);
	}
	(void)!link_send_msg(&g->api, f->type, FRAME_REPLY, FRAME_LAST, f->stream, 0,
			     &wire_gate_synced_reply_msg, &out);
	return 0;
}

static int call_stats(struct gate *g, const struct frame *f, struct arena *a, struct err *e)
{
	struct wire_gate_stats m;
	const struct gate_box *b =
		pb_decode(&wire_gate_stats_msg, f->body, 0, a, &m) < 0 ? NULL : get_box(g, m.box);

	if (!b)
		return err_set(e, ERR_NOT_FOUND, "the gate does not serve this sandbox");
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

static const struct link_ops api_ops = { .on_frame = on_api,
					 .on_closed = on_api_closed,
					 .on_drained = on_api_drained };
