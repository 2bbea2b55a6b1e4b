/*
 * Judging requests: see ask.h.
 */
#include "ask.h"

#include "json.h"
#include "poison.h"

#define BYTES_PER_TOKEN 4
#define MODEL_MAX       128
#define CHOICES_MAX     128
#define OUTPUT_MAX      (1u << 24)

static const char *const providers[ASK_PROVIDERS] = {
	[ASK_OPENAI] = "openai", [ASK_ANTHROPIC] = "anthropic"
};

const char *ask_provider_name(enum ask_provider p)
{
	return providers[p];
}

enum ask_provider ask_provider(struct view name)
{
	for (int p = 1; p < ASK_PROVIDERS; p++)
		if (view_is(name, providers[p]))
			return (enum ask_provider)p;
	return ASK_NONE;
}

static const struct ask_endpoint openai[] = {
	{ "POST", "/v1/chat/completions", "chat/completions", METER_CHAT, false },
	{ "POST", "/v1/responses", "responses", METER_RESPONSES, false },
	{ "POST", "/v1/embeddings", "embeddings", METER_EMBEDDINGS, false },
	{ "POST", "/v1/moderations", "moderations", METER_NONE, true },
	{ "GET", "/v1/models", "models", METER_NONE, true },
};
static const struct ask_endpoint anthropic[] = {
	{ "POST", "/v1/messages", "messages", METER_MESSAGES, false },
	{ "POST", "/v1/messages/count_tokens", "messages/count_tokens", METER_NONE, true },
	{ "GET", "/v1/models", "models", METER_NONE, true },
};

/* One way to read it: no escapes, no empty or dotted segments. */
static bool is_plain(struct view path)
{
	for (size_t i = 0; i < path.n; i++) {
		char c = path.p[i];
		bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			    c == '_' || c == '-' || c == ':';
		if (!word && c != '/' && c != '.')
			return false;
		if (c == '/' && i + 1 < path.n && (path.p[i + 1] == '/' || path.p[i + 1] == '.'))
			return false;
	}
	return path.n > 0 && path.p[0] == '/';
}

const struct ask_endpoint *ask_endpoint(enum ask_provider p, struct view method, struct view path)
{
	const struct ask_endpoint *table = p == ASK_OPENAI ? openai : p == ASK_ANTHROPIC ? anthropic : NULL;
	size_t n = p == ASK_OPENAI ? ELEMS(openai) : ELEMS(anthropic);

	if (!table || !is_plain(path))
		return NULL;
	for (size_t i = 0; i < n; i++) {
		const struct ask_endpoint *ep = &table[i];
		size_t len = strlen(ep->path);
		if (!view_is(method, ep->method) || !view_starts(path, ep->path))
			continue;
		if (path.n == len || (view_is(method, "GET") && path.p[len] == '/'))
			return ep;
	}
	return NULL;
}

bool ask_fits(struct view pattern, struct view text)
{
	struct view after = VIEW_NONE,
		    back = VIEW_NONE; /* behind the last '*', and what it has taken so far */

	while (text.n) {
		if (pattern.n && pattern.p[0] == '*') {
			after = pattern = view_skip(pattern, 1);
			back = text;
		} else if (pattern.n && pattern.p[0] == text.p[0]) {
			pattern = view_skip(pattern, 1);
			text = view_skip(text, 1);
		} else if (after.p) {
			back = view_skip(back, 1);
			pattern = after;
			text = back;
		} else {
			return false;
		}
	}
	while (pattern.n && pattern.p[0] == '*')
		pattern = view_skip(pattern, 1);
	return pattern.n == 0;
}

/* ---- bodies ---- */

static bool is_true(const struct json *j)
{
	return j && j->type == JSON_BOOL && j->boolean;
}

static int read_count(const struct json *doc, const char *key, uint64_t most, uint64_t *ret, struct err *e)
{
	const struct json *j = json_get(doc, key);

	if (!j || j->type == JSON_NULL)
		return 0;
	if (json_to_u64(j, ret) < 0 || *ret > most)
		return err_set(e, ERR_INVALID, "%s must be a number up to %llu", key,
			       (unsigned long long)most);
	return 0;
}

/* Tools that the program runs itself cost their tokens; those that the provider runs cost money of their
 * own, and reach places that the box may not. */
static bool is_own_tool(const struct json *tool)
{
	static const char *const own[] = { "function", "custom",      "bash_*", "text_editor_*", "computer_*",
					   "memory_*", "local_shell", "shell",  "apply_patch" };
	const struct json *type = json_get(tool, "type");

	if (!type)
		return true;
	for (size_t i = 0; type->type == JSON_STRING && i < ELEMS(own); i++)
		if (ask_fits(view_of(own[i]), type->text))
			return true;
	return false;
}

static bool given(const struct json *doc, const char *key)
{
	const struct json *j = json_get(doc, key);
	return j && j->type != JSON_NULL;
}

