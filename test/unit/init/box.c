/*
 * See box.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "box.h"
#include "fd.h"
#include "init.h"
#include "link.h"
#include "num.h"
#include "poison.h"

static void or_die(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	_exit(99);
}

static void put_file(const char *dir, const char *name, const char *text)
{
	char path[64];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	or_die(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0, path);
	close(fd);
	char target[64];
	snprintf(target, sizeof(target), "/etc/%s", name);
	or_die(mount(path, target, NULL, MS_BIND, NULL) == 0, target);
}

static void set_stage(const struct box *b)
{
	or_die(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private");
	or_die(mount("proc", "/proc", "proc", 0, NULL) == 0, "proc");
	or_die(mount("tmpfs", "/mnt", "tmpfs", 0, "mode=0755") == 0, "tmpfs");
	char passwd[256];
	snprintf(passwd, sizeof(passwd),
		 "root:x:0:0:root:/root:/bin/sh\nbroken line\nuser:x:1000:1000::%s:/bin/sh\n", b->dir);
	put_file("/mnt", "passwd", passwd);
	put_file("/mnt", "group",
		 "root:x:0:\nuser:x:1000:\nhelpers:x:1234:other,user\nothers:x:1235:other\n");
}

static _noreturn_ void be_init(const struct box *b, int listener)
{
	set_stage(b);
	int null = open("/dev/null", O_RDWR);
	or_die(dup2(listener, 3) == 3 && fcntl(3, F_SETFD, 0) == 0, "dup2");
	for (int i = 0; i < 2; i++) /* stderr stays, for the sanitizers' reports */
		or_die(dup2(null, i) == i, "dup2");
	syscall(SYS_close_range, 4u, ~0u, 0u);
	umask(022);
#ifdef INIT_IN_PROCESS
	static struct init in;
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigaction(SIGPIPE, &ignore, NULL);
	or_die(fcntl(3, F_SETFD, FD_CLOEXEC) == 0, "fcntl");
	or_die(init_start(&in, 3, NULL) == 0, "init_start");
	_exit(loop_run(in.loop) ? 1 : 0);
#else
	execle(PADDOCK_INIT, "paddock-init", NULL, (char *[]){ NULL });
	or_die(false, PADDOCK_INIT);
	_exit(99);
#endif
}

static void socket_path(const struct box *b, struct sockaddr_un *a)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(a->sun_path, sizeof(a->sun_path), "%s/.socket", b->dir);
}

void box_start(struct box *b)
{
	snprintf(b->dir, sizeof(b->dir), "/dev/shm/paddock-init-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	assert_int_equal(chmod(b->dir, 0777), 0);
	struct sockaddr_un a;
	socket_path(b, &a);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), pids[2];
	assert_int_equal(bind(listener, (void *)&a, sizeof(a)), 0);
	assert_int_equal(listen(listener, 64), 0);
	assert_int_equal(pipe2(pids, O_CLOEXEC), 0);
	fflush(NULL);
	b->helper = fork();
	assert_true(b->helper >= 0);
	if (b->helper == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		or_die(unshare(CLONE_NEWPID | CLONE_NEWNS) == 0, "unshare");
		pid_t pid = fork();
		or_die(pid >= 0, "fork");
		if (pid == 0)
			be_init(b, listener);
		or_die(write(pids[1], &pid, sizeof(pid)) == sizeof(pid), "pid");
		int status = 0;
		waitpid(pid, &status, 0);
		_exit(0);
	}
	close(pids[1]);
	close(listener);
	assert_int_equal(read(pids[0], &b->pid, sizeof(b->pid)), sizeof(b->pid));
	close(pids[0]);
}

void box_stop(struct box *b)
{
	int status;
	kill(b->pid, SIGKILL);
	waitpid(b->helper, &status, 0);
	pid_t rm = fork();
	if (rm == 0) {
		execlp("rm", "rm", "-rf", b->dir, NULL);
		_exit(99);
	}
	waitpid(rm, &status, 0);
}

/* ---- client ----------------------------------------------------------- */

/* Not VmRSS: its counters of each processor are added up only now and then, so that it is some 100 KiB off.
 */
size_t box_rss_kb(const struct box *b)
{
	char path[64], text[4096];
	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)b->pid);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	const char *at = strstr(text, "\nRss:");
	assert_non_null(at);
	for (at += 5; *at == ' ' || *at == '\t'; at++)
		;
	uint64_t kb;
	assert_int_equal(num_u64((struct view){ at, strcspn(at, " ") }, &kb), 0);
	return (size_t)kb;
}

