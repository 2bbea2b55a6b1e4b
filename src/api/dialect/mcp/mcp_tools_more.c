/*
 * The tools for processes, ports, snapshots and forks.
 */
#include <signal.h>

#include "disk.h"
#include "mcp_tools.h"
#include "netns.h"
#include "port.h"
#include "run.h"
#include "poison.h"

/* ---- processes ---- */

struct processes {
	struct mcp_args head;
	struct view action, process, signal;
	struct exec_wish wish;
	struct proc_op op;
	struct exec exec;
	struct mcp_call *call;
};

#define AT(f) .offset = offsetof(struct processes, f)
static const struct json_field processes_fields[] = {
	MCP_TOOLS_SANDBOX,
	{ "action", JSON_F_STRING, AT(action), .min = 1, .nullable = true },
	{ "process", JSON_F_STRING, AT(process), .min = 1, .nullable = true },
	{ "signal", JSON_F_STRING, AT(signal), .min = 1, .nullable = true },
	{ "command", JSON_F_STRING, AT(wish.command), .min = 1, .nullable = true },
	{ "tag", JSON_F_STRING, AT(wish.tag), .min = 1, .nullable = true },
	{ "cwd", JSON_F_STRING, AT(wish.cwd), .min = 1, .nullable = true },
	{ "env", JSON_F_STRMAP, AT(wish.env), .nullable = true },
	{ "user", JSON_F_STRING, AT(wish.user), .min = 1, .nullable = true },
};
#undef AT
const struct json_schema mcp_tools_processes_args = { processes_fields, ELEMS(processes_fields) };
const size_t mcp_tools_processes_size = sizeof(struct processes);

static void put_process(struct json_out *o, const struct proc_info *p)
{
	json_out_object(o);
	json_out_ku64(o, "pid", p->pid);
	mcp_tools_put_text(o, "tag", p->tag);
	json_out_key(o, "argv");
	json_out_array(o);
	for (size_t i = 0;
	     i < p->argv.n && !view_starts(p->tag, "shell:") && !view_starts(p->tag, "context:"); i++)
		json_out_str(o, p->argv.items[i]);
	json_out_end(o, ']');
	json_out_kbool(o, "running", p->running);
	json_out_key(o, "exit_code");
	if (p->has_exit)
		json_out_u64(o, p->exit.exit_code);
	else
		json_out_null(o);
	answer_put_time(o, "started_at", p->started_ms);
	json_out_end(o, '}');
}

static void send_processes(struct mcp_call *c, const struct proc_info *list, size_t n)
{
	struct mcp_object x;
	struct json_out *o = mcp_tools_open(&x);

	json_out_key(o, "processes");
	json_out_array(o);
	for (size_t i = 0; i < n; i++)
		put_process(o, &list[i]);
	json_out_end(o, ']');
	mcp_tools_send(c, &x);
}

static void on_listed(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct mcp_call *c = CONTAINER(op, struct processes, op)->call;

	c->cancel = NULL;
	if (e)
		mcp_call_fail(c, e);
	else
		send_processes(c, list, n);
}

static void stop_asking(struct mcp_call *c)
{
	struct processes *p = c->own;
	procs_cancel(&p->op);
}

static void stop_starting(struct mcp_call *c)
{
	struct processes *p = c->own;
	exec_cancel(&p->exec);
}

/* It runs and is kept: nobody here waits for its end. */
static void on_started(struct exec *x, const struct exec_begun *b)
{
	struct processes *p = CONTAINER(x, struct processes, exec);
	struct mcp_call *c = p->call;
	struct view argv[] = { VIEW("bash"), VIEW("-c"), p->wish.command };
	struct proc_info info = {
		.pid = b->pid, .tag = p->wish.tag, .argv = { argv, ELEMS(argv) }, .running = true
	};

	exec_cancel(x);
	c->cancel = NULL;
	send_processes(c, &info, 1);
}

