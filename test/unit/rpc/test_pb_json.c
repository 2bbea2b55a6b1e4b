/*
 * Protobuf as JSON: what clients may write, what is refused, and what we write.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "envd_gen.h"
#include "pb_json.h"
#include "poison.h"

static struct arena arena;

static int reset(void **state)
{
	arena_done(&arena);
	arena_init(&arena, 1 << 20);
	return 0;
}

static int end(void **state)
{
	arena_done(&arena);
	return 0;
}

static int read_into(const struct pb_msg *m, const char *text, void *out)
{
	struct err e = { 0 };
	int r = pb_json_read(m, view_of(text), &arena, out, &e);
	assert_int_equal(r < 0, e.code != ERR_OK);
	return r;
}

static void expect(const struct pb_msg *m, const void *msg, const char *want)
{
	struct buf b = BUF_INIT(1 << 20);
	assert_int_equal(pb_json_write(m, msg, &b), 0);
	buf_putc(&b, 0);
	assert_string_equal(buf_view(&b).p, want);
	buf_done(&b);
}

static void test_read_start(void **state)
{
	struct envd_start_request q;

	assert_int_equal(
		read_into(&envd_start_request_msg,
			  "{\"process\":{\"cmd\":\"/bin/bash\",\"args\":[\"-l\",\"-c\",\"true\"],"
			  "\"envs\":{\"A\":\"1\",\"B\":\"\"},\"cwd\":\"\"},\"pty\":{\"size\":{\"cols\":80,"
			  "\"rows\":\"24\"}},\"stdin\":false,\"new_field\":{\"x\":[1]},\"tag\":null}",
			  &q),
		0);
	assert_true(view_is(q.process->cmd, "/bin/bash"));
	assert_int_equal(q.process->args.n, 3);
	assert_true(view_is(q.process->args.items[2], "true"));
	assert_int_equal(q.process->envs.n, 2);
	assert_true(view_is(q.process->envs.items[0].key, "A") &&
		    view_is(q.process->envs.items[0].value, "1"));
	assert_true(q.process->has_cwd && q.process->cwd.n == 0);
	assert_int_equal(q.pty->size->cols, 80);
	assert_int_equal(q.pty->size->rows, 24);
	assert_true(q.has_stdin && !q.stdin_ && !q.has_tag);
}

static void test_names_of_fields(void **state)
{
	struct envd_watch_dir_request q;

	assert_int_equal(read_into(&envd_watch_dir_request_msg,
				   "{\"includeEntry\":true,\"allow_network_mounts\":true}", &q),
			 0);
	assert_true(q.include_entry && q.allow_network_mounts && !q.recursive);
}

static void test_enums_and_oneofs(void **state)
{
	struct envd_send_signal_request q;

	assert_int_equal(read_into(&envd_send_signal_request_msg,
				   "{\"signal\":\"SIGNAL_SIGKILL\",\"process\":{\"pid\":7,\"tag\":\"x\"}}",
				   &q),
			 0);
	assert_int_equal(q.signal, ENVD_SIGNAL_SIGKILL);
	assert_true(!q.process->has_pid && q.process->has_tag); /* the last member */
	assert_int_equal(q.process->pid, 0);
	assert_int_equal(read_into(&envd_send_signal_request_msg, "{\"signal\":15}", &q), 0);
	assert_int_equal(q.signal, 15);
	assert_int_equal(read_into(&envd_send_signal_request_msg, "{\"signal\":\"SIGNAL_NONE\"}", &q), -1);
	assert_int_equal(read_into(&envd_send_signal_request_msg, "{\"signal\":4294967296}", &q), -1);
}

static void test_bytes(void **state)
{
	static const char *const same[] = { "+/8=", "-_8=", "+/8", "-_8" };
	struct envd_process_input in;
	char text[64];

	for (size_t i = 0; i < ELEMS(same); i++) {
		snprintf(text, sizeof(text), "{\"stdin\":\"%s\"}", same[i]);
		assert_int_equal(read_into(&envd_process_input_msg, text, &in), 0);
		assert_true(in.has_stdin && in.stdin_.n == 2 && memcmp(in.stdin_.p, "\xfb\xff", 2) == 0);
	}
	assert_int_equal(read_into(&envd_process_input_msg, "{\"pty\":\"\"}", &in), 0);
	assert_true(in.has_pty && in.pty.n == 0);
	assert_int_equal(read_into(&envd_process_input_msg, "{\"pty\":\"a\"}", &in), -1);
	assert_int_equal(read_into(&envd_process_input_msg, "{\"pty\":\"****\"}", &in), -1);
}

