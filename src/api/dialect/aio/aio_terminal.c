/*
 * /v1/shell/ws, a terminal over a WebSocket; /terminal, a page for it; and where that is. Messages are JSON:
 *
 *   to us    {"type":"input","data":TEXT}, {"type":"resize","data":{"cols","rows"}}, {"type":"pong"}
 *   from us  {"type":"session_id","data":ID}, {"type":"ready"}, {"type":"output","data":TEXT},
 * {"type":"ping"}
 *
 * The terminal ends with its connection.
 */
#include <stdio.h>

#include "aio_impl.h"
#include "resize.h"
#include "rnd.h"
#include "run.h"
#include "text_pieces.h"
#include "typed.h"
#include "ws.h"
#include "poison.h"

#define INPUT_HIGH (64u * 1024)
#define PING_MS    30000

struct terminal {
	struct ws w;
	struct exec exec;
	struct text_pieces pieces;
	char process[16], id[24];
	struct resize size;
	struct typed typed;
	struct loop_timer ping;
};

static struct terminal *of(struct ws *w)
{
	return CONTAINER(w, struct terminal, w);
}

static void on_gone(struct ws *w)
{
	struct terminal *t = of(w);

	exec_cancel(&t->exec);
	resize_cancel(&t->size);
	loop_timer_stop(&t->ping);
	typed_done(&t->typed);
}

static void say(struct terminal *t, const char *type, struct view data)
{
	struct buf json = BUF_INIT(8u * 1024 * 1024);
	struct json_out o;

	json_out_init(&o, &json);
	json_out_object(&o);
	json_out_kz(&o, "type", type);
	if (data.p)
		json_out_kstr(&o, "data", data);
	json_out_end(&o, '}');
	ws_text(&t->w, buf_view(&json));
	buf_done(&json);
}

static void on_ping(struct loop_timer *timer)
{
	struct terminal *t = CONTAINER(timer, struct terminal, ping);

	loop_timer_start(t->w.r->x->loop, &t->ping, PING_MS, on_ping);
	say(t, "ping", VIEW_NONE);
}

static void on_begun(struct exec *x, const struct exec_begun *b)
{
	struct terminal *t = CONTAINER(x, struct terminal, exec);

	snprintf(t->process, sizeof(t->process), "%u", b->pid);
	loop_timer_start(t->w.r->x->loop, &t->ping, PING_MS, on_ping);
	ws_open(&t->w);
	say(t, "session_id", view_of(t->id));
	say(t, "ready", VIEW_NONE);
}

static void put_piece(void *arg, struct view piece)
{
	say(arg, "output", piece);
}

static void on_output(struct exec *x, unsigned channel, struct view data)
{
	struct terminal *t = CONTAINER(x, struct terminal, exec);

	text_pieces_add(&t->pieces, data, put_piece, t);
	/* What the client has not taken holds the rest back. */
	exec_consumed(x, ws_hold(&t->w, data.n));
}

static void on_sent(struct ws *w, size_t n)
{
	exec_consumed(&of(w)->exec, n);
}

static void on_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct terminal *t = CONTAINER(x, struct terminal, exec);
	struct err early = { 0 };

	if (!t->w.open) {
		err_set(&early, ERR_INTERNAL, "the shell ended before it began");
		ws_fail(&t->w, e ? e : &early);
		return;
	}
	text_pieces_end(&t->pieces, put_piece, t);
	ws_leave(&t->w, WEBSOCKET_NORMAL, VIEW_NONE);
}

struct message {
	struct view type;
	const struct json *data;
};
static const struct json_field message_fields[] = {
	{ "type", JSON_F_STRING, .offset = offsetof(struct message, type), .required = true },
	{ "data", JSON_F_ANY, .offset = offsetof(struct message, data), .nullable = true },
};
static const struct json_schema message_schema = { message_fields, ELEMS(message_fields), .open = true };