static void on_ended(struct exec *x, const struct exec_result *r, const struct err *e)
{
	struct mcp_call *c = CONTAINER(x, struct processes, exec)->call;
	struct err none = { 0 };

	c->cancel = NULL;
	if (!e)
		err_set(&none, ERR_INTERNAL, "the process ended before it began");
	mcp_call_fail(c, e ? e : &none);
}

static int start(struct mcp_call *c, struct processes *p, struct err *e)
{
	if (!p->wish.command.n)
		return err_set(e, ERR_INVALID, "start needs command");
	p->wish.keep = true;
	p->exec.on_begun = on_started;
	p->exec.done = on_ended;
	c->cancel = stop_starting;
	return exec_start(c->core, &c->actor, p->head.sandbox, &p->wish, &p->exec, e);
}

static int signal_one(struct mcp_call *c, struct processes *p, struct err *e)
{
	uint32_t signo = p->signal.n ? exec_signal(p->signal) : SIGTERM;

	if (!p->process.n || !signo)
		return err_set(e, ERR_INVALID,
			       "signal needs process (a pid or tag) and the name of a signal");
	return procs_signal(c->core, &c->actor, p->head.sandbox, p->process, signo, true, &p->op, e);
}

void mcp_tools_processes(struct mcp_call *c)
{
	struct processes *p = c->own;
	struct err e = { 0 };
	int r;

	p->call = c;
	p->op.done = on_listed;
	c->cancel = stop_asking;
	if (!p->action.n || view_is(p->action, "list"))
		r = procs_list(c->core, &c->actor, p->head.sandbox, &p->op, &e);
	else if (view_is(p->action, "start"))
		r = start(c, p, &e);
	else if (view_is(p->action, "signal"))
		r = signal_one(c, p, &e);
	else
		r = err_set(&e, ERR_INVALID, "action must be list, start or signal");
	if (r >= 0)
		return;
	c->cancel = NULL;
	mcp_call_fail(c, &e);
}

/* ---- ports ---- */

struct ports {
	struct mcp_args head;
	struct port_query query;
	struct mcp_call *call;
};

static void put_port(struct json_out *o, const struct mcp_call *c, const struct box *b,
		     const struct port_listener *l)
{
	struct view domain = core_config(c->core)->ports.domain;
	struct buf host = BUF_INIT(512);

	json_out_object(o);
	json_out_ku64(o, "port", l->port);
	json_out_kstr(o, "address", l->address);
	mcp_tools_put_text(o, "process", l->process);
	if (domain.n) /* PORT-ID.DOMAIN, at the port of the API */
		buf_printf(&host, "%u-%s.%.*s", l->port, b->id, VIEW_ARG(domain));
	mcp_tools_put_text(o, "host", buf_view(&host));
	buf_clear(&host);
	buf_printf(&host, "/v1/sandboxes/%s/ports/%u/", b->id, l->port);
	json_out_kstr(o, "path", buf_view(&host));
	json_out_end(o, '}');
	buf_done(&host);
}

static void on_ports(struct port_query *q, const struct port_listener *list, size_t n, const struct err *e)
{
	struct ports *p = CONTAINER(q, struct ports, query);
	struct mcp_call *c = p->call;
	struct err gone = { 0 };
	const struct box *b = e ? NULL : boxes_find(c->core, &c->actor, ACT_BOX_READ, p->head.sandbox, &gone);
	struct mcp_object x;

	c->cancel = NULL;
	if (!b) {
		mcp_call_fail(c, e ? e : &gone);
		return;
	}
	struct json_out *o = mcp_tools_open(&x);
	json_out_key(o, "ports");
	json_out_array(o);
	for (size_t i = 0; i < n; i++)
		if (list[i].port != NETNS_PROXY_PORT) /* the gate's, not the sandbox's */
			put_port(o, c, b, &list[i]);
	json_out_end(o, ']');
	json_out_kbool(o, "public", b->spec.ports_public);
	mcp_tools_send(c, &x);
}

