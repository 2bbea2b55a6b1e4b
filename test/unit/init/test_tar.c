/*
 * tar archives: what we write GNU tar reads, what GNU tar writes in each of its
 * formats we read; and what is no archive is refused, however it is cut.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "fd.h"
#include "tar.h"
#include "poison.h"

#define LONG200                                                                                              \
	"lllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll"  \
	"lllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll"  \
	"llllll"
#define LONG90 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"

static char dir[] = "/tmp/test_tar.XXXXXX";

static int set_up(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[64];
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

/* The output of a command in the scratch directory. */
static void shell(const char *command, struct buf *out)
{
	char line[4096];
	snprintf(line, sizeof(line), "cd %s && { %s; } 2>&1", dir, command);
	FILE *f = popen(line, "r");
	assert_non_null(f);
	char piece[4096];
	for (size_t n; (n = fread(piece, 1, sizeof(piece), f)) > 0;)
		assert_int_equal(buf_append(out, piece, n), 0);
	if (pclose(f) != 0)
		fail_msg("%s: %.*s", command, VIEW_ARG(buf_view(out)));
}

static void save(const char *name, struct view v)
{
	char path[64];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0 && fd_write_all(fd, v.p, v.n) == 0);
	close(fd);
}

static void put_file(struct buf *b, struct tar_entry en, const char *content)
{
	static const char zeros[TAR_BLOCK];
	en.size = strlen(content);
	assert_int_equal(tar_put(b, &en), 0);
	buf_puts(b, content);
	buf_append(b, zeros, (size_t)tar_padding(en.size));
}

static void test_gnu_tar_reads_ours(void **state)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);
	struct tar_entry f = { .type = TAR_FILE, .mode = 0640, .uid = 12, .gid = 34, .mtime = 1234567890 };
	f.path = VIEW("plain");
	put_file(&b, f, "hello");
	f.path = VIEW("d/" LONG90 "/" LONG90 "/split"); /* fits name and prefix */
	put_file(&b, f, "");
	f.path = VIEW(LONG200 "/needs/pax");
	put_file(&b, f, "p");
	f.path = VIEW("new\nline");
	put_file(&b, f, "n");
	f.path = VIEW("old");
	f.mtime = -5;
	put_file(&b, f, "");
	f.path = VIEW("future");
	f.mtime = 9000000000;
	put_file(&b, f, "");
	struct tar_entry other = { .type = TAR_DIRECTORY, .path = VIEW("dir"), .mode = 0750 };
	assert_int_equal(tar_put(&b, &other), 0);
	other = (struct tar_entry){
		.type = TAR_SYMLINK, .path = VIEW("link"), .target = VIEW(LONG200), .mode = 0777
	};
	assert_int_equal(tar_put(&b, &other), 0);
	assert_int_equal(tar_put_end(&b), 0);
	assert_int_equal(buf_len(&b) % TAR_BLOCK, 0);
	save("ours.tar", buf_view(&b));
	shell("TZ=UTC tar --full-time --numeric-owner -tvf ours.tar", &out);
	buf_putc(&out, 0);
	assert_string_equal(buf_view(&out).p,
			    "-rw-r----- 12/34             5 2009-02-13 23:31:30 plain\n"
			    "-rw-r----- 12/34             0 2009-02-13 23:31:30 d/" LONG90 "/" LONG90
			    "/split\n"
			    "-rw-r----- 12/34             1 2009-02-13 23:31:30 " LONG200 "/needs/pax\n"
			    "-rw-r----- 12/34             1 2009-02-13 23:31:30 new\\nline\n"
			    "-rw-r----- 12/34             0 1969-12-31 23:59:55 old\n"
			    "-rw-r----- 12/34             0 2255-03-14 16:00:00 future\n"
			    "drwxr-x--- 0/0               0 1970-01-01 00:00:00 dir/\n"
			    "lrwxrwxrwx 0/0               0 1970-01-01 00:00:00 link -> " LONG200 "\n");
}

