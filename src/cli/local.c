/*
 * See local.h. The note names the process; `serve` becomes paddockd without changing
 * its pid, so that a note of a daemon that has ended is seen as such.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "json.h"
#include "local.h"

#include "poison.h"

#define NOTE_MAX 8192

static bool runs(uint64_t pid)
{
	_cleanup_(buf_done) struct buf name = BUF_INIT(64);
	char path[64];

	snprintf(path, sizeof(path), "/proc/%llu/comm", (unsigned long long)pid);
	if (pid == 0 || fd_slurp(AT_FDCWD, path, &name) < 0)
		return false;
	return view_starts(buf_view(&name), "paddock"); /* serve, or paddockd that it became */
}

static bool is_trusted(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == 0 &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH)) && st.st_size > 0 && st.st_size < NOTE_MAX;
}

static bool take(const struct json *doc, const char *key, char *ret, size_t size)
{
	const struct json *j = json_get(doc, key);

	return j && j->type == JSON_STRING && view_to_str(j->text, ret, size) >= 0;
}

void local_find(struct local_daemon *ret)
{
	_cleanup_(closep) int fd = open(CONFIG_NOTE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char text[NOTE_MAX];
	struct arena a = ARENA_INIT(64u << 10);
	struct json *doc = NULL;
	const struct json *pid;
	struct err e = { 0 };
	uint64_t number = 0;
	ssize_t n;

	*ret = (struct local_daemon){ 0 };
	if (fd < 0 || !is_trusted(fd))
		return;
	n = read(fd, text, sizeof(text));
	if (n > 0 && json_parse(&a, (struct view){ text, (size_t)n }, &doc, &e) == 0) {
		pid = json_get(doc, "pid");
		if (!pid || json_to_u64(pid, &number) < 0 || !runs(number) ||
		    !take(doc, "url", ret->url, sizeof(ret->url)) ||
		    !take(doc, "key_file", ret->key_file, sizeof(ret->key_file)))
			ret->url[0] = '\0';
		if (!ret->url[0] || !take(doc, "run_dir", ret->run_dir, sizeof(ret->run_dir)))
			ret->run_dir[0] = '\0';
	}
	arena_done(&a);
}

bool local_has_others(void)
{
	DIR *d = opendir("/proc");
	unsigned n = 0;

	for (struct dirent *de; d && (de = readdir(d));) {
		static const char serve[] = "paddockd\0serve"; /* with the NUL between and the one behind */
		_cleanup_(buf_done) struct buf args = BUF_INIT(4096);
		char path[300];
		snprintf(path, sizeof(path), "/proc/%s/cmdline", de->d_name);
		if (de->d_name[0] >= '1' && de->d_name[0] <= '9' && fd_slurp(AT_FDCWD, path, &args) >= 0)
			n += view_eq(buf_view(&args), (struct view){ serve, sizeof(serve) });
	}
	if (d)
		closedir(d);
	return n > 1;
}

int local_announce(const struct local_daemon *d, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(NOTE_MAX);
	struct local_daemon other;
	struct json_out o;
	int r;

	local_find(&other);
	if (other.url[0])
		return 0; /* it was here first */
	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_kz(&o, "url", d->url);
	json_out_kz(&o, "key_file", d->key_file);
	json_out_kz(&o, "run_dir", d->run_dir);
	json_out_ku64(&o, "pid", (uint64_t)getpid());
	json_out_end(&o, '}');
	buf_putc(&b, '\n');
	r = b.bad ? b.bad : fd_replace(AT_FDCWD, CONFIG_NOTE, b.p, b.n, 0644, false);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "%s", CONFIG_NOTE) : 0;
}
