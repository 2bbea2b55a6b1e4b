/*
 * The process service, except its streams of output (envd_output.c): requests about a running process.
 * Each request first checks whether the process runs, because clients rely on the answer "no such
 * process".
 */
#include <errno.h>
#include <stdio.h>

#include "envd_gen.h"
#include "envd_impl.h"
#include "envd_output.h"
#include "num.h"
#include "run.h"
#include "poison.h"

struct step {
	struct proc_op op;
	struct request *c;
	char ref[ENVD_REF_MAX]; /* pid or tag */
	struct envd_pty_size size;
	uint32_t signo;
	bool to_pty, close, opened; /* opened: a stream of input knows whose */
	struct view data;           /* what is left of it */
	/* the process lives; what it is is gone when this returns */
	void (*found)(struct step *s, const struct proc_info *info);
	void (*after)(struct step *s); /* all of the input was taken */
};

static void release(struct request *c)
{
	procs_cancel(&((struct step *)c->own)->op);
}

static void fail(struct step *s, enum err_code code, const char *why)
{
	struct err e = { 0 };
	err_set(&e, code, "%s", why);
	answer_fail(s->c, &e);
}

/* ---- which ---- */

int envd_no_process(const char *ref, struct err *e)
{
	bool pid = ref[0] >= '0' && ref[0] <= '9';
	return err_set(e, ERR_NOT_FOUND, "process with %s %s not found", pid ? "pid" : "tag", ref);
}

int envd_ref(const struct envd_process_selector *who, char ret[ENVD_REF_MAX], struct err *e)
{
	uint64_t number;

	if (!who || (!who->has_pid && !who->has_tag))
		return err_set(e, ERR_UNSUPPORTED, "a process is named by pid or by tag");
	if (who->has_pid) {
		snprintf(ret, ENVD_REF_MAX, "%u", who->pid);
		return who->pid ? 0 : envd_no_process(ret, e);
	}
	/* All digits would be a pid to the core, and no tag is. */
	if (view_to_str(who->tag, ret, ENVD_REF_MAX) < 0 || !ret[0] || num_u64(who->tag, &number) >= 0)
		return err_set(e, ERR_NOT_FOUND, "process with this tag not found");
	return 0;
}

static void on_found(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct step *s = CONTAINER(op, struct step, op);
	struct err missing = { 0 };

	if ((e && e->code == ERR_NOT_FOUND) || (!e && !list->running)) {
		envd_no_process(s->ref, &missing);
		answer_fail(s->c, &missing);
	} else if (e) {
		answer_fail(s->c, e);
	} else {
		s->found(s, list);
	}
}

static void look(struct step *s, const struct envd_process_selector *who)
{
	struct err e = { 0 };

	s->op.done = on_found;
	if (envd_ref(who, s->ref, &e) < 0 ||
	    procs_get(s->c->core, &s->c->actor, view_of(s->c->box), view_of(s->ref), &s->op, &e) < 0)
		answer_fail(s->c, &e);
}

static struct step *step_new(struct request *c)
{
	struct step *s = envd_own(c, sizeof(*s), release);
	if (s)
		s->c = c;
	return s;
}

/* ---- the end of what has no answer ---- */

static const struct envd_update_response nothing; /* as all of them are */

static void on_done(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct step *s = CONTAINER(op, struct step, op);

	if (e && e->code == ERR_NOT_FOUND) {
		struct err missing = { 0 };
		envd_no_process(s->ref, &missing);
		answer_fail(s->c, &missing);
	} else if (e) {
		answer_fail(s->c, e);
	} else {
		rpc_reply(s->c, &nothing);
	}
}

/* ---- List ---- */

static struct envd_process_info *put_info(struct arena *a, struct envd_process_info *to,
					  const struct proc_info *info)
{
	struct envd_process_config *config = arena_alloc(a, sizeof(*config));

	if (!config)
		return NULL;
	if (info->argv.n) {
		config->cmd = info->argv.items[0];
		config->args.items = info->argv.items + 1;
		config->args.n = info->argv.n - 1;
	}
	config->cwd = info->cwd;
	config->has_cwd = info->cwd.n > 0;
	*to = (struct envd_process_info){
		.config = config, .pid = info->pid, .tag = info->tag, .has_tag = info->tag.n > 0
	};
	return to;
}