static bool obey(struct terminal *t, const struct message *m, struct err *e)
{
	const struct json *cols = m->data ? json_get(m->data, "cols") : NULL;
	const struct json *rows = m->data ? json_get(m->data, "rows") : NULL;
	uint64_t c, r;

	if (view_is(m->type, "pong"))
		return true;
	if (view_is(m->type, "input") && m->data && m->data->type == JSON_STRING) {
		if (typed_add(&t->typed, m->data->text) < 0)
			return err_set(e, ERR_TOO_LARGE, "the shell does not read its input") >= 0;
		return true;
	}
	if (view_is(m->type, "resize") && cols && rows && json_to_u64(cols, &c) >= 0 &&
	    json_to_u64(rows, &r) >= 0 && c && r && c <= 10000 && r <= 10000) {
		resize_to(&t->size, t->w.r, t->process, c, r);
		return true;
	}
	return err_set(e, ERR_INVALID,
		       "the messages are input with data, resize with cols and rows in data, and pong") >= 0;
}

static bool on_text(struct ws *w, struct view text, struct err *e)
{
	struct arena a = ARENA_INIT(4 * WS_MESSAGE);
	struct message m = { 0 };
	struct json *doc;
	bool ok = json_parse(&a, text, &doc, e) >= 0 &&
		  json_read(&a, doc, &message_schema, &m, false, e) >= 0 && obey(of(w), &m, e);

	arena_done(&a);
	return ok;
}

static const struct ws_ops terminal_ops = {
	.on_input = ws_drop_input, .on_text = on_text, .on_sent = on_sent, .on_gone = on_gone
};

static void terminal(struct request *r)
{
	struct exec_wish w = typed_login_shell();
	struct terminal *t = ws_own(r, sizeof(*t), &terminal_ops, INPUT_HIGH);
	struct err e = { 0 };

	if (!t)
		return;
	r->params[0] = view_of(r->box); /* where resize.c looks for it */
	rnd_name(t->id, 20);
	typed_init(&t->typed, r, view_of(r->box), t->process, 2 * WS_MESSAGE);
	t->exec.on_begun = on_begun;
	t->exec.on_output = on_output;
	t->exec.done = on_done;
	if (!request_same_origin(r->x))
		err_set(&e, ERR_FORBIDDEN, "a page of another origin may not open a terminal");
	if (e.code || ws_check(&t->w, &e) < 0 ||
	    exec_start(r->core, &r->actor, view_of(r->box), &w, &t->exec, &e) < 0)
		ws_fail(&t->w, &e);
}

/* ---- the page ---- */

/* A terminal of lines: enough for a prompt, not for programs that draw. It asks for the WebSocket with the
 * same ticket or key that the page was asked for with. */
