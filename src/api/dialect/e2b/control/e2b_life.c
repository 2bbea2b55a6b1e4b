/*
 * E2B: expiry, pause and resume of sandboxes. A sandbox that E2B calls paused is either paused here
 * (with its memory) or stopped (without).
 */
#include "box.h"
#include "clock.h"
#include "e2b_impl.h"
#include "poison.h"

struct timeout_body {
	bool unused; /* the schema puts nothing at offset 0 */
	uint64_t timeout, duration;
	bool memory, auto_pause;
};

#define AT(f) .offset = offsetof(struct timeout_body, f)
static const struct json_field timeout_fields[] = {
	{ "timeout", JSON_F_U64, AT(timeout), .required = true },
};
static const struct json_field duration_fields[] = {
	{ "duration", JSON_F_U64, AT(duration), .nullable = true },
};
static const struct json_field connect_fields[] = {
	{ "timeout", JSON_F_U64, AT(timeout), .nullable = true },
	{ "memory", JSON_F_BOOL, AT(memory), .nullable = true },
	{ "autoPause", JSON_F_BOOL, AT(auto_pause), .nullable = true }, /* long since said at the creation */
};
static const struct json_field pause_fields[] = {
	{ "memory", JSON_F_BOOL, AT(memory), .nullable = true },
};
#undef AT
static const struct json_schema timeout_schema = { timeout_fields, ELEMS(timeout_fields) };
static const struct json_schema duration_schema = { duration_fields, ELEMS(duration_fields) };
static const struct json_schema connect_schema = { connect_fields, ELEMS(connect_fields) };
static const struct json_schema pause_schema = { pause_fields, ELEMS(pause_fields) };

/* ---- timeouts ---- */

static void set_timeout(struct request *r)
{
	struct timeout_body body = { 0 };
	struct err e = { 0 };
	uint64_t ttl;

	if (request_read(r, &timeout_schema, &body) < 0)
		return;
	if (e2b_take_timeout(r, body.timeout, &ttl, &e) >= 0)
		r->job = lifetime_extend(r->core, &r->actor, r->params[0], ttl, answer_removed, r, &e);
	if (!r->job)
		answer_fail(r, &e);
}

/* Whether that much from now on is later than the end that it has. */
static bool is_later(const struct box *b, uint64_t ttl)
{
	return b->state.expires_ms && clock_wall_ms() + (int64_t)ttl * 1000 > b->state.expires_ms;
}

/* Keeps it alive for a while; never shortens its life. */
static void refresh(struct request *r)
{
	struct timeout_body body = { .duration = E2B_TIMEOUT_OLD };
	struct err e = { 0 };
	uint64_t ttl;

	if (e2b_read(r, &duration_schema, &body) < 0)
		return;
	const struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_CHANGE, r->params[0], &e);
	if (!b || e2b_take_timeout(r, body.duration, &ttl, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	if (!is_later(b, ttl)) {
		answer_no_content(r);
		return;
	}
	answer_await(r, lifetime_extend(r->core, &r->actor, r->params[0], ttl, answer_removed, r, &e), &e);
}

/* ---- pause ---- */

/* A paused box has no end until it is resumed; one that ends by a pause has come there. */
static void on_paused(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct box *b = result;
	struct err failed = { 0 };

	if (e || b->spec.on_end != SPEC_END_DELETE || !b->state.expires_ms) {
		answer_removed(r, result, e);
		return;
	}
	r->job = lifetime_extend(r->core, &r->actor, view_of(b->id), core_config(r->core)->max.ttl_seconds,
				 answer_removed, r, &failed);
	if (!r->job)
		answer_fail(r, &failed);
}

static void pause_one(struct request *r)
{
	struct timeout_body body = { .memory = true };
	struct err e = { 0 };

	if (e2b_read(r, &pause_schema, &body) < 0)
		return;
	const struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_CHANGE, r->params[0], &e);
	if (b && (b->state.status == BOX_PAUSED || b->state.status == BOX_STOPPED))
		err_set(&e, ERR_STATE, "sandbox %s is already paused", b->id);
	else if (b)
		r->job = life_change(r->core, &r->actor, r->params[0], body.memory ? LIFE_PAUSE : LIFE_STOP,
				     on_paused, r, &e);
	if (!r->job)
		answer_fail(r, &e);
}

