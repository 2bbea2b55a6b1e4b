/*
 * CreateSession, DestroySession, GetSession, ListSessions.
 */
#include <errno.h>
#include <stdio.h>

#include "agentbox_gen.h"
#include "agentbox_impl.h"
#include "box.h"
#include "disk.h"
#include "net.h"
#include "record.h"
#include "poison.h"

#define META_HOSTS  "agentbox.allowed_hosts" /* as they were asked for, between spaces */
#define META_TENANT "agentbox.tenant_id"
#define STORAGE     "agentbox-" /* and the tenant's id: the workspace that its sessions have */
#define HOSTS_BYTES 1024

/* What sessions reach that name no host, as far as this installation knows these sets. */
static const char *const usual_sets[] = { "pypi", "npm", "github", "crates" };

/* ---- what it is ---- */

static struct view metadata(const struct box *b, const char *key)
{
	return spec_map_get(&b->spec.metadata, view_of(key));
}

static int put_hosts(struct arena *a, const struct box *b, struct agentbox_session_info *to)
{
	struct view rest = metadata(b, META_HOSTS);
	size_t n = 1;

	for (size_t i = 0; i < rest.n; i++)
		n += rest.p[i] == ' ';
	to->allowed_hosts.items = arena_array(a, n, sizeof(struct view));
	if (!to->allowed_hosts.items)
		return -ENOMEM;
	while (rest.p && rest.n)
		to->allowed_hosts.items[to->allowed_hosts.n++] = view_split(rest, ' ', &rest);
	return 0;
}

static int put_session(struct arena *a, const struct box *b, struct agentbox_session_info *to)
{
	struct view tenant = metadata(b, META_TENANT);

	*to = (struct agentbox_session_info){
		.session_id = b->spec.name.n ? b->spec.name : view_of(b->id),
		.container_id = view_of(b->id),
		.created_at = (double)b->state.created_ms / 1000,
		.last_activity = (double)b->state.used_ms / 1000,
		.status = view_of(boxes_status_name(b->state.status)),
		.has_tenant_id = tenant.p != NULL,
		.tenant_id = tenant,
	};
	return put_hosts(a, b, to);
}

static void reply_session(struct request *r, const struct box *b)
{
	struct agentbox_session_info info;
	struct err e = { 0 };

	if (put_session(&r->arena, b, &info) < 0) {
		err_sys(&e, ERR_INTERNAL, ENOMEM, "session");
		answer_fail(r, &e);
		return;
	}
	rpc_reply(r, &(struct agentbox_create_session_response){ .session = &info });
}

/* ---- create ---- */

struct creation {
	struct box_wish wish;
	struct egress_policy policy;
	struct request *r;
	struct exec prepare;
	struct view keys[2], values[2]; /* of the metadata */
	char id[BOX_ID + 1];
};

static void release(struct request *r)
{
	struct creation *c = r->own;
	exec_cancel(&c->prepare);
}

static void on_prepared(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct creation *c = CONTAINER(x, struct creation, prepare);
	const struct box *b = boxes_by_id(c->r->core, view_of(c->id));
	struct err gone = { 0 };

	if (!e && b) {
		reply_session(c->r, b);
		return;
	}
	err_set(&gone, ERR_GONE, "the session has ended at once");
	answer_fail(c->r, e ? e : &gone);
}

/* The directory for outputs; of a tenant with storage it lies in that. */
static void prepare(struct creation *c, const struct box *b)
{
	bool stored = c->wish.workspace.n > 0;
	struct exec_wish w = {
		.command = stored ? VIEW("mkdir -p " AGENTBOX_ROOT "/.outputs " AGENTBOX_DATA
					 " && chown --reference=" AGENTBOX_ROOT " " AGENTBOX_ROOT
					 "/.outputs && ln -sfn " AGENTBOX_ROOT "/.outputs " AGENTBOX_OUTPUTS)
				  : VIEW("mkdir -p " AGENTBOX_OUTPUTS " && chown --reference=" AGENTBOX_ROOT
					 " " AGENTBOX_OUTPUTS),
		.user = VIEW("root"),
		.timeout_ms = AGENTBOX_TIMEOUT_S * 1000,
	};
	struct err e = { 0 };

	memcpy(c->id, b->id, sizeof(c->id));
	c->prepare.done = on_prepared;
	if (exec_start(c->r->core, &c->r->actor, view_of(c->id), &w, &c->prepare, &e) < 0)
		answer_fail(c->r, &e);
}