static void on_list(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct step *s = CONTAINER(op, struct step, op);
	struct envd_list_response reply = { 0 };

	if (e) {
		answer_fail(s->c, e);
		return;
	}
	reply.processes.items = arena_array(&s->c->arena, n + 1, sizeof(*reply.processes.items));
	for (size_t i = 0; reply.processes.items && i < n; i++) {
		/* Shells and interpreters of ours have a colon in their tag, which no client's can. */
		if (!list[i].running || (list[i].tag.n && memchr(list[i].tag.p, ':', list[i].tag.n)))
			continue;
		if (put_info(&s->c->arena, &reply.processes.items[reply.processes.n], &list[i]))
			reply.processes.n++;
	}
	rpc_reply(s->c, &reply);
}

static void list_all(struct request *c, const void *request)
{
	struct err e = { 0 };
	struct step *s = step_new(c);

	if (!s)
		return;
	s->op.done = on_list;
	if (procs_list(c->core, &c->actor, view_of(c->box), &s->op, &e) < 0)
		answer_fail(c, &e);
}

/* ---- Update: the size of a terminal ---- */

static void resize(struct step *s, const struct proc_info *info)
{
	struct err e = { 0 };

	if (!info->pty) {
		fail(s, ERR_INTERNAL, "tty not assigned to process");
		return;
	}
	s->op.done = on_done;
	if (procs_resize(s->c->core, &s->c->actor, view_of(s->c->box), view_of(s->ref), s->size.cols,
			 s->size.rows, &s->op, &e) < 0)
		answer_fail(s->c, &e);
}

static void nothing_to_do(struct step *s, const struct proc_info *info)
{
	rpc_reply(s->c, &nothing);
}

static void update(struct request *c, const void *request)
{
	const struct envd_update_request *q = request;
	struct step *s = step_new(c);

	if (!s)
		return;
	s->found = nothing_to_do;
	if (q->pty && q->pty->size) {
		s->size = *q->pty->size;
		s->found = resize;
	}
	look(s, q->process);
}

/* ---- SendSignal ---- */

static void send_it(struct step *s, const struct proc_info *info)
{
	struct err e = { 0 };
	bool tree = s->signo == ENVD_SIGNAL_SIGKILL; /* nothing of it is to stay */

	s->op.done = on_done;
	if (procs_signal(s->c->core, &s->c->actor, view_of(s->c->box), view_of(s->ref), s->signo, tree,
			 &s->op, &e) < 0)
		answer_fail(s->c, &e);
}

static void send_signal(struct request *c, const void *request)
{
	const struct envd_send_signal_request *q = request;
	struct step *s = step_new(c);

	if (!s)
		return;
	s->signo = (uint32_t)q->signal;
	s->found = send_it;
	if (q->signal != ENVD_SIGNAL_SIGKILL && q->signal != ENVD_SIGNAL_SIGTERM)
		fail(s, ERR_UNSUPPORTED, "the signal must be SIGNAL_SIGTERM or SIGNAL_SIGKILL");
	else
		look(s, q->process);
}

/* ---- input ---- */

static void push(struct step *s);

static void on_taken(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct step *s = CONTAINER(op, struct step, op);

	if (e && e->code == ERR_STATE)
		fail(s, ERR_INTERNAL,
		     s->to_pty ? "error writing to tty"
			       : "error writing to stdin: stdin not enabled or closed");
	else if (e)
		on_done(op, list, n, e);
	else
		push(s);
}

/* Piece by piece; the process takes them in its own time. */
static void push(struct step *s)
{
	struct view piece = view_head(s->data, PROCS_INPUT_MAX);
	struct err e = { 0 };

	if (piece.n == 0 && !s->close) {
		s->after(s);
		return;
	}
	s->data = view_skip(s->data, piece.n);
	bool close = s->close && s->data.n == 0;
	if (close)
		s->close = false;
	s->op.done = on_taken;
	if (procs_input(s->c->core, &s->c->actor, view_of(s->c->box), view_of(s->ref), piece, close, &s->op,
			&e) < 0)
		answer_fail(s->c, &e);
}