/* ---- connect, resume ---- */

struct connecting {
	uint64_t ttl;
	int status;  /* of the answer */
	bool reboot; /* without its memory: it is stopped first */
};

static void on_connected(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct connecting *cn = r->own;

	if (answer_ended(r, e))
		e2b_reply_sandbox(r, cn->status, result);
}

static void go_on(struct request *r, const struct box *b);

static void on_step(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (answer_ended(r, e))
		go_on(r, result);
}

/* One step towards a box that runs and ends when it should. */
static void go_on(struct request *r, const struct box *b)
{
	struct connecting *cn = r->own;
	struct view id = view_of(b->id);
	struct err e = { 0 };

	if (b->state.status == BOX_PAUSED || b->state.status == BOX_STOPPED) {
		enum life_step step = b->state.status == BOX_STOPPED ? LIFE_START
				      : cn->reboot                   ? LIFE_STOP
								     : LIFE_RESUME;
		cn->status = 201;
		r->job = life_change(r->core, &r->actor, id, step, on_step, r, &e);
	} else if (cn->status == 201 || is_later(b, cn->ttl)) {
		/* It was resumed, so its time begins now; else it is only ever made longer. */
		r->job = lifetime_extend(r->core, &r->actor, id, cn->ttl, on_connected, r, &e);
	} else {
		e2b_reply_sandbox(r, cn->status, b);
		return;
	}
	if (!r->job)
		answer_fail(r, &e);
}

static void connect_with(struct request *r, uint64_t timeout, bool must_be_paused)
{
	struct timeout_body body = { .timeout = timeout, .memory = true };
	struct err e = { 0 };

	if (e2b_read(r, &connect_schema, &body) < 0)
		return;
	struct connecting *cn = request_own(r, sizeof(*cn));
	if (!cn)
		return;
	const struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_CHANGE, r->params[0], &e);
	if (b && b->state.status == BOX_CREATING)
		err_set(&e, ERR_STATE, "sandbox %s is still being made", b->id);
	else if (b && must_be_paused && b->state.status == BOX_RUNNING)
		err_set(&e, ERR_STATE, "sandbox %s is already running", b->id);
	if (e.code || e2b_take_timeout(r, body.timeout, &cn->ttl, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	cn->status = 200;
	cn->reboot = !body.memory;
	go_on(r, b);
}

static void connect_one(struct request *r)
{
	connect_with(r, E2B_TIMEOUT, false);
}

static void resume(struct request *r)
{
	connect_with(r, E2B_TIMEOUT_OLD, true);
}

const struct route e2b_life_routes[] = {
	{ "POST", "/sandboxes/{id}/timeout", set_timeout, .body = ROUTE_JSON, .audit = "sandbox.extend" },
	{ "POST", "/sandboxes/{id}/refreshes", refresh, .body = ROUTE_JSON, .audit = "sandbox.extend" },
	{ "POST", "/sandboxes/{id}/pause", pause_one, .body = ROUTE_JSON, .audit = "sandbox.pause" },
	{ "POST", "/sandboxes/{id}/resume", resume, .body = ROUTE_JSON, .audit = "sandbox.resume" },
	{ "POST", "/sandboxes/{id}/connect", connect_one, .body = ROUTE_JSON, .audit = "sandbox.connect" },
	{ "POST", "/v2/sandboxes/{id}/connect", connect_one, .body = ROUTE_JSON, .audit = "sandbox.connect" },
	{ 0 },
};