static void on_created(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (answer_ended(r, e))
		prepare(r->own, result);
}

static void make(struct request *r)
{
	struct creation *c = r->own;
	struct err e = { 0 };

	answer_await(r, create_box(r->core, &r->actor, &c->wish, on_created, r, &e), &e);
}

static void on_storage(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (e && e->code != ERR_CONFLICT) {
		(void)!answer_ended(r, e);
		return;
	}
	r->job = NULL;
	make(r);
}

static void make_with_storage(struct request *r)
{
	struct creation *c = r->own;
	struct workspace_wish w = { .name = c->wish.workspace };
	struct err e = { 0 };

	if (workspaces_find(r->core, &r->actor, ACT_WORKSPACE_WRITE, w.name, NULL))
		make(r);
	else
		answer_await(r, workspaces_create(r->core, &r->actor, &w, on_storage, r, &e), &e);
}

/* ---- hosts ---- */

static int add_rule(struct creation *c, struct view target, const struct json *sets, struct err *e)
{
	struct egress_rule *rule = &c->policy.rules[c->policy.n_rules];

	if (c->policy.n_rules == EGRESS_RULES_MAX)
		return err_set(e, ERR_INVALID, "allowed_hosts has too many entries");
	if (egress_target(&c->r->arena, target, sets, rule, e) < 0)
		return err_wrap(e, "allowed_hosts");
	rule->verdict = EGRESS_ALLOW;
	c->policy.n_rules++;
	return 0;
}

/* A name, or "*.name", which there means that name, too. */
static int add_host(struct creation *c, struct view host, struct buf *said, struct err *e)
{
	struct view checked;

	if (egress_host(&c->r->arena, host, &checked, e) < 0)
		return err_wrap(e, "allowed_hosts");
	if (add_rule(c, host, NULL, e) < 0 ||
	    (view_starts(host, "*.") && add_rule(c, view_skip(host, 2), NULL, e) < 0))
		return -1;
	if (buf_len(said))
		buf_putc(said, ' ');
	buf_add(said, host);
	return said->bad ? err_set(e, ERR_INVALID, "allowed_hosts is too long") : 0;
}

static int add_usual(struct creation *c, struct buf *said, struct err *e)
{
	const struct json *sets = policies_sets_wish(c->r->core, &c->r->actor, &c->wish)->sets;

	for (size_t i = 0; i < ELEMS(usual_sets); i++) {
		const struct json *set = json_get(sets, usual_sets[i]);
		if (!set)
			continue;
		if (add_rule(c, view_of(usual_sets[i]), sets, e) < 0)
			return -1;
		/* Those of a set are shown as names, as far as they are such. */
		for (size_t j = 0; j < set->n; j++) {
			struct view port, name = view_split(set->items[j].text, ':', &port);
			buf_puts(said, buf_len(said) ? " " : "");
			buf_add(said, name);
		}
	}
	return said->bad ? err_set(e, ERR_INTERNAL, "the sets are too long") : 0;
}

static int take_hosts(struct creation *c, const struct agentbox_create_session_request *q, struct err *e)
{
	_cleanup_(buf_done) struct buf said = BUF_INIT(HOSTS_BYTES);

	c->policy = (struct egress_policy){ .otherwise = EGRESS_DENY };
	c->policy.rules = arena_array(&c->r->arena, EGRESS_RULES_MAX, sizeof(*c->policy.rules));
	if (!c->policy.rules)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "session");
	if (q->allowed_hosts.n == 0 && add_usual(c, &said, e) < 0)
		return -1;
	for (size_t i = 0; i < q->allowed_hosts.n; i++)
		if (add_host(c, q->allowed_hosts.items[i], &said, e) < 0)
			return -1;
	c->keys[c->wish.metadata.n] = VIEW(META_HOSTS);
	c->values[c->wish.metadata.n++] = arena_view(&c->r->arena, buf_view(&said));
	return policies_wish(c->r->core, &c->r->actor, &c->wish, &c->policy, e);
}

