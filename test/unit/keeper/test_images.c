/*
 * The image store: what is taken from a hostile tree, what is refused, and that
 * neither a refusal nor a crash leaves anything behind.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fd.h"
#include "images.h"
#include "log.h"
#include "poison.h"

#define HEX_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HEX_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define A     "sha256:" HEX_A
#define B     "sha256:" HEX_B

/* A data directory: images, trash, and boxes/tree as a box leaves it. */
struct rig {
	char path[40];
	int data, boxes, trash;
	struct images im;
	struct disk disk;
	struct err e;
};

static int setup(void **state)
{
	struct rig *g = calloc(1, sizeof(*g));
	umask(022);
	log_setup("test", LOG_LEVEL_ERROR);
	snprintf(g->path, sizeof(g->path), "/tmp/paddock-test-images-XXXXXX");
	if (!mkdtemp(g->path) || chdir(g->path) < 0 || mkdir("boxes", 0700) < 0 || mkdir("trash", 0700) < 0)
		return -1;
	g->data = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	g->boxes = open("boxes", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	g->trash = open("trash", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	g->disk = (struct disk){ .root = g->data, .file = -1, .dev = -1 }; /* plain directories */
	*state = g;
	return images_open(&g->im, g->data, &g->e);
}

static int teardown(void **state)
{
	struct rig *g = *state;
	char cmd[80];
	images_close(&g->im);
	close(g->data);
	close(g->boxes);
	close(g->trash);
	snprintf(cmd, sizeof(cmd), "rm -r %s", g->path);
	free(g);
	return system(cmd);
}

static void need_root(void)
{
	if (geteuid() != 0) {
		print_message("# skipped: needs root\n");
		skip();
	}
}

static void make_tree(void)
{
	assert_int_equal(mkdir("boxes/tree", 0755), 0);
	assert_int_equal(mkdir("boxes/tree/etc", 0755), 0);
	assert_int_equal(mkdir("boxes/tree/home", 0755), 0);
	assert_int_equal(
		fd_replace(AT_FDCWD, "boxes/tree/etc/passwd", "root:x:0:0::/root:/bin/sh", 25, 0644, false),
		0);
	if (geteuid() == 0)
		assert_int_equal(chown("boxes/tree", 1000, 1000), 0);
}

static int commit(struct rig *g, const char *name, const char *digest)
{
	const struct image *i = NULL;
	g->e = (struct err){ 0 };
	int r = images_commit(&g->im, &g->disk, g->boxes, "tree", view_of(name), view_of(digest), &i, &g->e);
	assert_int_equal(r == 0, i != NULL);
	if (i)
		assert_string_equal(i->digest, digest);
	return r;
}

/* Everything below images/ that is neither an image nor the names. */
static unsigned strays(void)
{
	DIR *d = opendir("images");
	unsigned n = 0;
	for (struct dirent *de; (de = readdir(d));)
		n += strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0 &&
		     strcmp(de->d_name, "names") != 0 && strlen(de->d_name) != 64;
	closedir(d);
	return n;
}

static unsigned entries(const char *path)
{
	DIR *d = opendir(path);
	unsigned n = 0;
	for (struct dirent *de; (de = readdir(d));)
		n += strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0;
	closedir(d);
	return n;
}

static const char *name_digest(const struct images *im, const char *name)
{
	for (const struct image_name *n = im->names; n; n = n->next)
		if (strcmp(n->name, name) == 0)
			return n->digest;
	return NULL;
}

static void test_words(void **state)
{
	static const char *const good[] = { "a",        "python", "a.b_c-d",      "0",
					    "debian12", "a:b",    "ubuntu:22.04", "a:B-1_c" };
	static const char *const bad[] = { "",     ".",        "..",  ".a",       "-a",  "a/b",   "../a",
					   "A",    "a b",      "a\n", "a:",       ":b",  "a:b:c", "A:b",
					   "a:.b", "sha256:0", "a@b", "\xc3\xa4", "a%2f" };
	for (size_t i = 0; i < ELEMS(good); i++)
		assert_true(images_name_ok(view_of(good[i])));
	for (size_t i = 0; i < ELEMS(bad); i++)
		assert_false(images_name_ok(view_of(bad[i])));
	assert_false(images_name_ok(VIEW("a\0b")));
	char name[IMAGES_NAME + 1];
	memset(name, 'a', sizeof(name));
	assert_true(images_name_ok((struct view){ name, IMAGES_NAME - 1 }));
	assert_false(images_name_ok((struct view){ name, IMAGES_NAME }));

	assert_true(images_digest_ok(VIEW(A)));
	assert_false(images_digest_ok(VIEW("sha256:" HEX_A "a")));
	assert_false(images_digest_ok(VIEW("sha512:" HEX_A)));
	assert_false(images_digest_ok(VIEW(HEX_A)));
	assert_false(images_digest_ok(VIEW("")));
	assert_false(images_digest_ok(
		VIEW("sha256:AAAAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")));
	assert_false(images_digest_ok(
		VIEW("sha256:../aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")));
}

static void test_commit(void **state)
{
	need_root();
	struct rig *g = *state;
	make_tree();
	assert_int_equal(commit(g, "mine", A), 0);
	assert_int_equal(entries("boxes"), 0); /* moved, not copied */
	struct stat st;
	assert_int_equal(stat("images/" HEX_A "/rootfs", &st), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	static const char *const points[] = { "dev", "proc", "sys", "tmp", "run", "workspace" };
	for (size_t i = 0; i < ELEMS(points); i++) {
		char path[128];
		snprintf(path, sizeof(path), "images/%s/rootfs/%s", HEX_A, points[i]);
		assert_int_equal(lstat(path, &st), 0);
		assert_true(S_ISDIR(st.st_mode));
	}
	/* The default user has a name and a home; the line before had no end. */
	struct buf b = BUF_INIT(4096);
	assert_int_equal(fd_slurp(AT_FDCWD, "images/" HEX_A "/rootfs/etc/passwd", &b), 0);
	assert_true(view_is(buf_view(&b),
			    "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n"));
	buf_done(&b);
	assert_int_equal(stat("images/" HEX_A "/rootfs/home/user", &st), 0);
	assert_int_equal(st.st_uid, 1000);
	assert_int_equal(strays(), 0);

	/* A later start finds it. */
	uint64_t created = images_find(&g->im, VIEW(A))->created_ms;
	assert_true(created > 1700000000000ull);
	images_close(&g->im);
	assert_null(images_find(&g->im, VIEW(A)));
	assert_int_equal(images_open(&g->im, g->data, &g->e), 0);
	const struct image *i = images_find(&g->im, VIEW(A));
	assert_non_null(i);
	assert_int_equal(i->created_ms, created);
	assert_false(i->machine);
	assert_string_equal(name_digest(&g->im, "mine"), A);
	struct plan_image layers;
	assert_int_equal(images_layers(&g->im, i, &layers, &g->e), 0);
	assert_int_equal(layers.n, 1);
	assert_string_equal(layers.layers[0].at, "/");
	assert_int_equal(faccessat(layers.layers[0].dir, "etc/passwd", F_OK, 0), 0);
	int fd = layers.layers[0].dir;
	images_release(&layers);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	images_release(&layers);
}

static void test_user_is_there(void **state)
{
	need_root();
	struct rig *g = *state;
	static const char *const texts[] = { "user:x:7:7::/:/bin/sh\n", "a:x:0:0::/:/\nuser:x:7:7::/:/\n",
					     "app:x:1000:1000::/app:/bin/sh\n" };
	for (size_t i = 0; i < ELEMS(texts); i++) {
		char digest[IMAGES_DIGEST], path[128];
		struct buf b = BUF_INIT(4096);
		make_tree();
		assert_int_equal(fd_replace(AT_FDCWD, "boxes/tree/etc/passwd", texts[i], strlen(texts[i]),
					    0644, false),
				 0);
		snprintf(digest, sizeof(digest), "sha256:%064zu", i);
		assert_int_equal(commit(g, "mine", digest), 0);
		snprintf(path, sizeof(path), "images/%s/rootfs/etc/passwd", digest + 7);
		assert_int_equal(fd_slurp(AT_FDCWD, path, &b), 0);
		assert_true(view_is(buf_view(&b), texts[i])); /* as it was */
		buf_done(&b);
	}
	/* An image without /etc is an image. */
	assert_int_equal(mkdir("boxes/tree", 0755), 0);
	assert_int_equal(commit(g, "bare", B), 0);
}

/* A refusal: the tree is where it was, the store as it was, the outside untouched. */
static void refused(struct rig *g, const char *what)
{
	unsigned before = entries("images");
	if (commit(g, "mine", A) != -1)
		fail_msg("accepted an image with %s", what);
	assert_int_equal(g->e.code, ERR_INVALID);
	assert_null(images_find(&g->im, VIEW(A)));
	assert_null(name_digest(&g->im, "mine"));
	assert_int_equal(entries("images"), before);
	assert_int_equal(entries("images/names"), 0);
	struct buf b = BUF_INIT(100);
	assert_int_equal(fd_slurp(AT_FDCWD, "outside", &b), 0);
	assert_true(view_is(buf_view(&b), "untouched"));
	buf_done(&b);
	assert_int_equal(access("boxes/tree", F_OK), 0);
	assert_int_equal(system("rm -r boxes/tree"), 0);
}

static void test_hostile(void **state)
{
	need_root();
	struct rig *g = *state;
	assert_int_equal(fd_replace(AT_FDCWD, "outside", "untouched", 9, 0644, false), 0);
	static const char *const points[] = { "dev", "proc", "sys", "tmp", "run", "workspace" };
	for (size_t i = 0; i < ELEMS(points); i++) {
		char path[64];
		snprintf(path, sizeof(path), "boxes/tree/%s", points[i]);
		make_tree();
		assert_int_equal(symlink("etc", path), 0); /* to a real directory inside */
		refused(g, "a mount point that is a link");
		make_tree();
		assert_int_equal(symlink("/etc", path), 0);
		refused(g, "a mount point that leads outside");
		make_tree();
		assert_int_equal(fd_replace(AT_FDCWD, path, "", 0, 0644, false), 0);
		refused(g, "a mount point that is a file");
	}
	static const char *const targets[] = { "../../../outside", "/etc/passwd", "passwd2",
					       "/proc/self/fd/0" };
	for (size_t i = 0; i < ELEMS(targets); i++) {
		make_tree();
		assert_int_equal(fd_replace(AT_FDCWD, "boxes/tree/etc/passwd2", "", 0, 0644, false), 0);
		assert_int_equal(unlink("boxes/tree/etc/passwd"), 0);
		assert_int_equal(symlink(targets[i], "boxes/tree/etc/passwd"), 0);
		refused(g, "/etc/passwd that is a link");
	}
	make_tree();
	assert_int_equal(unlink("boxes/tree/etc/passwd"), 0);
	assert_int_equal(rmdir("boxes/tree/etc"), 0);
	assert_int_equal(symlink("/etc", "boxes/tree/etc"), 0);
	refused(g, "/etc that is a link");
	make_tree();
	assert_int_equal(unlink("boxes/tree/etc/passwd"), 0);
	assert_int_equal(mkfifo("boxes/tree/etc/passwd", 0600), 0);
	refused(g, "/etc/passwd that is a pipe"); /* and does not wait for a writer */
	make_tree();
	assert_int_equal(truncate("boxes/tree/etc/passwd", 1 << 20), 0);
	refused(g, "an /etc/passwd of a megabyte");
	/* A home that leads outside gets no directory. */
	make_tree();
	assert_int_equal(rmdir("boxes/tree/home"), 0);
	assert_int_equal(symlink("../../..", "boxes/tree/home"), 0);
	assert_int_equal(commit(g, "mine", A), 0);
	assert_int_equal(access("user", F_OK), -1);
	/* The tree itself is a link. */
	assert_int_equal(symlink("/etc", "boxes/tree"), 0);
	assert_int_equal(commit(g, "other", B), -1);
	struct stat st;
	assert_int_equal(stat("/etc", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
}

static void test_bad_words(void **state)
{
	struct rig *g = *state;
	make_tree();
	static const char *const names[] = { "", "../x", ".x", "X", IMAGES_MACHINE };
	for (size_t i = 0; i < ELEMS(names); i++) {
		assert_int_equal(commit(g, names[i], A), -1);
		assert_int_equal(g->e.code, ERR_INVALID);
	}
	assert_int_equal(
		commit(g, "x", "sha256:../../../../../../../../../../../../../../../../../../../../etc/pass"),
		-1);
	assert_int_equal(g->e.code, ERR_INVALID);
	assert_null(g->im.all);
	assert_int_equal(access("boxes/tree", F_OK), 0);
}

static void test_names_and_removal(void **state)
{
	need_root();
	struct rig *g = *state;
	make_tree();
	assert_int_equal(commit(g, "one", A), 0);
	make_tree();
	assert_int_equal(commit(g, "two", A), 0); /* the same image again: only a name more */
	assert_int_equal(access("boxes/tree", F_OK), 0);
	assert_int_equal(entries("images"), 2); /* it and the names */
	assert_int_equal(commit(g, "three", B), 0);
	/* A name may move on. */
	make_tree();
	assert_int_equal(commit(g, "two", B), 0);
	assert_string_equal(name_digest(&g->im, "two"), B);
	assert_int_equal(commit(g, "two", A), 0);

	assert_int_equal(images_remove(&g->im, &g->disk, VIEW("nothing"), g->trash, &g->e), -1);
	assert_int_equal(g->e.code, ERR_NOT_FOUND);
	assert_int_equal(images_remove(&g->im, &g->disk, VIEW(""), g->trash, &g->e), -1);
	assert_int_equal(images_remove(&g->im, &g->disk, VIEW("one"), g->trash, &g->e), 0);
	assert_non_null(images_find(&g->im, VIEW(A))); /* "two" keeps it */
	assert_int_equal(entries("trash"), 0);
	assert_int_equal(access("images/names/one", F_OK), -1);
	assert_int_equal(images_remove(&g->im, &g->disk, VIEW("two"), g->trash, &g->e), 0);
	assert_null(images_find(&g->im, VIEW(A)));
	assert_int_equal(entries("trash"), 1);
	assert_int_equal(access("images/" HEX_A, F_OK), -1);
	/* By digest with all its names. */
	assert_int_equal(commit(g, "four", B), 0);
	assert_int_equal(images_remove(&g->im, &g->disk, VIEW(B), g->trash, &g->e), 0);
	assert_null(images_find(&g->im, VIEW(B)));
	assert_null(g->im.names);
	assert_null(g->im.all);
	assert_int_equal(entries("images/names"), 0);
	assert_int_equal(entries("trash"), 2);
	/* And again under the same digest. */
	assert_int_equal(commit(g, "one", A), 0);
	assert_int_equal(images_remove(&g->im, &g->disk, VIEW(A), g->trash, &g->e), 0);
	assert_int_equal(entries("trash"), 3);
	assert_int_equal(entries("images"), 1);
}

/* Something lies where the image belongs: the files go back to whom they came from. */
static void test_publish_fails(void **state)
{
	need_root();
	struct rig *g = *state;
	assert_int_equal(mkdir("images/" HEX_A, 0700), 0);
	assert_int_equal(fd_replace(AT_FDCWD, "images/" HEX_A "/manifest.json", "junk", 4, 0600, false), 0);
	make_tree();
	assert_int_equal(commit(g, "mine", A), -1);
	assert_int_equal(g->e.code, ERR_STORAGE);
	assert_null(images_find(&g->im, VIEW(A)));
	assert_int_equal(strays(), 0);
	assert_int_equal(access("boxes/tree/etc/passwd", F_OK), 0);
	assert_null(g->im.names);
}

/* What a crash or a careless hand left in the store. */
static void test_leftovers(void **state)
{
	need_root();
	struct rig *g = *state;
	make_tree();
	assert_int_equal(commit(g, "mine", A), 0);
	images_close(&g->im);
	assert_int_equal(mkdir("images/.new-crashed", 0700), 0);
	assert_int_equal(mkdir("images/.new-crashed/rootfs", 0700), 0);
	assert_int_equal(mkdir("images/" HEX_B, 0700), 0); /* no manifest */
	assert_int_equal(mkdir("images/" HEX_A "-old", 0700), 0);
	assert_int_equal(system("cp images/" HEX_A "/manifest.json images/" HEX_A "-old/"), 0);
	assert_int_equal(mkdir("images/something", 0700), 0);
	assert_int_equal(fd_replace(AT_FDCWD, "images/names/gone", B, strlen(B), 0600, false), 0);
	assert_int_equal(fd_replace(AT_FDCWD, "images/names/junk", "junk", 4, 0600, false), 0);
	assert_int_equal(fd_replace(AT_FDCWD, "images/names/Bad Name", A, strlen(A), 0600, false), 0);
	static char much[4096];
	memset(much, 'a', sizeof(much));
	assert_int_equal(fd_replace(AT_FDCWD, "images/names/long", much, sizeof(much), 0600, false), 0);
	assert_int_equal(images_open(&g->im, g->data, &g->e), 0);
	assert_non_null(g->im.all);
	assert_string_equal(g->im.all->digest, A);
	assert_null(g->im.all->next);
	assert_non_null(g->im.names);
	assert_string_equal(g->im.names->name, "mine");
	assert_null(g->im.names->next);
	/* What was half made is on its way out. */
	assert_int_equal(access("images/.new-crashed", F_OK), -1);
	assert_int_equal(entries("trash"), 1);
	static const char *const bad[] = { "",
					   "{}",
					   "[]",
					   "{\"created_ms\":-1,\"machine\":false}",
					   "{\"created_ms\":1,\"machine\":\"no\"}",
					   "{\"created_ms\":1}" };
	for (size_t i = 0; i < ELEMS(bad); i++) {
		images_close(&g->im);
		assert_int_equal(fd_replace(AT_FDCWD, "images/" HEX_B "/manifest.json", bad[i],
					    strlen(bad[i]), 0600, false),
				 0);
		assert_int_equal(images_open(&g->im, g->data, &g->e), 0);
		assert_null(images_find(&g->im, VIEW(B)));
		assert_non_null(images_find(&g->im, VIEW(A)));
	}
}

static void test_machine(void **state)
{
	need_root();
	struct rig *g = *state;
	char key[65], again[65];
	assert_int_equal(machine_key(key, &g->e), 0);
	assert_int_equal(machine_key(again, &g->e), 0);
	assert_string_equal(key, again);
	assert_int_equal(strspn(key, "0123456789abcdef"), 64);
	struct stat st;
	if (lstat("/lib", &st) < 0 || !S_ISLNK(st.st_mode)) {
		print_message("# skipped: this machine has no merged /usr\n");
		skip();
	}
	if (images_add_machine(&g->im, &g->e) < 0)
		fail_msg("%s", g->e.msg);
	char digest[IMAGES_DIGEST], root[128], path[512];
	snprintf(digest, sizeof(digest), "sha256:%s", key);
	const struct image *i = images_find(&g->im, view_of(digest));
	assert_non_null(i);
	assert_true(i->machine);
	assert_string_equal(name_digest(&g->im, IMAGES_MACHINE), digest);
	assert_int_equal(images_add_machine(&g->im, &g->e), 0); /* again: the same */
	assert_null(g->im.all->next);
	assert_int_equal(strays(), 0);

	snprintf(root, sizeof(root), "images/%s/rootfs", key);
	static const struct {
		const char *path;
		mode_t mode;
		uid_t owner;
	} want[] = { { "tmp", 01777, 0 },         { "root", 0700, 0 },       { "home/user", 0755, 1000 },
		     { "workspace", 0755, 1000 }, { "etc/passwd", 0644, 0 }, { "usr", 0755, 0 },
		     { "dev", 0755, 0 } };
	for (size_t k = 0; k < ELEMS(want); k++) {
		snprintf(path, sizeof(path), "%s/%s", root, want[k].path);
		assert_int_equal(lstat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, want[k].mode);
		assert_int_equal(st.st_uid, want[k].owner);
	}
	/* Nothing private of the machine. */
	static const char *const none[] = { "etc/shadow",  "etc/gshadow",    "etc/ssh",     "etc/ssl/private",
					    "etc/sudoers", "etc/machine-id", "etc/hostname" };
	for (size_t k = 0; k < ELEMS(none); k++) {
		snprintf(path, sizeof(path), "%s/%s", root, none[k]);
		assert_int_equal(lstat(path, &st), -1);
	}
	snprintf(path, sizeof(path),
		 "[ -z \"$(find %s -type f ! -perm -004)\" ] && [ -z \"$(find %s -perm /6000 -type f)\" ]",
		 root, root);
	assert_int_equal(system(path), 0);
	struct plan_image layers;
	assert_int_equal(images_layers(&g->im, i, &layers, &g->e), 0);
	assert_int_equal(layers.n, 2);
	assert_string_equal(layers.layers[1].at, "/usr");
	assert_int_equal(faccessat(layers.layers[1].dir, "bin/env", F_OK, 0), 0);
	images_release(&layers);

	/* While it is the machine's image it stays, whatever it is called by. */
	assert_int_equal(images_remove(&g->im, &g->disk, view_of(digest), g->trash, &g->e), -1);
	assert_int_equal(g->e.code, ERR_STATE);
	assert_int_equal(images_remove(&g->im, &g->disk, VIEW(IMAGES_MACHINE), g->trash, &g->e), -1);
	assert_int_equal(g->e.code, ERR_STATE);
	assert_non_null(images_find(&g->im, view_of(digest)));
	assert_string_equal(name_digest(&g->im, IMAGES_MACHINE), digest);
}

#define IMAGES_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IMAGES_TEST(test_words),         IMAGES_TEST(test_commit),
		IMAGES_TEST(test_user_is_there), IMAGES_TEST(test_hostile),
		IMAGES_TEST(test_bad_words),     IMAGES_TEST(test_names_and_removal),
		IMAGES_TEST(test_publish_fails), IMAGES_TEST(test_leftovers),
		IMAGES_TEST(test_machine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
