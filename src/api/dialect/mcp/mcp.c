/*
 * The dialect: its paths, who asks, and how an error reads. See mcp.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "config.h"
#include "mcp_impl.h"
#include "mcp_outputs.h"
#include "origin.h"
#include "poison.h"

/* ---- life ---- */

void *mcp_new(struct core *c, const struct mcp_kind *kind, struct err *e)
{
	struct mcp *m = calloc(1, sizeof(*m));

	if (!m) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "MCP");
		return NULL;
	}
	m->core = c;
	m->kind = kind;
	map_init(&m->sessions);
	list_init(&m->order);
	list_init(&m->streams);
	list_init(&m->outputs);
	return m;
}

void mcp_free(void *state)
{
	struct mcp *m = state;

	LIST_EACH (it, &m->order)
		mcp_session_free(CONTAINER(it, struct mcp_session, order));
	LIST_EACH (it, &m->streams)
		mcp_stream_free(CONTAINER(it, struct mcp_stream, link));
	mcp_outputs_free(m);
	loop_timer_stop(&m->prune);
	map_done(&m->sessions);
	free(m);
}

static void *new_paddock(struct core *c, struct err *e)
{
	return mcp_new(c, &mcp_kind, e);
}

/* ---- whose it is, and who asks ---- */

static bool claims(const struct http_exchange *x, void *state)
{
	struct view rest;

	return view_is(x->path, "/mcp") ||
	       (boxes_path(x->path, &rest).p && (view_is(rest, "/mcp") || view_is(rest, "/v1/mcp"))) ||
	       view_starts(x->path, "/.well-known/oauth-protected-resource");
}

static struct view address_of(const struct request *r)
{
	const struct config *c = core_config(r->core);
	unsigned i = r->x->listener;

	return i == 0 ? c->listen : i <= c->n_listeners ? c->listeners_of[i - 1].address : VIEW("");
}

static int authenticate(struct request *r, struct err *e)
{
	if (origin_check(r->x, address_of(r), e) < 0)
		return -1;
	return auth_actor(r->core, request_token(r->x), &r->actor, e);
}

static enum mcp_error code_of(enum err_code code)
{
	return code == ERR_INVALID || code == ERR_NOT_FOUND ? MCP_PARAMS
	       : code == ERR_BAD_REQUEST                    ? MCP_REQUEST
	       : code == ERR_INTERNAL                       ? MCP_INTERNAL
							    : MCP_REFUSED;
}

void mcp_fail(struct request *r, const struct err *e, const struct http_header *extra, size_t n_extra)
{
	struct buf b = BUF_INIT(4096), challenge = BUF_INIT(16u * 1024);
	struct http_header bearer;
	struct json_out o;

	if (e->code == ERR_UNAUTHORIZED) {
		mcp_access_challenge(r->x, &challenge);
		bearer = (struct http_header){ VIEW("www-authenticate"), buf_view(&challenge) };
		extra = &bearer;
		n_extra = challenge.bad ? 0 : 1;
	}
	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_kz(&o, "jsonrpc", "2.0");
	mcp_rpc_put_id(&o, NULL);
	json_out_key(&o, "error");
	json_out_object(&o);
	json_out_ki64(&o, "code", code_of(e->code));
	json_out_kz(&o, "message", e->msg);
	json_out_end(&o, '}');
	json_out_end(&o, '}');
	buf_putc(&b, '\n');
	http_reply(r->x, err_http(e->code), "application/json", buf_view(&b), extra, n_extra);
	buf_done(&b);
	buf_done(&challenge);
}

static const struct route *const tables[] = { mcp_http_routes, mcp_access_routes, NULL };
static const struct surface surface = {
	.heading = "MCP", .routes = tables, .authenticate = authenticate, .fail = mcp_fail
};

const struct dialect mcp_dialect = { .name = "mcp",
				     .version = "2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26",
				     .claims = claims,
				     .surface = &surface,
				     .tools = &mcp_hub,
				     .new = new_paddock,
				     .free = mcp_free };