static void test_refused(void **state)
{
	static const struct {
		const struct pb_msg *m;
		const char *text;
	} bad[] = {
		{ &envd_list_dir_request_msg, "" },
		{ &envd_list_dir_request_msg, "[]" },
		{ &envd_list_dir_request_msg, "{\"path\":1}" },
		{ &envd_list_dir_request_msg, "{\"depth\":-1}" },
		{ &envd_list_dir_request_msg, "{\"depth\":4294967296}" },
		{ &envd_list_dir_request_msg, "{\"depth\":1.5}" },
		{ &envd_list_dir_request_msg, "{\"depth\":\"x\"}" },
		{ &envd_list_dir_request_msg, "{\"depth\":1}}" },
		{ &envd_watch_dir_request_msg, "{\"recursive\":1}" },
		{ &envd_start_request_msg, "{\"process\":[]}" },
		{ &envd_start_request_msg, "{\"process\":{\"args\":\"x\"}}" },
		{ &envd_start_request_msg, "{\"process\":{\"args\":[1]}}" },
		{ &envd_start_request_msg, "{\"process\":{\"envs\":[]}}" },
		{ &envd_start_request_msg, "{\"process\":{\"envs\":{\"A\":1}}}" },
		{ &envd_stat_response_msg, "{\"entry\":{\"modifiedTime\":{}}}" },
	};
	char room[512];

	for (size_t i = 0; i < ELEMS(bad); i++) {
		assert_true(bad[i].m->size <= sizeof(room));
		assert_int_equal(read_into(bad[i].m, bad[i].text, room), -1);
	}
}

static void test_no_memory(void **state)
{
	struct envd_start_request q;
	struct err e = { 0 };
	const char *text =
		"{\"process\":{\"cmd\":\"x\",\"args\":[\"a\",\"b\",\"c\"],\"envs\":{\"A\":\"1\"}}}";
	bool done = false;

	for (size_t max = 1; !done && max < 1 << 20; max *= 2) {
		struct arena small = ARENA_INIT(max);
		done = pb_json_read(&envd_start_request_msg, view_of(text), &small, &q, &e) == 0;
		arena_done(&small);
	}
	assert_true(done);
}

static void test_write_events(void **state)
{
	struct envd_process_event ev = { .start = &(struct envd_process_event_start_event){ .pid = 42 } };
	struct envd_start_response reply = { .event = &ev };

	expect(&envd_start_response_msg, &reply, "{\"event\":{\"start\":{\"pid\":42}}}");
	ev = (struct envd_process_event){ .data = &(struct envd_process_event_data_event){
						  .has_stderr = true, .stderr_ = VIEW("\x00\xff") } };
	expect(&envd_start_response_msg, &reply, "{\"event\":{\"data\":{\"stderr\":\"AP8=\"}}}");
	ev = (struct envd_process_event){ .end = &(struct envd_process_event_end_event){
						  .exit_code = -1, .status = VIEW("signal: killed") } };
	expect(&envd_start_response_msg, &reply,
	       "{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: killed\"}}}");
	ev = (struct envd_process_event){ .keepalive = &(struct envd_process_event_keep_alive){ 0 } };
	expect(&envd_start_response_msg, &reply, "{\"event\":{\"keepalive\":{}}}");
}

static void test_write_entry(void **state)
{
	struct envd_timestamp time = { .seconds = 1, .nanos = 500000000 };
	struct envd_entry_info_metadata_entry meta = { VIEW("k"), VIEW("v") };
	struct envd_entry_info entry = { .name = VIEW("x\xff"),
					 .type = ENVD_FILE_TYPE_DIRECTORY,
					 .size = 5000000000,
					 .mode = 0755,
					 .modified_time = &time,
					 .has_symlink_target = true,
					 .metadata = { &meta, 1 } };

	expect(&envd_entry_info_msg, &entry,
	       "{\"name\":\"x\xef\xbf\xbd\",\"type\":\"FILE_TYPE_DIRECTORY\",\"size\":\"5000000000\","
	       "\"mode\":493,"
	       "\"modifiedTime\":\"1970-01-01T00:00:01.500Z\",\"symlinkTarget\":\"\",\"metadata\":{\"k\":"
	       "\"v\"}}");
	entry = (struct envd_entry_info){ .type = 99 };
	expect(&envd_entry_info_msg, &entry, "{\"type\":99}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_read_start, reset),
		cmocka_unit_test_setup(test_names_of_fields, reset),
		cmocka_unit_test_setup(test_enums_and_oneofs, reset),
		cmocka_unit_test_setup(test_bytes, reset),
		cmocka_unit_test_setup(test_refused, reset),
		cmocka_unit_test_setup(test_no_memory, reset),
		cmocka_unit_test_setup(test_write_events, reset),
		cmocka_unit_test_setup(test_write_entry, reset),
	};
	return cmocka_run_group_tests_name("pb_json", tests, NULL, end);
}
