/*
 * Exec, ExecStream, PipInstall and PipInstallStream.
 */
#include "agentbox_gen.h"
#include "agentbox_impl.h"
#include "host_match.h"
#include "net.h"
#include "text.h"
#include "text_pieces.h"
#include "poison.h"

#define PACKAGES_MAX 256

struct exec_wish agentbox_wish(const struct request *r, struct view command, struct view workdir,
			       uint64_t seconds)
{
	uint64_t most = core_config(r->core)->max.exec_timeout_ms;
	uint64_t ms = (seconds ? seconds : AGENTBOX_TIMEOUT_S) * 1000;

	return (struct exec_wish){ .command = command,
				   .cwd = workdir.n ? workdir : VIEW(AGENTBOX_ROOT),
				   .timeout_ms = most ? MIN(ms, most) : ms };
}

/* Text that every reader takes, in the request's arena: what is no UTF-8 is replaced. */
static struct view agentbox_text(struct request *r, struct view bytes)
{
	struct buf b = BUF_INIT(3 * bytes.n + 4);
	struct view text = bytes;

	if (text_is_utf8(bytes))
		return bytes;
	text = text_utf8_fix(&b, bytes) < 0 ? VIEW_NONE : arena_view(&r->arena, buf_view(&b));
	buf_done(&b);
	return text.p ? text : VIEW("");
}

/* ---- as a whole ---- */

struct run {
	struct exec exec;
	struct request *r;
};

static void release_run(struct request *r)
{
	exec_cancel(&((struct run *)r->own)->exec);
}

static void say(struct request *r, const char *why)
{
	rpc_reply(r, &(struct agentbox_exec_response){ .exit_code = -1, .stderr_ = view_of(why) });
}

static void on_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct request *r = CONTAINER(x, struct run, exec)->r;

	if (e) {
		if (agentbox_no_session(e))
			say(r, AGENTBOX_NOT_FOUND);
		else
			answer_fail(r, e);
		return;
	}
	/* What it wrote before its time was over is kept. */
	struct agentbox_exec_response reply = { .exit_code = res->timed_out ? -1 : (int32_t)res->exit_code,
						.stdout_ = agentbox_text(r, res->out),
						.stderr_ = agentbox_text(r, res->err),
						.timed_out = res->timed_out };
	if (res->timed_out && !reply.stderr_.n)
		reply.stderr_ = VIEW(AGENTBOX_TIMED_OUT);
	answer_keep(r, res->kept);
	rpc_reply(r, &reply);
}

static void run(struct request *r, struct view session, const struct exec_wish *w)
{
	struct run *run = agentbox_own(r, sizeof(*run), release_run);
	struct err e = { 0 };

	if (!run)
		return;
	run->r = r;
	run->exec.done = on_done;
	if (exec_start(r->core, &r->actor, session, w, &run->exec, &e) < 0)
		on_done(&run->exec, NULL, &e);
}

static void exec(struct request *r, const void *msg)
{
	const struct agentbox_exec_request *q = msg;
	struct exec_wish w =
		agentbox_wish(r, q->command, q->workdir, q->timeout > 0 ? (uint64_t)q->timeout : 0);

	run(r, q->session_id, &w);
}

/* ---- as it comes ---- */

struct streamed {
	struct exec exec;
	struct request *r;
	struct text_pieces pieces[EXEC_CHANNELS];
	unsigned channel; /* of what is being passed on */
	size_t held;
};

static void release_streamed(struct request *r)
{
	exec_cancel(&((struct streamed *)r->own)->exec);
}

static void begin(struct request *r)
{
	if (!rpc_of(r)->begun)
		rpc_begin(r, NULL);
}

static void put_piece(void *arg, struct view piece)
{
	struct streamed *s = arg;
	_cleanup_(buf_done) struct buf fixed = BUF_INIT(3 * piece.n + 4);
	bool good = text_is_utf8(piece);

	if (!good)
		text_utf8_fix(&fixed, piece);
	rpc_send(s->r, &(struct agentbox_exec_stream_response){ .type = s->channel == 1 ? VIEW("stdout")
											: VIEW("stderr"),
								.data = good ? piece : buf_view(&fixed) });
}

static void on_begun(struct exec *x, const struct exec_begun *b)
{
	begin(CONTAINER(x, struct streamed, exec)->r);
}

static void on_output(struct exec *x, unsigned channel, struct view data)
{
	struct streamed *s = CONTAINER(x, struct streamed, exec);

	s->channel = channel;
	text_pieces_add(&s->pieces[channel - 1], data, put_piece, s);
	if (rpc_of(s->r)->full)
		s->held += data.n;
	else
		exec_consumed(x, data.n);
}

static void on_writable(struct request *r)
{
	struct streamed *s = r->own;
	size_t n = s->held;

	s->held = 0;
	exec_consumed(&s->exec, n);
}

static void end_with(struct request *r, const struct agentbox_exec_stream_response *last)
{
	begin(r);
	rpc_send(r, last);
	rpc_end(r);
}

static void end_error(struct request *r, const char *why)
{
	end_with(r, &(struct agentbox_exec_stream_response){ .type = VIEW("error"), .data = view_of(why) });
}

static void on_streamed(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct streamed *s = CONTAINER(x, struct streamed, exec);

	for (s->channel = 1; !e && s->channel <= EXEC_CHANNELS; s->channel++)
		text_pieces_end(&s->pieces[s->channel - 1], put_piece, s);
	if (e) {
		end_error(s->r, agentbox_no_session(e) ? AGENTBOX_NOT_FOUND : e->msg);
	} else if (res->timed_out) {
		end_error(s->r, AGENTBOX_TIMED_OUT);
	} else {
		end_with(s->r,
			 &(struct agentbox_exec_stream_response){ .type = VIEW("exit"),
								  .has_exit_code = true,
								  .exit_code = (int32_t)res->exit_code });
	}
}

