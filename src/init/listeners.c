/*
 * Listening sockets, from /proc/net/tcp and tcp6, and the process that holds each
 * of them, from the fds in /proc. A process's fds are looked at with its own
 * user's rights, since PID 1 has no power over other users' processes but to
 * signal them. What cannot be seen has no pid; nothing here is an error.
 */
#include "listeners.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fd.h"
#include "num.h"
#include "user.h"
#include "wire_gen.h"
#include "poison.h"

#define TABLE_MAX (1024u * 1024) /* of one of the two tables: the rest is not seen */
#define MOST      1024
#define LOOKS     16384 /* at fds: then whoever has not been found is not known */

/* ---- the tables ------------------------------------------------------- */

static struct view next_word(struct view *rest)
{
	while (rest->n && rest->p[0] == ' ')
		*rest = view_skip(*rest, 1);
	return view_split(*rest, ' ', rest);
}

/* Words of 32 bits, each in the machine's order. */
static bool read_address(struct view hex, char *ret, size_t size)
{
	uint32_t words[4];
	size_t n = hex.n / 8;

	if (hex.n != 8 && hex.n != 32)
		return false;
	for (size_t i = 0; i < n; i++) {
		uint64_t w;
		if (num_hex(view_head(view_skip(hex, i * 8), 8), &w) < 0)
			return false;
		words[i] = (uint32_t)w;
	}
	return inet_ntop(n == 1 ? AF_INET : AF_INET6, words, ret, (socklen_t)size) != NULL;
}

/* "  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 0 12345 …" */
bool listeners_parse(struct view line, struct listeners_line *ret)
{
	struct view rest = line, port;
	uint64_t n;

	(void)next_word(&rest);
	struct view address = view_split(next_word(&rest), ':', &port);
	(void)next_word(&rest);
	if (!view_is(next_word(&rest), "0A") || !port.p || num_hex(port, &n) < 0 || n == 0 || n > UINT16_MAX)
		return false;
	ret->port = (uint16_t)n;
	for (int i = 0; i < 5; i++) /* queues, timer, retransmits, uid, timeout */
		(void)next_word(&rest);
	return num_u64(next_word(&rest), &ret->inode) == 0 &&
	       read_address(address, ret->address, sizeof(ret->address));
}

struct found {
	struct listeners_line line;
	uint32_t pid;
	char process[24];
};

static size_t read_table(const char *path, struct found *all, size_t n)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(TABLE_MAX);

	if (fd_slurp(AT_FDCWD, path, &text) < 0 && buf_len(&text) == 0)
		return n;
	for (struct view rest = buf_view(&text); rest.n && n < MOST;) {
		struct found f = { 0 };
		if (listeners_parse(view_split(rest, '\n', &rest), &f.line))
			all[n++] = f;
	}
	return n;
}

/* ---- who -------------------------------------------------------------- */

static void take_socket(const char *link, ssize_t n, uint32_t pid, int proc, struct found *all, size_t count)
{
	struct view v = { link, n > 0 ? (size_t)n : 0 };
	uint64_t inode;

	if (!view_starts(v, "socket:[") || v.p[v.n - 1] != ']' ||
	    num_u64(view_head(view_skip(v, 8), v.n - 9), &inode) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		if (all[i].line.inode != inode || all[i].pid)
			continue;
		_cleanup_(closep) int fd = openat(proc, "comm", O_RDONLY | O_CLOEXEC);
		ssize_t got = fd < 0 ? 0 : read(fd, all[i].process, sizeof(all[i].process) - 1);
		all[i].process[got > 0 ? got - 1 : 0] = 0; /* without its line end */
		all[i].pid = pid;
	}
}

static int look_at(int proc, uint32_t pid, struct found *all, size_t count)
{
	int fd = openat(proc, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), looks = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		fd_close(fd);
		return 1;
	}
	for (struct dirent *d; (d = readdir(dir)) && looks < LOOKS; looks++) {
		char link[64];
		take_socket(link, readlinkat(dirfd(dir), d->d_name, link, sizeof(link)), pid, proc, all,
			    count);
	}
	closedir(dir);
	return looks;
}

static void find_owners(struct found *all, size_t count)
{
	DIR *dir = opendir("/proc");
	int looks = 0;

	for (struct dirent *d; dir && looks < LOOKS && (d = readdir(dir));) {
		struct stat st;
		uint32_t pid;
		if (num_u32(view_of(d->d_name), &pid) < 0)
			continue;
		_cleanup_(closep) int proc =
			openat(dirfd(dir), d->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (proc < 0 || fstat(proc, &st) < 0)
			continue;
		struct user u = { .uid = st.st_uid, .gid = st.st_gid };
		if (user_enter(&u) < 0)
			continue;
		looks += look_at(proc, pid, all, count);
		user_leave();
	}
	if (dir)
		closedir(dir);
}

int listeners_list(const struct conn_call *call, struct err *e)
{
	struct found *all = calloc(MOST, sizeof(*all));
	struct wire_listener *items = arena_array(call->arena, MOST, sizeof(*items));

	if (!all || !items) {
		free(all);
		return err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
	}
	size_t n = read_table("/proc/net/tcp", all, 0);
	n = read_table("/proc/net/tcp6", all, n);
	if (n)
		find_owners(all, n);
	for (size_t i = 0; i < n; i++)
		items[i] = (struct wire_listener){ .port = all[i].line.port,
						   .address = view_of(all[i].line.address),
						   .pid = all[i].pid,
						   .process = view_of(all[i].process) };
	conn_reply(call, &wire_listeners_reply_msg,
		   &(struct wire_listeners_reply){ .listeners = { items, n } });
	free(all);
	return 0;
}
