/*
 * Connections: see conn.h. The table below is all that PID 1 can be asked for.
 */
#include "conn.h"

#include <errno.h>
#include <stdlib.h>

#include "acceptor.h"
#include "fd.h"
#include "file.h"
#include "identity.h"
#include "listeners.h"
#include "proc.h"
#include "relay.h"
#include "secrets.h"
#include "stream.h"
#include "sudo.h"
#include "trust.h"
#include "wire_gen.h"
#include "poison.h"

#define SETTLING_MS 1
#define CALL_MEMORY (8u * 1024 * 1024) /* for one decoded call and what is made from it */

/* What a box needs before anything runs in it, or looks at its files. */
static void settle(struct init *in)
{
	if (!in->unsettled)
		return;
	in->unsettled = false;
	loop_timer_stop(&in->settling);
	identity_write(&in->zone);
	sudo_look(in);
}

static void on_settling(struct loop_timer *t)
{
	settle(CONTAINER(t, struct init, settling));
}

static int hello(const struct conn_call *call, struct err *e)
{
	(void)e;
	struct wire_hello_reply r = { .protocol = WIRE_PROTOCOL_CURRENT, .build = VIEW(PADDOCK_VERSION) };
	conn_reply(call, &wire_hello_reply_msg, &r);
	/* Whoever made the box need not wait for it, nor share the processor with it: its first command comes
	 * later than that, or finds it undone and does it first. */
	struct init *in = call->conn->init;
	const struct wire_hello *msg = call->msg;
	if (view_to_str(msg->timezone, in->zone.name, sizeof(in->zone.name)) < 0 ||
	    view_to_str(msg->timezone_rule, in->zone.rule, sizeof(in->zone.rule)) < 0)
		in->zone = (struct zone){ 0 };
	if (in->box && in->unsettled && !loop_timer_active(&in->settling))
		loop_timer_start(in->loop, &in->settling, SETTLING_MS, on_settling);
	return 0;
}

/* Each answers, or opens a stream that will, or fails with `e` (which is then the answer). */
static const struct op {
	const struct pb_msg *msg;
	int (*start)(const struct conn_call *call, struct err *e);
} ops[] = {
	[WIRE_TYPE_HELLO] = { &wire_hello_msg, hello },
	[WIRE_TYPE_START] = { &wire_start_msg, proc_start },
	[WIRE_TYPE_SIGNAL] = { &wire_signal_msg, proc_signal },
	[WIRE_TYPE_ATTACH] = { &wire_attach_msg, proc_attach },
	[WIRE_TYPE_INPUT] = { &wire_input_msg, proc_input },
	[WIRE_TYPE_RESIZE] = { &wire_resize_msg, proc_resize },
	[WIRE_TYPE_PROCESSES] = { &wire_processes_msg, proc_list },
	[WIRE_TYPE_FILE_READ] = { &wire_file_read_msg, file_read },
	[WIRE_TYPE_FILE_WRITE] = { &wire_file_write_msg, file_write },
	[WIRE_TYPE_FILE_STAT] = { &wire_file_stat_msg, file_stat },
	[WIRE_TYPE_FILE_LIST] = { &wire_file_list_msg, file_list },
	[WIRE_TYPE_FILE_REMOVE] = { &wire_file_remove_msg, file_remove },
	[WIRE_TYPE_FILE_MKDIR] = { &wire_file_mkdir_msg, file_mkdir },
	[WIRE_TYPE_FILE_MOVE] = { &wire_file_move_msg, file_move },
	[WIRE_TYPE_FILE_COPY] = { &wire_file_copy_msg, file_copy },
	[WIRE_TYPE_FILE_CHMOD] = { &wire_file_chmod_msg, file_chmod },
	[WIRE_TYPE_FILE_FIND] = { &wire_file_find_msg, file_find },
	[WIRE_TYPE_FILE_GREP] = { &wire_file_grep_msg, file_grep },
	[WIRE_TYPE_FILE_WATCH] = { &wire_file_watch_msg, file_watch },
	[WIRE_TYPE_TREE_READ] = { &wire_tree_read_msg, file_pack },
	[WIRE_TYPE_TREE_WRITE] = { &wire_tree_write_msg, file_unpack },
	[WIRE_TYPE_SECRETS_SET] = { &wire_secrets_set_msg, secrets_set },
	[WIRE_TYPE_TRUST] = { &wire_trust_msg, trust_set },
	[WIRE_TYPE_CONNECT] = { &wire_connect_msg, relay_connect },
	[WIRE_TYPE_LISTENERS] = { &wire_listeners_msg, listeners_list },
	[WIRE_TYPE_LISTEN] = { &wire_listen_msg, acceptor_listen },
	[WIRE_TYPE_ACCEPT] = { &wire_accept_msg, acceptor_accept },
};

