/*
 * The body of an HTTP/1.1 request: so many bytes, or chunks (RFC 9112, 7.1).
 *
 * Stricter than the RFC asks: no white space around chunk extensions, at most 16
 * digits in a size (so leading zeros are bounded too), and a bound on all
 * extensions of a body together, because some servers skip them by other rules
 * than others, which is a way to smuggle.
 */
#include "http1.h"

#include "poison.h"

#define EXT_MAX     8192
#define TRAILER_MAX 8192
#define SIZE_DIGITS 16

enum state {
	LENGTH,    /* not chunked */
	SIZE,      /* hex digits */
	SIZE_LF,   /* LF of the size line */
	EXT_START, /* after ';' */
	EXT_NAME,
	EXT_EQUALS, /* after '=' */
	EXT_TOKEN,  /* an unquoted value */
	EXT_QUOTED,
	EXT_ESCAPE, /* after '\' in quotes */
	EXT_CLOSED, /* after the closing quote */
	DATA,
	DATA_CR,
	DATA_LF,
	LAST_LINE, /* at the start of a trailer, or of the final empty line */
	TRAILER_NAME,
	TRAILER_VALUE,
	TRAILER_LF,
	LAST_LF,
	END,
};

void http1_body_init(struct http1_body *b, int64_t content_length)
{
	*b = (struct http1_body){ .state = SIZE, .chunked = true };
	if (content_length >= 0)
		*b = (struct http1_body){ .state = LENGTH, .left = (uint64_t)content_length };
}

static int fail(struct http1_body *b, int status, const char *why)
{
	b->why = why;
	return -status;
}

static int hex_digit(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_token_byte(unsigned char c)
{
	return http1_is_header((struct http_header){ { (const char *)&c, 1 }, VIEW_NONE });
}

static bool is_value_byte(unsigned char c)
{
	return (c >= 0x20 && c != 0x7f) || c == '\t';
}

static int bad_chunk(struct http1_body *b)
{
	return fail(b, 400, "malformed chunk");
}

static int bad_trailer(struct http1_body *b)
{
	return fail(b, 400, "malformed trailer");
}

static int size_byte(struct http1_body *b, unsigned char c)
{
	int digit = hex_digit(c);
	if (digit >= 0) {
		if (++b->digits > SIZE_DIGITS)
			return bad_chunk(b);
		b->left = b->left << 4 | (unsigned)digit;
		return 0;
	}
	if (b->digits == 0)
		return bad_chunk(b);
	if (b->left > INT64_MAX)
		return fail(b, 413, "chunk too large");
	if (c == ';')
		b->state = EXT_START;
	else if (c == '\r')
		b->state = SIZE_LF;
	else
		return bad_chunk(b);
	return 0;
}

/* ;name  ;name=token  ;name="quoted" */
static int ext_byte(struct http1_body *b, unsigned char c)
{
	if (++b->ext > EXT_MAX)
		return fail(b, 413, "chunk extensions too long");
	switch (b->state) {
	case EXT_START:
		b->state = EXT_NAME;
		return is_token_byte(c) ? 0 : bad_chunk(b);
	case EXT_QUOTED:
		if (c == '"')
			b->state = EXT_CLOSED;
		else if (c == '\\')
			b->state = EXT_ESCAPE;
		else if (!is_value_byte(c))
			return bad_chunk(b);
		return 0;
	case EXT_ESCAPE:
		b->state = EXT_QUOTED;
		return is_value_byte(c) ? 0 : bad_chunk(b);
	case EXT_EQUALS:
		b->state = c == '"' ? EXT_QUOTED : EXT_TOKEN;
		return c == '"' || is_token_byte(c) ? 0 : bad_chunk(b);
	default:
		break;
	}
	if (is_token_byte(c) && b->state != EXT_CLOSED)
		return 0;
	if (c == '=' && b->state == EXT_NAME)
		b->state = EXT_EQUALS;
	else if (c == ';')
		b->state = EXT_START;
	else if (c == '\r')
		b->state = SIZE_LF;
	else
		return bad_chunk(b);
	return 0;
}

static int trailer_byte(struct http1_body *b, unsigned char c)
{
	if (++b->trailer > TRAILER_MAX)
		return fail(b, 431, "trailers too long");
	switch (b->state) {
	case LAST_LINE:
		b->state = c == '\r' ? LAST_LF : TRAILER_NAME;
		return c == '\r' || is_token_byte(c) ? 0 : bad_trailer(b);
	case TRAILER_NAME:
		if (c == ':')
			b->state = TRAILER_VALUE;
		else if (!is_token_byte(c))
			return bad_trailer(b);
		return 0;
	case TRAILER_VALUE:
		if (c == '\r')
			b->state = TRAILER_LF;
		else if (!is_value_byte(c))
			return bad_trailer(b);
		return 0;
	case TRAILER_LF:
		b->state = LAST_LINE;
		return c == '\n' ? 0 : bad_trailer(b);
	default:
		b->state = END; /* LAST_LF */
		return c == '\n' ? 0 : bad_trailer(b);
	}
}

/* One byte that is not data. */
static int frame_byte(struct http1_body *b, unsigned char c)
{
	switch ((enum state)b->state) {
	case SIZE:
		return size_byte(b, c);
	case SIZE_LF:
		b->state = b->left ? DATA : LAST_LINE;
		return c == '\n' ? 0 : bad_chunk(b);
	case DATA_CR:
		b->state = DATA_LF;
		return c == '\r' ? 0 : bad_chunk(b);
	case DATA_LF:
		b->state = SIZE;
		b->left = b->digits = 0;
		return c == '\n' ? 0 : bad_chunk(b);
	case EXT_START:
	case EXT_NAME:
	case EXT_EQUALS:
	case EXT_TOKEN:
	case EXT_QUOTED:
	case EXT_ESCAPE:
	case EXT_CLOSED:
		return ext_byte(b, c);
	case LAST_LINE:
	case TRAILER_NAME:
	case TRAILER_VALUE:
	case TRAILER_LF:
	case LAST_LF:
		return trailer_byte(b, c);
	case LENGTH:
	case DATA:
	case END:
		break;
	}
	return bad_chunk(b);
}

static int take_data(struct http1_body *b, struct view *in, struct view *ret_data)
{
	if (in->n == 0)
		return HTTP1_MORE;
	*ret_data = view_head(*in, b->left < in->n ? (size_t)b->left : in->n);
	*in = view_skip(*in, ret_data->n);
	b->left -= ret_data->n;
	if (b->left == 0 && b->chunked)
		b->state = DATA_CR;
	return HTTP1_DATA;
}

int http1_body_next(struct http1_body *b, struct view *in, struct view *ret_data)
{
	if (b->why)
		return -400; /* failed before: fails for good */
	if (!b->chunked)
		return b->left ? take_data(b, in, ret_data) : HTTP1_END;
	while (b->state != END) {
		if (b->state == DATA)
			return take_data(b, in, ret_data);
		if (in->n == 0)
			return HTTP1_MORE;
		int rc = frame_byte(b, (unsigned char)in->p[0]);
		if (rc < 0)
			return rc;
		*in = view_skip(*in, 1);
	}
	return HTTP1_END;
}
