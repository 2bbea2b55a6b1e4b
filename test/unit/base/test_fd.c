/*
 * Whole reads and writes: limits, short transfers, and a replacement that is
 * never seen half-done.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "fd.h"
#include "poison.h"

struct rig {
	char path[40];
	int dir;
};

static int setup(void **state)
{
	struct rig *g = calloc(1, sizeof(*g));
	snprintf(g->path, sizeof(g->path), "/tmp/paddock-test-fd-XXXXXX");
	if (!mkdtemp(g->path))
		return -1;
	g->dir = open(g->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = g;
	return g->dir < 0;
}

static unsigned count_entries(int dir)
{
	DIR *d = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	unsigned n = 0;
	for (struct dirent *de; (de = readdir(d));)
		n += de->d_name[0] != '.';
	closedir(d);
	return n;
}

static int teardown(void **state)
{
	struct rig *g = *state;
	DIR *d = fdopendir(g->dir);
	for (struct dirent *de; (de = readdir(d));)
		if (de->d_name[0] != '.')
			unlinkat(dirfd(d), de->d_name, strcmp(de->d_name, "dir") == 0 ? AT_REMOVEDIR : 0);
	closedir(d);
	int r = rmdir(g->path);
	free(g);
	return r;
}

static void test_slurp(void **state)
{
	struct rig *g = *state;
	char bytes[10000];
	memset(bytes, 'x', sizeof(bytes));
	assert_int_equal(fd_replace(g->dir, "f", bytes, sizeof(bytes), 0600, false), 0);
	static const size_t room[] = { 10001, 10000, 9999, 4096, 1, 0 };
	for (size_t i = 0; i < ELEMS(room); i++) {
		struct buf b = BUF_INIT(room[i]);
		assert_int_equal(fd_slurp(g->dir, "f", &b), room[i] >= sizeof(bytes) ? 0 : -EFBIG);
		assert_true(buf_len(&b) <= room[i]);
		if (room[i] >= sizeof(bytes))
			assert_int_equal(buf_len(&b), sizeof(bytes));
		buf_done(&b);
	}
	struct buf b = BUF_INIT(100);
	assert_int_equal(fd_slurp(g->dir, "missing", &b), -ENOENT);
	assert_int_equal(mkdirat(g->dir, "dir", 0700), 0);
	assert_int_equal(fd_slurp(g->dir, "dir", &b), -EISDIR);
	assert_int_equal(fd_replace(g->dir, "empty", "", 0, 0600, false), 0);
	assert_int_equal(fd_slurp(g->dir, "empty", &b), 0);
	assert_int_equal(buf_len(&b), 0);
	/* A file of /proc has no size and still has an end. */
	assert_int_equal(fd_slurp(AT_FDCWD, "/proc/self/comm", &b), 0);
	assert_true(buf_len(&b) > 1);
	buf_done(&b);
}