static int check_extras(const struct json *doc, struct err *e)
{
	const struct json *tools = json_get(doc, "tools"), *tier = json_get(doc, "service_tier");

	for (size_t i = 0; tools && tools->type == JSON_ARRAY && i < tools->n; i++)
		if (!is_own_tool(&tools->items[i]))
			return err_set(e, ERR_FORBIDDEN,
				       "tools that the provider runs cannot be metered and are refused");
	if (given(doc, "mcp_servers") || given(doc, "web_search_options") || given(doc, "container"))
		return err_set(
			e, ERR_FORBIDDEN,
			"mcp_servers, web_search_options and container cannot be metered and are refused");
	if (tier && tier->type == JSON_STRING && !view_is(tier->text, "auto") &&
	    !view_is(tier->text, "default") && !view_is(tier->text, "flex") &&
	    !view_is(tier->text, "standard_only"))
		return err_set(e, ERR_FORBIDDEN, "this service_tier has a price of its own and is refused");
	return 0;
}

int ask_read(struct arena *a, const struct ask_endpoint *ep, struct view body, struct ask *ret, struct err *e)
{
	struct ask k = { .input_tokens = (body.n + BYTES_PER_TOKEN - 1) / BYTES_PER_TOKEN };
	uint64_t output[3] = { 0 }, choices = 1;
	struct json *doc;

	if (json_parse(a, body, &doc, e) < 0)
		return -1;
	const struct json *model = json_get(doc, "model"), *stream = json_get(doc, "stream");
	if (model && model->type == JSON_STRING && model->text.n <= MODEL_MAX)
		k.model = model->text;
	if (!k.model.n && !ep->free)
		return err_set(e, ERR_INVALID, "model must be a string of 1 to %d bytes", MODEL_MAX);
	if (stream && stream->type != JSON_BOOL && stream->type != JSON_NULL)
		return err_set(e, ERR_INVALID, "stream must be true or false");
	if (is_true(json_get(doc, "background")))
		return err_set(e, ERR_FORBIDDEN, "background responses cannot be metered and are refused");
	k.stream = is_true(stream);
	k.options = json_get(doc, "stream_options") != NULL;
	k.usage_asked = is_true(json_get(json_get(doc, "stream_options"), "include_usage"));
	if (read_count(doc, "max_tokens", OUTPUT_MAX, &output[0], e) < 0 ||
	    read_count(doc, "max_completion_tokens", OUTPUT_MAX, &output[1], e) < 0 ||
	    read_count(doc, "max_output_tokens", OUTPUT_MAX, &output[2], e) < 0 ||
	    (ep->api == METER_CHAT && read_count(doc, "n", CHOICES_MAX, &choices, e) < 0))
		return -1;
	if (check_extras(doc, e) < 0)
		return -1;
	k.max_output = MAX(output[0], MAX(output[1], output[2]));
	k.choices = MAX(choices, 1u);
	*ret = k;
	return 0;
}

/* The value of a member of the outermost object, as written; the text is known to be JSON. A key
 * that is written with escapes is not found. */
static struct view find_member(struct view text, const char *key)
{
	struct view found = VIEW_NONE;
	size_t begin = 0, from = 0;
	unsigned depth = 0;
	bool string = false, key_next = false, ours = false;

	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];
		if (string) {
			if (c == '\\')
				i++;
			else if (c == '"') {
				string = false;
				if (depth == 1 && key_next)
					ours = view_is((struct view){ text.p + begin, i - begin }, key);
			}
		} else if (c == '"') {
			string = true;
			begin = i + 1;
		} else if (c == '{' || c == '[') {
			depth++;
			key_next = depth == 1;
		} else if (depth == 1 && c == ':' && key_next) {
			key_next = false;
			from = ours ? i + 1 : 0;
			ours = false;
		} else if (c == '}' || c == ']' || c == ',') {
			if (depth == 1 && from) {
				found = (struct view){ text.p + from, i - from };
				from = 0;
			}
			key_next = depth == 1 && c == ',';
			depth -= c != ',' && depth > 0;
		}
	}
	return found;
}

int ask_body(const struct ask_endpoint *ep, const struct ask *k, struct view body, struct buf *out,
	     struct err *e)
{
	static const char wish[] = "{\"include_usage\":true}";

	if (ep->api != METER_CHAT || !k->stream || k->usage_asked) {
		buf_add(out, body);
	} else {
		struct view options = find_member(body, "stream_options");
		if (options.p) {
			/* What else it may say concerns the same chunk. */
			buf_add(out, view_head(body, (size_t)(options.p - body.p)));
			buf_puts(out, wish);
			buf_add(out, view_skip(body, (size_t)(options.p + options.n - body.p)));
		} else if (k->options) {
			return err_set(e, ERR_BAD_REQUEST, "stream_options must be written without escapes");
		} else {
			const char *brace = memchr(body.p, '{', body.n);
			size_t n = brace ? (size_t)(brace - body.p) + 1 : 0;
			buf_add(out, view_head(body, n));
			buf_puts(out, "\"stream_options\":");
			buf_puts(out, wish);
			buf_putc(out, ',');
			buf_add(out, view_skip(body, n));
		}
	}
	return out->bad ? err_set(e, ERR_TOO_LARGE, "the body is too large") : 0;
}
