/*
 * The tool run_code: code in an interpreter that remembers. Figures and images are images in the result.
 */
#include "core.h"
#include "mcp_tools.h"
#include "session.h"
#include "text.h"
#include "poison.h"

#define RESULTS_MAX (32u * 1024 * 1024)

struct running {
	struct mcp_args head;
	struct context_code wish;
	struct context_run run;
	struct mcp_call *call;
	struct buf content; /* of the results: JSON of content items, each behind a comma */
	struct output wrote;
	struct buf error; /* its traceback */
	struct buf list;  /* of structured results, likewise */
	bool truncated;
};

#define AT(f) .offset = offsetof(struct running, wish.f)
static const struct json_field fields[] = {
	MCP_TOOLS_SANDBOX,
	{ "code", JSON_F_STRING, AT(code), .min = 1, .required = true },
	{ "language", JSON_F_STRING, AT(language), .min = 1, .nullable = true },
	{ "context", JSON_F_STRING, AT(context), .min = 1, .nullable = true },
	{ "env", JSON_F_STRMAP, AT(env), .nullable = true },
	{ "timeout_ms", JSON_F_U64, AT(timeout_ms), .min = 1, .nullable = true },
};
#undef AT
const struct json_schema mcp_tools_code_args = { fields, ELEMS(fields) };
const size_t mcp_tools_code_size = sizeof(struct running);

/* ---- what comes ---- */

static void on_output(struct context_run *x, unsigned channel, struct view data)
{
	struct running *k = CONTAINER(x, struct running, run);

	k->truncated |= !outputs_add(&k->wrote, channel, data);
}

static struct view text_of(const struct json *event, const char *key)
{
	const struct json *v = json_get(event, key);
	return v && v->type == JSON_STRING ? v->text : VIEW_NONE;
}

static void add_item(struct running *k, const char *type, const char *key, struct view value,
		     const char *mime)
{
	size_t before = buf_len(&k->content);
	struct json_out o;

	if (before)
		buf_putc(&k->content, ',');
	json_out_init(&o, &k->content);
	json_out_object(&o);
	json_out_kz(&o, "type", type);
	json_out_kstr(&o, key, value);
	if (mime)
		json_out_kz(&o, "mimeType", mime);
	json_out_end(&o, '}');
	if (!k->content.bad && outputs_count(&k->wrote, k->content.cap))
		return;
	k->content.n = k->content.head + before; /* as if it had not come */
	k->content.bad = 0;
	k->truncated = true;
}

static bool is_format(struct view key)
{
	static const char *const others[] = { "id", "type", "main", "truncated" };
	for (size_t i = 0; i < ELEMS(others); i++)
		if (view_is(key, others[i]))
			return false;
	return true;
}

/* The best form of one result for a model; structured results name the forms that there were. */
static void on_result(struct running *k, const struct json *event)
{
	struct view text = text_of(event, "text"), png = text_of(event, "png"), jpeg = text_of(event, "jpeg"),
		    markdown = text_of(event, "markdown"), html = text_of(event, "html");
	struct json_out o;

	if (png.n)
		add_item(k, "image", "data", png, "image/png");
	else if (jpeg.n)
		add_item(k, "image", "data", jpeg, "image/jpeg");
	if (text.n)
		add_item(k, "text", "text", text, NULL);
	else if (markdown.n || html.n)
		add_item(k, "text", "text", markdown.n ? markdown : html, NULL);
	if (buf_len(&k->list))
		buf_putc(&k->list, ',');
	json_out_init(&o, &k->list);
	json_out_object(&o);
	mcp_tools_put_text(&o, "text", text);
	json_out_key(&o, "formats");
	json_out_array(&o);
	for (size_t i = 0; i < event->n; i++)
		if (is_format(event->members[i].key))
			json_out_str(&o, event->members[i].key);
	json_out_end(&o, ']');
	json_out_end(&o, '}');
}

