/*
 * The core against a keeper and boxes that the test plays itself, with the real
 * store: what is written when, what is undone when a step fails, who sees what,
 * and how a start adopts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "ailog.h"
#include "box.h"
#include "core.h"
#include "core_base.h"
#include "disk.h"
#include "fd.h"
#include "keys.h"
#include "link.h"
#include "log.h"
#include "money.h"
#include "policies.h"
#include "run.h"
#include "sha256.h"
#include "templates.h"
#include "text.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define BOXES  8
#define DIGEST "sha256:00000000000000000000000000000000000000000000000000000000000000ff"

/* PID 1 of one box, as the test plays it. */
struct fake_box {
	char id[BOX_ID + 1];
	struct link link;
	bool lives;
};

struct rig {
	char dir[64];
	struct loop *loop;
	struct store *store;
	struct core *core;
	struct link keeper; /* the keeper's end */
	struct fake_box boxes[BOXES];
	unsigned creates, destroys, reconciles, resumes, stops, starts, snapshot_drops;
	struct buf kept; /* ids of the last Reconcile, each with a space */
	/* how the fakes behave */
	bool refuse_create, mute_box, wrong_protocol, refuse_destroy, mute_exec;
	bool refuse_pause, mute_pause, paused;
	uint32_t pause_stream; /* of the one that is not answered */
	struct view have;      /* one id for BoxList */
	/* what came back */
	bool ready, lost, done;
	struct err failed;
	char made[BOX_ID + 1];
	char backend[16]; /* of the last BoxCreate */
};

static struct rig *rig; /* of the test that runs */

static const struct config config = {
	.defaults = {
		.image = VIEW("machine"), .user = VIEW("user"), .workdir = VIEW("/workspace"),
		.limits = { .cpu = 1, .memory_mb = 512, .pids = 256, .nofile = 1024 },
	},
	.max = { .limits = { .cpu = 2, .memory_mb = 4096, .pids = 1000, .nofile = 4096 },
		 .boxes = 3, .exec_timeout_ms = 5000, .exec_output_bytes = 1000, .body_bytes = 65536 },
};

static const uint8_t admin_secret[20] = { 1, 2, 3 };

/* ---- a box ---- */

static void box_frame(struct link *l, const struct frame *f, int fd)
{
	struct wire_hello_reply hello = { .protocol = rig->wrong_protocol ? 7 : 1 };
	struct wire_exited exited = { .exit_code = 3 };
	struct frame data = { .kind = FRAME_DATA, .type = 1, .stream = f->stream, .body = VIEW("out") };

	if (f->kind != FRAME_CALL)
		return;
	if (f->type == WIRE_TYPE_HELLO && !rig->mute_box)
		link_send_msg(l, f->type, FRAME_REPLY, FRAME_LAST, f->stream, 0, &wire_hello_reply_msg,
			      &hello);
	if (f->type == WIRE_TYPE_FILE_STAT) {
		struct err e = { 0 };
		err_set(&e, ERR_NOT_FOUND, "no such file");
		link_fail(l, f->type, f->stream, &e);
	}
	if (f->type == WIRE_TYPE_START && !rig->mute_exec) {
		link_send(l, &data);
		link_send_msg(l, f->type, FRAME_REPLY, FRAME_LAST, f->stream, 0, &wire_exited_msg, &exited);
	}
}

static void box_closed(struct link *l, int error)
{
	struct fake_box *b = CONTAINER(l, struct fake_box, link);
	link_stop(l);
	b->lives = false;
}

static const struct link_ops box_ops = { .on_frame = box_frame, .on_closed = box_closed };

static struct fake_box *find_box(struct view id)
{
	for (size_t i = 0; i < BOXES; i++)
		if (rig->boxes[i].lives && view_is(id, rig->boxes[i].id))
			return &rig->boxes[i];
	return NULL;
}

/* The fd of a new connection to a fake box. */
static int connect_box(struct view id)
{
	int fds[2];
	struct fake_box *b = rig->boxes;
	while (b->lives)
		b++;
	assert_true(b < rig->boxes + BOXES);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(view_to_str(id, b->id, sizeof(b->id)), 0);
	b->lives = true;
	assert_int_equal(link_start(&b->link, rig->loop, fds[1], false, &box_ops), 0);
	return fds[0];
}

/* ---- the keeper ---- */

static void refuse(const struct frame *f, enum err_code code)
{
	struct err e = { 0 };
	err_set(&e, code, "as the test wants it");
	link_fail(&rig->keeper, f->type, f->stream, &e);
}

static void answer(const struct frame *f, const struct pb_msg *pm, const void *msg)
{
	link_send_msg(&rig->keeper, f->type, FRAME_REPLY, FRAME_LAST, f->stream, 0, pm, msg);
}

static void keeper_boxes(const struct frame *f, struct arena *a)
{
	struct wire_box_created created = { 0 };
	struct wire_box_opened opened = { 0 };
	union {
		struct wire_box_create create;
		struct wire_box_open open;
		struct wire_box_destroy destroy;
	} m;

	if (f->type == WIRE_TYPE_BOX_CREATE) {
		rig->creates++;
		assert_int_equal(pb_decode(&wire_box_create_msg, f->body, 0, a, &m.create), 0);
		rig->starts += m.create.spec->existing;
		assert_int_equal(view_to_str(m.create.spec->backend, rig->backend, sizeof(rig->backend)), 0);
		assert_true(view_is(m.create.spec->image, DIGEST));
		if (rig->refuse_create)
			refuse(f, ERR_WALLS);
		else
			link_send_msg_fd(&rig->keeper, f->type, FRAME_REPLY, FRAME_LAST, f->stream,
					 &wire_box_created_msg, &created, connect_box(m.create.spec->id));
	} else if (f->type == WIRE_TYPE_BOX_OPEN) {
		assert_int_equal(pb_decode(&wire_box_open_msg, f->body, 0, a, &m.open), 0);
		link_send_msg_fd(&rig->keeper, f->type, FRAME_REPLY, FRAME_LAST, f->stream,
				 &wire_box_opened_msg, &opened, connect_box(m.open.id));
	} else if (f->type == WIRE_TYPE_BOX_DESTROY) {
		rig->destroys++;
		if (rig->refuse_destroy)
			refuse(f, ERR_INTERNAL);
		else
			answer(f, &wire_box_destroyed_msg, &(struct wire_box_destroyed){ 0 });
	}
}

