/*
 * Wishes and plans: what is refused, and the whole plan as text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <linux/mount.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan.h"
#include "poison.h"

static const struct box_limits ceiling = {
	.cpu_milli = 4000, .memory_mb = 8 << 10, .pids = 1000, .nofile = 4096
};

static const struct spec good = {
	.id = "0123456789abcdefghij",
	.backend = SPEC_BACKEND_NATIVE,
	.hostname = "box-1.example",
	.limits = { .cpu_milli = 1500, .memory_mb = 1 << 10, .pids = 100, .nofile = 1024 },
};

static int print_plan(const struct plan *p, struct buf *out)
{
	static const char *const kinds[] = {
		[PLAN_LAYER] = "layer",         [PLAN_STORE] = "store",   [PLAN_DEV] = "dev",
		[PLAN_WORKSPACE] = "workspace", [PLAN_DEVPTS] = "devpts", [PLAN_TMPFS] = "tmpfs",
		[PLAN_PROC] = "proc",           [PLAN_HOST] = "host"
	};
	buf_printf(out, "box %s backend %s host %s uids %u+%u caps %llx\n", p->spec.id, p->spec.backend,
		   p->spec.hostname, p->uid_base, PLAN_IDS, (unsigned long long)p->root_caps);
	if (p->spec.sudo)
		buf_puts(out, "sudo\n");
	buf_printf(out, "cgroup cpu %u memory %llu pids %llu\n", p->spec.limits.cpu_milli,
		   (unsigned long long)p->spec.limits.memory_mb << 20,
		   (unsigned long long)p->spec.limits.pids);
	for (unsigned i = 0; i < p->n_dirs; i++)
		buf_printf(out, "dir %s %o %u\n", p->dirs[i].name, p->dirs[i].mode, p->dirs[i].owner);
	for (unsigned i = 0; i < p->n_mounts; i++) {
		const struct plan_mount *m = &p->mounts[i];
		buf_printf(out, "mount %s %s", m->target, kinds[m->kind]);
		if (m->kind == PLAN_LAYER)
			buf_printf(out, " %u", m->layer);
		if (m->source)
			buf_printf(out, " %s", m->source);
		if (m->size)
			buf_printf(out, " size=%llu mode=%s", (unsigned long long)m->size, m->mode);
		buf_printf(out, "%s%s%s%s\n", m->attr & MOUNT_ATTR_RDONLY ? " ro" : "",
			   m->attr & MOUNT_ATTR_NOSUID ? " nosuid" : "",
			   m->attr & MOUNT_ATTR_NODEV ? " nodev" : "",
			   m->attr & MOUNT_ATTR_NOEXEC ? " noexec" : "");
	}
	for (unsigned i = 0; i < p->n_rlimits; i++)
		buf_printf(out, "rlimit %s %llu\n", p->rlimits[i].name,
			   (unsigned long long)p->rlimits[i].value);
	return out->bad;
}

static struct plan_image image_of(unsigned n)
{
	struct plan_image image = { .n = n };
	snprintf(image.layers[0].at, sizeof(image.layers[0].at), "/");
	snprintf(image.layers[1].at, sizeof(image.layers[1].at), "/usr");
	return image;
}

static void test_ids(void **state)
{
	assert_true(spec_id_ok(VIEW("0123456789abcdefghij")));
	static const char *const bad[] = { "",
					   "0123456789abcdefghi",
					   "0123456789abcdefghijk",
					   "0123456789ABCDEFGHIJ",
					   "../../../../etc/passw",
					   "0123456789abcdefg/ij",
					   "0123456789abcdefg.ij",
					   "0123456789abcdefg-ij",
					   "0123456789abcdefg ij",
					   "0123456789abcdefg\nij" };
	for (size_t i = 0; i < ELEMS(bad); i++)
		assert_false(spec_id_ok(view_of(bad[i])));
	assert_false(spec_id_ok((struct view){ "0123456789abcdefghi\0", 20 }));
}

static void refuse(const struct spec *s, const char *field)
{
	struct err e = { 0 };
	if (spec_check(s, &ceiling, &e) != -1)
		fail_msg("accepted a bad %s", field);
	assert_int_equal(e.code, ERR_INVALID);
	if (!strstr(e.msg, field))
		fail_msg("\"%s\" does not name %s", e.msg, field);
}

static void test_limits(void **state)
{
	struct err e = { 0 };
	struct spec s = good;
	assert_int_equal(spec_check(&s, &ceiling, &e), 0);
	s.limits = ceiling; /* up to and including */
	assert_int_equal(spec_check(&s, &ceiling, &e), 0);
	s.limits = (struct box_limits){ .cpu_milli = 10, .memory_mb = 16, .pids = 4, .nofile = 32 };
	assert_int_equal(spec_check(&s, &ceiling, &e), 0);

