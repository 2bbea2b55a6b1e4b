/*
 * /v1/sandbox/hooks: commands that run before the sandbox is stopped or deleted, by whatever dialect. The
 * script inside/hooks.py keeps them in the sandbox; the core starts them (farewell, box.h).
 */
#include <stdio.h>

#include "aio_inside.h"
#include "poison.h"

#define NAME_MAX_CHARS 64

struct hook_body {
	bool unused; /* a schema puts nothing at offset 0 */
	struct view name, event, command;
	double timeout;
	uint64_t priority;
};

#define AT(f) .offset = offsetof(struct hook_body, f)
static const struct json_field hook_fields[] = {
	{ "name", JSON_F_STRING, AT(name), .min = 1, .max = NAME_MAX_CHARS, .required = true },
	{ "event", JSON_F_STRING, AT(event) },
	{ "command", JSON_F_STRING, AT(command), .min = 1, .max = 4096, .required = true },
	{ "timeout", JSON_F_DOUBLE, AT(timeout), .fmin = 0.1, .fmax = FAREWELL_MS / 1000 },
	{ "priority", JSON_F_U64, AT(priority), .max = 1000000 },
};
#undef AT
static const struct json_schema hook_schema = { hook_fields, ELEMS(hook_fields), .open = true };

static bool is_name(struct view v)
{
	for (size_t i = 0; i < v.n; i++) {
		char c = v.p[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_' || c == '-'))
			return false;
	}
	return v.n > 0;
}

struct hook {
	struct aio_inside inside;
	const struct json *data; /* what the script answered, until the store has the wish */
};

static void release(struct request *r)
{
	aio_inside_cancel(&((struct hook *)r->own)->inside);
}

static void on_kept(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct hook *h = r->own;

	if (!answer_ended(r, e))
		return;
	json_out_value(aio_data(r, NULL), h->data);
	aio_send(r);
}

/* It is written in the sandbox: from now on somebody looks for it. */
static void on_written(struct aio_inside *in, const struct json *data)
{
	struct request *r = in->r;
	struct err e = { 0 };

	((struct hook *)r->own)->data = data;
	answer_await(r, farewell_wish(r->core, &r->actor, view_of(r->box), on_kept, r, &e), &e);
}

static void add(struct request *r)
{
	struct hook_body b = { .event = VIEW("shutdown"), .timeout = 10, .priority = 100 };
	struct hook *h = aio_own(r, sizeof(*h), release);
	char timeout[32], priority[24];

	if (!h || aio_read(r, &hook_schema, &b) < 0)
		return;
	if (!is_name(b.name) || memchr(b.command.p, 0, b.command.n)) {
		aio_unprocessable(r, is_name(b.name) ? "command" : "name",
				  "name is of [a-zA-Z0-9_-], and command has no NUL");
		return;
	}
	if (!view_is(b.event, "shutdown")) {
		aio_unprocessable(r, "event", "event must be shutdown");
		return;
	}
	snprintf(timeout, sizeof(timeout), "%.3f", b.timeout);
	snprintf(priority, sizeof(priority), "%llu", (unsigned long long)b.priority);
	const struct view words[] = { VIEW("add"), b.name, b.command, view_of(timeout), view_of(priority) };
	h->inside.then = on_written;
	aio_inside_start(&h->inside, r, AIO_SCRIPT_HOOKS, words, ELEMS(words));
}

static void list(struct request *r)
{
	const struct view words[] = { VIEW("list") };
	struct view event = request_query(r, "event");

	if (event.p && !view_is(event, "shutdown"))
		aio_unprocessable(r, "event", "event must be shutdown");
	else
		aio_inside_run(r, AIO_SCRIPT_HOOKS, words, ELEMS(words));
}

static void remove_one(struct request *r)
{
	const struct view words[] = { VIEW("remove"), r->params[0] };
	aio_inside_run(r, AIO_SCRIPT_HOOKS, words, ELEMS(words));
}

const struct route aio_hooks_routes[] = {
	{ "POST", "/v1/sandbox/hooks", add, .body = ROUTE_JSON, .schema = &hook_schema, .query = AIO_QUERY,
	  .audit = "sandbox.hook" },
	{ "GET", "/v1/sandbox/hooks", list, .query = AIO_QUERY " event" },
	{ "DELETE", "/v1/sandbox/hooks/{name}", remove_one, .query = AIO_QUERY, .audit = "sandbox.hook" },
	{ 0 },
};
