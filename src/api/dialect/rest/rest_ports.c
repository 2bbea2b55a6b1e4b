/*
 * /v1/sandboxes/{id}/ports and …/previews: what listens in a box, and links for
 * those who have no key. The ports themselves are served by src/api/plane.
 */
#include <stdio.h>

#include "box.h"
#include "netns.h"
#include "num.h"
#include "port.h"
#include "rest_impl.h"
#include "who.h"
#include "poison.h"

#define HOST_MAX 512

/* Where a port of a box is found: under the domain, or below a path of the host that was asked. */
static void put_url(struct buf *out, const struct request *r, const struct box *b, unsigned port,
		    const char *ticket)
{
	struct view domain = core_config(r->core)->ports.domain, rest = r->x->host;
	const char *scheme = r->x->tls ? "https" : "http";

	/* The port that the client used: behind the last colon, but not within an IPv6 address. */
	const char *colon = rest.n ? memrchr(rest.p, ':', rest.n) : NULL;
	struct view at = colon && !memchr(colon, ']', rest.n - (size_t)(colon - rest.p))
				 ? (struct view){ colon, rest.n - (size_t)(colon - rest.p) }
				 : VIEW("");
	if (domain.n)
		buf_printf(out, "%s://%u-%s.%.*s%.*s/%s%s", scheme, port, b->id, VIEW_ARG(domain),
			   VIEW_ARG(at), ticket ? "?paddock_ticket=" : "", ticket ? ticket : "");
	else if (ticket)
		buf_printf(out, "%s://%.*s/v1/previews/%s/%u/%s/", scheme, VIEW_ARG(r->x->host), b->id, port,
			   ticket);
	else
		buf_printf(out, "%s://%.*s/v1/sandboxes/%s/ports/%u/", scheme, VIEW_ARG(r->x->host), b->id,
			   port);
}

static void put_url_key(struct json_out *o, const struct request *r, const struct box *b, unsigned port,
			const char *ticket)
{
	struct buf url = BUF_INIT(HOST_MAX + 512);

	put_url(&url, r, b, port, ticket);
	json_out_kstr(o, "url", buf_view(&url));
	buf_done(&url);
}

/* ---- what listens ---- */

struct listing {
	struct port_query query;
	struct request *r;
};

static void put_listener(struct json_out *o, const struct request *r, const struct box *b,
			 const struct port_listener *l)
{
	json_out_object(o);
	json_out_ku64(o, "port", l->port);
	json_out_kstr(o, "address", l->address);
	json_out_key(o, "pid");
	if (l->pid)
		json_out_u64(o, l->pid);
	else
		json_out_null(o);
	json_out_key(o, "process");
	if (l->process.n)
		json_out_str(o, l->process);
	else
		json_out_null(o);
	put_url_key(o, r, b, l->port, NULL);
	json_out_end(o, '}');
}

static void on_listed(struct port_query *q, const struct port_listener *list, size_t n, const struct err *e)
{
	struct request *r = CONTAINER(q, struct listing, query)->r;
	char token[TOKENS_SIZE];
	struct err gone = { 0 };
	const struct box *b = e ? NULL : boxes_find(r->core, &r->actor, ACT_BOX_READ, r->params[0], &gone);

	r->on_gone = NULL;
	if (!b) {
		answer_fail(r, e ? e : &gone);
		return;
	}
	tokens_of(r->core, b, TOKEN_TRAFFIC, token);
	struct json_out *o = answer_json(r);
	json_out_object(o);
	json_out_kbool(o, "public", b->spec.ports_public);
	json_out_kz(o, "traffic_token", token);
	json_out_key(o, "ports");
	json_out_array(o);
	for (size_t i = 0; i < n; i++)
		if (list[i].port != NETNS_PROXY_PORT) /* the gate's, not the box's */
			put_listener(o, r, b, &list[i]);
	json_out_end(o, ']');
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void on_gone(struct request *r)
{
	ports_cancel(&((struct listing *)r->own)->query);
}

/* The address of one port, whether something listens there or not. */
static void one_port(struct request *r, struct view text)
{
	const struct box *b;
	struct err e = { 0 };
	uint32_t port;

	if (num_u32(text, &port) < 0 || port < 1 || port > UINT16_MAX)
		err_set(&e, ERR_INVALID, "port must be between 1 and %d", UINT16_MAX);
	b = e.code ? NULL : boxes_find(r->core, &r->actor, ACT_BOX_READ, r->params[0], &e);
	if (!b) {
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = answer_json(r);
	json_out_object(o);
	json_out_ku64(o, "port", port);
	put_url_key(o, r, b, port, NULL);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void list(struct request *r)
{
	struct view port = request_query(r, "port");
	if (port.p) {
		one_port(r, port);
		return;
	}
	struct listing *l = request_own(r, sizeof(*l));
	struct err e = { 0 };

	if (!l)
		return;
	l->r = r;
	l->query.done = on_listed;
	r->on_gone = on_gone;
	if (ports_list(r->core, &r->actor, r->params[0], &l->query, &e) < 0)
		answer_fail(r, &e);
}

/* ---- links ---- */

struct preview_body {
	bool unused; /* the schema puts nothing at offset 0 */
	uint64_t port, expires_seconds;
};

#define AT(f) .offset = offsetof(struct preview_body, f)
static const struct json_field preview_fields[] = {
	{ "port", JSON_F_U64, AT(port), .min = 1, .max = UINT16_MAX, .required = true },
	{ "expires_seconds", JSON_F_U64, AT(expires_seconds), .min = 1, .max = SIGN_SECONDS_MAX,
	  .nullable = true },
};
#undef AT
static const struct json_schema preview_schema = { preview_fields, ELEMS(preview_fields) };

static void preview(struct request *r)
{
	struct preview_body body = { .expires_seconds = 3600 };
	char ticket[PORTS_TICKET_SIZE];
	const struct box *b;
	struct err e = { 0 };
	int64_t until;

	if (request_read(r, &preview_schema, &body) < 0)
		return;
	if (ports_ticket(r->core, &r->actor, r->params[0], (uint16_t)body.port,
			 (uint32_t)body.expires_seconds, ticket, &b, &until, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = answer_json(r);
	json_out_object(o);
	put_url_key(o, r, b, (unsigned)body.port, ticket);
	answer_put_time(o, "expires_at", until * 1000);
	json_out_end(o, '}');
	answer_send(r, 201);
}

const struct route rest_ports_routes[] = {
	{ "GET", "/v1/sandboxes/{id}/ports", list, .query = "port" },
	{ "POST", "/v1/sandboxes/{id}/previews", preview, .body = ROUTE_JSON, .audit = "sandbox.preview",
	  .audit_body = true },
	{ 0 },
};