#define BAD(field, value, name)                                                                              \
	do {                                                                                                 \
		struct spec bad_one = good;                                                                  \
		bad_one.limits.field = (value);                                                              \
		refuse(&bad_one, name);                                                                      \
	} while (0)
	/* Zero is a limit that was forgotten, never "none". */
	BAD(cpu_milli, 0, "cpu");
	BAD(cpu_milli, 9, "cpu");
	BAD(cpu_milli, 4001, "cpu");
	BAD(memory_mb, 0, "memory");
	BAD(memory_mb, 15, "memory");
	BAD(memory_mb, (8 << 10) + 1, "memory");
	BAD(memory_mb, UINT64_MAX, "memory");
	BAD(pids, 0, "pids");
	BAD(pids, 3, "pids");
	BAD(pids, 1001, "pids");
	BAD(nofile, 0, "nofile");
	BAD(nofile, 31, "nofile");
	BAD(nofile, 4097, "nofile");
#undef BAD
	struct spec zero = { 0 };
	refuse(&zero, "id");
}

static void test_names(void **state)
{
	static const char *const bad[] = {
		"", "-a", ".a", "a b", "a_b", "a\nb", "a/b", "a\x1b[2J", "\xc3\xa4"
	};
	struct spec s = good;
	for (size_t i = 0; i < ELEMS(bad); i++) {
		snprintf(s.hostname, sizeof(s.hostname), "%s", bad[i]);
		refuse(&s, "host name");
	}
	s = good;
	memset(s.hostname, 'a', 63);
	s.hostname[63] = 0;
	struct err e = { 0 };
	assert_int_equal(spec_check(&s, &ceiling, &e), 0);
	s = good;
	s.id[3] = '/';
	refuse(&s, "id");
}

static const char golden[] =
	"box 0123456789abcdefghij backend native host box-1.example uids 2000131328+65536 caps 4fb\n"
	"cgroup cpu 1500 memory 1073741824 pids 100\n"
	"dir upper0 755 0\n"
	"dir work0 700 0\n"
	"dir upper1 755 0\n"
	"dir work1 700 0\n"
	"dir tmp 1777 0\n"
	"dir workspace 755 1000\n"
	"mount / layer 0 nosuid nodev\n"
	"mount /usr layer 1 nosuid nodev\n"
	"mount /proc proc nosuid nodev noexec\n"
	"mount /dev dev ro nosuid noexec\n"
	"mount /dev/pts devpts nosuid noexec\n"
	"mount /dev/shm tmpfs size=536870912 mode=1777 nosuid nodev noexec\n"
	"mount /run tmpfs size=16777216 mode=755 nosuid nodev\n"
	"mount /tmp store tmp nosuid nodev\n"
	"mount /workspace store workspace nosuid nodev\n"
	"rlimit nofile 1024\n"
	"rlimit core 0\n"
	"rlimit memlock 65536\n"
	"rlimit msgqueue 819200\n"
	"rlimit rtprio 0\n"
	"rlimit nice 0\n";

/* A change of the walls shows here, and is looked at. */
static const char golden_readonly[] =
	"box 0123456789abcdefghij backend native host box-1.example uids 2000000000+65536 caps 4fb\n"
	"cgroup cpu 1500 memory 67108864 pids 100\n"
	"dir tmp 1777 0\n"
	"dir workspace 755 1000\n"
	"mount / layer 0 ro nosuid nodev\n"
	"mount /proc proc nosuid nodev noexec\n"
	"mount /dev dev ro nosuid noexec\n"
	"mount /dev/pts devpts nosuid noexec\n"
	"mount /dev/shm tmpfs size=33554432 mode=1777 nosuid nodev noexec\n"
	"mount /run tmpfs size=8388608 mode=755 nosuid nodev\n"
	"mount /tmp store tmp nosuid nodev\n"
	"mount /workspace store workspace nosuid nodev\n"
	"rlimit nofile 1024\n"
	"rlimit core 0\n"
	"rlimit memlock 65536\n"
	"rlimit msgqueue 819200\n"
	"rlimit rtprio 0\n"
	"rlimit nice 0\n";

static void check_print(const struct plan *p, const char *want)
{
	struct buf b = BUF_INIT(8192);
	assert_int_equal(print_plan(p, &b), 0);
	assert_int_equal(buf_putc(&b, 0), 0);
	assert_string_equal(b.p, want);
	buf_done(&b);
}

