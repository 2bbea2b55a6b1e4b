/*
 * Answers of HTTP/1.1: the head and chunks. The head is assembled by copying, as
 * it is on the path of every request.
 */
#include "http1.h"

#include <time.h>

#include "poison.h"

#define LINE(code, reason)                                                                                   \
	case code:                                                                                           \
		return VIEW("HTTP/1.1 " #code " " reason "\r\n")

static struct view status_line(int status)
{
	switch (status) {
		LINE(101, "Switching Protocols");
		LINE(200, "OK");
		LINE(201, "Created");
		LINE(202, "Accepted");
		LINE(204, "No Content");
		LINE(206, "Partial Content");
		LINE(301, "Moved Permanently");
		LINE(302, "Found");
		LINE(303, "See Other");
		LINE(304, "Not Modified");
		LINE(307, "Temporary Redirect");
		LINE(308, "Permanent Redirect");
		LINE(400, "Bad Request");
		LINE(401, "Unauthorized");
		LINE(403, "Forbidden");
		LINE(404, "Not Found");
		LINE(405, "Method Not Allowed");
		LINE(406, "Not Acceptable");
		LINE(408, "Request Timeout");
		LINE(409, "Conflict");
		LINE(410, "Gone");
		LINE(411, "Length Required");
		LINE(412, "Precondition Failed");
		LINE(413, "Content Too Large");
		LINE(414, "URI Too Long");
		LINE(415, "Unsupported Media Type");
		LINE(416, "Range Not Satisfiable");
		LINE(417, "Expectation Failed");
		LINE(422, "Unprocessable Content");
		LINE(426, "Upgrade Required");
		LINE(429, "Too Many Requests");
		LINE(431, "Request Header Fields Too Large");
		LINE(499, "Client Closed Request");
		LINE(501, "Not Implemented");
		LINE(502, "Bad Gateway");
		LINE(503, "Service Unavailable");
		LINE(504, "Gateway Timeout");
		LINE(505, "HTTP Version Not Supported");
		LINE(507, "Insufficient Storage");
		LINE(500, "Internal Server Error");
	default:
		return VIEW_NONE;
	}
}

static int add_status(struct buf *out, int status)
{
	struct view line = status_line(status);
	if (line.p)
		return buf_add(out, line);
	if (status < 100 || status > 999)
		return buf_add(out, status_line(500));
	return buf_printf(out, "HTTP/1.1 %d Other\r\n", status);
}

bool http1_write_is_framing(struct view name)
{
	static const char *const names[] = { "connection",  "content-length", "transfer-encoding",
					     "keep-alive",  "upgrade",        "trailer",
					     "te",          "date",           "server",
					     "x-request-id" };
	for (size_t i = 0; i < ELEMS(names); i++)
		if (view_eq_nocase(name, view_of(names[i])))
			return true;
	return false;
}

void http1_add_name(struct buf *out, struct http_header h)
{
	char *p = buf_reserve(out, h.name.n);

	if (!p)
		return;
	memcpy(p, h.name.p, h.name.n);
	for (size_t i = 0; h.upper >> i && i < h.name.n; i++)
		if (h.upper >> i & 1)
			p[i] = (char)(p[i] & ~0x20);
	buf_commit(out, h.name.n);
}

static void add_extra(struct buf *out, struct http_header h)
{
	http1_add_name(out, h);
	buf_add(out, VIEW(": "));
	buf_add(out, h.value);
	buf_add(out, VIEW("\r\n"));
}

static void add_header(struct buf *out, struct view name, struct view value)
{
	buf_add(out, name);
	buf_add(out, VIEW(": "));
	buf_add(out, value);
	buf_add(out, VIEW("\r\n"));
}

static void add_length(struct buf *out, int64_t length)
{
	char digits[24];
	size_t at = sizeof(digits);
	uint64_t n = (uint64_t)length;
	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	add_header(out, VIEW("content-length"), (struct view){ digits + at, sizeof(digits) - at });
}

int http1_write_head(struct buf *out, const struct http1_answer *a)
{
	add_status(out, a->status);
	buf_add(out, VIEW("server: paddock\r\n"));
	add_header(out, VIEW("date"), a->date);
	add_header(out, VIEW("x-request-id"), a->request_id);
	if (a->content_type)
		add_header(out, VIEW("content-type"), view_of(a->content_type));
	for (size_t i = 0; i < a->n_extra; i++)
		if (http1_is_header(a->extra[i]) && !http1_write_is_framing(a->extra[i].name))
			add_extra(out, a->extra[i]);
	if (a->length >= 0)
		add_length(out, a->length);
	else if (a->length == HTTP1_LENGTH_CHUNKED)
		buf_add(out, VIEW("transfer-encoding: chunked\r\n"));
	if (a->upgrade) {
		buf_add(out, VIEW("connection: upgrade\r\n"));
		add_header(out, VIEW("upgrade"), view_of(a->upgrade));
	} else if (!a->keep_alive)
		buf_add(out, VIEW("connection: close\r\n"));
	else if (a->version == 10)
		buf_add(out, VIEW("connection: keep-alive\r\n"));
	return buf_add(out, VIEW("\r\n"));
}

int http1_write_chunk(struct buf *out, struct view data)
{
	if (data.n == 0)
		return 0;
	buf_printf(out, "%zx\r\n", data.n);
	buf_add(out, data);
	return buf_add(out, VIEW("\r\n"));
}

int http1_write_last_chunk(struct buf *out, struct view trailers)
{
	buf_add(out, VIEW("0\r\n"));
	buf_add(out, trailers);
	return buf_add(out, VIEW("\r\n"));
}

void http1_write_date(char dst[HTTP1_DATE_SIZE], int64_t wall_s)
{
	static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	time_t t = wall_s;
	struct tm tm = { 0 };
	if (!gmtime_r(&t, &tm) ||
	    strftime(dst, HTTP1_DATE_SIZE, "ddd, %d mmm %Y %H:%M:%S GMT", &tm) != HTTP1_DATE_SIZE - 1) {
		memcpy(dst, "Thu, 01 Jan 1970 00:00:00 GMT", HTTP1_DATE_SIZE);
		return;
	}
	/* The names by hand: strftime's follow the locale. */
	memcpy(dst, days + 3 * tm.tm_wday, 3);
	memcpy(dst + 8, months + 3 * tm.tm_mon, 3);
}
