/*
 * Heads: see models_head.h. Only headers that are known to be needed are sent, so that none of the
 * client's own (keys, cookies, organisations) are passed on.
 */
#include "models_head.h"

#include <errno.h>

#include "http1.h"
#include "json.h"
#include "poison.h"

static bool one_of(struct view name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (view_is(name, list[i]))
			return true;
	return false;
}

static void add(struct buf *out, struct view name, struct view value)
{
	buf_add(out, name);
	buf_puts(out, ": ");
	buf_add(out, value);
	buf_puts(out, "\r\n");
}

/* Features that change neither the price nor what is counted. */
static void add_beta(struct buf *out, struct view list)
{
	static const char *const known[] = {
		"prompt-caching-2024-07-31",        "extended-cache-ttl-2025-04-11",
		"output-128k-2025-02-19",           "interleaved-thinking-2025-05-14",
		"token-efficient-tools-2025-02-19", "fine-grained-tool-streaming-2025-05-14",
		"token-counting-2024-11-01",        "pdfs-2024-09-25",
		"structured-outputs-2025-11-13"
	};
	bool first = true;

	while (list.p) {
		struct view one = view_trim(view_split(list, ',', &list));
		if (!one_of(one, known, ELEMS(known)))
			continue;
		buf_puts(out, first ? "anthropic-beta: " : ", ");
		buf_add(out, one);
		first = false;
	}
	if (!first)
		buf_puts(out, "\r\n");
}

int models_head_request(struct buf *out, const struct models_head *h)
{
	static const char *const passed[] = { "content-type", "accept", "user-agent", "anthropic-version",
					      "idempotency-key" };

	buf_add(out, h->method);
	buf_putc(out, ' ');
	buf_add(out, h->base);
	buf_add(out, h->path);
	if (h->query.n) {
		buf_putc(out, '?');
		buf_add(out, h->query);
	}
	buf_puts(out, " HTTP/1.1\r\n");
	add(out, VIEW("host"), h->authority);
	for (size_t i = 0; i < h->n_headers; i++) {
		struct http_header one = h->headers[i];
		if (!http1_is_header(one))
			continue;
		if (view_is(one.name, "anthropic-beta") && h->provider == ASK_ANTHROPIC)
			add_beta(out, one.value);
		else if (one_of(one.name, passed, ELEMS(passed)) || view_starts(one.name, "x-stainless-"))
			add(out, one.name, one.value);
	}
	/* Packed answers could not be metered. */
	buf_puts(out, "accept-encoding: identity\r\n");
	if (h->body >= 0)
		buf_printf(out, "content-length: %lld\r\n", (long long)h->body);
	return buf_puts(out, "connection: close\r\n");
}

struct http_header models_head_key(enum ask_provider p)
{
	return p == ASK_ANTHROPIC ? (struct http_header){ VIEW("x-api-key"), VIEW("") }
				  : (struct http_header){ VIEW("authorization"), VIEW("Bearer ") };
}

size_t models_head_response(const struct http1_response *r, struct http_header *out)
{
	static const char *const dropped[] = { "connection",
					       "keep-alive",
					       "proxy-connection",
					       "te",
					       "trailer",
					       "upgrade",
					       "proxy-authenticate",
					       "www-authenticate",
					       "set-cookie",
					       "openai-organization",
					       "openai-project",
					       "anthropic-organization-id",
					       "alt-svc",
					       "location",
					       "strict-transport-security",
					       "clear-site-data",
					       "content-encoding",
					       "date",
					       "server" };
	size_t n = 0;

	for (size_t i = 0; i < r->n_headers; i++)
		if (!one_of(r->headers[i].name, dropped, ELEMS(dropped)) &&
		    !view_starts(r->headers[i].name, "x-paddock-") &&
		    !http1_write_is_framing(r->headers[i].name))
			out[n++] = r->headers[i];
	return n;
}

static const char *anthropic_type(int status)
{
	return status == 401   ? "authentication_error"
	       : status == 403 ? "permission_error"
	       : status == 404 ? "not_found_error"
	       : status == 413 ? "request_too_large"
	       : status == 429 ? "rate_limit_error"
	       : status < 500  ? "invalid_request_error"
			       : "api_error";
}

void models_head_error(struct buf *out, enum models_style style, int status, const char *code,
		       const char *message)
{
	struct json_out o;

	json_out_init(&o, out);
	json_out_object(&o);
	if (style == MODELS_ASSEGAI) {
		json_out_kz(&o, "error", message);
		json_out_end(&o, '}');
		return;
	}
	if (style == MODELS_ANTHROPIC)
		json_out_kz(&o, "type", "error");
	json_out_key(&o, "error");
	json_out_object(&o);
	json_out_kz(&o, "type",
		    style == MODELS_ANTHROPIC ? anthropic_type(status)
		    : status == 429           ? "rate_limit_error"
		    : status < 500            ? "invalid_request_error"
					      : "server_error");
	json_out_kz(&o, "message", message);
	if (style == MODELS_OPENAI) {
		json_out_kz(&o, "code", code);
		json_out_key(&o, "param");
		json_out_null(&o);
	}
	json_out_end(&o, '}');
	json_out_end(&o, '}');
}