static void test_replace(void **state)
{
	struct rig *g = *state;
	struct stat st;
	umask(022);
	assert_int_equal(fd_replace(g->dir, "f", "one", 3, 0644, true), 0);
	assert_int_equal(fd_replace(g->dir, "f", "two", 3, 0600, false), 0);
	struct buf b = BUF_INIT(100);
	assert_int_equal(fd_slurp(g->dir, "f", &b), 0);
	assert_true(view_is(buf_view(&b), "two"));
	buf_done(&b);
	assert_int_equal(fstatat(g->dir, "f", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(count_entries(g->dir), 1); /* no file beside it */

	/* A link is replaced, not written through. */
	assert_int_equal(symlinkat("f", g->dir, "link"), 0);
	assert_int_equal(fd_replace(g->dir, "link", "three", 5, 0600, false), 0);
	assert_int_equal(fstatat(g->dir, "link", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(fstatat(g->dir, "f", &st, 0), 0);
	assert_int_equal(st.st_size, 3);

	/* What fails leaves nothing behind. */
	assert_int_equal(mkdirat(g->dir, "dir", 0700), 0);
	assert_int_equal(fd_replace(g->dir, "dir", "x", 1, 0600, false), -EISDIR);
	assert_int_equal(fd_replace(g->dir, "missing/x", "x", 1, 0600, false), -ENOENT);
	char name[400];
	memset(name, 'n', sizeof(name));
	name[399] = 0;
	assert_int_equal(fd_replace(g->dir, name, "x", 1, 0600, false), -ENAMETOOLONG);
	assert_int_equal(count_entries(g->dir), 3);
}

struct race {
	int dir;
	atomic_bool stop;
	unsigned torn, reads;
};

static void *read_on(void *arg)
{
	struct race *r = arg;
	while (!r->stop) {
		struct buf b = BUF_INIT(1u << 20);
		if (fd_slurp(r->dir, "f", &b) != 0 || buf_len(&b) != 50000 || b.p[0] != b.p[49999] ||
		    memcmp(b.p, b.p + 1, 49999) != 0)
			r->torn++;
		r->reads++;
		buf_done(&b);
	}
	return NULL;
}

static void test_replace_is_atomic(void **state)
{
	struct rig *g = *state;
	struct race r = { .dir = g->dir };
	static char text[50000];
	memset(text, 'a', sizeof(text));
	assert_int_equal(fd_replace(g->dir, "f", text, sizeof(text), 0600, false), 0);
	pthread_t t;
	assert_int_equal(pthread_create(&t, NULL, read_on, &r), 0);
	for (int i = 0; i < 300; i++) {
		memset(text, 'a' + i % 26, sizeof(text));
		assert_int_equal(fd_replace(g->dir, "f", text, sizeof(text), 0600, false), 0);
	}
	r.stop = true;
	pthread_join(t, NULL);
	assert_true(r.reads > 0);
	assert_int_equal(r.torn, 0);
	assert_int_equal(count_entries(g->dir), 1);
}

static void test_put(void **state)
{
	struct rig *g = *state;
	assert_int_equal(fd_put(g->dir, "f", "x"), -ENOENT); /* never makes a file */
	assert_int_equal(fd_replace(g->dir, "f", "abc", 3, 0600, false), 0);
	assert_int_equal(fd_put(g->dir, "f", "x"), 0);
	struct buf b = BUF_INIT(10);
	assert_int_equal(fd_slurp(g->dir, "f", &b), 0);
	assert_true(view_is(buf_view(&b), "xbc")); /* nor cuts one */
	buf_done(&b);
	assert_int_equal(fd_put(AT_FDCWD, "/proc/self/oom_score_adj", "nonsense"), -EINVAL);
}

struct talk {
	int fd;
	const char *p;
	size_t n, step;
};

static void *talker(void *arg)
{
	struct talk *t = arg;
	for (size_t at = 0; at < t->n; at += t->step)
		if (write(t->fd, t->p + at, MIN(t->step, t->n - at)) < 0)
			break;
	close(t->fd);
	return NULL;
}

static void test_all(void **state)
{
	static char sent[300000], got[300000];
	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (char)(i * 31);
	int p[2];
	pthread_t t;
	/* In pieces from the other side. */
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	struct talk talk = { p[1], sent, sizeof(sent), 777 };
	assert_int_equal(pthread_create(&t, NULL, talker, &talk), 0);
	assert_int_equal(fd_read_all(p[0], got, sizeof(got) - 5), 0);
	assert_memory_equal(got, sent, sizeof(got) - 5);
	assert_int_equal(fd_read_all(p[0], got, 6), -EIO); /* ends one short */
	pthread_join(t, NULL);
	close(p[0]);
	assert_int_equal(fd_write_all(-1, "x", 1), -EBADF);
	assert_int_equal(fd_read_all(-1, got, 1), -EBADF);
	assert_int_equal(fd_write_all(-1, "x", 0), 0);
	/* More than the socket takes at once: a non-blocking one says so. */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0);
	assert_int_equal(fd_nonblock(p[0], true), 0);
	assert_true(fcntl(p[0], F_GETFL) & O_NONBLOCK);
	int r = 0;
	for (int i = 0; i < 100 && r == 0; i++)
		r = fd_write_all(p[0], sent, sizeof(sent));
	assert_int_equal(r, -EAGAIN);
	assert_int_equal(fd_nonblock(p[0], false), 0);
	assert_false(fcntl(p[0], F_GETFL) & O_NONBLOCK);
	assert_int_equal(fd_nonblock(-1, true), -EBADF);
	close(p[0]);
	close(p[1]);
}

static void test_take(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), kept;
	{
		_cleanup_(closep) int owner = fd;
		kept = TAKE_FD(owner);
		assert_int_equal(owner, -EBADF);
	}
	assert_true(fcntl(kept, F_GETFD) >= 0);
	{
		_cleanup_(closep) _unused_ int owner = kept;
	}
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	fd_close(-1);
	fd_close(-EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_slurp, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replace, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replace_is_atomic, setup, teardown),
		cmocka_unit_test_setup_teardown(test_put, setup, teardown),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_take),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
