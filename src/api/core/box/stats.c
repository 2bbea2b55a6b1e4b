/*
 * The keeper's measurements: a box's resource usage, and the machine's posture.
 */
#include "stats.h"

#include <errno.h>
#include <stdlib.h>

#include "boxes.h"
#include "common.h"
#include "core_base.h"
#include "keeper.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define KEEPER_MS     10000
#define POSTURE_BYTES (256u * 1024)

struct stats_job {
	struct job job;
	struct core *core;
	struct call call;
	char box[BOX_ID + 1]; /* of stats_box */
};

static void finish(struct stats_job *j, const void *result, const struct err *e)
{
	job_finish(&j->job, result, e);
	free(j);
}

static void on_fail(struct call *c, const struct err *e)
{
	finish(CONTAINER(c, struct stats_job, call), NULL, e);
}

static struct job *begin(struct core *c, struct view backend, const struct call_ops *ops, uint16_t type,
			 const struct pb_msg *pm, const void *msg, job_done *done, void *arg, struct err *e)
{
	struct stats_job *j = calloc(1, sizeof(*j));
	int r = -ENOMEM;

	if (j) {
		j->job = (struct job){ .done = done, .arg = arg };
		j->core = c;
		j->call.ops = ops;
		r = keeper_call_for(c, backend, &j->call, type, KEEPER_MS, pm, msg);
	}
	if (r < 0) {
		err_sys(e, ERR_UNAVAILABLE, r, "the keeper cannot be reached");
		free(j);
		return NULL;
	}
	return &j->job;
}

static int on_stats(struct call *c, const struct frame *f, int fd)
{
	struct stats_job *j = CONTAINER(c, struct stats_job, call);
	struct arena a = ARENA_INIT(4096);
	struct wire_stats_reply reply;
	int r = mux_reply(c, f, &wire_stats_reply_msg, &a, &reply);

	arena_done(&a);
	if (r < 0)
		return r;
	struct err gone = { 0 };
	struct box_stats s = { .box = boxes_by_id(j->core, view_of(j->box)),
			       .memory_bytes = reply.memory_bytes,
			       .cpu_usec = reply.cpu_usec,
			       .pids = reply.pids,
			       .oom_kills = reply.oom_kills,
			       .disk_bytes = reply.disk_bytes,
			       .net_rx_bytes = reply.net_rx_bytes,
			       .net_tx_bytes = reply.net_tx_bytes };
	if (!s.box)
		boxes_unknown(&gone);
	finish(j, &s, s.box ? NULL : &gone);
	return 0;
}

static const struct call_ops stats_ops = { .on_reply = on_stats, .on_fail = on_fail };

struct job *stats_box(struct core *c, const struct actor *a, struct view ref, job_done *done, void *arg,
		      struct err *e)
{
	struct box *b = boxes_find(c, a, ACT_BOX_READ, ref, e);
	if (!b)
		return NULL;
	if (b->state.status == BOX_STOPPED) {
		err_set(e, ERR_STATE, "the sandbox has stopped");
		return NULL;
	}
	struct wire_stats msg = { .id = view_of(b->id) };
	struct job *job = begin(c, view_of(b->spec.backend), &stats_ops, WIRE_TYPE_STATS, &wire_stats_msg,
				&msg, done, arg, e);
	if (job)
		memcpy(CONTAINER(job, struct stats_job, job)->box, b->id, sizeof(b->id));
	return job;
}