static void keeper_life(const struct frame *f, struct arena *a)
{
	if (f->type == WIRE_TYPE_BOX_PAUSE && rig->mute_pause) {
		rig->pause_stream = f->stream;
	} else if (f->type == WIRE_TYPE_BOX_PAUSE && rig->refuse_pause) {
		refuse(f, ERR_UNSUPPORTED);
	} else if (f->type == WIRE_TYPE_BOX_PAUSE) {
		answer(f, &wire_box_paused_msg, &(struct wire_box_paused){ 0 });
	} else if (f->type == WIRE_TYPE_BOX_RESUME) {
		rig->resumes++;
		answer(f, &wire_box_resumed_msg, &(struct wire_box_resumed){ 0 });
	} else if (f->type == WIRE_TYPE_BOX_STOP) {
		rig->stops++;
		answer(f, &wire_box_stopped_msg, &(struct wire_box_stopped){ 0 });
	} else if (f->type == WIRE_TYPE_SNAPSHOT_LIST) {
		answer(f, &wire_snapshot_list_reply_msg, &(struct wire_snapshot_list_reply){ 0 });
	} else if (f->type == WIRE_TYPE_SNAPSHOT_CREATE) {
		answer(f, &wire_snapshot_created_msg,
		       &(struct wire_snapshot_created){ .stopped_us = 7, .bytes = 70 });
	} else if (f->type == WIRE_TYPE_SNAPSHOT_REMOVE) {
		rig->snapshot_drops++;
		answer(f, &wire_snapshot_removed_msg, &(struct wire_snapshot_removed){ 0 });
	} else if (f->type == WIRE_TYPE_WORKSPACE_LIST) {
		answer(f, &wire_workspace_list_reply_msg, &(struct wire_workspace_list_reply){ 0 });
	} else if (f->type == WIRE_TYPE_WORKSPACE_CREATE) {
		answer(f, &wire_workspace_created_msg, &(struct wire_workspace_created){ 0 });
	} else if (f->type == WIRE_TYPE_WORKSPACE_REMOVE) {
		answer(f, &wire_workspace_removed_msg, &(struct wire_workspace_removed){ 0 });
	}
}

static void keeper_lists(const struct frame *f, struct arena *a)
{
	struct view name = VIEW("machine");
	struct wire_image image = { .digest = VIEW(DIGEST), .names = { &name, 1 }, .machine = true };
	struct wire_image_list_reply images = { .images = { &image, 1 } };
	struct view can[] = { VIEW("foreign_snapshots"), VIEW("pause") };
	struct wire_backend backends[] = { { .name = VIEW("native"), .ok = true },
					   { .name = VIEW("other"), .ok = true },
					   { .name = VIEW("any"), .ok = true, .can = { can, 2 } } };
	struct wire_posture_reply posture = { .backends = { backends, ELEMS(backends) } };
	struct wire_box_state state = { .id = rig->have, .paused = rig->paused };
	struct wire_box_list_reply boxes = { .boxes = { &state, rig->have.n ? 1 : 0 } };
	struct wire_reconcile keep;

	if (f->type == WIRE_TYPE_IMAGE_LIST)
		answer(f, &wire_image_list_reply_msg, &images);
	else if (f->type == WIRE_TYPE_POSTURE)
		answer(f, &wire_posture_reply_msg, &posture);
	else if (f->type == WIRE_TYPE_BOX_LIST)
		answer(f, &wire_box_list_reply_msg, &boxes);
	else if (f->type == WIRE_TYPE_GATE_OPEN)
		refuse(f, ERR_UNAVAILABLE); /* boxes are made without one, and have no way out */
	else if (f->type == WIRE_TYPE_RECONCILE) {
		rig->reconciles++;
		assert_int_equal(pb_decode(&wire_reconcile_msg, f->body, 0, a, &keep), 0);
		buf_clear(&rig->kept);
		for (size_t i = 0; i < keep.keep.n; i++)
			buf_printf(&rig->kept, "%.*s ", VIEW_ARG(keep.keep.items[i]));
		answer(f, &wire_reconcile_reply_msg, &(struct wire_reconcile_reply){ 0 });
	}
}

static void keeper_frame(struct link *l, const struct frame *f, int fd)
{
	struct arena a = ARENA_INIT(65536);
	assert_int_equal(fd, -1);
	if (f->kind == FRAME_CALL) {
		keeper_boxes(f, &a);
		keeper_lists(f, &a);
		keeper_life(f, &a);
	}
	arena_done(&a);
}

static void keeper_closed(struct link *l, int error)
{
	link_stop(l);
}

static const struct link_ops keeper_ops = { .on_frame = keeper_frame, .on_closed = keeper_closed };

/* ---- the rig ---- */

static void on_time(struct loop_timer *t)
{
	loop_stop(t->loop, 0);
}

static void pass(unsigned ms)
{
	struct loop_timer t = { 0 };
	loop_timer_start(rig->loop, &t, ms, on_time);
	assert_int_equal(loop_run(rig->loop), 0);
}

/* A test that waits in vain fails. */
#define WAIT_UNTIL(condition)                                                                                \
	do {                                                                                                 \
		for (int _i = 0; _i < 5000 && !(condition); _i++)                                            \
			pass(1);                                                                             \
		assert_true(condition);                                                                      \
	} while (0)

static void wait_for(const bool *flag)
{
	WAIT_UNTIL(*flag);
}

static void on_ready(void *arg)
{
	rig->ready = true;
}

static void on_lost(void *arg)
{
	rig->lost = true;
}

static void start_core(void)
{
	struct err e = { 0 };
	int fds[2];
	struct core_setup s = { .loop = rig->loop,
				.config = &config,
				.has_admin = true,
				.on_ready = on_ready,
				.on_lost = on_lost };

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(link_start(&rig->keeper, rig->loop, fds[1], true, &keeper_ops), 0);
	sha256_of((struct view){ (const char *)admin_secret, 20 }, s.admin_hash);
	s.keeper_fd = fds[0];
	rig->store = store_open(rig->loop, rig->dir, &e);
	if (!rig->store)
		fail_msg("%s", e.msg);
	s.store = rig->store;
	rig->core = core_new(&s, &e);
	if (!rig->core)
		fail_msg("%s", e.msg);
	rig->ready = false;
	wait_for(&rig->ready);
}

static void stop_core(void)
{
	core_stop(rig->core);
	store_close(rig->store);
	core_free(rig->core);
	link_stop(&rig->keeper);
	for (size_t i = 0; i < BOXES; i++)
		if (rig->boxes[i].lives)
			box_closed(&rig->boxes[i].link, 0);
	rig->core = NULL;
	pass(0); /* what was put off to the end of a batch */
}

static int setup(void **state)
{
	struct err e = { 0 };
	rig = calloc(1, sizeof(*rig));
	assert_non_null(rig);
	snprintf(rig->dir, sizeof(rig->dir), "/tmp/paddock-core.XXXXXX");
	assert_non_null(mkdtemp(rig->dir));
	rig->loop = loop_new(&e);
	assert_non_null(rig->loop);
	rig->kept = BUF_INIT(65536);
	start_core();
	return 0;
}

