/*
 * Response heads: see http1_response.h. Lines end in CR LF and nothing else, a
 * length is said once or not at all, and the only coding is "chunked".
 */
#include "http1_response.h"

#include "http1.h"
#include "num.h"
#include "poison.h"

void http1_response_init(struct http1_response *r, struct http_header *headers, size_t max_headers,
			 size_t max_bytes)
{
	*r = (struct http1_response){
		.headers = headers, .max_headers = max_headers, .max_bytes = max_bytes, .content_length = -1
	};
}

static int fail(struct http1_response *r, const char *why)
{
	r->why = why;
	return -1;
}

/* "HTTP/1.1 200 OK"; the reason may be missing, with or without its space. */
static int status_line(struct http1_response *r, struct view line)
{
	uint32_t status;

	if (!view_starts(line, "HTTP/1.1 ") && !view_starts(line, "HTTP/1.0 "))
		return fail(r, "malformed status line");
	r->version = line.p[7] == '1' ? 11 : 10;
	line = view_skip(line, 9);
	if (line.n < 3 || num_u32(view_head(line, 3), &status) < 0 || status < 100 || status > 599 ||
	    (line.n > 3 && line.p[3] != ' '))
		return fail(r, "malformed status");
	if (!http1_is_header((struct http_header){ VIEW("reason"), view_skip(line, 3) }))
		return fail(r, "control byte in the status line");
	r->status = (int)status;
	r->has_status = true;
	return 0;
}

static int length_header(struct http1_response *r, struct view value)
{
	uint64_t n;

	if (r->content_length >= 0)
		return fail(r, "more than one Content-Length");
	if (num_u64(value, &n) < 0 || n > INT64_MAX)
		return fail(r, "malformed Content-Length");
	r->content_length = (int64_t)n;
	return 0;
}

static int coding_header(struct http1_response *r, struct view value)
{
	if (r->chunked)
		return fail(r, "more than one Transfer-Encoding");
	if (r->version == 10 || !view_eq_nocase(value, VIEW("chunked")))
		return fail(r, "a Transfer-Encoding that is not chunked");
	r->chunked = true;
	return 0;
}

static int header_line(struct http1_response *r, char *line, size_t n)
{
	size_t name = 0;
	uint64_t upper = 0;

	if (r->n_headers == r->max_headers)
		return fail(r, "too many headers");
	for (; name < n && line[name] != ':'; name++)
		if (line[name] >= 'A' && line[name] <= 'Z') {
			line[name] = (char)(line[name] | 0x20);
			upper |= name < HTTP_HEADER_UPPER ? 1ull << name : 0;
		}
	if (name == n)
		return fail(r, "malformed header");
	struct http_header h = { { line, name },
				 view_trim((struct view){ line + name + 1, n - name - 1 }),
				 upper };
	/* A folded line, "Name : value" and an empty name all stop here. */
	if (!http1_is_header(h))
		return fail(r, "malformed header");
	r->headers[r->n_headers++] = h;
	if (view_is(h.name, "content-length"))
		return length_header(r, h.value);
	return view_is(h.name, "transfer-encoding") ? coding_header(r, h.value) : 0;
}

static int take_line(struct http1_response *r, char *line, size_t n)
{
	if (!r->has_status)
		return status_line(r, (struct view){ line, n });
	if (n > 0)
		return header_line(r, line, n);
	if (r->chunked && r->content_length >= 0)
		return fail(r, "both Content-Length and Transfer-Encoding");
	r->done = true;
	return 0;
}

int http1_response_parse(struct http1_response *r, char *p, size_t n)
{
	if (r->why)
		return -1; /* failed before: fails for good */
	while (!r->done) {
		const char *lf = n > r->scan ? memchr(p + r->scan, '\n', n - r->scan) : NULL;
		size_t end = lf ? (size_t)(lf - p) : n;
		if (end >= r->max_bytes)
			return fail(r, "the head is too long");
		if (!lf) {
			r->scan = n;
			return 0;
		}
		if (end == r->line || p[end - 1] != '\r')
			return fail(r, "a line must end with CR LF");
		char *line = p + r->line;
		size_t len = end - 1 - r->line;
		r->line = r->scan = end + 1;
		if (take_line(r, line, len) < 0)
			return -1;
	}
	return (int)r->line;
}

enum http1_framing http1_response_framing(const struct http1_response *r, bool to_head)
{
	if (to_head || r->status < 200 || r->status == 204 || r->status == 304)
		return HTTP1_EMPTY;
	if (r->chunked)
		return HTTP1_CHUNKED;
	return r->content_length >= 0 ? HTTP1_LENGTH : HTTP1_TO_END;
}

bool http1_response_has_option(struct view list, const char *option)
{
	while (list.p)
		if (view_eq_nocase(view_trim(view_split(list, ',', &list)), view_of(option)))
			return true;
	return false;
}
