/*
 * PID 1 and files: contents, rights, links, specials, big directories.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

#include "box.h"
#include "clock.h"
#include "fd.h"
#include "poison.h"

static struct box box;
static struct client client;
static struct arena arena;

static int start_box(void **state)
{
	(void)state;
	box_start(&box);
	return 0;
}

static int stop_box(void **state)
{
	(void)state;
	box_stop(&box);
	return 0;
}

static int connect_client(void **state)
{
	(void)state;
	client_open(&client, &box);
	arena_init(&arena, 64u << 20);
	return 0;
}

static int close_client(void **state)
{
	(void)state;
	client_close(&client);
	arena_done(&arena);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, connect_client, close_client)

/* Of a name in the scratch directory; a few at a time. */
static const char *at(const char *name)
{
	static char paths[8][PATH_MAX];
	static unsigned next;
	char *p = paths[next++ % 8];
	snprintf(p, PATH_MAX, "%s/%s", box.dir, name);
	return p;
}

static void assert_error(struct answer *a, enum err_code code)
{
	if (!a->failed)
		fail_msg("did not fail with %s", err_name(code));
	if (a->error.code != code)
		fail_msg("%s: %s, instead of %s", err_name(a->error.code), a->error.msg, err_name(code));
	answer_done(a);
}

static void assert_ok(struct answer *a)
{
	if (a->failed)
		fail_msg("%s: %s", err_name(a->error.code), a->error.msg);
	answer_done(a);
}

static void read_part(const char *user, const char *path, uint64_t offset, uint64_t length, struct answer *a)
{
	struct wire_file_read m = {
		.path = view_of(path), .user = view_of(user), .offset = offset, .length = length
	};
	client_finish(&client, client_call(&client, WIRE_TYPE_FILE_READ, 0, &wire_file_read_msg, &m), a);
}

static void read_file(const char *user, const char *path, struct answer *a)
{
	read_part(user, path, 0, 0, a);
}

/* Sends within its credit, as callers must. */
static void send_all(uint32_t id, struct view v)
{
	size_t credit = FRAME_WINDOW;
	while (v.n) {
		struct frame f;
		size_t n = MIN(MIN(v.n, FRAME_DATA_MAX), credit);
		if (n) {
			client_send(
				&client,
				(struct frame){ .kind = FRAME_DATA, .stream = id, .body = view_head(v, n) });
			v = view_skip(v, n);
			credit -= n;
			continue;
		}
		assert_true(client_next(&client, &f));
		assert_int_equal(f.kind, FRAME_WINDOW_ADD);
		for (int i = 0; i < 4; i++)
			credit += (size_t)(uint8_t)f.body.p[i] << 8 * i;
	}
}

static void write_as(const struct wire_file_write *m, struct view content, struct answer *a)
{
	uint32_t id = client_call(&client, WIRE_TYPE_FILE_WRITE, 0, &wire_file_write_msg, m);
	send_all(id, content);
	client_send(&client, (struct frame){ .kind = FRAME_END, .stream = id });
	client_finish(&client, id, a);
}

static void write_file(const char *user, const char *path, const char *text, struct answer *a)
{
	struct wire_file_write m = { .path = view_of(path), .user = view_of(user) };
	write_as(&m, view_of(text), a);
}

static void stat_file(const char *path, struct answer *a, struct wire_file_info *ret)
{
	struct wire_file_stat m = { .path = view_of(path), .user = VIEW("user") };
	client_finish(&client, client_call(&client, WIRE_TYPE_FILE_STAT, 0, &wire_file_stat_msg, &m), a);
	if (a->failed)
		return;
	struct wire_file_stat_reply r;
	answer_decode(a, &a->last, &wire_file_stat_reply_msg, &arena, &r);
	*ret = *r.info;
}

static void remove_as(const char *user, const char *path, bool recursive, struct answer *a)
{
	struct wire_file_remove m = { .path = view_of(path), .user = view_of(user), .recursive = recursive };
	client_finish(&client, client_call(&client, WIRE_TYPE_FILE_REMOVE, 0, &wire_file_remove_msg, &m), a);
}

static void make_dir(const char *path, uint32_t mode, bool parents, struct answer *a)
{
	struct wire_file_mkdir m = {
		.path = view_of(path), .user = VIEW("user"), .mode = mode, .parents = parents
	};
	client_finish(&client, client_call(&client, WIRE_TYPE_FILE_MKDIR, 0, &wire_file_mkdir_msg, &m), a);
}