static int teardown(void **state)
{
	static const char *const files[] = { "paddock.db", "paddock.db-wal", "paddock.db-shm" };
	char path[128];

	stop_core();
	loop_free(rig->loop);
	buf_done(&rig->kept);
	for (size_t i = 0; i < ELEMS(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", rig->dir, files[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(rig->dir), 0);
	free(rig);
	return 0;
}

/* ---- asking ---- */

static void on_done(void *arg, const void *result, const struct err *e)
{
	rig->done = true;
	rig->failed = e ? *e : (struct err){ 0 };
	if (result)
		memcpy(rig->made, ((const struct box *)result)->id, sizeof(rig->made));
}

static void settle(struct job *j, const struct err *e)
{
	rig->done = false;
	if (!j)
		rig->failed = *e;
	else
		wait_for(&rig->done);
}

static struct actor actor_of(const char *key)
{
	struct actor a = { 0 };
	struct err e = { 0 };
	if (auth_actor(rig->core, view_of(key), &a, &e) < 0)
		fail_msg("%s", e.msg);
	return a;
}

static struct actor admin(void)
{
	char text[45] = "pdk_";
	text_hex(admin_secret, 20, text + 4);
	return actor_of(text);
}

static char new_key_text[KEYS_TEXT_SIZE];

static void on_key(void *arg, const void *result, const struct err *e)
{
	const struct key_made *m = result;
	assert_null(e);
	memcpy(new_key_text, m->text, sizeof(new_key_text));
	rig->done = true;
}

static struct actor tenant_user(const char *tenant)
{
	struct actor a = admin();
	struct err e = { 0 };
	struct key_wish w = { .tenant = view_of(tenant), .create_tenant = true };
	settle(keys_create(rig->core, &a, &w, on_key, NULL, &e), &e);
	return actor_of(new_key_text);
}

/* Afterwards rig->failed says how it went and rig->made which it is. */
static void create(const struct actor *a, const char *name)
{
	struct err e = { 0 };
	struct box_wish w = { .name = view_of(name) };
	rig->made[0] = 0;
	settle(create_box(rig->core, a, &w, on_done, NULL, &e), &e);
}

static void drop(const struct actor *a, const char *ref)
{
	struct err e = { 0 };
	settle(remove_box(rig->core, a, view_of(ref), on_done, NULL, &e), &e);
}

static enum box_status status_of(const struct actor *a, const char *ref)
{
	struct err e = { 0 };
	struct box *b = boxes_find(rig->core, a, ACT_BOX_READ, view_of(ref), &e);
	if (!b)
		assert_int_equal(e.code, ERR_NOT_FOUND);
	return b ? b->state.status : BOX_NONE;
}

static void on_exec(struct exec *x, const struct exec_result *r, const struct err *e)
{
	rig->done = true;
	rig->failed = e ? *e : (struct err){ 0 };
	if (r) {
		assert_int_equal(r->exit_code, 3);
		assert_true(view_is(r->out, "out"));
	}
}

static void exec(const struct actor *a, const char *ref, struct exec *x)
{
	struct err e = { 0 };
	struct exec_wish w = { .command = VIEW("true") };
	*x = (struct exec){ .done = on_exec };
	rig->done = false;
	if (exec_start(rig->core, a, view_of(ref), &w, x, &e) < 0) {
		rig->failed = e;
		rig->done = true;
	}
}

/* ---- tests ---- */

static void test_create_exec_delete(void **state)
{
	struct actor a = admin();
	struct exec x;
	create(&a, "one");
	assert_int_equal(rig->failed.code, ERR_OK);
	assert_int_equal(strlen(rig->made), BOX_ID);
	assert_int_equal(status_of(&a, "one"), BOX_RUNNING);
	assert_int_equal(status_of(&a, rig->made), BOX_RUNNING);
	exec(&a, "one", &x);
	wait_for(&rig->done);
	assert_int_equal(rig->failed.code, ERR_OK);
	drop(&a, "one");
	assert_int_equal(rig->failed.code, ERR_OK);
	assert_int_equal(status_of(&a, "one"), BOX_NONE);
	assert_int_equal(rig->destroys, 1);
	create(&a, "one"); /* the name is free again */
	assert_int_equal(rig->failed.code, ERR_OK);
}

static void test_name_is_taken_at_once(void **state)
{
	struct actor a = admin();
	struct err e = { 0 };
	struct box_wish w = { .name = VIEW("twin") };
	struct job *first = create_box(rig->core, &a, &w, on_done, NULL, &e);
	assert_non_null(first);
	assert_null(create_box(rig->core, &a, &w, on_done, NULL, &e));
	assert_int_equal(e.code, ERR_CONFLICT);
	settle(first, &e);
	assert_int_equal(rig->creates, 1);
}

static void test_quota(void **state)
{
	struct actor a = admin();
	for (int i = 0; i < 3; i++)
		create(&a, NULL);
	assert_int_equal(rig->failed.code, ERR_OK);
	create(&a, NULL);
	assert_int_equal(rig->failed.code, ERR_QUOTA);
	assert_int_equal(rig->creates, 3);
}

static void test_unknown_image(void **state)
{
	struct actor a = admin();
	struct err e = { 0 };
	struct box_wish w = { .name = VIEW("n"), .image = VIEW("nothing") };
	assert_null(create_box(rig->core, &a, &w, on_done, NULL, &e));
	assert_int_equal(e.code, ERR_NOT_FOUND);
	assert_int_equal(status_of(&a, "n"), BOX_NONE);
	assert_int_equal(rig->creates, 0);
}

static void test_keeper_refuses(void **state)
{
	struct actor a = admin();
	rig->refuse_create = true;
	create(&a, "r");
	assert_int_equal(rig->failed.code, ERR_WALLS);
	assert_int_equal(status_of(&a, "r"), BOX_NONE);
	assert_int_equal(rig->destroys, 0);
	rig->refuse_create = false;
	stop_core();
	start_core(); /* the store has forgotten it too */
	assert_int_equal(buf_len(&rig->kept), 0);
}

static void test_box_of_another_protocol(void **state)
{
	struct actor a = admin();
	rig->wrong_protocol = true;
	create(&a, "p");
	assert_int_equal(rig->failed.code, ERR_UNAVAILABLE);
	WAIT_UNTIL(rig->destroys == 1);
	assert_int_equal(status_of(&a, "p"), BOX_NONE);
}

static void test_abandoned_create_is_removed(void **state)
{
	struct actor a = admin();
	struct err e = { 0 };
	struct box_wish w = { .name = VIEW("left") };
	struct job *j = create_box(rig->core, &a, &w, on_done, NULL, &e);
	assert_non_null(j);
	job_abandon(j);
	WAIT_UNTIL(rig->destroys > 0);
	assert_int_equal(rig->creates, 1);
	assert_int_equal(rig->destroys, 1);
	assert_false(rig->done);
}

static void test_failed_removal_leaves_the_box(void **state)
{
	struct actor a = admin();
	struct exec x;
	create(&a, "stays");
	rig->refuse_destroy = true;
	drop(&a, "stays");
	assert_int_equal(rig->failed.code, ERR_INTERNAL);
	assert_int_equal(status_of(&a, "stays"), BOX_RUNNING);
	exec(&a, "stays", &x);
	wait_for(&rig->done);
	assert_int_equal(rig->failed.code, ERR_OK);
	rig->refuse_destroy = false;
	drop(&a, "stays");
	assert_int_equal(rig->failed.code, ERR_OK);
}

static void test_box_that_ends(void **state)
{
	struct actor a = admin();
	struct exec x, late;
	create(&a, "ends");
	rig->mute_exec = true;
	exec(&a, "ends", &x);
	assert_false(rig->done);
	struct wire_box_exited exited = { .id = view_of(rig->made) };
	link_send_msg(&rig->keeper, WIRE_TYPE_BOX_EXITED, FRAME_EVENT, 0, 0, 0, &wire_box_exited_msg,
		      &exited);
	wait_for(&rig->done);
	assert_int_equal(rig->failed.code, ERR_STATE);
	assert_int_equal(status_of(&a, "ends"), BOX_STOPPED);
	exec(&a, "ends", &late);
	assert_true(rig->done);
	assert_int_equal(rig->failed.code, ERR_STATE);
	drop(&a, "ends");
	assert_int_equal(rig->failed.code, ERR_OK);
}

static void test_broken_link_is_opened_anew(void **state)
{
	struct actor a = admin();
	struct exec x;
	create(&a, "link");
	rig->mute_exec = true;
	exec(&a, "link", &x);
	for (int i = 0; i < 32; i++)
		pass(0);
	/* A reply that nobody asked for in this form: the link goes, the box does not. */
	struct frame bad = {
		.kind = FRAME_REPLY, .type = WIRE_TYPE_FILE_STAT, .flags = FRAME_LAST, .stream = 2
	};
	link_send(&find_box(view_of(rig->made))->link, &bad);
	wait_for(&rig->done);
	assert_int_equal(rig->failed.code, ERR_UNAVAILABLE);
	assert_int_equal(status_of(&a, "link"), BOX_RUNNING);
	rig->mute_exec = false;
	exec(&a, "link", &x);
	wait_for(&rig->done);
	assert_int_equal(rig->failed.code, ERR_OK);
}

static void test_tenants(void **state)
{
	struct actor root = admin(), one = tenant_user("one"), two = tenant_user("two");
	struct err mine = { 0 }, none = { 0 };
	create(&one, "same");
	char id[BOX_ID + 1];
	memcpy(id, rig->made, sizeof(id));
	create(&two, "same"); /* a name belongs to its tenant */
	assert_int_equal(rig->failed.code, ERR_OK);
	assert_string_not_equal(rig->made, id);
	assert_int_equal(status_of(&one, id), BOX_RUNNING);
	assert_int_equal(status_of(&two, id), BOX_NONE);
	assert_int_equal(status_of(&root, id), BOX_RUNNING);
	assert_int_equal(status_of(&root, "same"), BOX_NONE);
	/* In the same words as one that never was. */
	assert_null(boxes_find(rig->core, &two, ACT_BOX_DELETE, view_of(id), &mine));
	assert_null(boxes_find(rig->core, &two, ACT_BOX_DELETE, VIEW("00000000000000000000"), &none));
	assert_int_equal(mine.code, none.code);
	assert_string_equal(mine.msg, none.msg);
	/* Somebody's name may be somebody else's id. */
	create(&two, id);
	assert_int_equal(rig->failed.code, ERR_OK);
	assert_int_equal(status_of(&two, id), BOX_RUNNING);
	struct box *b = boxes_find(rig->core, &two, ACT_BOX_READ, view_of(id), &mine);
	assert_non_null(b);
	assert_string_equal(b->id, rig->made);
}

static void test_permissions(void **state)
{
	struct actor nobody = { 0 }, user = tenant_user("t"), root = admin();
	struct err e = { 0 };
	assert_int_equal(auth_permit(&nobody, ACT_BOX_LIST, NULL, &e), -1);
	assert_int_equal(e.code, ERR_UNAUTHORIZED);
	assert_int_equal(auth_permit(&user, ACT_BOX_LIST, NULL, &e), 0);
	static const enum act admins[] = { ACT_KEYS, ACT_IMAGE_CHANGE, ACT_POSTURE, ACT_METRICS };
	for (size_t i = 0; i < ELEMS(admins); i++) {
		assert_int_equal(auth_permit(&user, admins[i], NULL, &e), -1);
		assert_int_equal(e.code, ERR_FORBIDDEN);
		assert_int_equal(auth_permit(&root, admins[i], NULL, &e), 0);
	}
	/* An act on a box without one, or the other way round, is a mistake and never a yes. */
	assert_int_equal(auth_permit(&root, ACT_BOX_EXEC, NULL, &e), -1);
	assert_int_equal(auth_permit(&root, ACT_NONE, NULL, &e), -1);
	assert_int_equal(auth_permit(&root, ACTS, NULL, &e), -1);
}

static void test_tokens(void **state)
{
	char good[45] = "pdk_";
	struct actor a;
	struct err e = { 0 };
	text_hex(admin_secret, 20, good + 4);
	assert_int_equal(auth_actor(rig->core, view_of(good), &a, &e), 0);
	assert_int_equal(a.role, STORE_ROLE_ADMIN);
	memcpy(good, "e2b_", 4);
	assert_int_equal(auth_actor(rig->core, view_of(good), &a, &e), 0);
	memcpy(good, "sk__", 4);
	assert_int_equal(auth_actor(rig->core, view_of(good), &a, &e), -1);
	memcpy(good, "pdk_", 4);
	good[43] = good[43] == '0' ? '1' : '0';
	assert_int_equal(auth_actor(rig->core, view_of(good), &a, &e), -1);
	assert_int_equal(e.code, ERR_UNAUTHORIZED);
	good[43] = 0;
	assert_int_equal(auth_actor(rig->core, view_of(good), &a, &e), -1);
	assert_int_equal(auth_actor(rig->core, VIEW_NONE, &a, &e), -1);
	assert_int_equal(auth_actor(rig->core, VIEW("pdk_"), &a, &e), -1);
}

/* A row as a crash leaves it between the beginning and the end of a creation. */
static void put_creating(const char *id)
{
	struct store_box row = { .id = view_of(id),
				 .tenant = VIEW("default"),
				 .status = VIEW("creating"),
				 .image = VIEW("machine"),
				 .digest = VIEW(DIGEST),
				 .backend = VIEW("native"),
				 .spec = VIEW(
					 "{\"user\":\"u\",\"workdir\":\"/\",\"cpu_milli\":1,\"memory_mb\":1,"
					 "\"pids\":1,\"nofile\":1}"),
				 .metadata = VIEW("{}"),
				 .created_ms = 5 };
	store_box_put(rig->store, &row, NULL, NULL);
}

static void test_restart_keeps_what_may_have_been_answered(void **state)
{
	static const char id[] = "bbbbbbbbbbbbbbbbbbbb";
	struct exec x;
	put_creating(id);
	stop_core();
	rig->have = view_of(id);
	start_core();
	struct actor a = admin();
	assert_int_equal(status_of(&a, id), BOX_RUNNING);
	exec(&a, id, &x);
	wait_for(&rig->done);
	assert_int_equal(rig->failed.code, ERR_OK);
}

static void test_restart_adopts(void **state)
{
	struct actor a = admin();
	struct exec x;
	char id[BOX_ID + 1], other[BOX_ID + 1], one[64], two[64];
	create(&a, "alive");
	memcpy(id, rig->made, sizeof(id));
	create(&a, "dead");
	memcpy(other, rig->made, sizeof(other));
	put_creating("bbbbbbbbbbbbbbbbbbbb"); /* nobody was told of it */
	stop_core();
	rig->have = view_of(id);
	start_core();
	a = admin();
	assert_int_equal(status_of(&a, "alive"), BOX_RUNNING);
	assert_int_equal(status_of(&a, "dead"), BOX_STOPPED);
	assert_int_equal(status_of(&a, "bbbbbbbbbbbbbbbbbbbb"), BOX_NONE);
	/* In the order of their making; within a millisecond in that of their ids. */
	snprintf(one, sizeof(one), "%s %s ", id, other);
	snprintf(two, sizeof(two), "%s %s ", other, id);
	assert_true(view_is(buf_view(&rig->kept), one) || view_is(buf_view(&rig->kept), two));
	exec(&a, "alive", &x); /* opens the link first */
	wait_for(&rig->done);
	assert_int_equal(rig->failed.code, ERR_OK);
	rig->have = VIEW_NONE;
}

static void test_expiry_outlives_a_restart(void **state)
{
	struct actor a = admin();
	struct err e = { 0 };
	struct box_wish w = { .name = VIEW("brief"), .has_ttl = true, .ttl_seconds = 1 };
	settle(create_box(rig->core, &a, &w, on_done, NULL, &e), &e);
	char id[BOX_ID + 1];
	memcpy(id, rig->made, sizeof(id));
	stop_core();
	rig->have = view_of(id);
	start_core();
	a = admin();
	assert_int_equal(status_of(&a, "brief"), BOX_RUNNING);
	WAIT_UNTIL(rig->destroys == 1);
	assert_int_equal(status_of(&a, "brief"), BOX_NONE);
	rig->have = VIEW_NONE;
}

static void count_box(void *arg, const struct box *b)
{
	buf_printf(arg, "%.*s ", VIEW_ARG(b->spec.name));
}

static void test_pages(void **state)
{
	struct actor a = admin();
	struct buf names = BUF_INIT(1024);
	struct err e = { 0 };
	char next[BOXES_CURSOR_SIZE];
	create(&a, "a");
	create(&a, "b");
	create(&a, "c");
	struct box_filter f = { .limit = 2 };
	assert_int_equal(boxes_list(rig->core, &a, &f, count_box, &names, next, &e), 0);
	assert_int_equal(buf_len(&names), 4);
	assert_int_not_equal(next[0], 0);
	/* The cursor holds though its box goes. */
	char cursor[BOXES_CURSOR_SIZE];
	memcpy(cursor, next, sizeof(cursor));
	drop(&a, strchr(cursor, '-') + 1);
	f.cursor = view_of(cursor);
	assert_int_equal(boxes_list(rig->core, &a, &f, count_box, &names, next, &e), 0);
	assert_int_equal(next[0], 0);
	assert_int_equal(buf_len(&names), 6);
	static const char *const bad[] = { "x", "1-", "-", "1-short",
					   "99999999999999999999-bbbbbbbbbbbbbbbbbbbb" };
	for (size_t i = 0; i < ELEMS(bad); i++) {
		f.cursor = view_of(bad[i]);
		assert_int_equal(boxes_list(rig->core, &a, &f, count_box, &names, next, &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
	}
	buf_done(&names);
}

/* ---- life ---- */

static void life(const struct actor *a, const char *ref, enum life_step step)
{
	struct err e = { 0 };
	settle(life_change(rig->core, a, view_of(ref), step, on_done, NULL, &e), &e);
}

static void wish_for(const struct actor *a, const struct box_wish *w)
{
	struct err e = { 0 };
	settle(create_box(rig->core, a, w, on_done, NULL, &e), &e);
	assert_int_equal(rig->failed.code, ERR_OK);
}

static void test_pause_stop_start(void **state)
{
	struct actor a = admin();
	struct exec x;
	create(&a, "b");
	for (int i = 0; i < 2; i++) { /* once more is no error */
		life(&a, "b", LIFE_PAUSE);
		assert_int_equal(rig->failed.code, ERR_OK);
		assert_int_equal(status_of(&a, "b"), BOX_PAUSED);
	}
	exec(&a, "b", &x);
	assert_int_equal(rig->failed.code, ERR_STATE);
	life(&a, "b", LIFE_START);
	assert_int_equal(rig->failed.code, ERR_STATE);
	life(&a, "b", LIFE_STOP);
	assert_int_equal(status_of(&a, "b"), BOX_STOPPED);
	life(&a, "b", LIFE_RESUME);
	assert_int_equal(rig->failed.code, ERR_STATE);
	life(&a, "b", LIFE_START);
	assert_int_equal(rig->failed.code, ERR_OK);
	assert_int_equal(rig->starts, 1);
	assert_int_equal(status_of(&a, "b"), BOX_RUNNING);
	exec(&a, "b", &x);
	wait_for(&rig->done);
	assert_int_equal(rig->failed.code, ERR_OK);
}

static void test_start_that_does_not_greet(void **state)
{
	struct actor a = admin();
	create(&a, "b");
	life(&a, "b", LIFE_STOP);
	rig->wrong_protocol = true;
	life(&a, "b", LIFE_START);
	assert_int_equal(rig->failed.code, ERR_UNAVAILABLE);
	assert_int_equal(rig->stops, 2); /* it is ended again */
	assert_int_equal(status_of(&a, "b"), BOX_STOPPED);
	rig->wrong_protocol = false;
	life(&a, "b", LIFE_START);
	assert_int_equal(rig->failed.code, ERR_OK);
}

static void answer_pause(void)
{
	struct frame f = { .type = WIRE_TYPE_BOX_PAUSE, .stream = rig->pause_stream };
	WAIT_UNTIL(rig->pause_stream);
	f.stream = rig->pause_stream;
	rig->pause_stream = 0;
	answer(&f, &wire_box_paused_msg, &(struct wire_box_paused){ 0 });
}

static void test_use_while_it_is_paused(void **state)
{
	struct actor a = admin();
	struct err e = { 0 };
	struct exec x;
	struct box_wish w = { .name = VIEW("b"), .auto_resume = true };
	wish_for(&a, &w);
	life(&a, "b", LIFE_PAUSE);
	exec(&a, "b", &x);
	wait_for(&rig->done);
	assert_int_equal(rig->failed.code, ERR_OK);
	assert_int_equal(rig->resumes, 1);
	assert_int_equal(status_of(&a, "b"), BOX_RUNNING);
	/* In the very moment. */
	rig->mute_pause = true;
	rig->mute_exec = true;
	assert_non_null(life_change(rig->core, &a, VIEW("b"), LIFE_PAUSE, on_done, NULL, &e));
	exec(&a, "b", &x);
	assert_false(rig->done);
	answer_pause();
	WAIT_UNTIL(rig->resumes == 2 && status_of(&a, "b") == BOX_RUNNING);
	exec_cancel(&x);
}

static void test_removal_waits_for_a_step(void **state)
{
	struct actor a = admin();
	struct err e = { 0 };
	create(&a, "b");
	rig->mute_pause = true;
	rig->done = false;
	struct job *paused = life_change(rig->core, &a, VIEW("b"), LIFE_PAUSE, on_done, NULL, &e);
	struct job *removed = remove_box(rig->core, &a, VIEW("b"), on_done, NULL, &e);
	assert_true(paused && removed);
	job_abandon(removed);
	for (int i = 0; i < 32; i++)
		pass(0);
	assert_int_equal(rig->destroys, 0);
	answer_pause();
	wait_for(&rig->done);
	assert_int_equal(rig->failed.code, ERR_STATE);
	WAIT_UNTIL(rig->destroys == 1);
	WAIT_UNTIL(status_of(&a, "b") == BOX_NONE);
}

static void test_idle_box_is_stopped_where_it_cannot_be_paused(void **state)
{
	struct actor a = admin();
	struct box_wish w = { .name = VIEW("b"), .idle_seconds = 1, .on_end = VIEW("pause") };
	rig->refuse_pause = true;
	wish_for(&a, &w);
	WAIT_UNTIL(status_of(&a, "b") == BOX_STOPPED);
	assert_int_equal(rig->stops, 1);
}

static void test_restart_knows_what_is_paused(void **state)
{
	struct actor a = admin();
	char id[BOX_ID + 1];
	create(&a, "b");
	memcpy(id, rig->made, sizeof(id));
	life(&a, "b", LIFE_PAUSE);
	stop_core();
	rig->have = view_of(id);
	rig->paused = true;
	start_core();
	a = admin();
	assert_int_equal(status_of(&a, "b"), BOX_PAUSED);
	life(&a, "b", LIFE_RESUME);
	assert_int_equal(status_of(&a, "b"), BOX_RUNNING);
	rig->have = VIEW_NONE;
}

static void test_patch_outlives_a_restart(void **state)
{
	struct actor a = admin();
	struct err e = { 0 };
	struct view key = VIEW("k"), value = VIEW("v");
	struct lifetime_patch p = { .metadata = { &key, &value, 1 },
				    .has_metadata = true,
				    .has_idle_seconds = true,
				    .idle_seconds = 1000,
				    .on_end = VIEW("stop") };
	create(&a, "b");
	for (int i = 0; i < 3; i++)
		settle(lifetime_change(rig->core, &a, VIEW("b"), &p, on_done, NULL, &e), &e);
	assert_int_equal(rig->failed.code, ERR_OK);
	settle(lifetime_extend(rig->core, &a, VIEW("b"), 500, on_done, NULL, &e), &e);
	assert_int_equal(rig->failed.code, ERR_OK);
	p.on_end = VIEW("explode");
	assert_null(lifetime_change(rig->core, &a, VIEW("b"), &p, on_done, NULL, &e));
	assert_int_equal(e.code, ERR_INVALID);
	stop_core();
	start_core();
	a = admin();
	struct box *b = boxes_find(rig->core, &a, ACT_BOX_READ, VIEW("b"), &e);
	assert_non_null(b);
	assert_int_equal(b->spec.on_end, SPEC_END_STOP);
	assert_int_equal(b->spec.idle_seconds, 1000);
	assert_true(view_is(spec_map_get(&b->spec.metadata, VIEW("k")), "v"));
	assert_true(b->state.expires_ms > b->state.created_ms);
}

/* ---- calls to models ---- */

struct seen {
	size_t n;
	uint64_t first, last;
	size_t most;
};

static bool see(void *arg, const struct store_ai_log *l)
{
	struct seen *s = arg;

	if (s->n == s->most)
		return false;
	assert_true(!s->n || l->id < s->last);
	assert_true(view_is(l->model, "m") && view_is(l->finish, "complete") && l->cost == (int64_t)l->id);
	s->first = s->n++ ? s->first : l->id;
	s->last = l->id;
	return true;
}

static struct seen calls_of(const char *box, uint64_t before, size_t most)
{
	struct seen s = { .most = most };
	ailog_each(rig->core, view_of(box), before, see, &s);
	return s;
}

static void add_call_of(uint64_t id, const char *box, const char *tenant, struct view said)
{
	ailog_add(rig->core, &(struct store_ai_log){ .id = id,
						     .tenant = view_of(tenant),
						     .bodies = { .kept = said.n > 0, .request = said },
						     .box = view_of(box),
						     .provider = VIEW("openai"),
						     .endpoint = VIEW("models"),
						     .model = VIEW("m"),
						     .finish = VIEW("complete"),
						     .cost = (int64_t)id });
}

static void add_call(uint64_t id, const char *box)
{
	add_call_of(id, box, "default", VIEW_NONE);
}

static void test_calls_are_bounded(void **state)
{
	char box[24];
	uint64_t id = 1;

	for (; id <= AILOG_BOX + 5; id++)
		add_call(id == 3 ? 4 : id == 4 ? 3 : id, "first"); /* the third ends after the fourth */
	struct seen s = calls_of("first", 0, SIZE_MAX);
	assert_int_equal(s.n, AILOG_BOX);
	assert_int_equal(s.first, AILOG_BOX + 5);
	assert_int_equal(s.last, 6);
	assert_int_equal(calls_of("first", 10, SIZE_MAX).n, 4);
	assert_int_equal(calls_of("first", 0, 7).last, AILOG_BOX - 1);
	assert_int_equal(calls_of("other", 0, SIZE_MAX).n, 0);
	/* Others push them out only when all together are too many. */
	for (size_t i = 0; i < AILOG_ALL - 10; i++, id++) {
		snprintf(box, sizeof(box), "box%zu", i % 25);
		add_call(id, box);
	}
	assert_int_equal(calls_of("first", 0, SIZE_MAX).n, 10);
	stop_core();
	start_core();
	s = calls_of("first", 0, SIZE_MAX);
	assert_int_equal(s.n, 10);
	assert_int_equal(s.first, AILOG_BOX + 5);
	assert_int_equal(calls_of("box0", 0, SIZE_MAX).n, (AILOG_ALL - 10 + 24) / 25);
}

/* ---- logs that all tenants share: who has the most loses the oldest ---- */

static const struct tenant *quiet(void)
{
	const struct store_tenant row = { .id = VIEW("t_quiet"), .name = VIEW("quiet") };

	store_tenant_put(rig->core->store, &row, core_store_done, rig->core);
	assert_int_equal(keys_load_tenant(rig->core, &row), 0);
	return keys_tenant(rig->core, row.id);
}

static void test_calls_of_a_quiet_tenant_stay(void **state)
{
	static char said[1024 * 1024];
	const struct tenant *t = quiet();
	char box[24];
	uint64_t id = 1;

	memset(said, 'x', sizeof(said));
	for (; id <= 10; id++)
		add_call_of(id, "q", t->id, (struct view){ said, 1000 });
	for (size_t i = 0; i < AILOG_ALL; i++, id++) {
		snprintf(box, sizeof(box), "box%zu", i % 25);
		add_call_of(id, box, "default", i < 64 ? (struct view){ said, sizeof(said) } : VIEW_NONE);
	}
	assert_int_equal(calls_of("q", 0, SIZE_MAX).n, 10);
	for (uint64_t i = 1; i <= 10; i++)
		assert_int_equal(ailog_find(rig->core, VIEW("q"), i)->bodies.request.n, 1000);
	assert_int_equal(calls_of("box0", 0, SIZE_MAX).n, AILOG_ALL / 25 - 1); /* the oldest is of them */
}

static void add_verdicts(const char *ref, unsigned n, char from)
{
	struct wire_gate_verdict items[64] = { 0 };
	struct actor a = admin();
	struct err e = { 0 };
	char hosts[64][24];

	assert_true(n <= ELEMS(items));
	const struct box *b = boxes_find(rig->core, &a, ACT_BOX_READ, view_of(ref), &e);
	assert_non_null(b);
	for (unsigned i = 0; i < n; i++) {
		snprintf(hosts[i], sizeof(hosts[i]), "%c%u.example.org", from, i);
		items[i] = (struct wire_gate_verdict){ .box = view_of(b->id),
						       .name = view_of(hosts[i]),
						       .port = 80 };
	}
	policies_log_add(rig->core, &(struct wire_gate_verdicts){ .verdicts = { items, n } });
}

static size_t verdicts_of(const char *ref)
{
	struct actor a = admin();
	struct err e = { 0 };
	const struct box *b = boxes_find(rig->core, &a, ACT_BOX_READ, view_of(ref), &e);
	const struct policy_verdict *v;
	size_t n = 0;

	for (uint64_t after = 0; (v = policies_next(b, after)); after = v->id)
		n++;
	return n;
}

static void test_verdicts_of_a_quiet_tenant_stay(void **state)
{
	struct actor a = admin(), q = { .tenant = quiet(), .role = STORE_ROLE_USER };

	char of_quiet[BOX_ID + 1], of_busy[BOX_ID + 1];

	rig->core->policies->logs.most = 30;
	create(&q, "q");
	snprintf(of_quiet, sizeof(of_quiet), "%s", rig->made);
	create(&a, "b");
	snprintf(of_busy, sizeof(of_busy), "%s", rig->made);
	add_verdicts(of_quiet, 10, 'q');
	add_verdicts(of_busy, 60, 'b');
	assert_int_equal(verdicts_of(of_quiet), 10);
	assert_int_equal(verdicts_of(of_busy), 20);
	add_verdicts(of_quiet, 60, 'r'); /* now it is that one, which may have all but what others have */
	assert_int_equal(verdicts_of(of_quiet) + verdicts_of(of_busy), 30);
	assert_true(verdicts_of(of_busy) >= 14);
}

static void test_logs_of_a_quiet_tenant_stay(void **state)
{
	static char line[1000 * 1000];
	struct template *mine, *others[70];
	struct actor a = admin();
	char id[BOX_ID + 1];

	memset(line, 'x', sizeof(line));
	mine = templates_new(rig->core, quiet(), VIEW("q0000000000000000000"), VIEW("q"));
	struct template_build *first = templates_build_new(mine), *second = templates_build_new(mine);
	templates_log(first, 0, (struct view){ line, 100 });
	for (size_t i = 0; i < ELEMS(others); i++) {
		snprintf(id, sizeof(id), "t%019zu", i);
		others[i] = templates_new(rig->core, a.tenant, view_of(id), view_of(id));
		templates_log(templates_build_new(others[i]), 0, (struct view){ line, sizeof(line) });
	}
	assert_int_equal(first->n_logs, 1);
	assert_int_equal(templates_newest(others[0])->n_logs, 0);
	assert_int_equal(templates_newest(others[69])->n_logs, 1);
	templates_log(second, 0, VIEW("also later"));
	assert_int_equal(second->n_logs, 1);
}

/* ---- snapshots, forks, workspaces ---- */

static size_t forked;

static void on_forked(void *arg, const void *result, const struct err *e)
{
	const struct fork_result *f = result;
	rig->done = true;
	rig->failed = e ? *e : (struct err){ 0 };
	forked = f ? f->n : 0;
}

static void on_plain(void *arg, const void *result, const struct err *e)
{
	rig->done = true;
	rig->failed = e ? *e : (struct err){ 0 };
}

static void test_forks(void **state)
{
	struct actor a = admin();
	struct err e = { 0 };
	struct fork_wish w = { .count = 2, .name_prefix = VIEW("f") };
	create(&a, "b");
	settle(fork_box(rig->core, &a, VIEW("b"), &w, on_forked, NULL, &e), &e);
	assert_int_equal(rig->failed.code, ERR_OK);
	assert_int_equal(forked, 2);
	assert_int_equal(status_of(&a, "f-2"), BOX_RUNNING);
	WAIT_UNTIL(rig->snapshot_drops == 1);
	/* There is no room for more. */
	assert_null(fork_box(rig->core, &a, VIEW("b"), &w, on_forked, NULL, &e));
	assert_int_equal(e.code, ERR_QUOTA);
	drop(&a, "f-1");
	drop(&a, "f-2");
	/* All or none, also when nobody waits any more. */
	rig->destroys = 0;
	rig->refuse_create = true;
	settle(fork_box(rig->core, &a, VIEW("b"), &w, on_forked, NULL, &e), &e);
	assert_int_equal(rig->failed.code, ERR_WALLS);
	rig->refuse_create = false;
	struct job *j = fork_box(rig->core, &a, VIEW("b"), &w, on_forked, NULL, &e);
	assert_non_null(j);
	job_abandon(j);
	WAIT_UNTIL(rig->destroys == 2);
	WAIT_UNTIL(status_of(&a, "f-1") == BOX_NONE && status_of(&a, "f-2") == BOX_NONE);
}

static void test_snapshots(void **state)
{
	struct actor a = admin(), other = tenant_user("other");
	struct err e = { 0 };
	create(&a, "b");
	settle(snapshots_create(rig->core, &a, VIEW("b"), VIEW("s"), on_plain, NULL, &e), &e);
	assert_int_equal(rig->failed.code, ERR_OK);
	assert_null(snapshots_create(rig->core, &a, VIEW("b"), VIEW("s"), on_plain, NULL, &e));
	assert_int_equal(e.code, ERR_CONFLICT);
	stop_core();
	start_core();
	a = admin();
	other = tenant_user("other");
	const struct snapshot *s = snapshots_find(rig->core, &a, ACT_SNAPSHOT_READ, VIEW("s"), &e);
	assert_non_null(s);
	assert_int_equal(s->bytes, 70);
	assert_null(snapshots_find(rig->core, &other, ACT_SNAPSHOT_READ, VIEW("s"), &e));
	assert_null(snapshots_find(rig->core, &other, ACT_SNAPSHOT_DELETE, view_of(s->id), &e));
	assert_int_equal(e.code, ERR_NOT_FOUND);
	struct box_wish w = { .snapshot = VIEW("s") };
	wish_for(&a, &w);
	settle(snapshots_remove(rig->core, &a, VIEW("s"), on_plain, NULL, &e), &e);
	assert_int_equal(rig->failed.code, ERR_OK);
	assert_null(snapshots_find(rig->core, &a, ACT_SNAPSHOT_READ, VIEW("s"), &e));
}

static void refused(const struct actor *a, struct box_wish w, const char *says)
{
	struct err e = { 0 };
	unsigned before = rig->creates;
	assert_null(create_box(rig->core, a, &w, on_done, NULL, &e));
	assert_int_equal(e.code, ERR_INVALID);
	assert_string_equal(e.msg, says);
	assert_int_equal(rig->creates, before); /* the keeper was not asked */
}

static void made_with(const struct actor *a, struct box_wish w, const char *backend)
{
	wish_for(a, &w);
	assert_int_equal(rig->failed.code, ERR_OK);
	assert_string_equal(rig->backend, backend);
	drop(a, rig->made);
}

static void test_backends(void **state)
{
	struct actor a = admin();
	struct err e = { 0 };
	made_with(&a, (struct box_wish){ 0 }, "native");
	refused(&a, (struct box_wish){ .backend = VIEW("nativ") },
		"backend must be one of: native, other, any");
	refused(&a, (struct box_wish){ .backend = VIEW("0123456789abcdef") },
		"backend must be a name of at most 15 characters");
	struct box_wish w = { .name = VIEW("o"), .backend = VIEW("other") };
	wish_for(&a, &w);
	assert_string_equal(rig->backend, "other");
	settle(snapshots_create(rig->core, &a, VIEW("o"), VIEW("s"), on_plain, NULL, &e), &e);
	assert_int_equal(rig->failed.code, ERR_OK);
	/* The store knows both, and a start goes to where the box was. */
	stop_core();
	start_core();
	a = admin();
	settle(life_change(rig->core, &a, VIEW("o"), LIFE_START, on_plain, NULL, &e), &e);
	assert_int_equal(rig->failed.code, ERR_OK);
	assert_string_equal(rig->backend, "other");
	/* What is made of it is of its kind, unless another kind can take it. */
	made_with(&a, (struct box_wish){ .snapshot = VIEW("s") }, "other");
	made_with(&a, (struct box_wish){ .snapshot = VIEW("s"), .backend = VIEW("any") }, "any");
	refused(&a, (struct box_wish){ .snapshot = VIEW("s"), .backend = VIEW("native") },
		"backend: the snapshot was taken with other, and native cannot start from it");
	struct fork_wish fork = { .count = 1, .name_prefix = VIEW("f") };
	rig->backend[0] = 0;
	settle(fork_box(rig->core, &a, VIEW("o"), &fork, on_forked, NULL, &e), &e);
	assert_int_equal(rig->failed.code, ERR_OK);
	assert_string_equal(rig->backend, "other");
}

static void test_workspaces(void **state)
{
	struct actor a = admin();
	struct err e = { 0 };
	struct workspace_wish ww = { .name = VIEW("w") };
	struct box_wish w = { .name = VIEW("one"), .workspace = VIEW("w") };
	settle(workspaces_create(rig->core, &a, &ww, on_plain, NULL, &e), &e);
	assert_int_equal(rig->failed.code, ERR_OK);
	wish_for(&a, &w);
	w.name = VIEW("two");
	assert_null(create_box(rig->core, &a, &w, on_done, NULL, &e));
	assert_int_equal(e.code, ERR_CONFLICT);
	w.workspace_readonly = true;
	wish_for(&a, &w);
	assert_null(workspaces_remove(rig->core, &a, VIEW("w"), on_plain, NULL, &e));
	assert_int_equal(e.code, ERR_STATE);
	/* A helper is no user: it goes with the workspace. */
	settle(workspace_helper(rig->core, &a, ACT_WORKSPACE_READ, VIEW("w"), on_done, NULL, &e), &e);
	assert_int_equal(rig->failed.code, ERR_OK);
	assert_int_equal(status_of(&a, rig->made), BOX_NONE);
	drop(&a, "one");
	drop(&a, "two");
	rig->destroys = 0;
	settle(workspaces_remove(rig->core, &a, VIEW("w"), on_plain, NULL, &e), &e);
	assert_int_equal(rig->failed.code, ERR_OK);
	assert_int_equal(rig->destroys, 1);
	assert_null(workspaces_find(rig->core, &a, ACT_WORKSPACE_READ, VIEW("w"), &e));
}

static void test_stop_with_a_helper(void **state)
{
	struct actor a = admin();
	struct err e = { 0 };
	struct workspace_wish ww = { .name = VIEW("w") };
	settle(workspaces_create(rig->core, &a, &ww, on_plain, NULL, &e), &e);
	settle(workspace_helper(rig->core, &a, ACT_WORKSPACE_WRITE, VIEW("w"), on_done, NULL, &e), &e);
	assert_int_equal(rig->failed.code, ERR_OK);
}

static void test_keeper_goes(void **state)
{
	link_stop(&rig->keeper);
	wait_for(&rig->lost);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void test_paths_of_boxes(void **state)
{
	struct view rest = VIEW("?");

	assert_true(view_is(boxes_path(VIEW("/sandbox/a%20b/mcp"), &rest), "a%20b") && view_is(rest, "/mcp"));
	assert_true(view_is(boxes_path(VIEW("/sandbox/x/v1/file/"), &rest), "x") &&
		    view_is(rest, "/v1/file/"));
	assert_true(view_is(boxes_path(VIEW("/sandbox/x"), &rest), "x") && view_is(rest, ""));
	assert_null(boxes_path(VIEW("/sandbox/"), &rest).p);
	assert_null(boxes_path(VIEW("/sandbox//mcp"), &rest).p);
	assert_null(boxes_path(VIEW("/sandboxes/x"), &rest).p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_create_exec_delete),
		TEST(test_name_is_taken_at_once),
		TEST(test_quota),
		TEST(test_unknown_image),
		TEST(test_keeper_refuses),
		TEST(test_box_of_another_protocol),
		TEST(test_abandoned_create_is_removed),
		TEST(test_failed_removal_leaves_the_box),
		TEST(test_box_that_ends),
		TEST(test_broken_link_is_opened_anew),
		TEST(test_tenants),
		TEST(test_permissions),
		TEST(test_tokens),
		TEST(test_restart_adopts),
		TEST(test_restart_keeps_what_may_have_been_answered),
		TEST(test_expiry_outlives_a_restart),
		TEST(test_pages),
		TEST(test_pause_stop_start),
		TEST(test_start_that_does_not_greet),
		TEST(test_use_while_it_is_paused),
		TEST(test_removal_waits_for_a_step),
		TEST(test_idle_box_is_stopped_where_it_cannot_be_paused),
		TEST(test_restart_knows_what_is_paused),
		TEST(test_patch_outlives_a_restart),
		TEST(test_calls_are_bounded),
		TEST(test_calls_of_a_quiet_tenant_stay),
		TEST(test_verdicts_of_a_quiet_tenant_stay),
		TEST(test_logs_of_a_quiet_tenant_stay),
		TEST(test_forks),
		TEST(test_snapshots),
		TEST(test_backends),
		TEST(test_workspaces),
		TEST(test_stop_with_a_helper),
		TEST(test_keeper_goes),
		cmocka_unit_test(test_paths_of_boxes),
	};
	log_setup("test", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
