/*
 * What the kernel is answered: the text in pieces, errors, and nothing to what is no request.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <linux/fuse.h>

#include "answer.h"

#include "poison.h"

static uint32_t asked_by;

static int text(void *arg, uint32_t uid, struct buf *out)
{
	asked_by = uid;
	if (arg)
		return *(int *)arg;
	buf_puts(out, "0123456789");
	return 0;
}

static struct fuse_out_header ask(uint32_t opcode, uint64_t offset, uint32_t size, int *fail, struct buf *out)
{
	struct {
		struct fuse_in_header h;
		struct fuse_read_in r;
	} in = { .h = { .len = sizeof(in), .opcode = opcode, .unique = 7, .nodeid = 1, .uid = 4711 },
		 .r = { .offset = offset, .size = size } };
	struct fuse_out_header o = { 0 };
	buf_done(out);
	assert_int_equal(answer_make(&in, sizeof(in), text, fail, out), 0);
	if (out->n) {
		assert_true(out->n >= sizeof(o));
		memcpy(&o, out->p, sizeof(o));
		assert_int_equal(o.len, out->n);
		assert_int_equal(o.unique, 7);
	}
	return o;
}

static void test_read(void **state)
{
	struct buf out = BUF_INIT(4096);
	const struct {
		uint64_t offset;
		uint32_t size;
		const char *want;
	} reads[] = { { 0, 100, "0123456789" }, { 0, 4, "0123" }, { 8, 4, "89" }, { 10, 4, "" },
		      { UINT64_MAX, 4, "" },    { 0, 0, "" } };
	for (size_t i = 0; i < ELEMS(reads); i++) {
		struct fuse_out_header o = ask(FUSE_READ, reads[i].offset, reads[i].size, NULL, &out);
		assert_int_equal(o.error, 0);
		assert_int_equal(o.len, sizeof(o) + strlen(reads[i].want));
		assert_memory_equal(out.p + sizeof(o), reads[i].want, strlen(reads[i].want));
	}
	assert_int_equal(asked_by, 4711);
	int fail = -EACCES;
	struct fuse_out_header o = ask(FUSE_READ, 0, 100, &fail, &out);
	assert_int_equal(o.error, -EACCES);
	assert_int_equal(o.len, sizeof(o));
	buf_done(&out);
}

static void test_others(void **state)
{
	struct buf out = BUF_INIT(4096);
	assert_int_equal(ask(FUSE_OPEN, 0, 0, NULL, &out).len,
			 sizeof(struct fuse_out_header) + sizeof(struct fuse_open_out));
	assert_int_equal(ask(FUSE_GETATTR, 0, 0, NULL, &out).len,
			 sizeof(struct fuse_out_header) + sizeof(struct fuse_attr_out));
	assert_int_equal(ask(FUSE_STATFS, 0, 0, NULL, &out).error, 0);
	assert_int_equal(ask(FUSE_RELEASE, 0, 0, NULL, &out).error, 0);
	assert_int_equal(ask(FUSE_FORGET, 0, 0, NULL, &out).len, 0);
	assert_int_equal(ask(FUSE_INTERRUPT, 0, 0, NULL, &out).len, 0);
	const uint32_t unknown[] = { FUSE_WRITE, FUSE_LOOKUP, FUSE_SETATTR, FUSE_IOCTL, 4096 };
	for (size_t i = 0; i < ELEMS(unknown); i++)
		assert_int_equal(ask(unknown[i], 0, 0, NULL, &out).error, -ENOSYS);
	buf_done(&out);
}

static void test_no_request(void **state)
{
	struct buf out = BUF_INIT(4096);
	struct fuse_in_header h = { .len = sizeof(h), .opcode = FUSE_READ };
	assert_int_equal(answer_make(&h, sizeof(h), text, NULL, &out), -EBADMSG); /* without its fields */
	assert_int_equal(answer_make(&h, sizeof(h) - 1, text, NULL, &out), -EBADMSG);
	h.len++;
	assert_int_equal(answer_make(&h, sizeof(h), text, NULL, &out), -EBADMSG);
	assert_int_equal(answer_make(&h, 0, text, NULL, &out), -EBADMSG);
	assert_int_equal(out.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_no_request),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