static int copy_backend(const struct wire_backend *from, struct arena *a, struct backend *ret)
{
	*ret = (struct backend){ .name = arena_view(a, from->name),
				 .parts = arena_array(a, from->parts.n, sizeof(*ret->parts)),
				 .n = from->parts.n,
				 .can = arena_array(a, from->can.n, sizeof(*ret->can)),
				 .n_can = from->can.n,
				 .ok = from->ok };
	if (!ret->name.p || !ret->parts || !ret->can)
		return -ENOMEM;
	for (size_t i = 0; i < ret->n; i++) {
		const struct wire_posture_part *part = &from->parts.items[i];
		ret->parts[i] = (struct core_posture_part){ .name = arena_view(a, part->name),
							    .detail = arena_view(a, part->detail),
							    .ok = part->ok,
							    .required = part->required };
		if (!ret->parts[i].name.p || !ret->parts[i].detail.p)
			return -ENOMEM;
	}
	for (size_t i = 0; i < ret->n_can; i++) {
		ret->can[i] = arena_view(a, from->can.items[i]);
		if (!ret->can[i].p)
			return -ENOMEM;
	}
	return 0;
}

static int copy_posture(const struct wire_posture_reply *reply, struct core_posture *ret)
{
	struct core_posture p = { .arena = ARENA_INIT(POSTURE_BYTES), .n = reply->backends.n, .known = true };
	int r = p.n ? 0 : -EBADMSG; /* there is always a default */

	p.backends = arena_array(&p.arena, p.n, sizeof(*p.backends));
	if (!p.backends)
		r = -ENOMEM;
	for (size_t i = 0; r >= 0 && i < p.n; i++)
		r = copy_backend(&reply->backends.items[i], &p.arena, &p.backends[i]);
	if (r < 0) {
		arena_done(&p.arena);
		return r;
	}
	arena_done(&ret->arena);
	*ret = p;
	return 0;
}

static int on_posture(struct call *c, const struct frame *f, int fd)
{
	struct stats_job *j = CONTAINER(c, struct stats_job, call);
	struct arena a = ARENA_INIT(POSTURE_BYTES);
	struct wire_posture_reply reply;
	int r = mux_reply(c, f, &wire_posture_reply_msg, &a, &reply);

	if (r >= 0)
		r = copy_posture(&reply, &j->core->posture);
	arena_done(&a);
	if (r < 0)
		return r;
	finish(j, &j->core->posture, NULL);
	return 0;
}

static const struct call_ops posture_ops = { .on_reply = on_posture, .on_fail = on_fail };

struct job *stats_posture_unchecked(struct core *c, job_done *done, void *arg, struct err *e)
{
	struct wire_posture msg = { 0 };
	return begin(c, VIEW(""), &posture_ops, WIRE_TYPE_POSTURE, &wire_posture_msg, &msg, done, arg, e);
}

struct job *stats_posture(struct core *c, const struct actor *a, job_done *done, void *arg, struct err *e)
{
	if (auth_permit(a, ACT_POSTURE, NULL, e) < 0)
		return NULL;
	return stats_posture_unchecked(c, done, arg, e);
}

static int on_box_posture(struct call *c, const struct frame *f, int fd)
{
	struct stats_job *j = CONTAINER(c, struct stats_job, call);
	struct arena a = ARENA_INIT(POSTURE_BYTES);
	struct core_posture p = { 0 };
	struct wire_posture_reply reply;
	int r = mux_reply(c, f, &wire_posture_reply_msg, &a, &reply);

	if (r >= 0)
		r = reply.backends.n == 1 ? copy_posture(&reply, &p) : -EBADMSG;
	arena_done(&a);
	if (r < 0)
		return r;
	finish(j, &p, NULL);
	arena_done(&p.arena);
	return 0;
}

static const struct call_ops box_posture_ops = { .on_reply = on_box_posture, .on_fail = on_fail };

struct job *stats_box_posture(struct core *c, const struct actor *a, struct view ref, job_done *done,
			      void *arg, struct err *e)
{
	struct box *b = boxes_find(c, a, ACT_BOX_READ, ref, e);
	if (!b)
		return NULL;
	if (b->state.status == BOX_STOPPED) {
		err_set(e, ERR_STATE, "the sandbox has stopped");
		return NULL;
	}
	struct wire_posture msg = { .id = view_of(b->id) };
	return begin(c, view_of(b->id), &box_posture_ops, WIRE_TYPE_POSTURE, &wire_posture_msg, &msg, done,
		     arg, e);
}
