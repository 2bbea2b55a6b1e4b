/*
 * Reads usage from answers: see meter.h. The bytes come from outside: anything that cannot be parsed
 * is passed on and counts as text.
 */
#include "meter.h"

#include "json.h"
#include "poison.h"

#define LINE_MAX        (1024u * 1024)
#define HELD_MAX        (2u * 1024 * 1024)
#define MEMBER_MAX      (16u * 1024)
#define ARENA_MAX       (32u * 1024 * 1024)
#define BYTES_PER_TOKEN 4

void meter_init(struct meter *m, enum meter_api api, bool sse, bool swallow)
{
	*m = (struct meter){ .api = api,
			     .sse = sse,
			     .swallow = sse && swallow,
			     .line = BUF_INIT(LINE_MAX),
			     .data = BUF_INIT(LINE_MAX),
			     .held = BUF_INIT(HELD_MAX),
			     .member = BUF_INIT(MEMBER_MAX),
			     .arena = ARENA_INIT(ARENA_MAX) };
}

void meter_done(struct meter *m)
{
	buf_done(&m->line);
	buf_done(&m->data);
	buf_done(&m->held);
	buf_done(&m->member);
	arena_done(&m->arena);
}

/* ---- a usage object ---- */

static bool get(const struct json *object, const char *key, uint64_t *ret)
{
	const struct json *j = json_get(object, key);
	return j && json_to_u64(j, ret) == 0;
}

static uint64_t get_or_0(const struct json *object, const char *key)
{
	uint64_t n = 0;
	return get(object, key, &n) ? n : 0;
}

/* input_tokens leaves out what came from the cache. A message_delta may repeat some of them only. */
static void take_anthropic(struct meter *m, const struct json *u)
{
	bool any = get(u, "input_tokens", &m->usage.input);
	any |= get(u, "output_tokens", &m->usage.output);
	any |= get(u, "cache_read_input_tokens", &m->usage.cache_read);
	any |= get(u, "cache_creation_input_tokens", &m->usage.cache_write);
	m->known |= any;
}

/* The input holds what came from the cache, the output holds the reasoning. */
static void take_openai(struct meter *m, const struct json *u)
{
	bool chat = m->api != METER_RESPONSES;
	uint64_t input = 0, output = 0;
	bool any = get(u, chat ? "prompt_tokens" : "input_tokens", &input);

	any |= get(u, chat ? "completion_tokens" : "output_tokens", &output);
	if (!any)
		return;
	uint64_t cached = get_or_0(json_get(u, chat ? "prompt_tokens_details" : "input_tokens_details"),
				   "cached_tokens");
	cached = MIN(cached, input);
	m->usage = (struct meter_usage){ .input = input - cached, .cache_read = cached, .output = output };
	m->known = true;
}

static void take(struct meter *m, const struct json *u)
{
	if (!u || u->type != JSON_OBJECT)
		return;
	if (m->api == METER_MESSAGES)
		take_anthropic(m, u);
	else
		take_openai(m, u);
}

/* ---- events ---- */

static void count(struct meter *m, const struct json *object, const char *key)
{
	const struct json *j = json_get(object, key);
	if (j && j->type == JSON_STRING)
		m->text += j->text.n;
}

static bool chat_event(struct meter *m, const struct json *j)
{
	const struct json *choices = json_get(j, "choices"), *usage = json_get(j, "usage");

	for (size_t i = 0; choices && choices->type == JSON_ARRAY && i < choices->n; i++) {
		const struct json *d = json_get(&choices->items[i], "delta"),
				  *calls = json_get(d, "tool_calls");
		count(m, d, "content");
		count(m, d, "refusal");
		count(m, d, "reasoning_content");
		for (size_t k = 0; calls && calls->type == JSON_ARRAY && k < calls->n; k++)
			count(m, json_get(&calls->items[k], "function"), "arguments");
	}
	take(m, usage);
	bool empty =
		!choices || choices->type == JSON_NULL || (choices->type == JSON_ARRAY && choices->n == 0);
	return empty && usage && usage->type == JSON_OBJECT;
}

static void messages_event(struct meter *m, const struct json *j)
{
	const struct json *d = json_get(j, "delta");

	count(m, d, "text");
	count(m, d, "thinking");
	count(m, d, "partial_json");
	const struct json *begin = json_get(json_get(j, "message"), "usage"), *end = json_get(j, "usage");

	m->begun |= begin != NULL;
	m->told |= end != NULL;
	take(m, begin);
	take(m, end);
}

/* True: it only tells the usage of a chat. */
static bool event(struct meter *m, struct view data)
{
	struct json *j;
	struct err e;
	bool only = false;

	arena_reset(&m->arena);
	if (json_parse(&m->arena, data, &j, &e) < 0) {
		m->text += view_is(data, "[DONE]") ? 0 : data.n;
		return false;
	}
	if (m->api == METER_CHAT) {
		only = chat_event(m, j);
	} else if (m->api == METER_MESSAGES) {
		messages_event(m, j);
	} else {
		count(m, j, "delta");
		take(m, json_get(json_get(j, "response"), "usage"));
	}
	return only;
}