static void feed(struct step *s, const struct proc_info *info)
{
	if (s->to_pty && !info->pty)
		fail(s, ERR_INTERNAL, "tty not assigned to process");
	else if (!s->to_pty && info->pty)
		fail(s, ERR_INTERNAL,
		     s->close ? "cannot close stdin of a process with a tty"
			      : "tty assigned to process, input should be written to the pty");
	else
		push(s);
}

static void answer(struct step *s)
{
	rpc_reply(s->c, &nothing);
}

/* False: there is none, and the answer is sent. */
static bool take_input(struct step *s, const struct envd_process_input *in)
{
	if (!in || (!in->has_stdin && !in->has_pty)) {
		fail(s, ERR_UNSUPPORTED, "input is for stdin or for pty");
		return false;
	}
	s->to_pty = in->has_pty;
	s->data = in->has_pty ? in->pty : in->stdin_;
	return true;
}

static void send_input(struct request *c, const void *request)
{
	const struct envd_send_input_request *q = request;
	struct step *s = step_new(c);

	if (!s)
		return;
	s->found = feed;
	s->after = answer;
	if (take_input(s, q->input))
		look(s, q->process);
}

static void close_stdin(struct request *c, const void *request)
{
	const struct envd_close_stdin_request *q = request;
	struct step *s = step_new(c);

	if (!s)
		return;
	s->close = true;
	s->found = feed;
	s->after = answer;
	look(s, q->process);
}

/* ---- StreamInput: start, then data ---- */

static void next_message(struct step *s)
{
	rpc_go_on(s->c);
}

static void on_opened(struct step *s, const struct proc_info *info)
{
	s->opened = true;
	s->found = feed;
	rpc_go_on(s->c);
}

static void stream_input(struct request *c, const void *request)
{
	const struct envd_stream_input_request *q = request;
	struct step *s = c->own ? c->own : step_new(c);

	if (!s)
		return;
	s->after = next_message;
	if (!s->opened && q->start) {
		s->found = on_opened;
		look(s, q->start->process);
	} else if (s->opened && q->data) {
		struct err e = { 0 };
		s->op.done = on_found;
		if (take_input(s, q->data->input) &&
		    procs_get(c->core, &c->actor, view_of(c->box), view_of(s->ref), &s->op, &e) < 0)
			answer_fail(c, &e);
	} else if (q->keepalive) {
		rpc_go_on(c);
	} else {
		fail(s, ERR_INVALID, "a stream of input is one start, then data");
	}
}

static void stream_end(struct request *c)
{
	rpc_reply(c, &nothing);
}

/* The two streams of output are one message under two names. */
const struct rpc_method envd_process_methods[] = {
	{ "/process.Process/List", RPC_UNARY, &envd_list_request_msg, &envd_list_response_msg, list_all },
	{ "/process.Process/Start", RPC_SERVER, &envd_start_request_msg, &envd_start_response_msg,
	  envd_start },
	{ "/process.Process/Connect", RPC_SERVER, &envd_connect_request_msg, &envd_start_response_msg,
	  envd_connect },
	{ "/process.Process/Update", RPC_UNARY, &envd_update_request_msg, &envd_update_response_msg, update },
	{ "/process.Process/StreamInput", RPC_CLIENT, &envd_stream_input_request_msg,
	  &envd_stream_input_response_msg, stream_input, stream_end },
	{ "/process.Process/SendInput", RPC_UNARY, &envd_send_input_request_msg,
	  &envd_send_input_response_msg, send_input },
	{ "/process.Process/SendSignal", RPC_UNARY, &envd_send_signal_request_msg,
	  &envd_send_signal_response_msg, send_signal },
	{ "/process.Process/CloseStdin", RPC_UNARY, &envd_close_stdin_request_msg,
	  &envd_close_stdin_response_msg, close_stdin },
	{ 0 },
};
