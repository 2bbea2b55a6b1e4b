/*
 * One request of JSON-RPC, from its parameters to its result.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "mcp_impl.h"
#include "record.h"
#include "poison.h"

#define META(name) "io.modelcontextprotocol/" name
#define MESSAGE    512

bool mcp_call_is_modern(const struct mcp_call *c)
{
	return c->stream->version == MCP_2026_07;
}

/* ---- life ---- */

void mcp_call_free(struct mcp_call *c)
{
	job_abandon(c->job);
	list_del(&c->wait.link);
	if (c->record)
		(void)audit_close(c->core, c->record, &c->actor, AUDIT_LEFT, ERR_OK, VIEW_NONE, NULL);
	if (c->cancel)
		c->cancel(c);
	if (c->done)
		c->done(c);
	loop_timer_stop(&c->timer);
	mcp_input_forget(c);
	buf_done(&c->asks);
	buf_done(&c->answers);
	buf_done(&c->out);
	list_del(&c->link);
	free(c->own);
	free(c);
}

/* The answer is sent. */
static void end(struct mcp_call *c)
{
	struct mcp_stream *s = c->stream;

	c->job = NULL;
	c->cancel = NULL;
	mcp_call_free(c);
	mcp_stream_settle(s);
}

void mcp_call_start(struct mcp_stream *s, const struct mcp_message *m, const struct actor *a,
		    const char *scope)
{
	struct mcp_call *c = calloc(1, sizeof(*c));
	const struct json *level;

	if (!c) {
		struct buf none = { .bad = -ENOMEM, .max = MESSAGE };
		mcp_stream_answer(s, &none, 500);
		return;
	}
	list_init(&c->wait.link);
	c->mcp = s->mcp;
	c->core = s->mcp->core;
	c->stream = s;
	c->id = m->id;
	c->params = m->params;
	c->meta = json_get(m->params, "_meta");
	c->actor = *a;
	c->actor.record = 0;
	c->scope = scope;
	c->caps = s->session ? s->session->caps : mcp_rpc_caps(json_get(c->meta, META("clientCapabilities")));
	level = json_get(c->meta, META("logLevel"));
	c->level = s->session                            ? s->session->level
		   : level && level->type == JSON_STRING ? mcp_rpc_level(level->text)
							 : MCP_LEVEL_OFF;
	list_append(&s->calls, &c->link);
	if (mcp_input_read(c))
		mcp_methods_call(c, m->method);
}

static bool same_id(const struct json *a, const struct json *b)
{
	return a && b && a->type == b->type && view_eq(a->text, b->text);
}

struct mcp_call *mcp_call_find(struct mcp_session *s, const struct json *id)
{
	LIST_EACH (it, &s->streams) {
		struct mcp_stream *t = CONTAINER(it, struct mcp_stream, link);
		LIST_EACH (one, &t->calls) {
			struct mcp_call *c = CONTAINER(one, struct mcp_call, link);
			if (same_id(c->id, id))
				return c;
		}
	}
	return NULL;
}

void *mcp_call_own(struct mcp_call *c, size_t size)
{
	struct err e = { 0 };

	free(c->own);
	c->own = calloc(1, size);
	if (c->own)
		return c->own;
	err_sys(&e, ERR_INTERNAL, ENOMEM, "call");
	mcp_call_fail(c, &e);
	return NULL;
}

void mcp_call_await(struct mcp_call *c, struct job *job, const struct err *e)
{
	c->job = job;
	if (!job)
		mcp_call_fail(c, e);
}

/* ---- results ---- */

static struct json_out *open_answer(struct mcp_call *c)
{
	struct json_out *o = &c->o;

	buf_done(&c->out);
	c->out = BUF_INIT(MCP_RESULT_MAX);
	json_out_init(o, &c->out);
	json_out_object(o);
	json_out_kz(o, "jsonrpc", "2.0");
	mcp_rpc_put_id(o, c->id);
	return o;
}

struct json_out *mcp_call_open(struct mcp_call *c, const char *type)
{
	struct json_out *o = open_answer(c);