/* It names a workspace, never a path. */
static int take_tenant(struct creation *c, struct view tenant, struct err *e)
{
	struct buf name = BUF_INIT(SPEC_NAME_MAX);

	if (!tenant.n)
		return 0;
	buf_puts(&name, STORAGE);
	buf_add(&name, tenant);
	if (!spec_is_name(tenant) || name.bad) {
		buf_done(&name);
		return err_set(e, ERR_INVALID, "tenant_id must be 1 to %zu characters of [A-Za-z0-9._-]",
			       SPEC_NAME_MAX - strlen(STORAGE));
	}
	c->wish.workspace = arena_view(&c->r->arena, buf_view(&name));
	buf_done(&name);
	c->keys[c->wish.metadata.n] = VIEW(META_TENANT);
	c->values[c->wish.metadata.n++] = tenant;
	return c->wish.workspace.p ? 0 : err_sys(e, ERR_INTERNAL, ENOMEM, "session");
}

static void create(struct request *r, const void *msg)
{
	const struct agentbox_create_session_request *q = msg;
	struct err e = { 0 };
	const struct box *there =
		q->session_id.n ? boxes_find(r->core, &r->actor, ACT_BOX_READ, q->session_id, NULL) : NULL;

	if (there) { /* unchanged */
		reply_session(r, there);
		return;
	}
	struct creation *c = agentbox_own(r, sizeof(*c), release);
	if (!c)
		return;
	c->r = r;
	c->wish = (struct box_wish){ .name = q->session_id,
				     .metadata = { c->keys, c->values, 0 },
				     .idle_seconds = core_config(r->core)->agentbox.session_timeout };
	if (take_tenant(c, q->tenant_id, &e) < 0 || take_hosts(c, q, &e) < 0)
		answer_fail(r, &e);
	else if (c->wish.workspace.n)
		make_with_storage(r);
	else
		make(r);
}

/* ---- destroy, get, list ---- */

static void on_destroyed(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	r->job = NULL;
	if (e && !agentbox_no_session(e)) {
		answer_fail(r, e);
		return;
	}
	if (e)
		record_failed(r, e);
	rpc_reply(r, &(struct agentbox_destroy_session_response){ .success = !e });
}

static void destroy(struct request *r, const void *msg)
{
	const struct agentbox_destroy_session_request *q = msg;
	struct err e = { 0 };

	r->job = remove_box(r->core, &r->actor, q->session_id, on_destroyed, r, &e);
	if (!r->job)
		on_destroyed(r, NULL, &e);
}

static void get(struct request *r, const void *msg)
{
	const struct agentbox_get_session_request *q = msg;
	struct err e = { 0 };
	const struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_READ, q->session_id, &e);

	if (!b && agentbox_no_session(&e))
		err_set(&e, ERR_NOT_FOUND, AGENTBOX_NOT_FOUND);
	if (!b)
		answer_fail(r, &e);
	else
		reply_session(r, b);
}

struct listing {
	struct arena *arena;
	struct agentbox_list_sessions_response reply;
	bool bad;
};

static void count(void *arg, const struct box *b)
{
	((struct listing *)arg)->reply.sessions.n++;
}

static void list_one(void *arg, const struct box *b)
{
	struct listing *l = arg;

	if (put_session(l->arena, b, &l->reply.sessions.items[l->reply.sessions.n]) < 0)
		l->bad = true;
	else
		l->reply.sessions.n++;
}

static void list(struct request *r, const void *msg)
{
	struct listing l = { .arena = &r->arena };
	struct err e = { 0 };

	if (boxes_each(r->core, &r->actor, count, &l, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	l.reply.sessions.items =
		arena_array(&r->arena, l.reply.sessions.n + 1, sizeof(*l.reply.sessions.items));
	l.reply.sessions.n = 0;
	if (!l.reply.sessions.items || boxes_each(r->core, &r->actor, list_one, &l, &e) < 0 || l.bad) {
		err_set(&e, ERR_INTERNAL, "there are too many sessions");
		answer_fail(r, &e);
		return;
	}
	rpc_reply(r, &l.reply);
}

#define METHOD(name, snake, handler, act)                                                                    \
	{                                                                                                    \
		"/sandbox.v1.SandboxService/" name, RPC_UNARY, &agentbox_##snake##_request_msg,              \
			&agentbox_##snake##_response_msg, handler, .audit = act                              \
	}

const struct rpc_method agentbox_sessions_methods[] = {
	METHOD("CreateSession", create_session, create, "sandbox.create"),
	METHOD("DestroySession", destroy_session, destroy, "sandbox.delete"),
	METHOD("GetSession", get_session, get, NULL),
	METHOD("ListSessions", list_sessions, list, NULL),
	{ 0 },
};