static void end_event(struct meter *m, struct buf *out)
{
	struct view data = buf_view(&m->data);
	bool only = data.n && event(m, data);

	buf_clear(&m->data);
	m->data.bad = 0;
	if (m->swallow && !(only && !m->unheld))
		buf_add(out, buf_view(&m->held));
	buf_clear(&m->held);
	m->unheld = false;
}

static void end_line(struct meter *m, struct buf *out)
{
	struct view line = buf_view(&m->line);

	if (m->skip_line) {
		m->text += LINE_MAX;
	} else if (line.n == 0) {
		end_event(m, out);
	} else if (view_starts(line, "data:")) {
		line = view_skip(line, 5);
		if (view_starts(line, " "))
			line = view_skip(line, 1);
		if (buf_len(&m->data))
			buf_putc(&m->data, '\n');
		buf_add(&m->data, line);
	}
	m->skip_line = false;
	buf_clear(&m->line);
	m->line.bad = 0;
}

static void hold(struct meter *m, struct view piece, struct buf *out)
{
	if (!m->swallow)
		return;
	if (!m->unheld && buf_room(&m->held) >= piece.n && buf_add(&m->held, piece) >= 0)
		return;
	m->unheld = true; /* too long to be what is looked for */
	buf_add(out, buf_view(&m->held));
	buf_clear(&m->held);
	buf_add(out, piece);
}

static void feed_events(struct meter *m, struct view v, struct buf *out)
{
	while (v.n) {
		if (m->after_cr) { /* one end, whether a LF follows or not */
			size_t lf = v.p[0] == '\n';
			hold(m, view_head(v, lf), out);
			m->after_cr = false;
			end_line(m, out);
			v = view_skip(v, lf);
			continue;
		}
		size_t n = 0;
		while (n < v.n && v.p[n] != '\n' && v.p[n] != '\r')
			n++;
		if (n && !m->skip_line && (buf_room(&m->line) < n || buf_append(&m->line, v.p, n) < 0))
			m->skip_line = true;
		bool whole = n < v.n;
		hold(m, view_head(v, n + whole), out);
		if (whole && v.p[n] == '\r')
			m->after_cr = true;
		else if (whole)
			end_line(m, out);
		v = view_skip(v, n + whole);
	}
}

/* ---- JSON: the member "usage" of the outermost object ---- */

static void end_member(struct meter *m)
{
	struct json *j;
	struct err e;

	if (!m->capturing)
		return;
	m->capturing = false;
	arena_reset(&m->arena);
	if (m->member.bad == 0 && json_parse(&m->arena, buf_view(&m->member), &j, &e) >= 0)
		take(m, j);
	buf_clear(&m->member);
	m->member.bad = 0;
}

static void in_string(struct meter *m, char c)
{
	if (m->escaped) {
		m->escaped = false;
	} else if (c == '\\') {
		m->escaped = true;
		m->n_key = sizeof(m->key); /* not ours, however it is meant */
	} else if (c == '"') {
		m->in_string = false;
		if (m->key_next && m->depth == 1)
			m->is_usage = m->n_key == 5 && memcmp(m->key, "usage", 5) == 0;
		return;
	}
	if (m->n_key < sizeof(m->key))
		m->key[m->n_key++] = c;
}

static void outside(struct meter *m, char c)
{
	switch (c) {
	case '"':
		m->in_string = true;
		m->n_key = 0;
		break;
	case '{':
	case '[':
		m->depth++;
		m->key_next = c == '{' && m->depth == 1;
		break;
	case '}':
	case ']':
		if (m->depth == 1)
			end_member(m);
		m->depth -= m->depth > 0;
		break;
	case ',':
		if (m->depth == 1) {
			end_member(m);
			m->key_next = true;
		}
		break;
	case ':':
		if (m->depth == 1 && m->key_next) {
			m->key_next = false;
			m->capturing = m->is_usage;
			m->is_usage = false;
		}
		break;
	default:
		break;
	}
}

static void feed_json(struct meter *m, struct view v)
{
	for (size_t i = 0; i < v.n; i++) {
		bool was = m->capturing;
		if (m->in_string)
			in_string(m, v.p[i]);
		else
			outside(m, v.p[i]);
		if (was && m->capturing)
			buf_putc(&m->member, v.p[i]);
	}
}

/* ---- the whole ---- */

void meter_feed(struct meter *m, struct view data, struct buf *out)
{
	m->bytes += data.n;
	if (!m->swallow)
		buf_add(out, data);
	if (m->sse)
		feed_events(m, data, out);
	else
		feed_json(m, data);
}

void meter_end(struct meter *m, struct buf *out)
{
	if (!m->sse)
		return;
	/* An event without the empty line behind it: clients drop it, its usage is true all the same. */
	if (buf_len(&m->line) || m->after_cr)
		end_line(m, out);
	end_event(m, out);
}

bool meter_result(const struct meter *m, uint64_t request_tokens, struct meter_usage *ret)
{
	uint64_t seen = (m->text + BYTES_PER_TOKEN - 1) / BYTES_PER_TOKEN;

	*ret = m->known ? m->usage : (struct meter_usage){ .input = request_tokens, .output = seen };
	/* Anthropic tells the input at the beginning and the output at the end: of one that was cut off
	 * in between what went by counts. */
	bool cut = m->known && m->begun && !m->told;
	if (cut)
		ret->output = MAX(ret->output, seen);
	return !m->known || cut;
}