static void list_as(const char *user, const char *path, struct answer *a)
{
	struct wire_file_list m = { .path = view_of(path), .user = view_of(user) };
	client_finish(&client, client_call(&client, WIRE_TYPE_FILE_LIST, 0, &wire_file_list_msg, &m), a);
}

static void put(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void test_round_trip(void **state)
{
	(void)state;
	struct answer a;
	size_t n = 20u << 20;
	char *p = malloc(n);
	for (size_t i = 0; i < n; i++)
		p[i] = (char)(i * 2654435761u >> 13);
	struct wire_file_write m = { .path = view_of(at("big")), .user = VIEW("user") };
	write_as(&m, (struct view){ p, n }, &a);
	struct wire_file_written w;
	answer_decode(&a, &a.last, &wire_file_written_msg, &arena, &w);
	assert_true(w.created);
	assert_int_equal(w.info->size, n);
	assert_int_equal(w.info->mode, 0644);
	assert_int_equal(w.info->uid, 1000);
	assert_true(view_is(w.info->name, "big"));
	answer_done(&a);

	read_file("user", at("big"), &a);
	struct wire_file_info info;
	struct wire_file_done done;
	answer_decode(&a, &a.first, &wire_file_info_msg, &arena, &info);
	answer_decode(&a, &a.last, &wire_file_done_msg, &arena, &done);
	assert_int_equal(info.size, n);
	assert_int_equal(done.bytes, n);
	assert_int_equal(buf_len(&a.data[0]), n);
	assert_memory_equal(buf_view(&a.data[0]).p, p, n);
	answer_done(&a);

	read_part("user", at("big"), 1000000, 70000, &a);
	assert_int_equal(buf_len(&a.data[0]), 70000);
	assert_memory_equal(buf_view(&a.data[0]).p, p + 1000000, 70000);
	answer_done(&a);
	read_part("user", at("big"), n + 5, 0, &a);
	assert_int_equal(buf_len(&a.data[0]), 0);
	assert_ok(&a);
	read_part("user", at("big"), UINT64_MAX, 0, &a);
	assert_error(&a, ERR_INVALID);
	free(p);
}

static void test_odd_files(void **state)
{
	(void)state;
	struct answer a;
	assert_int_equal(mkfifo(at("fifo"), 0666), 0);
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", at("sock"));
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s, (void *)&un, sizeof(un)), 0);
	close(s);
	uint64_t t = clock_mono_ms();
	const char *const odd[] = { at("fifo"), at("sock"), box.dir, "/dev/null", "/dev/tty" };
	for (size_t i = 0; i < ELEMS(odd); i++) {
		read_file("user", odd[i], &a);
		assert_error(&a, ERR_INVALID);
		write_file("root", odd[i], "x", &a);
		assert_error(&a, ERR_INVALID);
	}
	assert_true(clock_mono_ms() - t < 1000);
	/* No size, and yet content. */
	read_file("user", "/proc/cpuinfo", &a);
	assert_true(buf_len(&a.data[0]) > 100);
	assert_ok(&a);
	read_file("user", at("none"), &a);
	assert_error(&a, ERR_NOT_FOUND);
	read_file("user", at("big/none"), &a);
	assert_error(&a, ERR_INVALID);
	read_file("user", "", &a);
	assert_error(&a, ERR_INVALID);
	char longer[6000];
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	read_file("user", longer, &a);
	assert_error(&a, ERR_INVALID);
}

