/*
 * GET /v1/openapi.json and /v1/docs: what is served, made from the tables of routes and the schemas that
 * their bodies are read by. Both are the same for every sandbox, and ask for no key.
 */
#include <stdio.h>

#include "aio_impl.h"
#include "json.h"
#include "poison.h"

#define PAGE_MAX  (1024u * 1024)
#define VERSION   "1.9.4" /* of AIO's API */
#define MULTIPART "multipart/form-data"

/* What clients may want to know of a path; the rest its name says. */
static const struct {
	const char *start, *text;
} notes[] = {
	{ "/v1/sandbox/packages", "Packages that are installed, one on each line" },
	{ "/v1/sandbox/observe", "What the sandbox uses, now and over a time" },
	{ "/v1/sandbox/hooks", "Commands that run before the sandbox stops" },
	{ "/v1/sandbox", "What the sandbox is and has" },
	{ "/v1/shell", "Commands in a shell that keeps its state; stdout and stderr in one" },
	{ "/v1/bash", "Commands with stdout and stderr apart, readable from any offset" },
	{ "/v1/file", "Files of the sandbox, with the rights of its user" },
	{ "/v1/code", "Code in Python or JavaScript" },
	{ "/v1/jupyter", "Python that remembers" },
	{ "/v1/nodejs", "JavaScript, with and without state" },
	{ "/v1/mcp", "MCP servers of the sandbox, and their tools" },
	{ "/v1/skills", "Directories with a SKILL.md, kept in the sandbox" },
	{ "/v1/util", "Files and pages as Markdown" },
	{ "/v1/proxy", "The way out of the sandbox" },
	{ "/v1/browser", "Refused: this image has no browser" },
	{ "/v1/display", "Refused: this image has no display" },
	{ "/v1/openapi.json", "This document" },
	{ "/v1/docs", "This document as a page" },
	{ "/proxy", "A server in the sandbox; it sees the path without /proxy/{port}" },
	{ "/absproxy", "A server in the sandbox; it sees the whole path" },
	{ "/tickets", "A ticket for URLs, which opens this sandbox for a moment" },
	{ "/auth", "Whether the key or ticket is good" },
	{ "/terminal", "A terminal in the browser" },
};

static const char *note_of(const char *path)
{
	for (size_t i = 0; i < ELEMS(notes); i++)
		if (view_starts(view_of(path), notes[i].start))
			return notes[i].text;
	return "";
}

/* "/v1/TAG/…" or "/TAG/…" */
static struct view tag_of(const char *path)
{
	struct view rest = view_skip(view_of(path), view_starts(view_of(path), "/v1/") ? 4 : 1), more;

	return view_split(rest, '/', &more);
}

/* The method that documents say, in small letters; NULL: the route is not told of. */
static const char *method_of(const struct route *t)
{
	static const char *const names[][2] = { { "GET", "get" },       { "POST", "post" },
						{ "PUT", "put" },       { "PATCH", "patch" },
						{ "DELETE", "delete" }, { ROUTE_ANY_METHOD, "get" } };

	for (size_t i = 0; i < ELEMS(names); i++)
		if (view_is(view_of(t->method), names[i][0]))
			return names[i][1];
	return NULL;
}

/* ---- bodies ---- */

static void put_schema(struct json_out *o, const struct json_schema *s);

static void put_type(struct json_out *o, const char *type, bool nullable)
{
	json_out_key(o, "type");
	if (!nullable) {
		json_out_str(o, view_of(type));
		return;
	}
	json_out_array(o);
	json_out_str(o, view_of(type));
	json_out_str(o, VIEW("null"));
	json_out_end(o, ']');
}

static void put_strings(struct json_out *o, const char *key)
{
	json_out_key(o, key);
	json_out_object(o);
	json_out_kz(o, "type", "string");
	json_out_end(o, '}');
}

static void put_bounds(struct json_out *o, const struct json_field *f)
{
	bool text = f->kind == JSON_F_STRING;

	if (f->kind == JSON_F_DOUBLE) {
		json_out_key(o, "minimum");
		json_out_double(o, f->fmin);
		if (f->fmax > 0) {
			json_out_key(o, "maximum");
			json_out_double(o, f->fmax);
		}
		return;
	}
	if (f->min || f->kind == JSON_F_U64)
		json_out_ku64(o, text ? "minLength" : "minimum", f->min);
	if (f->max && f->max < INT64_MAX)
		json_out_ku64(o, text ? "maxLength" : "maximum", f->max);
}

static void put_field(struct json_out *o, const struct json_field *f)
{
	static const char *const types[] = {
		[JSON_F_STRING] = "string", [JSON_F_BOOL] = "boolean",  [JSON_F_U64] = "integer",
		[JSON_F_DOUBLE] = "number", [JSON_F_OBJECT] = "object", [JSON_F_STRMAP] = "object",
		[JSON_F_STRLIST] = "array"
	};

	json_out_key(o, f->name);
	if (f->kind == JSON_F_OBJECT && f->sub) {
		put_schema(o, f->sub);
		return;
	}
	json_out_object(o);
	if (f->kind != JSON_F_ANY)
		put_type(o, types[f->kind], f->nullable);
	if (f->kind == JSON_F_STRMAP)
		put_strings(o, "additionalProperties");
	else if (f->kind == JSON_F_STRLIST)
		put_strings(o, "items");
	else if (f->kind != JSON_F_BOOL && f->kind != JSON_F_ANY)
		put_bounds(o, f);
	json_out_end(o, '}');
}

