/*
 * See oom.h. What is read is /sys/fs/cgroup of the box itself, of either version.
 */
#include "oom.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>

#include "fd.h"
#include "init.h"
#include "num.h"
#include "proc.h"
#include "poison.h"

#define GROUP        "/sys/fs/cgroup/"
#define V1           GROUP "memory/"
#define LOOK_MS      2000
#define FULL         88  /* percent of the limit that belongs to programs */
#define FAULTS_LEAST 100 /* a second */

static unsigned patience_s = 20;
static uint64_t own_kills;

void oom_limit(unsigned seconds)
{
	patience_s = seconds;
}

#define OWN_SCORE "/proc/self/oom_score_adj"

/* Lower than anything we start; as low as we may, which is mostly where we are. */
void oom_shelter(void)
{
	int r = fd_put(AT_FDCWD, OWN_SCORE, "-900");
	if (r < 0)
		r = fd_put(AT_FDCWD, OWN_SCORE, "0");
	(void)r;
}

/* A score is that of all processes with the same memory. launch_run returns when the program's exec has begun
 * to leave ours, which may not be done yet: then we have got the score, too. */
static bool is_offered_too(void)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(32);
	struct view rest;
	return fd_slurp(AT_FDCWD, OWN_SCORE, &text) == 0 &&
	       view_is(view_split(buf_view(&text), '\n', &rest), INIT_OOM_SCORE);
}

void oom_offer(pid_t pid)
{
	char path[48];
	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
	for (int i = 0; i < 1000; i++) {
		/* It may be gone already, or be nobody's business. */
		if (fd_put(AT_FDCWD, path, INIT_OOM_SCORE) < 0 || !is_offered_too())
			return;
		oom_shelter();
		(void)sched_yield();
	}
}

/* "key value" lines; 0 where there is none. */
static uint64_t value_of(struct view text, const char *key)
{
	uint64_t v;
	while (text.n) {
		struct view value, line = view_split(text, '\n', &text);
		if (view_is(view_split(line, ' ', &value), key))
			return num_u64(value, &v) == 0 ? v : 0;
	}
	return 0;
}

static struct view slurp(int fd, char *room, size_t size)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, room, size, 0);
	return (struct view){ room, n > 0 ? (size_t)n : 0 };
}

static int open_either(const char *one, const char *two)
{
	int fd = open(one, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? open(two, O_RDONLY | O_CLOEXEC) : fd;
}

uint64_t oom_kills(void)
{
	_cleanup_(closep) int fd = open_either(V1 "memory.oom_control", GROUP "memory.events");
	char room[512];
	return value_of(slurp(fd, room, sizeof(room)), "oom_kill") + own_kills;
}

static uint64_t number(const char *one, const char *two)
{
	_cleanup_(closep) int fd = open_either(one, two);
	char room[64];
	uint64_t v;
	struct view rest, text = slurp(fd, room, sizeof(room));
	return num_u64(view_split(text, '\n', &rest), &v) == 0 ? v : 0;
}

uint64_t oom_memory(void)
{
	return number(V1 "memory.limit_in_bytes", GROUP "memory.max");
}

uint64_t oom_used(void)
{
	return number(V1 "memory.usage_in_bytes", GROUP "memory.current");
}

uint64_t oom_processes(void)
{
	return number(GROUP "pids/pids.current", GROUP "pids.current");
}

/* ---- thrashing ---- */

static bool oom_is_thrashing(const struct oom_look *before, const struct oom_look *now)
{
	uint64_t ms = now->at_ms - before->at_ms;
	return now->limit && ms && now->anon * 100 >= now->limit * FULL && now->faults > before->faults &&
	       (now->faults - before->faults) * 1000 / ms >= FAULTS_LEAST;
}

static void look(struct init *in, struct oom_look *ret)
{
	_cleanup_(closep) int fd = open_either(V1 "memory.stat", GROUP "memory.stat");
	char room[8192];
	struct view text = slurp(fd, room, sizeof(room));
	uint64_t rss = value_of(text, "rss"), anon = value_of(text, "anon");
	*ret = (struct oom_look){ .limit = oom_memory(),
				  .anon = MAX(rss, anon),
				  .faults = value_of(text, "pgmajfault"),
				  .at_ms = loop_now(in->loop) };
}

static uint64_t resident(int proc, const char *name)
{
	char path[32], room[128];
	snprintf(path, sizeof(path), "%.16s/statm", name);
	_cleanup_(closep) int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	struct view rest = slurp(fd, room, sizeof(room));
	uint64_t pages;
	(void)view_split(rest, ' ', &rest);
	return num_u64(view_split(rest, ' ', &rest), &pages) == 0 ? pages : 0;
}

static void kill_largest(void)
{
	DIR *d = opendir("/proc");
	uint64_t most = 0;
	uint32_t who = 0;
	for (struct dirent *de; d && (de = readdir(d));) {
		uint32_t pid;
		if (num_u32(view_of(de->d_name), &pid) < 0 || pid <= 1)
			continue;
		uint64_t pages = resident(dirfd(d), de->d_name);
		if (pages > most) {
			most = pages;
			who = pid;
		}
	}
	if (d)
		closedir(d);
	if (who && kill((pid_t)who, SIGKILL) == 0)
		own_kills++;
}

static void on_look(struct loop_timer *t)
{
	struct init *in = CONTAINER(t, struct init, oom.timer);
	struct oom_look now;
	if (list_empty(&in->procs) && list_empty(&in->sudos))
		return; /* the next start begins anew */
	look(in, &now);
	in->oom.thrashing_ms = in->oom.before.at_ms && oom_is_thrashing(&in->oom.before, &now)
				       ? in->oom.thrashing_ms + (now.at_ms - in->oom.before.at_ms)
				       : 0;
	in->oom.before = now;
	if (in->oom.thrashing_ms >= (uint64_t)patience_s * 1000) {
		in->oom.thrashing_ms = 0;
		kill_largest();
	}
	loop_timer_start(in->loop, t, LOOK_MS, on_look);
}

void oom_watch(struct init *in)
{
	if (!patience_s || !in->box || loop_timer_active(&in->oom.timer))
		return;
	in->oom.before = (struct oom_look){ 0 };
	in->oom.thrashing_ms = 0;
	loop_timer_start(in->loop, &in->oom.timer, LOOK_MS, on_look);
}

void oom_stop(struct init *in)
{
	loop_timer_stop(&in->oom.timer);
}
