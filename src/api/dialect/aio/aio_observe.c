/*
 * /v1/sandbox/observe: what the sandbox uses, now and over a time. The script inside/observe.py does it, and
 * keeps sessions and reports in the sandbox.
 */
#include <stdio.h>

#include "aio_inside.h"
#include "answer_file.h"
#include "num.h"
#include "poison.h"

#define ROWS_MAX 100

static void observe(struct request *r, const struct view *words, size_t n)
{
	aio_inside_run(r, AIO_SCRIPT_OBSERVE, words, n);
}

struct observe_body {
	bool disk, processes, has_processes;
	struct view mode, key, session, reason;
	uint64_t duration;
	double interval;
};

#define AT(f) .offset = offsetof(struct observe_body, f)
#define KEY                                                                                                  \
	{                                                                                                    \
		"idempotency_key", JSON_F_STRING, AT(key), .max = 128, .nullable = true                      \
	}
#define SESSION                                                                                              \
	{                                                                                                    \
		"session_id", JSON_F_STRING, AT(session), .max = 128, .nullable = true                       \
	}
static const struct json_field start_fields[] = {
	{ "mode", JSON_F_STRING, AT(mode) },
	KEY,
	{ "duration_seconds", JSON_F_U64, AT(duration), .min = 1, .max = AIO_SECONDS_MAX, .nullable = true },
	{ "interval_seconds", JSON_F_DOUBLE, AT(interval), .fmin = 0.1, .fmax = 3600, .nullable = true },
	{ "include_processes", JSON_F_BOOL, AT(processes),
	  .has = offsetof(struct observe_body, has_processes), .nullable = true },
	{ "include_disk", JSON_F_BOOL, AT(disk) },
};
static const struct json_field stop_fields[] = { SESSION };
static const struct json_field export_fields[] = {
	KEY,
	SESSION,
	{ "reason", JSON_F_STRING, AT(reason), .max = 200 },
};
#undef AT
static const struct json_schema start_schema = { start_fields, ELEMS(start_fields), .open = true };
static const struct json_schema stop_schema = { stop_fields, ELEMS(stop_fields), .open = true };
static const struct json_schema export_schema = { export_fields, ELEMS(export_fields), .open = true };

static bool has_nul(struct view v)
{
	return v.n && memchr(v.p, 0, v.n);
}

static int read_body(struct request *r, const struct json_schema *s, struct observe_body *b)
{
	if (aio_read(r, s, b) < 0)
		return -1;
	if (!has_nul(b->key) && !has_nul(b->session) && !has_nul(b->reason))
		return 0;
	aio_unprocessable(r, "", "a text has a NUL");
	return -1;
}

static void start(struct request *r)
{
	struct observe_body b = { .mode = VIEW("capture"), .disk = true };
	char duration[24], interval[32];

	if (read_body(r, &start_schema, &b) < 0)
		return;
	if (!view_is(b.mode, "capture") && !view_is(b.mode, "guardrail")) {
		aio_unprocessable(r, "mode", "mode must be guardrail or capture");
		return;
	}
	snprintf(duration, sizeof(duration), "%llu", (unsigned long long)b.duration);
	snprintf(interval, sizeof(interval), "%.3f", b.interval);
	const struct view words[] = { VIEW("start"),
				      b.mode,
				      b.key,
				      view_of(duration),
				      view_of(interval),
				      !b.has_processes ? VIEW("")
				      : b.processes    ? VIEW("true")
						       : VIEW("false"),
				      b.disk ? VIEW("true") : VIEW("false") };
	observe(r, words, ELEMS(words));
}

static void stop(struct request *r)
{
	struct observe_body b = { 0 };

	if (read_body(r, &stop_schema, &b) < 0)
		return;
	const struct view words[] = { VIEW("stop"), b.session };
	observe(r, words, ELEMS(words));
}

static void export(struct request *r)
{
	struct observe_body b = { .reason = VIEW("manual") };

	if (read_body(r, &export_schema, &b) < 0)
		return;
	const struct view words[] = { VIEW("export"), b.session, b.key, b.reason };
	observe(r, words, ELEMS(words));
}

static void status(struct request *r)
{
	const struct view words[] = { VIEW("status") };
	observe(r, words, ELEMS(words));
}

static void live(struct request *r)
{
	struct view rows = request_query(r, "top_rows");
	uint32_t n = 10;

	if (rows.p && (num_u32(rows, &n) < 0 || n > ROWS_MAX)) {
		aio_unprocessable(r, "top_rows", "top_rows must be between 0 and 100");
		return;
	}
	const struct view words[] = { VIEW("live"), rows.p ? rows : VIEW("10") };
	observe(r, words, ELEMS(words));
}

static void reports(struct request *r)
{
	const struct view words[] = { VIEW("reports") };
	observe(r, words, ELEMS(words));
}

static void remove_report(struct request *r)
{
	const struct view words[] = { VIEW("delete"), r->params[0] };
	observe(r, words, ELEMS(words));
}

/* ---- a report's bytes ---- */

/* The script says where it is; what it says may be any file that the sandbox's user can read. */
static void send_report(struct aio_inside *in, const struct json *data)
{
	struct request *r = in->r;
	const struct json *path = json_get(data, "path");
	struct file_place *p = arena_alloc(r->x->arena, sizeof(*p));
	struct view copy =
		path && path->type == JSON_STRING ? arena_view(r->x->arena, path->text) : VIEW_NONE;

	if (!p || !copy.n || copy.p[0] != '/') {
		aio_refuse(r, "the report cannot be found");
		return;
	}
	*p = (struct file_place){ .box = view_of(r->box), .path = copy };
	r->release = NULL; /* the script has ended */
	answer_file_as(r, p, "application/gzip");
}

static void release(struct request *r)
{
	aio_inside_cancel(r->own);
}

static void report(struct request *r)
{
	const struct view words[] = { VIEW("report"), r->params[0] };
	struct aio_inside *in = aio_own(r, sizeof(*in), release);

	if (!in)
		return;
	in->then = send_report;
	in->bytes = true;
	aio_inside_start(in, r, AIO_SCRIPT_OBSERVE, words, ELEMS(words));
}

#define AT(path) "/v1/sandbox/observe/" path
const struct route aio_observe_routes[] = {
	{ "POST", AT("start"), start, .body = ROUTE_JSON, .schema = &start_schema, .query = AIO_QUERY },
	{ "POST", AT("stop"), stop, .body = ROUTE_JSON, .schema = &stop_schema, .query = AIO_QUERY },
	{ "POST", AT("export"), export, .body = ROUTE_JSON, .schema = &export_schema, .query = AIO_QUERY },
	{ "GET", AT("status"), status, .query = AIO_QUERY },
	{ "GET", AT("live"), live, .query = AIO_QUERY " top_rows" },
	{ "GET", AT("reports"), reports, .query = AIO_QUERY },
	{ "GET", AT("reports/{report_id}"), report, .query = AIO_QUERY },
	{ "DELETE", AT("reports/{report_id}"), remove_report, .query = AIO_QUERY },
	{ 0 },
};
#undef AT