static void put_schema(struct json_out *o, const struct json_schema *s)
{
	bool any = false;

	json_out_object(o);
	json_out_kz(o, "type", "object");
	json_out_key(o, "properties");
	json_out_object(o);
	for (size_t i = 0; i < s->n; i++) {
		put_field(o, &s->fields[i]);
		any |= s->fields[i].required;
	}
	json_out_end(o, '}');
	if (any) {
		json_out_key(o, "required");
		json_out_array(o);
		for (size_t i = 0; i < s->n; i++)
			if (s->fields[i].required)
				json_out_str(o, view_of(s->fields[i].name));
		json_out_end(o, ']');
	}
	json_out_end(o, '}');
}

static void put_form(struct json_out *o)
{
	json_out_object(o);
	json_out_kz(o, "type", "object");
	json_out_key(o, "properties");
	json_out_object(o);
	json_out_key(o, "file");
	json_out_object(o);
	json_out_kz(o, "type", "string");
	json_out_kz(o, "format", "binary");
	json_out_end(o, '}');
	put_strings(o, "path");
	json_out_end(o, '}');
	json_out_end(o, '}');
}

static void put_body(struct json_out *o, const struct route *t)
{
	bool form = t->body == ROUTE_STREAM;

	if ((t->body != ROUTE_JSON && !form) || view_is(view_of(t->method), ROUTE_ANY_METHOD))
		return;
	json_out_key(o, "requestBody");
	json_out_object(o);
	json_out_key(o, "content");
	json_out_object(o);
	json_out_key(o, form ? MULTIPART : "application/json");
	json_out_object(o);
	json_out_key(o, "schema");
	if (form) {
		put_form(o);
	} else if (t->schema) {
		put_schema(o, t->schema);
	} else {
		json_out_object(o);
		json_out_kz(o, "type", "object");
		json_out_end(o, '}');
	}
	json_out_end(o, '}');
	json_out_end(o, '}');
	json_out_end(o, '}');
}

/* ---- operations ---- */

static void put_parameter(struct json_out *o, struct view name, bool in_path)
{
	json_out_object(o);
	json_out_kstr(o, "name", name);
	json_out_kz(o, "in", in_path ? "path" : "query");
	json_out_kbool(o, "required", in_path);
	put_strings(o, "schema");
	json_out_end(o, '}');
}

static void put_parameters(struct json_out *o, const struct route *t)
{
	struct view path = view_of(t->pattern), query = view_of(t->query ? t->query : ""), rest;

	json_out_key(o, "parameters");
	json_out_array(o);
	while (path.p) {
		struct view one = view_split(path, '/', &path);
		if (one.n > 2 && one.p[0] == '{')
			put_parameter(o, view_skip(view_head(one, one.n - 1), 1), true);
	}
	for (; query.p; query = rest) {
		struct view one = view_split(query, ' ', &rest);
		if (one.n && !view_is(one, "api_key") && !view_is(one, "ticket") &&
		    !view_is(one, ROUTE_ANY_QUERY))
			put_parameter(o, one, false);
	}
	json_out_end(o, ']');
}

static void put_answer(struct json_out *o, const char *status, const char *text, const char *schema)
{
	json_out_key(o, status);
	json_out_object(o);
	json_out_kz(o, "description", text);
	json_out_key(o, "content");
	json_out_object(o);
	json_out_key(o, "application/json");
	json_out_object(o);
	json_out_key(o, "schema");
	json_out_object(o);
	json_out_kz(o, "$ref", schema);
	json_out_end(o, '}');
	json_out_end(o, '}');
	json_out_end(o, '}');
	json_out_end(o, '}');
}

static void put_operation(struct json_out *o, const struct route *t)
{
	json_out_key(o, method_of(t));
	json_out_object(o);
	json_out_kz(o, "summary", note_of(t->pattern));
	json_out_key(o, "tags");
	json_out_array(o);
	json_out_str(o, tag_of(t->pattern));
	json_out_end(o, ']');
	put_parameters(o, t);
	put_body(o, t);
	json_out_key(o, "responses");
	json_out_object(o);
	put_answer(o, "200", "The answer, or success false and why", "#/components/schemas/Response");
	if (t->body != ROUTE_NONE || t->query)
		put_answer(o, "422", "The request is not as it must be", "#/components/schemas/Detail");
	json_out_end(o, '}');
	json_out_end(o, '}');
}

/* Routes of one path stand together, where the path comes first. */
static bool came_before(const struct route *t)
{
	for (const struct route *const *table = aio_tables; *table; table++)
		for (const struct route *u = *table; u->method; u++) {
			if (u == t)
				return false;
			if (view_is(view_of(u->pattern), t->pattern))
				return true;
		}
	return false;
}

