/*
 * The head of an HTTP/1.1 request. It is read line by line as the lines become
 * complete, so a mistake is answered at once and feeding byte by byte gives the
 * same result as feeding it whole: the only look at an unfinished line is at its
 * length and at the very first byte.
 *
 * Nothing is copied: views point into the caller's buffer.
 */
#include "http1.h"

#include "num.h"
#include "poison.h"

enum phase { PHASE_START, PHASE_REQUEST_LINE, PHASE_HEADERS, PHASE_DONE };

/* RFC 9110 token characters, mapped to lower case; 0 for all others. */
static const char token_lower[256] = {
	['!'] = '!', ['#'] = '#', ['$'] = '$', ['%'] = '%', ['&'] = '&', ['\''] = '\'', ['*'] = '*',
	['+'] = '+', ['-'] = '-', ['.'] = '.', ['^'] = '^', ['_'] = '_', ['`'] = '`',   ['|'] = '|',
	['~'] = '~', ['0'] = '0', ['1'] = '1', ['2'] = '2', ['3'] = '3', ['4'] = '4',   ['5'] = '5',
	['6'] = '6', ['7'] = '7', ['8'] = '8', ['9'] = '9', ['a'] = 'a', ['b'] = 'b',   ['c'] = 'c',
	['d'] = 'd', ['e'] = 'e', ['f'] = 'f', ['g'] = 'g', ['h'] = 'h', ['i'] = 'i',   ['j'] = 'j',
	['k'] = 'k', ['l'] = 'l', ['m'] = 'm', ['n'] = 'n', ['o'] = 'o', ['p'] = 'p',   ['q'] = 'q',
	['r'] = 'r', ['s'] = 's', ['t'] = 't', ['u'] = 'u', ['v'] = 'v', ['w'] = 'w',   ['x'] = 'x',
	['y'] = 'y', ['z'] = 'z', ['A'] = 'a', ['B'] = 'b', ['C'] = 'c', ['D'] = 'd',   ['E'] = 'e',
	['F'] = 'f', ['G'] = 'g', ['H'] = 'h', ['I'] = 'i', ['J'] = 'j', ['K'] = 'k',   ['L'] = 'l',
	['M'] = 'm', ['N'] = 'n', ['O'] = 'o', ['P'] = 'p', ['Q'] = 'q', ['R'] = 'r',   ['S'] = 's',
	['T'] = 't', ['U'] = 'u', ['V'] = 'v', ['W'] = 'w', ['X'] = 'x', ['Y'] = 'y',   ['Z'] = 'z',
};

