/*
 * The agentbox dialect: what is its own, who asks, and how an error reads.
 */
#include "agentbox.h"

#include <errno.h>

#include "agentbox_descriptors.h"
#include "agentbox_impl.h"
#include "reflect.h"
#include "poison.h"

#define PORT 2024

static const struct rpc_method *const methods[] = {
	agentbox_sessions_methods, agentbox_exec_methods, agentbox_files_methods, reflect_methods, NULL,
};

static bool is_health(const struct http_exchange *x)
{
	return view_starts(x->path, "/grpc.health.v1.");
}

static bool claims(const struct http_exchange *x, void *state)
{
	return view_starts(x->path, "/sandbox.v1.SandboxService/") ||
	       view_starts(x->path, "/grpc.reflection.") || is_health(x);
}

/* Whether it serves is nobody's secret. */
static int authenticate(struct request *r, struct err *e)
{
	return is_health(r->x) ? 0 : auth_actor(r->core, request_token(r->x), &r->actor, e);
}

static void fail(struct request *r, const struct err *e, const struct http_header *extra, size_t n_extra)
{
	struct buf b = BUF_INIT(4096);
	struct json_out o;

	if (rpc_fail_head(r, e))
		return;
	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_kz(&o, "error", e->msg);
	json_out_end(&o, '}');
	http_reply(r->x, err_http(e->code), "application/json", buf_view(&b), extra, n_extra);
	buf_done(&b);
}

void *agentbox_own(struct request *r, size_t size, void (*release)(struct request *r))
{
	void *own = request_own(r, size);

	if (own)
		r->release = release;
	return own;
}

bool agentbox_no_session(const struct err *e)
{
	return e->code == ERR_NOT_FOUND && e->sys != ENOENT;
}

static const struct surface surface = { .heading = "agentbox",
					.methods = methods,
					.files = agentbox_descriptors,
					.authenticate = authenticate,
					.fail = fail };

static const struct dialect_port ports[] = {
	/* It runs commands: what makes a sandbox's servers public must not open it. */
	{ .port = PORT,
	  .guarded = true,
	  .shut = true,
	  .words = agentbox_port_refuse,
	  .surface = &agentbox_port_surface },
	{ 0 },
};

const struct dialect agentbox_dialect = {
	.name = "agentbox", .version = "sandbox.v1", .claims = claims, .surface = &surface, .ports = ports
};