static void stop_ports(struct mcp_call *c)
{
	struct ports *p = c->own;
	ports_cancel(&p->query);
}

void mcp_tools_ports(struct mcp_call *c)
{
	struct view sandbox = ((struct mcp_args *)c->own)->sandbox;
	struct ports *p = mcp_call_own(c, sizeof(*p));
	struct err e = { 0 };

	if (!p)
		return;
	p->head.sandbox = sandbox;
	p->call = c;
	p->query.done = on_ports;
	c->cancel = stop_ports;
	if (ports_list(c->core, &c->actor, sandbox, &p->query, &e) >= 0)
		return;
	c->cancel = NULL;
	mcp_call_fail(c, &e);
}

/* ---- snapshot and fork ---- */

struct snapshot_args {
	struct mcp_args head;
	struct view name;
};

static const struct json_field snapshot_fields[] = {
	MCP_TOOLS_SANDBOX,
	{ "name", JSON_F_STRING, offsetof(struct snapshot_args, name), .min = 1, .max = SPEC_NAME_MAX,
	  .nullable = true },
};
const struct json_schema mcp_tools_snapshot_args = { snapshot_fields, ELEMS(snapshot_fields) };
const size_t mcp_tools_snapshot_size = sizeof(struct snapshot_args);

static void on_snapshot(void *arg, const void *result, const struct err *e)
{
	struct mcp_call *c = arg;
	const struct snapshot *s = result;
	struct mcp_object x;

	c->job = NULL;
	if (e) {
		mcp_call_fail(c, e);
		return;
	}
	struct json_out *o = mcp_tools_open(&x);
	json_out_kz(o, "id", s->id);
	mcp_tools_put_text(o, "name", view_of(s->name));
	json_out_kz(o, "sandbox", s->source);
	json_out_ku64(o, "bytes", s->bytes);
	answer_put_time(o, "created_at", s->created_ms);
	mcp_tools_send(c, &x);
}

void mcp_tools_snapshot(struct mcp_call *c)
{
	const struct snapshot_args *a = c->own;
	struct err e = { 0 };

	mcp_call_await(c, snapshots_create(c->core, &c->actor, a->head.sandbox, a->name, on_snapshot, c, &e),
		       &e);
}

struct fork_args {
	struct mcp_args head;
	struct fork_wish wish;
};

#define AT(f) .offset = offsetof(struct fork_args, wish.f)
static const struct json_field fork_fields[] = {
	MCP_TOOLS_SANDBOX,
	{ "count", JSON_F_U64, AT(count), .min = 1, .max = SNAPSHOTS_FORKS_MAX, .nullable = true },
	{ "name_prefix", JSON_F_STRING, AT(name_prefix), .min = 1, .nullable = true },
	{ "ttl_seconds", JSON_F_U64, AT(ttl_seconds), .has = offsetof(struct fork_args, wish.has_ttl),
	  .nullable = true },
};
#undef AT
const struct json_schema mcp_tools_fork_args = { fork_fields, ELEMS(fork_fields) };
const size_t mcp_tools_fork_size = sizeof(struct fork_args);

static void on_forked(void *arg, const void *result, const struct err *e)
{
	struct mcp_call *c = arg;
	const struct fork_result *f = result;
	struct mcp_object x;

	c->job = NULL;
	if (e) {
		mcp_call_fail(c, e);
		return;
	}
	struct json_out *o = mcp_tools_open(&x);
	json_out_key(o, "sandboxes");
	json_out_array(o);
	for (size_t i = 0; i < f->n; i++)
		mcp_tools_put_box(o, f->boxes[i]);
	json_out_end(o, ']');
	mcp_tools_send(c, &x);
}

void mcp_tools_fork(struct mcp_call *c)
{
	struct fork_args *a = c->own;
	struct err e = { 0 };

	a->wish.count = a->wish.count ? a->wish.count : 1;
	mcp_call_await(c, fork_box(c->core, &c->actor, a->head.sandbox, &a->wish, on_forked, c, &e), &e);
}