static void test_golden(void **state)
{
	struct plan_image image = image_of(2);
	struct plan p;
	struct err e = { 0 };
	assert_int_equal(plan_make(&good, &image, 2, 2000000000u, &p, &e), 0);
	check_print(&p, golden);
	struct buf small = BUF_INIT(100);
	assert_true(print_plan(&p, &small) < 0); /* never half a plan without a word */
	buf_done(&small);
}

static void test_golden_readonly(void **state)
{
	struct plan_image image = image_of(1);
	struct spec s = good;
	struct plan p;
	struct err e = { 0 };
	s.readonly_root = true;
	s.limits.memory_mb = 64;
	assert_int_equal(plan_make(&s, &image, 0, 2000000000u, &p, &e), 0);
	check_print(&p, golden_readonly);
}

/* Others are beside the box's own, and none is on the way to another mount. */
static void test_workspaces(void **state)
{
	struct plan_image image = image_of(1);
	struct spec_workspaces w = { .items = { { "workspace0123456789a", "/data", false },
						{ "another0123456789abc", "/workspace/in", true } },
				     .n = 2 };
	struct spec_mounts m = { .items = { { "/srv", "/mnt/x", true } }, .n = 1 };
	struct spec s = good;
	struct plan p;
	struct err e = { 0 };
	struct buf b = BUF_INIT(8192);
	s.workspaces = &w;
	s.mounts = &m;
	assert_int_equal(spec_check(&s, &ceiling, &e), 0);
	assert_int_equal(plan_make(&s, &image, 0, 2000000000u, &p, &e), 0);
	assert_int_equal(print_plan(&p, &b), 0);
	assert_int_equal(buf_putc(&b, 0), 0);
	assert_non_null(strstr(b.p, "mount /workspace store workspace nosuid nodev\n"
				    "mount /data workspace nosuid nodev\n"
				    "mount /workspace/in workspace ro nosuid nodev\n"
				    "mount /mnt/x host ro nosuid nodev\n"));
	buf_done(&b);
	static const char *const bad[][2] = { { "/data", "/data" },   { "/data", "/data/x" },
					      { "/data/x", "/data" }, { "/data", "/mnt/x" },
					      { "/data", "/mnt" },    { "/mnt/x/y", "/data" } };
	for (size_t i = 0; i < ELEMS(bad); i++) {
		snprintf(w.items[0].path, sizeof(w.items[0].path), "%s", bad[i][0]);
		snprintf(w.items[1].path, sizeof(w.items[1].path), "%s", bad[i][1]);
		refuse(&s, "lies in another mount");
	}
	snprintf(w.items[1].path, sizeof(w.items[1].path), "/database");
	snprintf(w.items[0].path, sizeof(w.items[0].path), "/data");
	assert_int_equal(spec_check(&s, &ceiling, &e), 0);
}

/* A named workspace takes the place of the box's own. */
static void test_workspace(void **state)
{
	struct plan_image image = image_of(1);
	struct spec s = good;
	struct plan p;
	struct err e = { 0 };
	struct spec_workspaces w = { .items = { { "workspace0123456789a", "/workspace", false } }, .n = 1 };
	s.workspaces = &w;
	for (int readonly = 0; readonly < 2; readonly++) {
		struct buf b = BUF_INIT(8192);
		w.items[0].readonly = readonly;
		assert_int_equal(spec_check(&s, &ceiling, &e), 0);
		assert_int_equal(plan_make(&s, &image, 0, 2000000000u, &p, &e), 0);
		assert_int_equal(print_plan(&p, &b), 0);
		assert_int_equal(buf_putc(&b, 0), 0);
		assert_non_null(strstr(b.p, readonly ? "mount /workspace workspace ro nosuid nodev\n"
						     : "mount /workspace workspace nosuid nodev\n"));
		assert_null(strstr(b.p, "store workspace"));
		buf_done(&b);
	}
	/* Ids become names of directories: they are ids or nothing. */
	snprintf(w.items[0].id, sizeof(w.items[0].id), "../boxes/somebody123");
	refuse(&s, "workspace");
	s = good;
	snprintf(s.snapshot, sizeof(s.snapshot), "..");
	refuse(&s, "snapshot");
}

