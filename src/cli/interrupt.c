/*
 * See interrupt.h.
 */
#include "interrupt.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"
#include "fd.h"
#include "ref.h"

#include "poison.h"

#define GRACE_MS  5000 /* from the signal to SIGKILL */
#define KILLED_MS 5000 /* from SIGKILL to giving up */
#define SEND_MS   5000
/* timeout(1) signals its child and then its whole group: one event, two signals. */
#define SAME_MS 200

int interrupt_catch(struct interrupt *in, struct err *e)
{
	static const int wanted[] = { SIGINT, SIGTERM, SIGHUP };
	sigset_t set;

	*in = INTERRUPT_INIT;
	sigemptyset(&set);
	for (size_t i = 0; i < ELEMS(wanted); i++) {
		struct sigaction old;

		if (sigaction(wanted[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaddset(&set, wanted[i]);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	in->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return in->fd < 0 ? err_sys(e, ERR_INTERNAL, errno, "signalfd") : 0;
}

void interrupt_done(struct interrupt *in)
{
	fd_close(in->fd);
	in->fd = -EBADF;
}

static int next_signal(const struct interrupt *in)
{
	struct signalfd_siginfo si;

	return read(in->fd, &si, sizeof(si)) == (ssize_t)sizeof(si) ? (int)si.ssi_signo : 0;
}

int interrupt_code(struct interrupt *in)
{
	if (!in->signo)
		in->signo = next_signal(in);
	return in->signo ? 128 + in->signo : 0;
}

/* On a connection of its own: the command's is in the middle of an answer. SIGKILL goes to all that the
 * command has started. That the command has just ended is no failure. */
static int tell(const struct interrupt *in, int signo, struct err *e)
{
	_cleanup_(buf_done) struct buf path = BUF_INIT(8192);
	struct client_request rq = { .timeout_ms = SEND_MS };
	struct response answer;
	struct client c;
	char body[32];
	int r;

	client_init(&c, &in->s->client.url, in->s->client.key);
	c.ca = in->s->client.ca;
	buf_puts(&path, "/v1/sandboxes/");
	if (session_segment(&path, ref_id(in->s, in->box), e) < 0)
		return -1;
	buf_printf(&path, "/processes/%llu", (unsigned long long)in->pid);
	rq.method = signo == SIGKILL ? "DELETE" : "POST";
	if (signo != SIGKILL) {
		buf_puts(&path, "/signal");
		snprintf(body, sizeof(body), "{\"signal\":%d}", signo);
		rq.body = view_of(body);
		rq.content_type = "application/json";
	}
	rq.path = buf_view(&path);
	r = path.bad ? err_set(e, ERR_INTERNAL, "out of memory") : client_send(&c, &rq, &answer, e);
	client_done(&c);
	return r;
}

static int put_an_end(struct interrupt *in, struct err *e)
{
	if (in->shell)
		return err_set(e, ERR_CANCELLED, "interrupted");
	in->killed = true;
	in->s->client.wake_at_ms = clock_mono_ms() + KILLED_MS;
	return tell(in, SIGKILL, e);
}

static int on_timer(struct interrupt *in, struct err *e)
{
	if (in->killed)
		return err_set(e, ERR_CANCELLED, "interrupted; the command may still run");
	fprintf(stderr, "paddock: the command did not end within %d s of SIG%s: it is killed\n",
		GRACE_MS / 1000, sigabbrev_np(in->signo));
	return put_an_end(in, e);
}

static int on_wake(void *arg, struct err *e)
{
	struct interrupt *in = arg;
	uint64_t now = clock_mono_ms();
	int signo = next_signal(in);

	if (!signo)
		return now >= in->s->client.wake_at_ms ? on_timer(in, e) : 0;
	if (!in->pid || (in->shell && signo != SIGINT)) {
		in->signo = signo;
		return err_set(e, ERR_CANCELLED, "interrupted");
	}
	if (in->killed || (signo == in->signo && (signo != SIGINT || now - in->since_ms < SAME_MS)))
		return 0;
	if (signo == SIGINT && in->signo == SIGINT)
		return put_an_end(in, e);
	in->signo = signo;
	in->since_ms = now;
	in->s->client.wake_at_ms = now + GRACE_MS;
	if (signo == SIGINT && isatty(STDERR_FILENO))
		fputs("paddock: the command has got SIGINT; press Ctrl-C again to kill it\n", stderr);
	return tell(in, signo, e);
}

void interrupt_watch(struct interrupt *in, struct session *s, const char *box)
{
	in->s = s;
	in->box = box;
	s->client.cancel_fd = in->fd;
	s->client.on_wake = on_wake;
	s->client.wake_arg = in;
}

void interrupt_leave(struct interrupt *in)
{
	in->s->client.cancel_fd = -1;
	in->s->client.on_wake = NULL;
	in->s->client.wake_at_ms = 0;
	in->pid = 0;
}