static void on_event(struct context_run *x, const char *type, const struct json *event)
{
	struct running *k = CONTAINER(x, struct running, run);
	struct view name = text_of(event, "name"), value = text_of(event, "value");

	if (!view_is(view_of(type), "error")) {
		on_result(k, event);
		return;
	}
	buf_clear(&k->error);
	struct json_out o;
	json_out_init(&o, &k->error);
	json_out_object(&o);
	json_out_kstr(&o, "name", name.p ? name : VIEW(""));
	json_out_kstr(&o, "value", value.p ? value : VIEW(""));
	struct view traceback = text_of(event, "traceback");
	json_out_kstr(&o, "traceback", traceback.p ? traceback : VIEW(""));
	json_out_end(&o, '}');
	struct view said = buf_view(&k->wrote.bytes[1]);
	if (said.n && said.p[said.n - 1] != '\n')
		(void)outputs_add(&k->wrote, 2, VIEW("\n"));
	if (traceback.n)
		add_item(k, "text", "text", traceback, NULL);
}

/* ---- the end ---- */

static void release(struct mcp_call *c)
{
	struct running *k = c->own;

	buf_done(&k->content);
	buf_done(&k->list);
	buf_done(&k->error);
	outputs_done(&k->wrote);
}

static void cancel(struct mcp_call *c)
{
	struct running *k = c->own;
	contexts_abandon(&k->run);
}

static void put_lists(struct json_out *o, struct running *k)
{
	json_out_key(o, "results");
	json_out_array(o);
	if (buf_len(&k->list))
		json_out_raw(o, buf_view(&k->list));
	json_out_end(o, ']');
	json_out_key(o, "error");
	json_out_raw(o, buf_len(&k->error) ? buf_view(&k->error) : VIEW("null"));
}

static void send_result(struct mcp_call *c, struct running *k, const struct context_end *end)
{
	struct buf rooms[2] = { BUF_INIT(0), BUF_INIT(0) };
	bool cut[2];
	struct view out = mcp_tools_shorten(buf_view(&k->wrote.bytes[0]), &rooms[0], &cut[0]),
		    err = mcp_tools_shorten(buf_view(&k->wrote.bytes[1]), &rooms[1], &cut[1]);
	struct mcp_object x;

	struct json_out *o = mcp_tools_open(&x);
	json_out_kstr(o, "stdout", out);
	json_out_kstr(o, "stderr", err);
	put_lists(o, k);
	json_out_ku64(o, "execution_count", end->count);
	json_out_kbool(o, "timed_out", end->timed_out);
	json_out_kbool(o, "oom_killed", end->oom_mb > 0);
	json_out_kbool(o, "state_lost", end->state_lost);
	json_out_kbool(o, "truncated", end->truncated || k->truncated || cut[0] || cut[1]);
	json_out_key(o, "duration_ms");
	json_out_double(o, (double)end->duration_us / 1000);
	json_out_end(o, '}');
	struct json_out *content = mcp_call_content(c);
	if (out.n)
		mcp_call_text(c, out);
	if (err.n)
		mcp_call_text(c, err);
	if (buf_len(&k->content))
		json_out_raw(content, buf_view(&k->content));
	if (!out.n && !err.n && !buf_len(&k->content))
		mcp_call_text(c, end->timed_out ? VIEW("[timed out]") : VIEW("[no output]"));
	mcp_call_structured(c, buf_view(&x.text));
	buf_done(&x.text);
	buf_done(&rooms[0]);
	buf_done(&rooms[1]);
}

static void on_done(struct context_run *x, const struct context_end *end, const struct err *e)
{
	struct running *k = CONTAINER(x, struct running, run);
	struct mcp_call *c = k->call;

	c->cancel = NULL;
	if (e)
		mcp_call_fail(c, e);
	else
		send_result(c, k, end);
}

void mcp_tools_code(struct mcp_call *c)
{
	struct running *k = c->own;
	struct err e = { 0 };

	k->call = c;
	k->content = BUF_INIT(RESULTS_MAX);
	k->list = k->error = BUF_INIT(1024u * 1024);
	outputs_start(&k->wrote, c->core, c->actor.tenant);
	k->wish.kill = true;
	k->run.on_output = on_output;
	k->run.on_event = on_event;
	k->run.done = on_done;
	c->done = release;
	c->cancel = cancel;
	/* `done` may come before this returns; then the call is gone. */
	struct mcp_stream *s = c->stream;
	bool settling = s->settling;
	s->settling = true;
	if (contexts_execute(c->core, &c->actor, k->head.sandbox, &k->wish, &k->run, &e) < 0) {
		c->cancel = NULL;
		mcp_call_fail(c, &e);
	}
	s->settling = settling;
	mcp_stream_settle(s);
}