static void put_path(struct json_out *o, const char *path)
{
	json_out_key(o, path);
	json_out_object(o);
	for (const struct route *const *table = aio_tables; *table; table++)
		for (const struct route *t = *table; t->method; t++)
			if (view_is(view_of(t->pattern), path) && method_of(t))
				put_operation(o, t);
	json_out_end(o, '}');
}

static const char SCHEMAS[] =
	"{\"schemas\":{\"Response\":{\"type\":\"object\",\"properties\":{\"success\":{\"type\":\"boolean\"},"
	"\"message\":{\"type\":\"string\"},\"data\":{},\"hint\":{\"type\":[\"string\",\"null\"]}}},"
	"\"Detail\":{\"type\":\"object\",\"properties\":{\"detail\":{\"type\":\"array\",\"items\":{\"type\":"
	"\"object\",\"properties\":{\"loc\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"msg\":{"
	"\"type\":\"string\"},\"type\":{\"type\":\"string\"}}}}}}},"
	"\"securitySchemes\":{\"header\":{\"type\":\"apiKey\",\"in\":\"header\",\"name\":\"X-AIO-API-Key\"},"
	"\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"},"
	"\"query\":{\"type\":\"apiKey\",\"in\":\"query\",\"name\":\"api_key\"}}}";

static void document(struct request *r)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_kz(o, "openapi", "3.1.0");
	json_out_key(o, "info");
	json_out_object(o);
	json_out_kz(o, "title", "Paddock, AIO sandbox API");
	json_out_kz(o, "version", VERSION);
	json_out_end(o, '}');
	json_out_key(o, "servers");
	json_out_array(o);
	json_out_object(o);
	json_out_kstr(o, "url", r->x->prefix.n ? r->x->prefix : VIEW("/"));
	json_out_end(o, '}');
	json_out_end(o, ']');
	json_out_key(o, "security");
	json_out_raw(o, VIEW("[{\"header\":[]},{\"bearer\":[]},{\"query\":[]}]"));
	json_out_key(o, "paths");
	json_out_object(o);
	for (const struct route *const *table = aio_tables; *table; table++)
		for (const struct route *t = *table; t->method; t++)
			if (!came_before(t))
				put_path(o, t->pattern);
	json_out_end(o, '}');
	json_out_key(o, "components");
	json_out_raw(o, view_of(SCHEMAS));
	json_out_end(o, '}');
	answer_send(r, 200);
}

/* ---- the page ---- */

static const char HEAD[] =
	"<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
	"content=\"width=device-width\">\n<title>AIO sandbox API</title>\n<style>body{font:15px/1.5 "
	"sans-serif;"
	"max-width:60rem;margin:2rem auto;padding:0 1rem}code{font:13px "
	"monospace}table{border-collapse:collapse;"
	"width:100%}td{border-top:1px solid #ddd;padding:.25rem "
	".5rem;vertical-align:top}td:first-child{width:"
	"5rem}</style>\n<h1>AIO sandbox API</h1>\n<p>Version " VERSION ", as served by Paddock. The same for "
	"programs: <a href=\"openapi.json\">openapi.json</a>.</p>\n";

static void put_fields(struct buf *b, const struct json_schema *s)
{
	for (size_t i = 0; s && i < s->n; i++)
		buf_printf(b, "%s<code>%s</code>%s", i ? ", " : "", s->fields[i].name,
			   s->fields[i].required ? "*" : "");
}

static void page(struct request *r)
{
	static const struct http_header headers[] = {
		{ VIEW("content-security-policy"), VIEW("default-src 'none'; style-src 'unsafe-inline'") },
		{ VIEW("x-content-type-options"), VIEW("nosniff") },
	};
	struct buf b = BUF_INIT(PAGE_MAX);
	const char *last = "";

	buf_puts(&b, HEAD);
	for (const struct route *const *table = aio_tables; *table; table++) {
		buf_puts(&b, "<table>\n");
		for (const struct route *t = *table; t->method; t++) {
			const char *note = note_of(t->pattern);
			if (note != last)
				buf_printf(&b, "<tr><td colspan=\"3\"><h3>%s</h3>\n", note);
			last = note;
			buf_printf(&b, "<tr><td>%s<td><code>%s</code><td>",
				   view_is(view_of(t->method), ROUTE_ANY_METHOD) ? "any" : t->method,
				   t->pattern);
			put_fields(&b, t->schema);
			buf_putc(&b, '\n');
		}
		buf_puts(&b, "</table>\n");
	}
	http_reply(r->x, 200, "text/html; charset=utf-8", buf_view(&b), headers, ELEMS(headers));
	buf_done(&b);
	request_done(r);
}

const struct route aio_openapi_routes[] = {
	{ "GET", "/v1/openapi.json", document, .auth = ROUTE_OPEN, .query = AIO_QUERY },
	{ "GET", "/v1/docs", page, .auth = ROUTE_OPEN, .query = AIO_QUERY },
	{ 0 },
};
