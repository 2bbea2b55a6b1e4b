/*
 * /v1/shell/ws, a terminal over a WebSocket; /terminal, a page for it; and where that is. Messages are JSON:
 *
 *   to us    {"type":"input","data":TEXT}, {"type":"resize","data":{"cols","rows"}}, {"type":"pong"}
 *   from us  {"type":"session_id","data":ID}, {"type":"ready"}, {"type":"output","data":TEXT},
 * {"type":"ping"}
 *
 * The terminal ends with its connection.
 */
#include "aio_impl.h"
#include "json_terminal.h"
#include "rnd.h"
#include "poison.h"

#define PING_MS 30000

static void on_ping(struct loop_timer *timer)
{
	struct json_terminal *t = CONTAINER(timer, struct json_terminal, timer);

	loop_timer_start(t->w.r->x->loop, timer, PING_MS, on_ping);
	json_terminal_say(t, "ping", NULL, VIEW_NONE);
}

static void begun(struct json_terminal *t)
{
	char id[21];

	rnd_name(id, sizeof(id) - 1);
	loop_timer_start(t->w.r->x->loop, &t->timer, PING_MS, on_ping);
	json_terminal_say(t, "session_id", "data", view_of(id));
	json_terminal_say(t, "ready", NULL, VIEW_NONE);
}

static void ended(struct json_terminal *t, const struct exec_result *res, const struct err *e)
{
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

static bool is_size(const struct json *data, const char *key, uint64_t *ret)
{
	const struct json *v = data ? json_get(data, key) : NULL;
	return v && json_to_u64(v, ret) >= 0 && *ret && *ret <= 10000;
}

static bool message(struct json_terminal *t, const struct json *doc, struct arena *a, struct err *e)
{
	struct message m = { 0 };
	uint64_t cols, rows;

	if (json_read(a, doc, &message_schema, &m, false, e) < 0)
		return false;
	if (view_is(m.type, "pong"))
		return true;
	if (view_is(m.type, "input") && m.data && m.data->type == JSON_STRING)
		return json_terminal_input(t, m.data->text, e);
	if (view_is(m.type, "resize") && is_size(m.data, "cols", &cols) && is_size(m.data, "rows", &rows)) {
		json_terminal_resize(t, cols, rows);
		return true;
	}
	return err_set(e, ERR_INVALID,
		       "the messages are input with data, resize with cols and rows in data, and pong") >= 0;
}

static void terminal(struct request *r)
{
	static const struct json_terminal_ops ops = { .begun = begun, .ended = ended, .message = message };

	json_terminal_start(r, sizeof(struct json_terminal), view_of(r->box), &ops);
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
	aio_ticket_make(r, b, ticket);
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