void conn_reply(const struct conn_call *call, const struct pb_msg *m, const void *msg)
{
	(void)link_send_msg(&call->conn->link, call->type, FRAME_REPLY, FRAME_LAST, call->stream, 0, m, msg);
}

static int start(struct conn *c, const struct frame *f, struct err *e)
{
	const struct op *op = f->type < ELEMS(ops) ? &ops[f->type] : NULL;
	if (!op || !op->start)
		return err_set(e, ERR_UNSUPPORTED, "PID 1 of this sandbox does not know request type %u",
			       f->type);
	if (c->n_streams >= CONN_STREAMS)
		return err_set(e, ERR_UNAVAILABLE, "too many operations at once in this sandbox");
	_cleanup_(arena_done) struct arena arena = ARENA_INIT(CALL_MEMORY);
	void *msg = arena_alloc(&arena, op->msg->size);
	/* The api may be newer than this PID 1: fields that it has added are skipped. */
	int r = msg ? pb_decode(op->msg, f->body, PB_SKIP_UNKNOWN, &arena, msg) : -ENOMEM;
	if (r == -ENOMEM)
		return err_set(e, ERR_TOO_LARGE, "the request does not fit into PID 1's memory");
	if (r < 0)
		return err_set(e, ERR_BAD_REQUEST, "the request cannot be decoded");
	struct conn_call call = {
		.conn = c,
		.type = f->type,
		.stream = f->stream,
		.deadline_ms = f->deadline_ms,
		.msg = msg,
		.arena = &arena,
	};
	if (f->type != WIRE_TYPE_HELLO)
		settle(c->init);
	return op->start(&call, e);
}

static int on_call(struct conn *c, const struct frame *f)
{
	if (f->stream <= c->last_id)
		return -EBADMSG;
	c->last_id = f->stream;
	struct err e = { 0 };
	if (start(c, f, &e) < 0)
		(void)link_fail(&c->link, f->type, f->stream, &e);
	return 0;
}

static struct stream *find_stream(struct conn *c, uint32_t id)
{
	LIST_EACH (it, &c->streams) {
		struct stream *s = CONTAINER(it, struct stream, node);
		if (s->id == id)
			return s;
	}
	return NULL;
}

static void on_frame(struct link *l, const struct frame *f, int fd)
{
	struct conn *c = CONTAINER(l, struct conn, link);
	fd_close(fd);
	int r = 0;
	if (f->kind == FRAME_CALL) {
		r = on_call(c, f);
	} else {
		/* A stream that is not there was closed while this frame was on its way. */
		struct stream *s = find_stream(c, f->stream);
		if (f->kind == FRAME_DATA && f->type == PROC_CONTROL + 1)
			l->in.secret = true; /* commands and code may hold one */
		if (s)
			r = stream_on_frame(s, f);
	}
	if (r < 0)
		conn_close(c);
}

static void on_closed(struct link *l, int error)
{
	(void)error;
	conn_close(CONTAINER(l, struct conn, link));
}

static void on_drained(struct link *l)
{
	struct conn *c = CONTAINER(l, struct conn, link);
	LIST_EACH (it, &c->streams) {
		struct stream *s = CONTAINER(it, struct stream, node);
		if (s->ops->on_ready)
			s->ops->on_ready(s);
	}
}

static void run_free(struct loop_task *task)
{
	free(CONTAINER(task, struct conn, end));
}

void conn_close(struct conn *c)
{
	while (!list_empty(&c->streams)) {
		struct stream *s = CONTAINER(c->streams.next, struct stream, node);
		s->ops->on_cancel(s, true);
		stream_close(s);
	}
	link_stop(&c->link);
	list_del(&c->node);
	c->init->n_conns--;
	/* Not at once: an operation further up the stack may hold it. */
	loop_defer(c->init->loop, &c->end, run_free);
}

int conn_open(struct init *in, int fd)
{
	static const struct link_ops link_ops = {
		.on_frame = on_frame,
		.on_closed = on_closed,
		.on_drained = on_drained,
	};
	struct conn *c = calloc(1, sizeof(*c));
	if (!c) {
		fd_close(fd);
		return -ENOMEM;
	}
	c->init = in;
	list_init(&c->streams);
	list_init(&c->end.link);
	int r = link_start(&c->link, in->loop, fd, false, &link_ops);
	if (r < 0) {
		free(c);
		return r;
	}
	list_append(&in->conns, &c->node);
	in->n_conns++;
	return 0;
}
