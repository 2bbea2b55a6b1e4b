/*
 * Sign in, sign out, and who is signed in. The key is needed once and is not kept: the browser gets a cookie
 * that scripts cannot read and other sites cannot send (login.h).
 */
#include <stdio.h>

#include "clock.h"
#include "dashboard_impl.h"
#include "login.h"
#include "poison.h"

#define BODY_MAX 4096

static void put_actor(struct request *r, const struct http_header *extra, size_t n_extra)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_kbool(o, "signed_in", r->actor.tenant != NULL);
	if (r->actor.tenant) {
		json_out_kz(o, "role", keys_role_name(r->actor.role));
		json_out_kz(o, "key", r->actor.key);
		json_out_kz(o, "tenant", r->actor.tenant->name);
	}
	json_out_kz(o, "version", PADDOCK_VERSION);
	json_out_ku64(o, "session_seconds", core_config(r->core)->dashboard.session_seconds);
	json_out_end(o, '}');
	answer_reply_with(r, 200, &r->out, extra, n_extra);
}

/* The cookie goes with the browser's own session; how long it counts is our own business. */
static void put_cookie(const struct http_exchange *x, const char *token, struct buf *out)
{
	char name[LOGIN_COOKIE_MAX];

	login_name(x, name);
	buf_printf(out, "%s=%s; Path=/; HttpOnly; SameSite=Strict%s%s", name, token, x->tls ? "; Secure" : "",
		   token[0] ? "" : "; Max-Age=0");
}

struct wish {
	struct view key;
};
static const struct json_field wish_fields[] = {
	{ "key", JSON_F_STRING, .offset = offsetof(struct wish, key), .required = true, .max = 512 },
};
static const struct json_schema wish_schema = { wish_fields, ELEMS(wish_fields) };

static void sign_in(struct request *r)
{
	char token[LOGINS_TEXT_SIZE];
	struct wish w = { 0 };
	struct err e = { 0 };

	if (request_read(r, &wish_schema, &w) < 0)
		return;
	if (logins_new(r->core, view_trim(w.key), r->x->host, token, &r->actor, &e) < 0) {
		if (e.code == ERR_UNAUTHORIZED)
			err_set(&e, ERR_UNAUTHORIZED, "this is not a valid key");
		answer_fail(r, &e);
		return;
	}
	struct buf cookie = BUF_INIT(512);
	cookie.secret = true;
	put_cookie(r->x, token, &cookie);
	explicit_bzero(token, sizeof(token));
	struct http_header h[] = { { VIEW("set-cookie"), buf_view(&cookie) },
				   { VIEW("cache-control"), VIEW("no-store") } };
	put_actor(r, h, ELEMS(h));
	buf_done(&cookie);
}

static void show(struct request *r)
{
	static const struct http_header h[] = { { VIEW("cache-control"), VIEW("no-store") } };
	struct err e = { 0 };

	if (login_actor(r, &e) < 0)
		r->actor = (struct actor){ 0 };
	put_actor(r, h, ELEMS(h));
}

static void sign_out(struct request *r)
{
	struct view token = login_token(r->x);
	struct buf cookie = BUF_INIT(512);

	struct err none = { 0 };

	if (token.p && logins_actor(r->core, token, r->x->host, &r->actor, &none) >= 0)
		logins_end(r->core, token, r->x->host);
	put_cookie(r->x, "", &cookie);
	struct http_header h[] = { { VIEW("set-cookie"), buf_view(&cookie) },
				   { VIEW("cache-control"), VIEW("no-store") } };
	answer_empty(r, 204, h, ELEMS(h));
	buf_done(&cookie);
}

static int is_from_page(struct request *r, struct err *e)
{
	return login_check(r, e);
}

const struct route dashboard_session_routes[] = {
	{ "POST", "/dashboard/session", sign_in, .auth = ROUTE_OPEN, .permit = is_from_page,
	  .body = ROUTE_JSON, .body_max = BODY_MAX, .secret = true, .audit = "dashboard.signin" },
	{ "GET", "/dashboard/session", show, .auth = ROUTE_OPEN, .permit = is_from_page },
	{ "DELETE", "/dashboard/session", sign_out, .auth = ROUTE_OPEN, .permit = is_from_page,
	  .audit = "dashboard.signout" },
	{ 0 },
};
