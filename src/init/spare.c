/*
 * A login shell made ahead: see spare.h.
 */
#include "spare.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fd.h"
#include "proc.h"
#include "tree.h"
#include "user.h"
#include "poison.h"

#define SOON_MS     1     /* behind a command: whoever reads its end comes first */
#define HURRY_MS    10    /* between the end of a command and the next one */
#define LATEST_MS   20    /* behind the start of one that runs for longer */
#define IDLE_MS     60000 /* then it is not worth its memory */
#define COMMAND_MAX 4000  /* one write, and bash reads it byte by byte */
#define KEY_MAX     (64u * 1024)
#define FILES       9

/* Takes the command from the control channel and leaves nothing of how it came. It comes in a variable, so
 * that nobody has it on the screen who types `ps`. (Not on stdin: what the user's profile starts may read
 * that.) */
#define WAIT                                                                                                 \
	"unset __paddock; IFS= read -r -d '' -u 250 && exec 250<&- 251>&- && set -- \"$REPLY\" && unset "    \
	"REPLY && "                                                                                          \
	"eval \"shift; $1\""

struct stamp {
	dev_t dev;
	ino_t ino;
	int64_t sec, nsec;
	off_t size;
};

struct spare {
	struct init *init;
	struct proc *proc; /* NULL: there is none */
	struct buf key;    /* the Start without its command, encoded */
	struct buf next;   /* of the one that is to be made */
	struct stamp stamps[FILES];
	struct loop_timer timer;  /* makes one; or gives it up */
	struct loop_task at_once; /* makes one */
	uint64_t keep_ms;         /* then it is given up */
	bool planned;             /* the timer makes one */
	bool hurries;             /* commands come one after another: the next needs its shell at once */
	uint64_t ended_ms;        /* when the last one ended */
};

/* ---- what a login reads ----------------------------------------------- */

static void stamp_file(const char *dir, const char *name, bool only_itself, struct stamp *ret)
{
	char path[PATH_MAX];
	struct stat st;
	int n = snprintf(path, sizeof(path), "%s%s", dir, name);
	*ret = (struct stamp){ 0 };
	if (n < 0 || (size_t)n >= sizeof(path) || stat(path, &st) < 0)
		return;
	*ret = (struct stamp){ .dev = st.st_dev, .ino = st.st_ino };
	if (only_itself)
		return;
	ret->sec = st.st_mtim.tv_sec;
	ret->nsec = st.st_mtim.tv_nsec;
	ret->size = st.st_size;
}

static int take_stamps(const struct wire_start *msg, struct stamp ret[FILES])
{
	static const char *const etc[] = { "/etc/profile", "/etc/profile.d", "/etc/bash.bashrc",
					   "/etc/passwd" };
	static const char *const home[] = { "/.bash_profile", "/.bash_login", "/.profile", "/.bashrc" };
	struct user user;
	struct err e;
	size_t n = 0;
	if (user_find(msg->user, &user, &e) < 0)
		return -1;
	for (size_t i = 0; i < ELEMS(etc); i++)
		stamp_file(etc[i], "", false, &ret[n++]);
	for (size_t i = 0; i < ELEMS(home); i++)
		stamp_file(user.home, home[i], false, &ret[n++]);
	/* The directory that it stands in must still be the one of that name. */
	if (msg->cwd.n && msg->cwd.p[0] != '/')
		return -1;
	char cwd[PATH_MAX];
	if (view_to_str(msg->cwd.n ? msg->cwd : view_of(user.home), cwd, sizeof(cwd)) < 0)
		return -1;
	stamp_file(cwd, "", true, &ret[n++]);
	return 0;
}

static bool same_stamps(const struct spare *s, const struct wire_start *msg)
{
	struct stamp now[FILES];
	if (take_stamps(msg, now) < 0)
		return false;
	for (size_t i = 0; i < FILES; i++)
		if (now[i].dev != s->stamps[i].dev || now[i].ino != s->stamps[i].ino ||
		    now[i].sec != s->stamps[i].sec || now[i].nsec != s->stamps[i].nsec ||
		    now[i].size != s->stamps[i].size)
			return false;
	return true;
}

/* ---- which Start ------------------------------------------------------ */

static bool is_login_command(const struct wire_start *m)
{
	return m->ready && m->keep && !m->pty && !m->control && !m->stdin_ && !m->ring_bytes &&
	       !m->wait_reader && m->argv.n == 4 && view_is(m->argv.items[0], "/bin/bash") &&
	       view_is(m->argv.items[1], "-l") && view_is(m->argv.items[2], "-c") &&
	       m->argv.items[3].n <= COMMAND_MAX &&
	       !(m->argv.items[3].n && memchr(m->argv.items[3].p, 0, m->argv.items[3].n));
}

static int put_key(const struct wire_start *msg, struct buf *out)
{
	struct wire_start plain = { .env = msg->env, .cwd = msg->cwd, .user = msg->user };
	buf_done(out);
	return pb_encode(&wire_start_msg, &plain, out);
}

/* ---- the shell -------------------------------------------------------- */

static void drop(struct spare *s)
{
	if (!s->proc)
		return;
	tree_kill(s->proc->pid);
	proc_free(s->proc); /* its exit is collected as anybody's */
	s->proc = NULL;
}

static void on_idle(struct loop_timer *t)
{
	drop(CONTAINER(t, struct spare, timer));
}