static const char PAGE[] =
	"<!doctype html>\n<meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n"
	"<title>Terminal</title>\n"
	"<style>body{margin:0;background:#111;color:#ddd}pre{margin:0;padding:.5rem;min-height:100vh;"
	"box-sizing:border-box;white-space:pre-wrap;overflow-wrap:anywhere;font:14px/1.3 monospace;"
	"outline:0}</style>\n<pre id=\"screen\" tabindex=\"0\"></pre>\n"
	"<script>\n"
	"const screen = document.getElementById('screen');\n"
	"const at = location.pathname.replace(/\\/terminal$/, '/v1/shell/ws') + location.search;\n"
	"const ws = new WebSocket((location.protocol === 'https:' ? 'wss://' : 'ws://') + location.host + "
	"at);\n"
	"const send = (type, data) => ws.readyState === 1 && ws.send(JSON.stringify({ type, data }));\n"
	"let text = '', column = 0;\n"
	"function put(s) {\n"
	"  s = s.replace(/\\x1b\\][^\\x07\\x1b]*(\\x07|\\x1b\\\\)/g, '').replace(/\\x1b[()][A-Z0-9]/g, '')\n"
	"       .replace(/\\x1b\\[[0-9;?]*[A-JL-Za-z]/g, '');\n"
	"  let line = text.slice(text.lastIndexOf('\\n') + 1);\n"
	"  text = text.slice(0, text.length - line.length);\n"
	"  for (let i = 0; i < s.length; i++) {\n"
	"    const c = s[i];\n"
	"    if (c === '\\n') { text += line + '\\n'; line = ''; column = 0; }\n"
	"    else if (c === '\\r') column = 0;\n"
	"    else if (c === '\\b') column = Math.max(0, column - 1);\n"
	"    else if (c === '\\x1b') { line = line.slice(0, column); i += 2; }\n"
	"    else if (c >= ' ' || c === '\\t') { line = line.slice(0, column) + c + line.slice(column + 1); "
	"column++; }\n"
	"  }\n"
	"  text = (text + line).slice(-200000);\n"
	"  screen.textContent = text;\n"
	"  window.scrollTo(0, document.body.scrollHeight);\n"
	"}\n"
	"const keys = { Enter: '\\r', Backspace: '\\x7f', Tab: '\\t', Escape: '\\x1b', ArrowUp: '\\x1b[A',\n"
	"  ArrowDown: '\\x1b[B', ArrowRight: '\\x1b[C', ArrowLeft: '\\x1b[D', Home: '\\x1b[H', End: "
	"'\\x1b[F',\n"
	"  Delete: '\\x1b[3~' };\n"
	"addEventListener('keydown', e => {\n"
	"  let s = keys[e.key];\n"
	"  if (!s && e.key.length === 1 && !e.metaKey && !e.altKey)\n"
	"    s = !e.ctrlKey ? e.key : /[a-z]/i.test(e.key) ? "
	"String.fromCharCode(e.key.toUpperCase().charCodeAt(0) "
	"- 64) : '';\n"
	"  if (s && !(e.ctrlKey && e.key === 'v')) { e.preventDefault(); send('input', s); }\n"
	"});\n"
	"addEventListener('paste', e => send('input', e.clipboardData.getData('text')));\n"
	"function size() {\n"
	"  send('resize', { cols: Math.max(20, Math.floor(innerWidth / 8.5)), rows: Math.max(5, "
	"Math.floor(innerHeight / 18.2)) });\n"
	"}\n"
	"addEventListener('resize', size);\n"
	"ws.onmessage = e => {\n"
	"  const m = JSON.parse(e.data);\n"
	"  if (m.type === 'output') put(m.data);\n"
	"  else if (m.type === 'ping') send('pong');\n"
	"  else if (m.type === 'ready') size();\n"
	"};\n"
	"ws.onclose = () => put('\\n[the terminal is closed]\\n');\n"
	"screen.focus();\n"
	"</script>\n";

static void page(struct request *r)
{
	static const struct http_header headers[] = {
		{ VIEW("content-security-policy"),
		  VIEW("default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
		       "connect-src 'self'; frame-ancestors 'self'") },
		{ VIEW("cache-control"), VIEW("no-store") },
		{ VIEW("referrer-policy"), VIEW("no-referrer") },
	};

	if (!aio_may_exec(r))
		return;
	http_reply(r->x, 200, "text/html; charset=utf-8", view_of(PAGE), headers, ELEMS(headers));
	request_done(r);
}

/* With a ticket, so that a browser can open it. */
static void url(struct request *r)
{
	const struct box *b = aio_box(r);
	_cleanup_(buf_done) struct buf text = BUF_INIT(4096);
	char ticket[AIO_TICKET_SIZE];

	if (!b || !aio_may_exec(r))
		return;
	aio_ticket_make(r->core, b, ticket);
	buf_puts(&text, r->x->tls ? "https://" : "http://");
	buf_add(&text, r->x->host);
	buf_add(&text, r->x->prefix);
	buf_printf(&text, "/terminal?ticket=%s", ticket);
	json_out_str(aio_data(r, NULL), buf_view(&text));
	aio_send(r);
}

const struct route aio_terminal_routes[] = {
	{ "GET", "/v1/shell/ws", terminal, .query = AIO_QUERY " session_id id" },
	{ "GET", "/v1/shell/terminal-url", url, .query = AIO_QUERY },
	{ "GET", "/terminal", page, .query = AIO_QUERY " session_id id" },
	{ 0 },
};