/* A size that octal has no digits for. */
static void test_large_sizes(void **state)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);
	struct tar_entry f = { .type = TAR_FILE, .path = VIEW("huge"), .mode = 0600, .size = 9000000000000 };
	assert_int_equal(tar_put(&b, &f), 0);
	save("huge.tar", buf_view(&b));
	/* Its complaint that the content is missing is right and not asked for. */
	shell("tar -tvf huge.tar 2>/dev/null | grep -o ' 9000000000000 ' || true", &out);
	assert_true(view_is(buf_view(&out), " 9000000000000 \n"));
	struct tar_reader t;
	struct tar_entry en;
	struct view in = buf_view(&b);
	tar_reader_init(&t);
	assert_int_equal(tar_read(&t, &in, &en), 1);
	assert_true(en.size == 9000000000000 && view_is(en.path, "huge"));
	tar_reader_done(&t);
}

/* An archive as lines of text; fed in pieces of n bytes. */
static int read_all(struct view in, size_t piece, struct buf *out)
{
	struct tar_reader t;
	uint64_t skip = 0;
	int r = 0;
	tar_reader_init(&t);
	while (in.n && r >= 0) {
		struct view part = view_head(in, piece);
		in = view_skip(in, part.n);
		while (part.n && r >= 0) {
			struct tar_entry en;
			if (skip) {
				size_t n = (size_t)MIN(skip, (uint64_t)part.n);
				part = view_skip(part, n);
				skip -= n;
				continue;
			}
			r = tar_read(&t, &part, &en);
			if (r <= 0)
				continue;
			buf_printf(out, "%c %o %u %u %lld %llu %.*s -> %.*s\n", en.type, en.mode, en.uid,
				   en.gid, (long long)en.mtime, (unsigned long long)en.size,
				   VIEW_ARG(en.path), VIEW_ARG(en.target));
			skip = en.size + tar_padding(en.size);
		}
	}
	if (r >= 0 && (skip || !tar_may_end(&t)))
		r = -EPIPE;
	tar_reader_done(&t);
	return r < 0 ? r : 0;
}

static void slurp(const char *name, struct buf *out)
{
	char path[64];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(fd_slurp(AT_FDCWD, path, out), 0);
}

static void test_we_read_gnu_tars(void **state)
{
	static const char *const formats[] = { "v7", "oldgnu", "gnu", "ustar", "pax" };
	_cleanup_(buf_done) struct buf scratch = BUF_INIT(1 << 20);
	shell("rm -rf s; mkdir -p s/d; printf hello > s/d/f; chmod 640 s/d/f; ln s/d/f s/hard; ln -s d/f "
	      "s/soft;"
	      "mkfifo s/p; : > s/zero; head -c 512 /dev/zero > s/block; find s -exec touch -h -d @1000000000 "
	      "{} +",
	      &scratch);
	for (size_t i = 0; i < ELEMS(formats); i++) {
		_cleanup_(buf_done) struct buf archive = BUF_INIT(1 << 20), text = BUF_INIT(1 << 20),
					       first = BUF_INIT(1 << 20);
		char command[256];
		/* v7 has no FIFOs; hard links are what comes second. */
		snprintf(command, sizeof(command),
			 "tar --format=%s --owner=7 --group=8 --sort=name --exclude=%s -cf a.tar -C s .",
			 formats[i], strcmp(formats[i], "v7") ? "none" : "p");
		shell(command, &scratch);
		slurp("a.tar", &archive);
		for (size_t piece = 1; piece < 20000; piece = piece * 7 + 1) {
			buf_clear(&text);
			assert_int_equal(read_all(buf_view(&archive), piece, &text), 0);
			if (piece == 1)
				buf_add(&first, buf_view(&text));
			assert_true(view_eq(buf_view(&first), buf_view(&text)));
		}
		buf_putc(&text, 0);
		char want[2048];
		snprintf(want, sizeof(want),
			 "5 755 7 8 1000000000 0 . -> \n"
			 "0 644 7 8 1000000000 512 ./block -> \n"
			 "5 755 7 8 1000000000 0 ./d -> \n"
			 "0 640 7 8 1000000000 5 ./d/f -> \n"
			 "1 640 7 8 1000000000 0 ./hard -> ./d/f\n"
			 "%s"
			 "2 777 7 8 1000000000 0 ./soft -> d/f\n"
			 "0 644 7 8 1000000000 0 ./zero -> \n",
			 strcmp(formats[i], "v7") ? "6 644 7 8 1000000000 0 ./p -> \n" : "");
		assert_string_equal(buf_view(&text).p, want);
	}
}