	json_out_key(o, "result");
	json_out_object(o);
	if (mcp_call_is_modern(c))
		json_out_kz(o, "resultType", type);
	return o;
}

struct json_out *mcp_call_result(struct mcp_call *c)
{
	return mcp_call_open(c, "complete");
}

void mcp_call_cacheable(struct mcp_call *c, bool public)
{
	if (!mcp_call_is_modern(c))
		return;
	json_out_ku64(&c->o, "ttlMs", public ? 3600000 : 0);
	json_out_kz(&c->o, "cacheScope", public ? "public" : "private");
}

static void send_now(struct mcp_call *c)
{
	mcp_stream_answer(c->stream, &c->out, 200);
	end(c);
}

static void on_recorded(struct audit_wait *w)
{
	send_now(CONTAINER(w, struct mcp_call, wait));
}

void mcp_call_unrecorded(struct mcp_call *c)
{
	if (c->record)
		audit_drop(c->core, c->record);
	c->record = c->actor.record = 0;
}

/* Whether the answer has to wait for its entry in the audit log. */
static bool has_to_wait(struct mcp_call *c)
{
	enum audit_verdict verdict = record_verdict(c->failed);
	uint64_t record = c->record;

	if (verdict == AUDIT_NONE)
		mcp_call_unrecorded(c);
	c->record = 0;
	c->wait.stored = on_recorded;
	if (!record || verdict == AUDIT_NONE ||
	    !audit_close(c->core, record, &c->actor, verdict, c->failed, VIEW_NONE, &c->wait))
		return false;
	c->job = NULL;
	c->cancel = NULL;
	loop_timer_stop(&c->timer);
	return true;
}

void mcp_call_send(struct mcp_call *c)
{
	json_out_end(&c->o, '}');
	json_out_end(&c->o, '}');
	if (!has_to_wait(c))
		send_now(c);
}

void mcp_call_error_data(struct mcp_call *c, enum mcp_error code, int http, struct view data,
			 const char *message)
{
	struct json_out *o = open_answer(c);

	mcp_call_unrecorded(c);
	json_out_key(o, "error");
	json_out_object(o);
	json_out_ki64(o, "code", code);
	json_out_kz(o, "message", message);
	if (data.n) {
		json_out_key(o, "data");
		json_out_raw(o, data);
	}
	json_out_end(o, '}');
	json_out_end(o, '}');
	mcp_stream_answer(c->stream, &c->out, mcp_call_is_modern(c) ? http : 200);
	end(c);
}

