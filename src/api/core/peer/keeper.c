/*
 * The keeper's channel: see keeper.h.
 */
#include "keeper.h"

#include "boxes.h"
#include "core_base.h"
#include "log.h"
#include "wire_gen.h"
#include "poison.h"

static void on_event(struct mux *m, const struct frame *f)
{
	struct core *c = CONTAINER(m, struct keeper, mux)->core;
	struct arena a = ARENA_INIT(4096);
	struct wire_box_exited exited;
	struct wire_storage storage;

	if (f->type == WIRE_TYPE_BOX_EXITED &&
	    pb_decode(&wire_box_exited_msg, f->body, PB_SKIP_UNKNOWN, &a, &exited) >= 0)
		c->keeper->on_exited(c, exited.id, exited.signal, exited.oom);
	if (f->type == WIRE_TYPE_STORAGE &&
	    pb_decode(&wire_storage_msg, f->body, PB_SKIP_UNKNOWN, &a, &storage) >= 0) {
		(void)!view_to_str(view_head(storage.wrong, sizeof(c->keeper->storage_wrong) - 1),
				   c->keeper->storage_wrong, sizeof(c->keeper->storage_wrong));
		c->keeper->storage_size = storage.size_bytes;
		c->keeper->storage_free = storage.free_bytes;
		c->keeper->storage_beneath = storage.beneath_bytes;
	}
	arena_done(&a);
}

static void on_closed(struct mux *m, const struct err *why)
{
	struct core *c = CONTAINER(m, struct keeper, mux)->core;
	struct err e = { 0 };

	log_error("the keeper's channel is lost: %s", why->msg);
	err_set(&e, ERR_UNAVAILABLE, "the daemon is going down");
	c->keeper->lost = true;
	mux_stop(m, &e);
	c->keeper->on_lost(c);
}

static const struct mux_ops mux_ops = { .on_event = on_event, .on_closed = on_closed };

int keeper_start(struct core *c, int fd, struct err *e)
{
	int r = mux_start(&c->keeper->mux, c->loop, fd, true, &mux_ops);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "the keeper's channel") : 0;
}

void keeper_stop(struct core *c)
{
	struct err e = { 0 };
	err_set(&e, ERR_UNAVAILABLE, "the daemon is going down");
	mux_stop(&c->keeper->mux, &e);
}

/* The only place that knows which peer has which backend. All are paddockd's: walls behind an HTTP
 * API will be those of a program without its privileges, with a channel of its own beside this one. */
static struct keeper *peer_of(struct core *c, struct view backend)
{
	(void)backend;
	return c->keeper;
}

int keeper_call_for(struct core *c, struct view backend, struct call *call, uint16_t type,
		    uint32_t patience_ms, const struct pb_msg *pm, const void *msg)
{
	struct keeper *k = peer_of(c, backend);
	k->calls++;
	return mux_call(&k->mux, call, type, patience_ms, patience_ms, pm, msg);
}

int keeper_call(struct core *c, struct call *call, uint16_t type, uint32_t patience_ms,
		const struct pb_msg *pm, const void *msg)
{
	c->keeper->calls++;
	return mux_call(&c->keeper->mux, call, type, patience_ms, patience_ms, pm, msg);
}

int keeper_say_ready(struct core *c)
{
	struct wire_hello hello = { .protocol = WIRE_PROTOCOL_CURRENT };
	return link_send_msg(&c->keeper->mux.link, WIRE_TYPE_HELLO, FRAME_EVENT, 0, 0, 0, &wire_hello_msg,
			     &hello);
}