static void stream(struct request *r, struct view session, const struct exec_wish *w)
{
	struct streamed *s = agentbox_own(r, sizeof(*s), release_streamed);
	struct err e = { 0 };

	if (!s)
		return;
	s->r = r;
	s->exec.on_begun = on_begun;
	s->exec.on_output = on_output;
	s->exec.done = on_streamed;
	rpc_of(r)->on_writable = on_writable;
	if (exec_start(r->core, &r->actor, session, w, &s->exec, &e) < 0)
		on_streamed(&s->exec, NULL, &e);
}

static void exec_stream(struct request *r, const void *msg)
{
	const struct agentbox_exec_stream_request *q = msg;
	struct exec_wish w = agentbox_wish(r, q->command, q->workdir, 0);

	w.timeout_ms = 0; /* it has no limit of its own, but the installation's */
	stream(r, q->session_id, &w);
}

/* ---- pip ---- */

static bool is_package_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       memchr("._-[],=<>!~+", c, 12);
}

/* A requirement by name and version; no option, no URL, no path. */
static bool is_package(struct view v)
{
	char first = v.n ? v.p[0] : 0;

	if (v.n > 200 || !((first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') ||
			   (first >= '0' && first <= '9')))
		return false;
	for (size_t i = 0; i < v.n; i++)
		if (!is_package_char(v.p[i]))
			return false;
	return true;
}

/* NULL: the packages may be asked for. */
static const char *pip_wish(struct request *r, const struct agentbox_pip_install_request *q,
			    struct exec_wish *ret)
{
	static const struct view start[] = { VIEW("python3"), VIEW("-m"), VIEW("pip"), VIEW("install"),
					     VIEW("--user") };
	struct json_strlist argv = { .n = ELEMS(start) };

	if (q->packages.n == 0 || q->packages.n > PACKAGES_MAX)
		return "No packages given";
	argv.items = arena_array(&r->arena, ELEMS(start) + q->packages.n, sizeof(struct view));
	if (!argv.items)
		return "Too many packages";
	memcpy(argv.items, start, sizeof(start));
	for (size_t i = 0; i < q->packages.n; i++) {
		if (!is_package(q->packages.items[i]))
			return "Invalid package name";
		argv.items[argv.n++] = q->packages.items[i];
	}
	*ret = agentbox_wish(r, VIEW_NONE, VIEW(""), AGENTBOX_PIP_S);
	ret->argv = argv;
	return NULL;
}

static bool reaches(const struct egress_policy *p, struct view host)
{
	for (size_t i = 0; i < p->n_rules; i++)
		if (p->rules[i].verdict == EGRESS_ALLOW && host_match(p->rules[i].host, host))
			return true;
	return false;
}

/* Every host of the package index, by the name of the set or one by one. */
static bool reaches_index(const struct box *b)
{
	const struct egress_policy *p = policies_of(b, NULL);
	const struct json *set = json_get(policies_sets(b)->sets, "pypi");

	for (size_t i = 0; p && i < p->n_rules; i++)
		if (p->rules[i].verdict == EGRESS_ALLOW && view_is(p->rules[i].set, "pypi"))
			return true;
	for (size_t i = 0; p && set && i < set->n; i++) {
		struct view port, host = view_split(set->items[i].text, ':', &port);
		if (!reaches(p, host))
			return false;
	}
	return p && set && set->n;
}

/* Without a way to the index pip would try for minutes: that is said at once. */
static const char *pip_network(struct request *r, struct view session)
{
	const struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_READ, session, NULL);

	if (!b)
		return AGENTBOX_NOT_FOUND;
	return reaches_index(b) ? NULL : "PipInstall needs the package index in allowed_hosts";
}

static void pip_install(struct request *r, const void *msg)
{
	const struct agentbox_pip_install_request *q = msg;
	struct exec_wish w;
	const char *why = pip_network(r, q->session_id);

	if (!why)
		why = pip_wish(r, q, &w);
	if (why)
		say(r, why);
	else
		run(r, q->session_id, &w);
}

static void pip_install_stream(struct request *r, const void *msg)
{
	const struct agentbox_pip_install_request *q = msg;
	struct exec_wish w;
	const char *why = pip_network(r, q->session_id);

	if (!why)
		why = pip_wish(r, q, &w);
	if (why)
		end_error(r, why);
	else
		stream(r, q->session_id, &w);
}

const struct rpc_method agentbox_exec_methods[] = {
	{ "/sandbox.v1.SandboxService/Exec", RPC_UNARY, &agentbox_exec_request_msg,
	  &agentbox_exec_response_msg, exec },
	{ "/sandbox.v1.SandboxService/ExecStream", RPC_SERVER, &agentbox_exec_stream_request_msg,
	  &agentbox_exec_stream_response_msg, exec_stream },
	{ "/sandbox.v1.SandboxService/PipInstall", RPC_UNARY, &agentbox_pip_install_request_msg,
	  &agentbox_exec_response_msg, pip_install },
	{ "/sandbox.v1.SandboxService/PipInstallStream", RPC_SERVER, &agentbox_pip_install_request_msg,
	  &agentbox_exec_stream_response_msg, pip_install_stream },
	{ 0 },
};