void client_open(struct client *c, const struct box *b)
{
	struct sockaddr_un a;
	struct timeval patience = { .tv_sec = 10 };
	socket_path(b, &a);
	*c = (struct client){ .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
			      .in = BUF_INIT(8u << 20),
			      .out = BUF_INIT(8u << 20) };
	assert_int_equal(connect(c->fd, (void *)&a, sizeof(a)), 0);
	assert_int_equal(setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
}

void client_close(struct client *c)
{
	close(c->fd);
	buf_done(&c->in);
	buf_done(&c->out);
}

static void flush(struct client *c)
{
	struct view v = buf_view(&c->out);
	while (v.n) {
		ssize_t n = send(c->fd, v.p, v.n, MSG_NOSIGNAL);
		if (n < 0)
			break; /* closed: client_next will say so */
		v = view_skip(v, (size_t)n);
	}
	buf_clear(&c->out);
}

uint32_t client_call(struct client *c, uint16_t type, uint32_t deadline_ms, const struct pb_msg *m,
		     const void *msg)
{
	assert_int_equal(frame_put_msg(&c->out, type, FRAME_CALL, 0, ++c->last, deadline_ms, m, msg), 0);
	flush(c);
	return c->last;
}

void client_send(struct client *c, struct frame f)
{
	assert_int_equal(frame_put(&c->out, &f), 0);
	flush(c);
}

void client_credit(struct client *c, uint32_t stream, uint32_t n)
{
	char body[4] = { (char)n, (char)(n >> 8), (char)(n >> 16), (char)(n >> 24) };
	client_send(c, (struct frame){ .kind = FRAME_WINDOW_ADD, .stream = stream, .body = { body, 4 } });
}

bool client_next(struct client *c, struct frame *f)
{
	size_t size;
	buf_consume(&c->in, c->shown); /* the frame of the last call stood at the front until now */
	c->shown = 0;
	for (;;) {
		int r = frame_parse(buf_view(&c->in), f, &size);
		assert_true(r >= 0);
		if (r > 0) {
			c->shown = size;
			return true;
		}
		char *p = buf_reserve(&c->in, 65536);
		assert_non_null(p);
		ssize_t n = recv(c->fd, p, 65536, 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			fail_msg("no answer within ten seconds");
		if (n <= 0)
			return false;
		buf_commit(&c->in, (size_t)n);
	}
}

static void keep(struct buf *b, struct view v)
{
	buf_init(b, 64u << 20);
	assert_int_equal(buf_add(b, v), 0);
}

void client_finish(struct client *c, uint32_t stream, struct answer *a)
{
	*a = (struct answer){ 0 };
	for (size_t i = 0; i < ELEMS(a->data); i++)
		buf_init(&a->data[i], 256u << 20);
	struct frame f;
	bool first = true;
	for (;;) {
		assert_true(client_next(c, &f));
		if (f.stream != stream)
			continue;
		switch ((enum frame_kind)f.kind) {
		case FRAME_DATA:
			assert_in_range(f.type, 0, ELEMS(a->data) - 1);
			assert_int_equal(buf_add(&a->data[f.type], f.body), 0);
			client_credit(c, stream, (uint32_t)f.body.n);
			break;
		case FRAME_WINDOW_ADD:
			break;
		case FRAME_FAIL:
			a->failed = true;
			link_read_fail(&f, &a->error);
			return;
		case FRAME_REPLY:
			a->type = f.type;
			if (f.flags & FRAME_LAST) {
				keep(&a->last, f.body);
				return;
			}
			assert_true(first);
			first = false;
			keep(&a->first, f.body);
			break;
		case FRAME_CALL:
		case FRAME_END:
		case FRAME_CANCEL:
		case FRAME_EVENT:
			fail_msg("frame of kind %d from PID 1", f.kind);
		}
	}
}

void answer_done(struct answer *a)
{
	for (size_t i = 0; i < ELEMS(a->data); i++)
		buf_done(&a->data[i]);
	buf_done(&a->first);
	buf_done(&a->last);
}

void answer_decode(struct answer *a, const struct buf *body, const struct pb_msg *m, struct arena *arena,
		   void *out)
{
	if (a->failed)
		fail_msg("%s: %s", err_name(a->error.code), a->error.msg);
	assert_int_equal(pb_decode(m, buf_view(body), 0, arena, out), 0);
}

uint32_t client_start(struct client *c, const struct run *r)
{
	struct view argv[32];
	struct wire_env_var env[32];
	uint64_t limit = r->limit ? r->limit : 1u << 30;
	struct wire_start s = {
		.argv = { argv, 0 },
		.env = { env, 0 },
		.cwd = view_of(r->cwd),
		.user = view_of(r->user ? r->user : "root"),
		.stdin_ = r->open_stdin,
		.stdout_limit = limit,
		.stderr_limit = limit,
		.keep = r->keep,
		.tag = view_of(r->tag),
		.ring_bytes = r->ring,
		.wait_reader = r->wait_reader,
		.control = r->control,
		.pty = r->pty,
	};
	for (; r->argv[s.argv.n]; s.argv.n++)
		argv[s.argv.n] = view_of(r->argv[s.argv.n]);
	for (; r->env && r->env[2 * s.env.n]; s.env.n++)
		env[s.env.n] = (struct wire_env_var){ view_of(r->env[2 * s.env.n]),
						      view_of(r->env[2 * s.env.n + 1]) };
	uint32_t id = client_call(c, WIRE_TYPE_START, r->deadline_ms, &wire_start_msg, &s);
	if (r->open_stdin && !r->keep) {
		for (struct view v = r->input; v.n; v = view_skip(v, FRAME_DATA_MAX))
			client_send(c, (struct frame){ .kind = FRAME_DATA,
						       .stream = id,
						       .body = view_head(v, FRAME_DATA_MAX) });
		client_send(c, (struct frame){ .kind = FRAME_END, .stream = id });
	}
	return id;
}

void client_run(struct client *c, const struct run *r, struct answer *a, struct wire_exited *ret_exited)
{
	uint32_t id = client_start(c, r);
	client_finish(c, id, a);
	_cleanup_(arena_done) struct arena arena = ARENA_INIT(65536);
	if (!a->failed)
		answer_decode(a, &a->last, &wire_exited_msg, &arena, ret_exited);
}