static int launch(struct spare *s, struct arena *a)
{
	struct view argv[] = { VIEW("/bin/bash"), VIEW("-l"), VIEW("-c"), VIEW("eval \"$__paddock\"") };
	struct wire_start msg;
	struct err e;
	if (pb_decode(&wire_start_msg, buf_view(&s->key), 0, a, &msg) < 0 || take_stamps(&msg, s->stamps) < 0)
		return -1;
	struct wire_env_var *env = arena_array(a, msg.env.n + 1, sizeof(*env));
	if (!env)
		return -1;
	if (msg.env.n)
		memcpy(env, msg.env.items, msg.env.n * sizeof(*env));
	env[msg.env.n++] = (struct wire_env_var){ VIEW("__paddock"), VIEW(WAIT) };
	msg.env.items = env;
	msg.argv.items = argv;
	msg.argv.n = ELEMS(argv);
	msg.keep = msg.control = true;
	struct proc *p = proc_new(s->init);
	if (!p)
		return -1;
	p->keep = true;
	proc_out_init(p, (uint64_t[]){ 0, 0 }, PROC_RING);
	if (proc_launch(p, &msg, a, &e) < 0) {
		proc_free(p);
		return -1;
	}
	s->proc = p;
	return 0;
}

static void stop_plan(struct spare *s)
{
	s->planned = false;
	loop_timer_stop(&s->timer);
	loop_cancel(s->init->loop, &s->at_once);
}

static void make(struct spare *s)
{
	struct arena a = ARENA_INIT(4 * KEY_MAX);
	struct buf key = s->key;
	stop_plan(s);
	drop(s);
	s->key = s->next;
	s->next = key;
	if (launch(s, &a) == 0)
		loop_timer_start(s->init->loop, &s->timer, s->keep_ms, on_idle);
	arena_done(&a);
}

static void on_soon(struct loop_timer *t)
{
	make(CONTAINER(t, struct spare, timer));
}

static void on_at_once(struct loop_task *t)
{
	make(CONTAINER(t, struct spare, at_once));
}

static struct spare *wish(struct init *in, const struct wire_start *msg)
{
	struct spare *s = in->spare;
	if (!is_login_command(msg))
		return NULL;
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return NULL;
		s->init = in;
		s->key = s->next = BUF_INIT(KEY_MAX);
		list_init(&s->at_once.link);
		in->spare = s;
	}
	return put_key(msg, &s->next) == 0 ? s : NULL;
}

void spare_plan(struct init *in, const struct wire_start *msg)
{
	struct spare *s = wish(in, msg);
	if (!s)
		return;
	stop_plan(s);
	s->keep_ms = IDLE_MS;
	s->planned = true;
	s->hurries = s->ended_ms && loop_now(in->loop) - s->ended_ms <= HURRY_MS;
	loop_timer_start(in->loop, &s->timer, LATEST_MS, on_soon);
}

void spare_ended(struct init *in)
{
	struct spare *s = in->spare;
	if (!s || !s->planned)
		return;
	s->ended_ms = loop_now(in->loop);
	if (!s->hurries)
		loop_timer_start(in->loop, &s->timer, SOON_MS, on_soon);
	else if (list_empty(&s->at_once.link))
		loop_defer(in->loop, &s->at_once, on_at_once);
}

static bool is_alive(const struct proc *p)
{
	siginfo_t info = { 0 };
	return waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

void spare_ahead(struct init *in, const struct wire_start *msg, uint32_t seconds)
{
	struct spare *s = wish(in, msg);
	if (!s)
		return;
	s->keep_ms = (uint64_t)seconds * 1000;
	if (s->proc && view_eq(buf_view(&s->key), buf_view(&s->next)) && same_stamps(s, msg) &&
	    is_alive(s->proc)) {
		stop_plan(s);
		loop_timer_start(in->loop, &s->timer, s->keep_ms, on_idle);
	} else {
		make(s);
	}
}

/* ---- its command ------------------------------------------------------ */

/* The pipe is empty and takes it whole, with the zero byte that ends it. */
static bool give(struct proc *p, struct view command)
{
	char text[COMMAND_MAX + 1] = { 0 };
	int *fd = &p->feeds[PROC_CONTROL_IN].fd;
	if (command.n)
		memcpy(text, command.p, command.n);
	bool all = write(*fd, text, command.n + 1) == (ssize_t)command.n + 1;
	fd_close(TAKE_FD(*fd));
	return all;
}

struct proc *spare_take(struct init *in, const struct wire_start *msg)
{
	struct spare *s = in->spare;
	if (!s || !s->proc || !is_login_command(msg))
		return NULL;
	struct buf key = BUF_INIT(KEY_MAX);
	bool fits = put_key(msg, &key) == 0 && view_eq(buf_view(&key), buf_view(&s->key)) &&
		    same_stamps(s, msg) && is_alive(s->proc);
	buf_done(&key);
	if (!fits || !give(s->proc, msg->argv.items[3])) {
		drop(s);
		return NULL;
	}
	struct proc *p = s->proc;
	s->proc = NULL;
	stop_plan(s);
	return p;
}

void spare_reaped(struct init *in, int pid)
{
	struct spare *s = in->spare;
	if (!s || !s->proc || s->proc->pid != pid)
		return;
	proc_free(s->proc);
	s->proc = NULL;
}

void spare_stop(struct init *in)
{
	struct spare *s = in->spare;
	if (!s)
		return;
	stop_plan(s);
	drop(s);
	buf_done(&s->key);
	buf_done(&s->next);
	free(s);
	in->spare = NULL;
}