static void test_links(void **state)
{
	(void)state;
	struct answer a;
	struct wire_file_info info;
	assert_int_equal(mkdir(at("d"), 0777), 0);
	assert_int_equal(chmod(at("d"), 0777), 0);
	put(at("d/real"), "old", 0666);
	assert_int_equal(symlink("d/real", at("link")), 0);
	assert_int_equal(symlink("loop2", at("loop1")), 0);
	assert_int_equal(symlink("loop1", at("loop2")), 0);
	assert_int_equal(symlink("nowhere", at("dangling")), 0);
	write_file("user", at("link"), "new", &a);
	assert_ok(&a);
	struct stat st;
	assert_int_equal(lstat(at("link"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	read_file("user", at("link"), &a);
	assert_true(view_is(buf_view(&a.data[0]), "new"));
	assert_ok(&a);
	stat_file(at("link"), &a, &info);
	assert_int_equal(info.type, WIRE_FILE_TYPE_SYMLINK);
	assert_true(view_is(info.target, "d/real"));
	assert_ok(&a);
	read_file("user", at("loop1"), &a);
	assert_error(&a, ERR_INVALID);
	write_file("user", at("loop1"), "x", &a);
	assert_error(&a, ERR_INVALID);
	write_file("user", at("dangling"), "x", &a);
	assert_error(&a, ERR_NOT_FOUND);
	write_file("user", at("d/"), "x", &a);
	assert_error(&a, ERR_INVALID);
	write_file("user", at("d/."), "x", &a);
	assert_error(&a, ERR_INVALID);
}

static void test_rights(void **state)
{
	(void)state;
	struct answer a;
	put(at("secret"), "root's", 0600);
	put(at("readonly"), "root's", 0644);
	assert_int_equal(mkdir(at("closed"), 0755), 0);
	read_file("user", at("secret"), &a);
	assert_error(&a, ERR_FORBIDDEN);
	read_file("root", at("secret"), &a);
	assert_true(view_is(buf_view(&a.data[0]), "root's"));
	assert_ok(&a);
	/* The directory is the user's to write; the file is not. */
	write_file("user", at("readonly"), "mine", &a);
	assert_error(&a, ERR_FORBIDDEN);
	write_file("user", at("closed/x"), "mine", &a);
	assert_error(&a, ERR_FORBIDDEN);
	remove_as("user", at("closed/x"), false, &a);
	assert_error(&a, ERR_NOT_FOUND);
	write_file("root", at("closed/x"), "roots", &a);
	assert_ok(&a);
	remove_as("user", at("closed/x"), false, &a);
	assert_error(&a, ERR_FORBIDDEN);
	remove_as("user", at("closed"), true, &a);
	assert_error(&a, ERR_FORBIDDEN);
	/* By a supplementary group, too. */
	put(at("shared"), "helpers'", 0640);
	assert_int_equal(chown(at("shared"), 0, 1234), 0);
	read_file("user", at("shared"), &a);
	assert_true(view_is(buf_view(&a.data[0]), "helpers'"));
	assert_ok(&a);
	/* Each request has its own rights, whatever came before. */
	read_file("user", at("secret"), &a);
	assert_error(&a, ERR_FORBIDDEN);
	read_file("nobody-here", at("shared"), &a);
	assert_error(&a, ERR_INVALID);
}

static void test_owner_and_mode(void **state)
{
	(void)state;
	struct answer a;
	struct wire_file_info info;
	put(at("kept"), "old", 0640);
	assert_int_equal(chown(at("kept"), 1000, 1234), 0);
	assert_int_equal(chmod(at("kept"), 04640), 0); /* the set-id bit goes, as with any write */
	write_file("root", at("kept"), "new", &a);
	struct wire_file_written w;
	answer_decode(&a, &a.last, &wire_file_written_msg, &arena, &w);
	assert_false(w.created);
	answer_done(&a);
	stat_file(at("kept"), &a, &info);
	assert_int_equal(info.uid, 1000);
	assert_int_equal(info.gid, 1234);
	assert_int_equal(info.mode, 0640);
	answer_done(&a);
	struct wire_file_write m = { .path = view_of(at("kept")), .user = VIEW("user"), .mode = 0755 };
	write_as(&m, VIEW("#!"), &a);
	assert_ok(&a);
	stat_file(at("kept"), &a, &info);
	assert_int_equal(info.mode, 0755);
	assert_int_equal(info.gid, 1234);
	assert_int_equal(info.size, 2);
	answer_done(&a);
}

static void test_parents_and_relative(void **state)
{
	(void)state;
	struct answer a;
	write_file("user", at("p/q/r"), "x", &a);
	assert_error(&a, ERR_NOT_FOUND);
	struct wire_file_write m = { .path = VIEW("p/q/r"), .user = VIEW("user"), .parents = true };
	write_as(&m, VIEW("deep"), &a); /* relative to the home, which is the scratch directory */
	assert_ok(&a);
	struct stat st;
	assert_int_equal(stat(at("p/q"), &st), 0);
	assert_int_equal(st.st_uid, 1000);
	assert_int_equal(st.st_mode & 07777, 0755);
	read_file("user", "p/q/r", &a);
	assert_true(view_is(buf_view(&a.data[0]), "deep"));
	assert_ok(&a);
	make_dir("p/q", 0, false, &a);
	assert_error(&a, ERR_CONFLICT);
	make_dir("p/q", 0, true, &a);
	assert_ok(&a);
	make_dir("p/q/r", 0, true, &a);
	assert_error(&a, ERR_CONFLICT);
	make_dir("m/n", 0, false, &a);
	assert_error(&a, ERR_NOT_FOUND);
	make_dir("m/n/", 01777, true, &a);
	assert_ok(&a);
	assert_int_equal(stat(at("m/n"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 01777);
}

/* Nothing of a write is seen before its END, and nothing is left without one. */
static void test_cancelled_write(void **state)
{
	(void)state;
	struct answer a;
	put(at("whole"), "before", 0666);
	struct wire_file_write m = { .path = view_of(at("whole")), .user = VIEW("user") };
	uint32_t id = client_call(&client, WIRE_TYPE_FILE_WRITE, 0, &wire_file_write_msg, &m);
	client_send(&client, (struct frame){ .kind = FRAME_DATA, .stream = id, .body = VIEW("half") });
	read_file("user", at("whole"), &a);
	assert_true(view_is(buf_view(&a.data[0]), "before"));
	answer_done(&a);
	client_send(&client, (struct frame){ .kind = FRAME_CANCEL, .stream = id });
	client_finish(&client, id, &a);
	assert_error(&a, ERR_CANCELLED);
	list_as("user", box.dir, &a);
	struct wire_file_entries list;
	answer_decode(&a, &a.data[0], &wire_file_entries_msg, &arena, &list);
	for (size_t i = 0; i < list.entries.n; i++)
		assert_false(view_starts(list.entries.items[i].name, ".paddock-"));
	answer_done(&a);
}

static void test_disk_full(void **state)
{
	(void)state;
	struct answer a;
	struct wire_exited x;
	client_run(&client,
		   &(struct run){
			   .argv = ARGV("sh", "-c",
					"mkdir /mnt/small && mount -t tmpfs -o size=64k tmpfs /mnt/small") },
		   &a, &x);
	assert_int_equal(x.exit_code, 0);
	answer_done(&a);
	static char block[256 * 1024];
	struct wire_file_write m = { .path = VIEW("/mnt/small/file"), .user = VIEW("root") };
	write_as(&m, (struct view){ block, sizeof(block) }, &a);
	assert_error(&a, ERR_STORAGE);
	list_as("root", "/mnt/small", &a);
	assert_int_equal(buf_len(&a.data[0]), 0);
	assert_ok(&a);
}

static void test_list(void **state)
{
	(void)state;
	struct answer a;
	assert_int_equal(mkdir(at("l"), 0755), 0);
	put(at("l/file"), "12345", 0604);
	assert_int_equal(mkdir(at("l/dir"), 0700), 0);
	assert_int_equal(symlink("gone", at("l/link")), 0);
	assert_int_equal(mkfifo(at("l/fifo"), 0600), 0);
	put(at("l/\xff\n"), "", 0600);
	list_as("user", at("l"), &a);
	struct wire_file_entries list;
	answer_decode(&a, &a.data[0], &wire_file_entries_msg, &arena, &list);
	assert_int_equal(list.entries.n, 5);
	unsigned seen = 0;
	for (size_t i = 0; i < list.entries.n; i++) {
		struct wire_file_info *f = &list.entries.items[i];
		if (view_is(f->name, "file")) {
			assert_int_equal(f->size, 5);
			assert_int_equal(f->mode, 0604);
			assert_true(f->mtime_ms > 1600000000000);
		} else if (view_is(f->name, "link")) {
			assert_true(view_is(f->target, "gone"));
		}
		seen |= 1u << f->type;
	}
	assert_int_equal(seen, 1 << WIRE_FILE_TYPE_FILE | 1 << WIRE_FILE_TYPE_DIRECTORY |
				       1 << WIRE_FILE_TYPE_SYMLINK | 1 << WIRE_FILE_TYPE_FIFO);
	answer_done(&a);
	list_as("user", at("l/file"), &a);
	assert_error(&a, ERR_INVALID);
	list_as("user", at("l/dir"), &a);
	assert_error(&a, ERR_FORBIDDEN);
	list_as("user", at("l/none"), &a);
	assert_error(&a, ERR_NOT_FOUND);
}

static void test_remove(void **state)
{
	(void)state;
	struct answer a;
	assert_int_equal(mkdir(at("r"), 0777), 0);
	assert_int_equal(chmod(at("r"), 0777), 0);
	put(at("outside"), "x", 0644);
	put(at("r/f"), "x", 0644);
	assert_int_equal(symlink(box.dir, at("r/up")), 0);
	remove_as("user", at("r"), false, &a);
	assert_error(&a, ERR_CONFLICT);
	remove_as("user", at("r/none"), true, &a);
	assert_error(&a, ERR_NOT_FOUND);
	remove_as("root", "/", true, &a);
	assert_error(&a, ERR_INVALID);
	remove_as("user", at("r/.."), true, &a);
	assert_error(&a, ERR_INVALID);
	remove_as("user", at("r/up/"), false, &a); /* the link, not what it leads to */
	assert_ok(&a);
	assert_int_equal(symlink(box.dir, at("r/up")), 0);
	remove_as("root", at("r"), true, &a);
	assert_ok(&a);
	assert_int_equal(access(at("r"), F_OK), -1);
	assert_int_equal(access(at("outside"), F_OK), 0);
}

/* Deeper than PATH_MAX and than the number of descriptors. */
static void test_remove_deep(void **state)
{
	(void)state;
	struct answer a;
	int fd = open(box.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 3000; i++) {
		assert_int_equal(mkdirat(fd, "deep", 0777), 0);
		int f = openat(fd, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
		close(f);
		int next = openat(fd, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(fd);
		fd = next;
	}
	close(fd);
	remove_as("root", at("deep"), true, &a);
	assert_ok(&a);
	assert_int_equal(access(at("deep"), F_OK), -1);
}

/* 50,000 entries by way of PID 1; another call is answered meanwhile. */
static void test_big_directory(void **state)
{
	(void)state;
	struct answer a;
	struct wire_exited x;
	struct run r = { .argv = ARGV(
				 "sh", "-c",
				 "mkdir /mnt/many && cd /mnt/many && seq -f entry-%06.0f 50000 | xargs touch "
				 "&& seq -f dir-%04.0f 1000 | xargs mkdir") };
	client_run(&client, &r, &a, &x);
	assert_int_equal(x.exit_code, 0);
	answer_done(&a);
	list_as("user", "/mnt/many", &a);
	struct wire_file_entries list;
	answer_decode(&a, &a.data[0], &wire_file_entries_msg, &arena, &list);
	assert_int_equal(list.entries.n, 51000);
	char *seen = calloc(50001, 1);
	for (size_t i = 0; i < list.entries.n; i++) {
		char name[16] = "";
		assert_int_equal(view_to_str(list.entries.items[i].name, name, sizeof(name)), 0);
		size_t k = 0;
		for (const char *p = name + 6; name[0] == 'e' && *p; p++)
			k = 10 * k + (size_t)(*p - '0');
		assert_true(name[0] == 'd' || (k >= 1 && k <= 50000 && !seen[k]));
		seen[k] = name[0] == 'e';
	}
	free(seen);
	answer_done(&a);
	/* The removal goes on in steps: a call that comes after it is answered before it. */
	struct wire_file_remove m = { .path = VIEW("/mnt/many"), .user = VIEW("root"), .recursive = true };
	uint32_t rm = client_call(&client, WIRE_TYPE_FILE_REMOVE, 0, &wire_file_remove_msg, &m);
	uint32_t hello = client_call(&client, WIRE_TYPE_HELLO, 0, &wire_hello_msg, &(struct wire_hello){ 0 });
	struct frame f;
	assert_true(client_next(&client, &f));
	assert_int_equal(f.stream, hello);
	client_finish(&client, rm, &a);
	assert_ok(&a);
	list_as("root", "/mnt/many", &a);
	assert_error(&a, ERR_NOT_FOUND);
}

/* A file that is cut while it is read ends early, without an error or a hang. */
static void test_shrinking_file(void **state)
{
	(void)state;
	put(at("shrink"), "", 0666);
	assert_int_equal(truncate(at("shrink"), 1 << 20), 0);
	struct wire_file_read m = { .path = view_of(at("shrink")), .user = VIEW("user") };
	uint32_t id = client_call(&client, WIRE_TYPE_FILE_READ, 0, &wire_file_read_msg, &m);
	size_t got = 0;
	struct frame f;
	while (got < FRAME_WINDOW) {
		assert_true(client_next(&client, &f));
		got += f.kind == FRAME_DATA ? f.body.n : 0;
	}
	assert_int_equal(truncate(at("shrink"), 300000), 0);
	client_credit(&client, id, 4u << 20);
	struct answer a;
	client_finish(&client, id, &a);
	assert_int_equal(got + buf_len(&a.data[0]), 300000);
	assert_ok(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_round_trip),      TEST(test_odd_files),      TEST(test_links),
		TEST(test_rights),          TEST(test_owner_and_mode), TEST(test_parents_and_relative),
		TEST(test_cancelled_write), TEST(test_disk_full),      TEST(test_list),
		TEST(test_remove),          TEST(test_remove_deep),    TEST(test_big_directory),
		TEST(test_shrinking_file),
	};
	return cmocka_run_group_tests_name("init_file", tests, start_box, stop_box);
}
