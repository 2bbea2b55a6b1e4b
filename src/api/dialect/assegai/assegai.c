/*
 * The Assegai dialect: who asks, how an error reads, health and log. See assegai.h.
 *
 * The connection says which sandbox asks: the gate has passed it on. The credentials in the headers are
 * checked besides, so that a program that was started by the agent and does not know its token cannot speak
 * for it.
 */
#include "assegai.h"

#include <stdio.h>

#include "assegai_impl.h"
#include "clock.h"
#include "poison.h"

#define UNAUTHORIZED "Unauthorized: Missing agent credentials in headers"

/* In a sandbox that is no agent's there is nothing at these paths. */
static bool claims(const struct http_exchange *x, void *state)
{
	bool ours = x->origin.n && (view_is(x->path, "/health") || view_starts(x->path, "/agent/") ||
				    view_starts(x->path, "/rpc/"));

	return ours && agents_of_box(state, boxes_by_id(state, x->origin));
}

static void *keep_core(struct core *c, struct err *e)
{
	return c;
}

static int authenticate(struct request *r, struct err *e)
{
	const struct http_exchange *x = r->x;
	const struct box *b = boxes_by_id(r->core, x->origin);
	const struct agent *a = b ? agents_of_box(r->core, b) : NULL;
	struct view id = http_get_header(x, "x-assegai-agent-id"),
		    token = http_get_header(x, "x-assegai-agent-token");

	if (!a || !id.p || !token.p || !agents_has_token(a, b, id, token))
		return err_set(e, ERR_UNAUTHORIZED, UNAUTHORIZED);
	r->actor = (struct actor){ .tenant = b->tenant, .role = STORE_ROLE_USER };
	return 0;
}

void assegai_about(const struct request *r)
{
	audit_about(r->core, &r->actor, http_get_header(r->x, "x-assegai-agent-id"));
}

struct agent *assegai_agent(struct request *r)
{
	struct agent *a = agents_of_box(r->core, boxes_by_id(r->core, r->x->origin));

	if (a)
		assegai_about(r);
	else
		assegai_refuse(r, 401, UNAUTHORIZED, 0);
	return a;
}

static void write_error(struct buf *b, const char *message)
{
	struct json_out o;

	json_out_init(&o, b);
	json_out_object(&o);
	json_out_kz(&o, "error", message);
	json_out_end(&o, '}');
}

void assegai_refuse(struct request *r, int status, const char *message, unsigned wait)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(8192);
	char seconds[16];
	struct http_header extra = { VIEW("retry-after"), VIEW_NONE };

	snprintf(seconds, sizeof(seconds), "%u", wait);
	extra.value = view_of(seconds);
	write_error(&b, message);
	answer_plain_with(r, status, "application/json", buf_view(&b), &extra, wait ? 1 : 0);
}

/* Its clients know few statuses: what is out of reach is 500. */
static void fail(struct request *r, const struct err *e, const struct http_header *extra, size_t n_extra)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(8192);
	int status = err_http(e->code);

	write_error(&b, e->msg);
	http_reply(r->x, status > 501 ? 500 : status, "application/json", buf_view(&b), extra, n_extra);
}

/* ---- health ---- */

static void health(struct request *r)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_kz(o, "status", "ok");
	json_out_ki64(o, "timestamp", clock_wall_ms());
	json_out_end(o, '}');
	answer_send(r, 200);
}

/* ---- log ---- */

struct log_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view level, message;
	const struct json *data;
};

#define AT(f) .offset = offsetof(struct log_body, f)
static const struct json_field log_fields[] = {
	{ "level", JSON_F_STRING, AT(level), .min = 1, .max = 16, .required = true },
	{ "message", JSON_F_STRING, AT(message), .max = AGENT_LOG_MESSAGE, .required = true },
	{ "data", JSON_F_ANY, AT(data), .nullable = true },
};
#undef AT
static const struct json_schema log_schema = { log_fields, ELEMS(log_fields) };

static void on_logged(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	json_out_object(o);
	json_out_kbool(o, "success", true);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void log_it(struct request *r)
{
	struct log_body body = { 0 };
	struct buf data = BUF_INIT(AGENT_LOG_DATA);
	enum agent_level level;
	struct err e = { 0 };

	if (request_read(r, &log_schema, &body) < 0)
		return;
	if (!agents_level(body.level, &level)) {
		assegai_refuse(r, 400, "level must be debug, info, warn, error or success", 0);
		return;
	}
	struct agent *a = assegai_agent(r);
	if (!a)
		return;
	if (body.data) {
		struct json_out o;
		json_out_init(&o, &data);
		json_out_value(&o, body.data);
	}
	if (data.bad)
		assegai_refuse(r, 413, "data is too large", 0);
	else
		answer_await(r, agents_log_add(a, level, body.message, buf_view(&data), on_logged, r, &e),
			     &e);
	buf_done(&data);
}

static const struct route own_routes[] = {
	{ "GET", "/health", health, .auth = ROUTE_OPEN },
	{ "POST", "/agent/log", log_it, .body = ROUTE_JSON, .body_max = 64u * 1024 },
	{ 0 },
};

static const struct route *const tables[] = { own_routes, assegai_chain_routes, NULL };

static const struct surface surface = { .heading = "assegai (http://host.docker.internal:8765 of an agent)",
					.routes = tables,
					.authenticate = authenticate,
					.fail = fail };

const struct dialect assegai_dialect = {
	.name = "assegai", .claims = claims, .inside = true, .surface = &surface, .new = keep_core
};
