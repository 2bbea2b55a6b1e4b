/*
 * Records of the audit log: see record.h.
 */
#include "record.h"

#include "login.h"
#include "serve.h"
#include "poison.h"

static const char *via(const struct request *r)
{
	const char *heading = r->surface->heading;

	if (!request_token(r->x).p && login_token(r->x).p)
		return "dashboard";
	return heading && heading[0] ? heading : "rest";
}

uint64_t record_open(const struct request *r, const char *action)
{
	const struct http_exchange *x = r->x;
	struct audit_opening o = { .action = action, .via = via(r), .from = x->peer };

	if (x->origin.n)
		o.from = x->origin;
	o.request = view_of(x->request_id);
	return audit_open(r->core, &o);
}

void record_begin(struct request *r, const char *action)
{
	if (!action || r->actor.record)
		return;
	r->record = r->actor.record = record_open(r, action);
	audit_about(r->core, &r->actor, view_of(r->box));
	for (size_t i = 0; i < ROUTE_PARAMS && r->params[i].p; i++)
		audit_about(r->core, &r->actor, r->params[i]);
}

void record_failed(struct request *r, const struct err *e)
{
	r->failed = e->code;
}

enum audit_verdict record_verdict(enum err_code code)
{
	if (code == ERR_OK)
		return AUDIT_DONE;
	if (code == ERR_FORBIDDEN || code == ERR_QUOTA)
		return AUDIT_REFUSED;
	return err_http(code) >= 500 && code != ERR_UNSUPPORTED ? AUDIT_FAILED : AUDIT_NONE;
}

/* What was asked for, where that is no secret: rules of a policy may put one into requests. */
static struct view shown_body(const struct request *r)
{
	static const char *const words[] = { "inject", "headers", "transform" };
	struct view body = r->route && r->route->audit_body ? buf_view(&r->body) : VIEW_NONE;

	for (size_t i = 0; body.n && i < ELEMS(words); i++)
		if (memmem(body.p, body.n, words[i], strlen(words[i])))
			return VIEW_NONE;
	return body;
}

/* The handler has ended it: nothing of it may happen any more. */
static const struct http_ops waiting_ops = { .on_body = request_drop_body, .on_abort = request_abort };

static void on_stored(struct audit_wait *w)
{
	struct request *r = CONTAINER(w, struct request, wait);

	r->then(r);
}

bool record_close(struct request *r, const struct err *e, void (*then)(struct request *r))
{
	enum err_code code = e ? e->code : r->failed;
	enum audit_verdict verdict = record_verdict(code);
	uint64_t record = r->record;

	r->record = 0;
	if (!record)
		return false;
	if (verdict == AUDIT_NONE) {
		audit_drop(r->core, record);
		return false;
	}
	r->wait.stored = on_stored;
	if (!audit_close(r->core, record, &r->actor, verdict, code, shown_body(r), &r->wait))
		return false;
	r->then = then;
	job_abandon(r->job);
	r->job = NULL;
	r->on_gone = NULL;
	r->on_drain = NULL;
	if (r->release)
		TAKE_PTR(r->release)(r);
	r->x->ctx = r;
	r->x->ops = &waiting_ops;
	r->x->eof_aborts = false;
	return true;
}

void record_done(struct request *r)
{
	list_del(&r->wait.link);
	if (r->record)
		(void)audit_close(r->core, r->record, &r->actor, AUDIT_LEFT, ERR_OK, shown_body(r), NULL);
	r->record = 0;
}