static void test_slots(void **state)
{
	struct plan_image image = image_of(2);
	struct plan p;
	struct err e = { 0 };
	/* Ranges do not overlap, and do not lie a power of two apart. */
	uint32_t before = 0;
	for (uint32_t slot = 0; slot < 100; slot++) {
		assert_int_equal(plan_make(&good, &image, slot, 1879048192u, &p, &e), 0);
		assert_true(slot == 0 || p.uid_base >= before + PLAN_IDS);
		assert_true(slot == 0 || p.uid_base - before != PLAN_IDS);
		before = p.uid_base;
	}
	static const struct {
		uint32_t slot, base;
	} bad[] = {
		{ 0, 0 }, /* root, and the machine's own users */
		{ 0, 1000 },
		{ 0, 99999 },
		{ 0, UINT32_MAX },
		{ 0, UINT32_MAX - PLAN_IDS }, /* -1 is no id */
		{ UINT32_MAX, 100000 },
		{ 65409, 100000 }, /* past the end */
		{ 65536, 100000 },
	};
	for (size_t i = 0; i < ELEMS(bad); i++) {
		p.uid_base = 7;
		if (plan_make(&good, &image, bad[i].slot, bad[i].base, &p, &e) == 0)
			fail_msg("accepted slot %u of %u: %u", bad[i].slot, bad[i].base, p.uid_base);
		assert_int_equal(p.uid_base, 7); /* untouched */
	}
	/* The last that exists. */
	assert_int_equal(plan_make(&good, &image, 0, UINT32_MAX - PLAN_IDS - 1, &p, &e), 0);
	assert_int_equal(p.uid_base, UINT32_MAX - PLAN_IDS - 1);
}

static void test_images(void **state)
{
	struct plan p;
	struct err e = { 0 };
	struct plan_image image = image_of(0);
	assert_int_equal(plan_make(&good, &image, 0, 2000000000u, &p, &e), -1);
	image = image_of(PLAN_LAYERS + 1);
	assert_int_equal(plan_make(&good, &image, 0, 2000000000u, &p, &e), -1);
	image = image_of(1);
	snprintf(image.layers[0].at, sizeof(image.layers[0].at), "/usr"); /* no root */
	assert_int_equal(plan_make(&good, &image, 0, 2000000000u, &p, &e), -1);
	image = image_of(PLAN_LAYERS);
	for (unsigned i = 1; i < PLAN_LAYERS; i++)
		snprintf(image.layers[i].at, sizeof(image.layers[i].at), "/l%u", i);
	assert_int_equal(plan_make(&good, &image, 0, 2000000000u, &p, &e), 0);
	assert_int_equal(p.n_dirs, 2 * PLAN_LAYERS + 2);
	assert_true(p.n_mounts <= ELEMS(p.mounts));
}

/* Memory file systems are the box's memory: together they must leave it room. */
static void test_tmpfs(void **state)
{
	struct plan_image image = image_of(1);
	for (uint64_t mb = 8; mb <= 8192; mb *= 2) {
		struct spec s = good;
		struct plan p;
		struct err e = { 0 };
		uint64_t sum = 0;
		s.limits.memory_mb = mb;
		assert_int_equal(plan_make(&s, &image, 0, 2000000000u, &p, &e), 0);
		for (unsigned i = 0; i < p.n_mounts; i++)
			sum += p.mounts[i].size;
		assert_true(sum <= (mb << 20) * 3 / 4);
	}
}

static void test_masks(void **state)
{
	static const char *const hidden[] = { "kcore",      "keys",       "key-users",   "kallsyms",
					      "kmsg",       "timer_list", "sched_debug", "sysrq-trigger",
					      "locks",      "fs",         "bus",         "irq",
					      "partitions", "diskstats",  "pressure",    "zoneinfo",
					      "interrupts", "cmdline",    "iomem",       "modules",
					      "a-new-one",  "sys2",       "selfish" };
	static const char *const seen[] = { "self",    "thread-self", "1",       "4711", "meminfo",
					    "cpuinfo", "stat",        "loadavg", "sys",  "mounts",
					    "net",     "uptime",      ".",       ".." };
	for (size_t i = 0; i < ELEMS(hidden); i++)
		if (!plan_proc_hidden(hidden[i]))
			fail_msg("/proc/%s is not hidden", hidden[i]);
	for (size_t i = 0; i < ELEMS(seen); i++)
		if (plan_proc_hidden(seen[i]))
			fail_msg("/proc/%s is hidden", seen[i]);
	assert_string_equal(plan_readonly[0], "sys");
	assert_null(plan_readonly[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_golden_readonly),
		cmocka_unit_test(test_workspace),
		cmocka_unit_test(test_workspaces),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_images),
		cmocka_unit_test(test_tmpfs),
		cmocka_unit_test(test_masks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