void mcp_call_error(struct mcp_call *c, enum mcp_error code, int http, const char *fmt, ...)
{
	char text[MESSAGE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	mcp_call_error_data(c, code, http, VIEW_NONE, text);
}

/* ---- results of tools ---- */

struct json_out *mcp_call_content(struct mcp_call *c)
{
	struct json_out *o = mcp_call_result(c);

	json_out_key(o, "content");
	json_out_array(o);
	return o;
}

void mcp_call_text(struct mcp_call *c, struct view text)
{
	json_out_object(&c->o);
	json_out_kz(&c->o, "type", "text");
	json_out_kstr(&c->o, "text", text);
	json_out_end(&c->o, '}');
}

void mcp_call_media(struct mcp_call *c, const char *type, struct view base64, const char *mime)
{
	json_out_object(&c->o);
	json_out_kz(&c->o, "type", type);
	json_out_kstr(&c->o, "data", base64);
	json_out_kz(&c->o, "mimeType", mime);
	json_out_end(&c->o, '}');
}

/* Links came with 2025-06-18; before that there is text. */
void mcp_call_link(struct mcp_call *c, struct view uri, struct view name, const char *mime, uint64_t size)
{
	struct json_out *o = &c->o;

	json_out_object(o);
	if (c->stream->version < MCP_2025_06) {
		struct buf text = BUF_INIT(MESSAGE + uri.n + name.n);
		buf_printf(&text, "%.*s is the resource %.*s (%llu bytes).", VIEW_ARG(name), VIEW_ARG(uri),
			   (unsigned long long)size);
		json_out_kz(o, "type", "text");
		json_out_kstr(o, "text", buf_view(&text));
		buf_done(&text);
	} else {
		json_out_kz(o, "type", "resource_link");
		json_out_kstr(o, "uri", uri);
		json_out_kstr(o, "name", name);
		json_out_kz(o, "mimeType", mime);
		json_out_ku64(o, "size", size);
	}
	json_out_end(o, '}');
}

void mcp_call_send_content(struct mcp_call *c, bool failed)
{
	json_out_end(&c->o, ']');
	if (failed)
		json_out_kbool(&c->o, "isError", true);
	mcp_call_send(c);
}

void mcp_call_structured(struct mcp_call *c, struct view object)
{
	json_out_end(&c->o, ']');
	if (c->stream->version >= MCP_2025_06) {
		json_out_key(&c->o, "structuredContent");
		json_out_raw(&c->o, object);
	}
	mcp_call_send(c);
}

void mcp_call_object(struct mcp_call *c, struct view object)
{
	mcp_call_content(c);
	mcp_call_text(c, object);
	mcp_call_structured(c, object);
}

void mcp_call_fail(struct mcp_call *c, const struct err *e)
{
	struct buf text = BUF_INIT(MESSAGE);

	c->job = NULL;
	if (!c->tool) { /* of a method there is no result that says this */
		mcp_call_error(c, e->code == ERR_INTERNAL ? MCP_INTERNAL : MCP_PARAMS, 200, "%s", e->msg);
		return;
	}
	c->failed = e->code;
	buf_printf(&text, "%s: %s", err_name(e->code), e->msg);
	mcp_call_content(c);
	mcp_call_text(c, buf_view(&text));
	buf_done(&text);
	mcp_call_send_content(c, true);
}

/* ---- messages on the way ---- */

static struct json_out note_open(struct buf *b, const char *method)
{
	struct json_out o;

	json_out_init(&o, b);
	json_out_object(&o);
	json_out_kz(&o, "jsonrpc", "2.0");
	json_out_kz(&o, "method", method);
	json_out_key(&o, "params");
	json_out_object(&o);
	return o;
}

static void note_send(struct mcp_call *c, struct buf *b, struct json_out *o)
{
	json_out_end(o, '}');
	json_out_end(o, '}');
	if (!b->bad)
		mcp_stream_note(c->stream, buf_view(b));
	buf_done(b);
}

bool mcp_call_wants_progress(const struct mcp_call *c)
{
	const struct json *token = json_get(c->meta, "progressToken");
	return token && (token->type == JSON_STRING || token->type == JSON_NUMBER);
}

void mcp_call_progress(struct mcp_call *c, double progress, double total, struct view message)
{
	struct buf b = BUF_INIT(64u * 1024);

	if (!mcp_call_wants_progress(c) || c->stream->sse.full)
		return; /* of progress the next one says all that this one said */
	struct json_out o = note_open(&b, "notifications/progress");
	json_out_key(&o, "progressToken");
	json_out_value(&o, json_get(c->meta, "progressToken"));
	json_out_key(&o, "progress");
	json_out_double(&o, progress);
	if (total > 0) {
		json_out_key(&o, "total");
		json_out_double(&o, total);
	}
	if (message.n)
		json_out_kstr(&o, "message", message);
	note_send(c, &b, &o);
}

void mcp_call_log(struct mcp_call *c, enum mcp_level level, struct view text)
{
	static const char *const names[] = { "debug", "info", "notice", "warning" };
	struct buf b = BUF_INIT(64u * 1024);

	if ((int)level < c->level || (int)level >= (int)ELEMS(names))
		return;
	struct json_out o = note_open(&b, "notifications/message");
	json_out_kz(&o, "level", names[level]);
	json_out_kz(&o, "logger", MCP_SERVER_NAME);
	json_out_kstr(&o, "data", text);
	note_send(c, &b, &o);
}