static void test_we_read_long_names(void **state)
{
	static const char *const formats[] = { "gnu", "pax", "ustar" };
	_cleanup_(buf_done) struct buf scratch = BUF_INIT(1 << 20);
	shell("rm -rf l; mkdir -p l/" LONG90 "; : > l/" LONG90 "/" LONG90 "; ln -s " LONG90 " l/s", &scratch);
	shell(": > l/" LONG200 "; ln -s " LONG200 " l/t", &scratch);
	for (size_t i = 0; i < ELEMS(formats); i++) {
		_cleanup_(buf_done) struct buf archive = BUF_INIT(1 << 20), text = BUF_INIT(1 << 20);
		char command[512];
		snprintf(command, sizeof(command), "tar --format=%s %s -cf a.tar -C l .", formats[i],
			 i == 2 ? "--exclude=" LONG200 " --exclude=t" : "");
		shell(command, &scratch);
		slurp("a.tar", &archive);
		assert_int_equal(read_all(buf_view(&archive), 1000, &text), 0);
		buf_putc(&text, 0);
		assert_non_null(strstr(buf_view(&text).p, " ./" LONG90 "/" LONG90 " -> \n"));
		assert_non_null(strstr(buf_view(&text).p, " ./s -> " LONG90 "\n"));
		if (i < 2)
			assert_non_null(strstr(buf_view(&text).p, " ./t -> " LONG200 "\n"));
	}
}

static void test_what_is_no_archive(void **state)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20), text = BUF_INIT(1 << 20);
	struct tar_entry f = { .type = TAR_FILE, .path = VIEW(LONG200), .mode = 0600 };
	put_file(&b, f, "content");
	assert_int_equal(tar_put_end(&b), 0);
	struct view v = buf_view(&b);
	assert_int_equal(read_all(v, 100, &text), 0);
	/* Cut anywhere but between entries it is not whole. */
	for (size_t n = 1; n < v.n - 2 * TAR_BLOCK; n++)
		assert_int_equal(read_all(view_head(v, n), 64, &text), -EPIPE);
	assert_int_equal(read_all(view_head(v, v.n - TAR_BLOCK), 64, &text), 0);
	/* A flipped bit in a header is seen. */
	for (size_t n = 0; n < TAR_BLOCK; n++) {
		if (n == 155)
			continue; /* behind the end of the checksum itself */
		_cleanup_(buf_done) struct buf bad = BUF_INIT(1 << 20);
		buf_add(&bad, v);
		bad.p[n] ^= 2;
		int r = read_all(buf_view(&bad), 512, &text);
		assert_true(r < 0);
	}
	assert_int_equal(
		read_all(VIEW("this is some text that is no archive and has more bytes than one block, "
			      "which would take quite a while to fill with words: so it says it again. "
			      "this is some text that is no archive and has more bytes than one block, "
			      "which would take quite a while to fill with words: so it says it again. "
			      "this is some text that is no archive and has more bytes than one block, "
			      "which would take quite a while to fill with words: so it says it again. "
			      "this is some text that is no archive and has more bytes than one block, "
			      "which would take quite a while to fill with words: so it says it again. "),
			 512, &text),
		-EBADMSG);
}

/* pax records that lie about their length. */
static void test_bad_records(void **state)
{
	static const char *const bad[] = { "5 a=b\n",        "100 path=x\n", "11 path=xyz",
					   "x path=y\n",     "0 a=b\n",      "9 path=\n",
					   "12 size=-1\n\n", "3 a\n",        "99999999999999999999 a=b\n" };
	for (size_t i = 0; i < ELEMS(bad); i++) {
		_cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20), text = BUF_INIT(1 << 20);
		struct tar_entry f = { .type = (enum tar_type)'x', .path = VIEW("pax") };
		put_file(&b, f, bad[i]);
		f = (struct tar_entry){ .type = TAR_FILE, .path = VIEW("f") };
		put_file(&b, f, "");
		if (read_all(buf_view(&b), 512, &text) != -EBADMSG)
			fail_msg("accepted: %s", bad[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gnu_tar_reads_ours), cmocka_unit_test(test_large_sizes),
		cmocka_unit_test(test_we_read_gnu_tars),   cmocka_unit_test(test_we_read_long_names),
		cmocka_unit_test(test_what_is_no_archive), cmocka_unit_test(test_bad_records),
	};
	return cmocka_run_group_tests_name("tar", tests, set_up, tear_down);
}
