/*
 * See kept.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "clock.h"
#include "kept.h"
#include "link.h"
#include "poison.h"

struct box box;
struct client client;

int kept_start_box(void **state)
{
	(void)state;
	box_start(&box);
	return 0;
}

int kept_stop_box(void **state)
{
	(void)state;
	box_stop(&box);
	return 0;
}

int kept_connect(void **state)
{
	(void)state;
	client_open(&client, &box);
	return 0;
}

int kept_close(void **state)
{
	(void)state;
	client_close(&client);
	return 0;
}

uint32_t kept_start(struct client *c, struct run r, uint32_t *ret_pid)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT(65536);
	struct wire_started st;
	struct frame f;
	r.keep = true;
	uint32_t id = client_start(c, &r);
	assert_true(client_next(c, &f));
	assert_int_equal(f.stream, id);
	if (f.kind == FRAME_FAIL) {
		struct err e;
		link_read_fail(&f, &e);
		fail_msg("%s", e.msg);
	}
	assert_int_equal(pb_decode(&wire_started_msg, f.body, 0, &arena, &st), 0);
	assert_true(st.pid > 1);
	*ret_pid = st.pid;
	return id;
}

void kept_cancel(struct client *c, uint32_t stream)
{
	struct answer a;
	client_send(c, (struct frame){ .kind = FRAME_CANCEL, .stream = stream });
	client_finish(c, stream, &a);
	if (a.failed) /* else it had ended before */
		assert_int_equal(a.error.code, ERR_CANCELLED);
	answer_done(&a);
}

uint32_t kept_start_alone(struct run r)
{
	uint32_t pid;
	kept_cancel(&client, kept_start(&client, r, &pid));
	return pid;
}

uint32_t kept_attach(struct client *c, uint32_t pid, struct offsets at, struct offsets *ret)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT(65536);
	struct wire_process_selector who = { .pid = pid };
	struct wire_attach msg = { .process = &who,
				   .stdout_offset = at.out,
				   .stderr_offset = at.err,
				   .control_offset = at.control };
	struct wire_attached r;
	struct frame f;
	uint32_t id = client_call(c, WIRE_TYPE_ATTACH, 0, &wire_attach_msg, &msg);
	assert_true(client_next(c, &f));
	assert_int_equal(f.stream, id);
	assert_int_equal(f.kind, FRAME_REPLY);
	assert_int_equal(pb_decode(&wire_attached_msg, f.body, 0, &arena, &r), 0);
	assert_non_null(r.info);
	assert_int_equal(r.info->pid, pid);
	if (ret)
		*ret = (struct offsets){ r.stdout_offset, r.stderr_offset, r.control_offset };
	return id;
}

void kept_read(uint32_t pid, struct offsets at, struct answer *a, struct wire_exited *ret_exited)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT(65536);
	uint32_t id = kept_attach(&client, pid, at, NULL);
	client_finish(&client, id, a);
	answer_decode(a, &a->last, &wire_exited_msg, &arena, ret_exited);
}

static enum err_code simple(struct client *c, uint16_t type, const struct pb_msg *m, const void *msg)
{
	struct answer a;
	uint32_t id = client_call(c, type, 0, m, msg);
	client_finish(c, id, &a);
	enum err_code code = a.failed ? a.error.code : ERR_OK;
	answer_done(&a);
	return code;
}

enum err_code kept_input(struct client *c, uint32_t pid, uint32_t channel, struct view data, bool close)
{
	struct wire_process_selector who = { .pid = pid };
	struct wire_input msg = { .process = &who, .channel = channel, .data = data, .close = close };
	return simple(c, WIRE_TYPE_INPUT, &wire_input_msg, &msg);
}

enum err_code kept_resize(uint32_t pid, uint32_t cols, uint32_t rows)
{
	struct wire_process_selector who = { .pid = pid };
	struct wire_resize msg = { .process = &who, .cols = cols, .rows = rows };
	return simple(&client, WIRE_TYPE_RESIZE, &wire_resize_msg, &msg);
}

int kept_signal(const struct wire_signal *s)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT(65536);
	struct wire_signal_reply r;
	struct answer a;
	uint32_t id = client_call(&client, WIRE_TYPE_SIGNAL, 0, &wire_signal_msg, s);
	client_finish(&client, id, &a);
	if (!a.failed)
		answer_decode(&a, &a.last, &wire_signal_reply_msg, &arena, &r);
	int n = a.failed ? -(int)a.error.code : (int)r.signalled;
	answer_done(&a);
	return n;
}

bool kept_info(uint32_t pid, struct wire_process_info *ret, struct wire_exited *ret_exited)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT(4u << 20);
	struct wire_processes_reply r;
	struct answer a;
	bool found = false;
	*ret = (struct wire_process_info){ 0 };
	uint32_t id = client_call(&client, WIRE_TYPE_PROCESSES, 0, &wire_processes_msg,
				  &(struct wire_processes){ 0 });
	client_finish(&client, id, &a);
	answer_decode(&a, &a.last, &wire_processes_reply_msg, &arena, &r);
	for (size_t i = 0; i < r.processes.n; i++) {
		if (r.processes.items[i].pid != pid)
			continue;
		*ret = r.processes.items[i];
		if (ret->exited && ret_exited)
			*ret_exited = *ret->exited;
		found = true;
	}
	answer_done(&a);
	return found;
}

void kept_wait_ended(uint32_t pid)
{
	struct wire_process_info info;
	uint64_t until = clock_mono_ms() + 10000;
	for (;;) {
		assert_true(kept_info(pid, &info, NULL));
		if (!info.running)
			return;
		if (clock_mono_ms() > until)
			fail_msg("process %u is still running", pid);
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	}
}

void kept_assert_text(const struct buf *b, const char *text)
{
	if (!view_is(buf_view(b), text))
		fail_msg("'%.*s' is not '%s'", VIEW_ARG(view_head(buf_view(b), 500)), text);
}