static inline bool is_alnum(unsigned char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static inline bool is_hex(unsigned char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

static bool is_token(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (!token_lower[(unsigned char)v.p[i]])
			return false;
	return v.n > 0;
}

/* Field values: visible ASCII, space, tab, and bytes from 0x80 (which stay opaque). */
static bool is_value(struct view v)
{
	unsigned bad = 0;
	for (size_t i = 0; i < v.n; i++) {
		unsigned char c = (unsigned char)v.p[i];
		bad |= (unsigned)((c < 0x20 && c != '\t') | (c == 0x7f));
	}
	return !bad;
}

bool http1_is_header(struct http_header h)
{
	return is_token(h.name) && is_value(h.value);
}

bool http1_is_target(struct view v)
{
	for (size_t i = 0; i < v.n; i++) {
		unsigned char c = (unsigned char)v.p[i];
		/* '#' would start a fragment; the others are no URI characters and
		 * are rewritten by some proxies. */
		if (c <= 0x20 || c >= 0x7f || c == '#' || c == '"' || c == '<' || c == '>' || c == '\\')
			return false;
		if (c == '%' &&
		    (v.n - i < 3 || !is_hex((unsigned char)v.p[i + 1]) || !is_hex((unsigned char)v.p[i + 2])))
			return false;
	}
	return true;
}

/* A registered name or an IPv4 address, or an IPv6 address in brackets; and a port. */
bool http1_is_host(struct view v)
{
	size_t i = 0;
	if (v.n && v.p[0] == '[') {
		for (i = 1; i < v.n && v.p[i] != ']'; i++)
			if (!is_hex((unsigned char)v.p[i]) && v.p[i] != ':' && v.p[i] != '.')
				return false;
		if (i < 3 || i == v.n)
			return false;
		i++;
	} else {
		while (i < v.n && (is_alnum((unsigned char)v.p[i]) || memchr("-._~!$&'()*+;=%", v.p[i], 15)))
			i++;
		if (i == 0)
			return false;
	}
	if (i < v.n && v.p[i] == ':') {
		size_t port = ++i;
		while (i < v.n && v.p[i] >= '0' && v.p[i] <= '9' && i - port < 5)
			i++;
	}
	return i == v.n;
}

static int fail(struct http1_request *r, int status, const char *why)
{
	r->why = why;
	return -status;
}

/* ---- the request line ---- */

static int parse_version(struct http1_request *r, struct view v)
{
	if (v.n != 8 || memcmp(v.p, "HTTP/", 5) != 0 || v.p[6] != '.' || v.p[5] < '0' || v.p[5] > '9' ||
	    v.p[7] < '0' || v.p[7] > '9')
		return fail(r, 400, "malformed request line");
	if (v.p[5] != '1' || v.p[7] > '1')
		return fail(r, 505, "only HTTP/1.0, HTTP/1.1 and HTTP/2 are spoken here");
	r->version = v.p[7] == '1' ? 11 : 10;
	return 0;
}

/* absolute-form: "http://authority/path?query"; the authority is compared with Host at the end. */
static int parse_absolute(struct http1_request *r, struct view target, struct view *ret_path)
{
	size_t skip;
	if (target.n > 7 && view_eq_nocase(view_head(target, 7), VIEW("http://")))
		skip = 7;
	else if (target.n > 8 && view_eq_nocase(view_head(target, 8), VIEW("https://")))
		skip = 8;
	else
		return fail(r, 400, "malformed request target");
	struct view rest = view_skip(target, skip);
	size_t n = 0;
	while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?')
		n++;
	r->authority = view_head(rest, n);
	if (!http1_is_host(r->authority))
		return fail(r, 400, "malformed authority in the request target");
	*ret_path = view_skip(rest, n);
	return 0;
}

static int parse_target(struct http1_request *r, struct view target)
{
	if (target.n == 0 || !http1_is_target(target))
		return fail(r, 400, "malformed request target");
	if (view_is(target, "*")) {
		if (!view_is(r->method, "OPTIONS"))
			return fail(r, 400, "malformed request target");
		r->path = target;
		return 0;
	}
	struct view path = target;
	if (target.p[0] != '/') {
		int rc = parse_absolute(r, target, &path);
		if (rc < 0)
			return rc;
	}
	r->path = view_split(path, '?', &r->query);
	if (r->path.n == 0)
		r->path = VIEW("/");
	return 0;
}

static int parse_request_line(struct http1_request *r, struct view line)
{
	struct view rest, version, more;
	r->method = view_split(line, ' ', &rest);
	struct view target = view_split(rest, ' ', &version);
	if (!is_token(r->method) || !rest.p || !version.p)
		return fail(r, 400, "malformed request line");
	view_split(version, ' ', &more);
	if (more.p)
		return fail(r, 400, "malformed request line");
	int rc = parse_version(r, version);
	if (rc < 0)
		return rc;
	if (r->method.n > HTTP1_METHOD_MAX || view_is(r->method, "CONNECT"))
		return fail(r, 501, "unknown method");
	return parse_target(r, target);
}

/* ---- the headers ---- */

static int header_length(struct http1_request *r, struct view value)
{
	uint64_t n;
	if (r->has_length)
		return fail(r, 400, "more than one Content-Length");
	r->has_length = true;
	if (num_u64(value, &n) < 0 || n > INT64_MAX)
		return fail(r, 400, "malformed Content-Length");
	r->content_length = (int64_t)n;
	return 0;
}

static int header_coding(struct http1_request *r, struct view value)
{
	if (r->has_coding)
		return fail(r, 400, "more than one Transfer-Encoding");
	r->has_coding = true;
	if (!view_is(value, "chunked"))
		return fail(r, value.n ? 501 : 400, "the only Transfer-Encoding spoken here is chunked");
	return 0;
}

static int header_host(struct http1_request *r, struct view value)
{
	if (r->has_host)
		return fail(r, 400, "more than one Host");
	r->has_host = true;
	if (!http1_is_host(value))
		return fail(r, 400, "malformed Host");
	r->host = value;
	return 0;
}

static int header_connection(struct http1_request *r, struct view value)
{
	while (value.p) {
		struct view option = view_trim(view_split(value, ',', &value));
		if (option.n == 0)
			continue;
		if (!is_token(option))
			return fail(r, 400, "malformed Connection");
		if (view_eq_nocase(option, VIEW("close")))
			r->says_close = true;
		else if (view_eq_nocase(option, VIEW("keep-alive")))
			r->says_keep_alive = true;
	}
	return 0;
}

static int header_expect(struct http1_request *r, struct view value)
{
	if (r->has_expect || !view_eq_nocase(value, VIEW("100-continue")))
		return fail(r, 417, "the only expectation known here is 100-continue");
	r->has_expect = true;
	return 0;
}

/* The headers that decide about framing and the connection. */
static int parse_known(struct http1_request *r, struct http_header h)
{
	switch (h.name.n) {
	case 4:
		return memcmp(h.name.p, "host", 4) == 0 ? header_host(r, h.value) : 0;
	case 6:
		return memcmp(h.name.p, "expect", 6) == 0 ? header_expect(r, h.value) : 0;
	case 10:
		return memcmp(h.name.p, "connection", 10) == 0 ? header_connection(r, h.value) : 0;
	case 14:
		return memcmp(h.name.p, "content-length", 14) == 0 ? header_length(r, h.value) : 0;
	case 17:
		return memcmp(h.name.p, "transfer-encoding", 17) == 0 ? header_coding(r, h.value) : 0;
	default:
		return 0;
	}
}

static int parse_header(struct http1_request *r, char *line, size_t n)
{
	size_t name = 0;
	uint64_t upper = 0;
	char low;
	if (r->n_headers == r->max_headers)
		return fail(r, 431, "too many headers");
	/* A folded line, "Name : value" and an empty name all stop here. */
	for (; name < n && (low = token_lower[(unsigned char)line[name]]) != 0; name++) {
		if (low != line[name] && name < HTTP_HEADER_UPPER)
			upper |= 1ull << name;
		line[name] = low;
	}
	if (name == 0 || name == n || line[name] != ':')
		return fail(r, 400, "malformed header");
	struct http_header h = {
		.name = { line, name },
		.value = view_trim((struct view){ line + name + 1, n - name - 1 }),
		.upper = upper,
	};
	if (!is_value(h.value))
		return fail(r, 400, "control byte in a header");
	r->headers[r->n_headers++] = h;
	return parse_known(r, h);
}

/* What can be said only when all headers are known. */
static int check_head(struct http1_request *r)
{
	if (!r->has_host && r->version == 11)
		return fail(r, 400, "no Host");
	if (r->authority.n && r->has_host && !view_eq_nocase(r->authority, r->host))
		return fail(r, 400, "the request target is for another host than Host");
	if (r->authority.n)
		r->host = r->authority;
	if (r->has_coding) {
		if (r->has_length)
			return fail(r, 400, "both Content-Length and Transfer-Encoding");
		if (r->version == 10)
			return fail(r, 400, "Transfer-Encoding in HTTP/1.0");
		r->content_length = -1;
	}
	r->keep_alive = !r->says_close && (r->version == 11 || r->says_keep_alive);
	r->expect_continue = r->has_expect && r->version == 11 && r->content_length != 0;
	return 0;
}

/* ---- lines ---- */

void http1_request_init(struct http1_request *r, struct http_header *headers, size_t max_headers,
			size_t max_bytes)
{
	*r = (struct http1_request){
		.headers = headers,
		.max_headers = max_headers,
		.max_bytes = max_bytes,
	};
}

static int too_long(struct http1_request *r)
{
	if (r->phase < PHASE_HEADERS)
		return fail(r, 414, "the request line is too long");
	return fail(r, 431, "the headers are too long");
}

static int take_line(struct http1_request *r, char *line, size_t n)
{
	int rc;
	switch ((enum phase)r->phase) {
	case PHASE_START:
		r->phase = PHASE_REQUEST_LINE;
		if (n == 0)
			return 0; /* the one empty line that is forgiven */
		_fallthrough_;
	case PHASE_REQUEST_LINE:
		rc = parse_request_line(r, (struct view){ line, n });
		r->phase = PHASE_HEADERS;
		return rc;
	case PHASE_HEADERS:
		if (n > 0)
			return parse_header(r, line, n);
		r->phase = PHASE_DONE;
		return check_head(r);
	case PHASE_DONE:
		break;
	}
	return fail(r, 500, "parsed past the end of a head");
}

bool http1_request_news(size_t *seen, const char *p, size_t n, size_t max_bytes)
{
	size_t had = MIN(*seen, n);

	*seen = n;
	if (had == 0 || had == n)
		return had == 0 && n > 0;
	return memchr(p + had, '\n', n - had) || (had < max_bytes / 2 && n >= max_bytes / 2) ||
	       n >= max_bytes;
}

int http1_request_parse(struct http1_request *r, char *p, size_t n)
{
	/* Not HTTP at all (a TLS hello, say): no line end may ever come. */
	if (n > 0 && r->phase == PHASE_START && p[0] != '\r' && !token_lower[(unsigned char)p[0]])
		return fail(r, 400, "malformed request line");
	while (r->phase != PHASE_DONE) {
		/* The request line may take half of the head. */
		size_t limit = r->phase < PHASE_HEADERS ? r->max_bytes / 2 : r->max_bytes;
		const char *lf = n > r->scan ? memchr(p + r->scan, '\n', n - r->scan) : NULL;
		if (!lf) {
			r->scan = n;
			return n >= limit ? too_long(r) : 0;
		}
		size_t end = (size_t)(lf - p);
		if (end >= limit)
			return too_long(r);
		if (end == r->line || p[end - 1] != '\r')
			return fail(r, 400, "a line must end with CR LF");
		char *line = p + r->line;
		size_t len = end - 1 - r->line;
		r->line = r->scan = end + 1;
		int rc = take_line(r, line, len);
		if (rc < 0)
			return rc;
	}
	return (int)r->line;
}
