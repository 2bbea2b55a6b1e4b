/*
 * Files from memory, by their path.
 */
#include "pages.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "answer.h"
#include "dialect.h"
#include "http1_response.h"
#include "poison.h"

#define HEADERS_MAX 16

const struct pages_file *pages_find(const struct pages_file *files, struct view path)
{
	for (const struct pages_file *f = files; f->path; f++)
		if (view_is(path, f->path))
			return f;
	return NULL;
}

bool pages_is_browser(const struct http_exchange *x)
{
	struct view rest = http_get_header(x, "accept");

	while (rest.p) {
		struct view weight, one = view_split(rest, ',', &rest);
		if (view_eq_nocase(view_trim(view_split(one, ';', &weight)), VIEW("text/html")))
			return true;
	}
	return false;
}

static bool takes_gzip(const struct http_exchange *x)
{
	struct view rest = http_get_header(x, "accept-encoding");

	while (rest.p) {
		struct view weight, one = view_split(rest, ',', &rest);
		if (!view_eq_nocase(view_trim(view_split(one, ';', &weight)), VIEW("gzip")))
			continue;
		weight = view_trim(weight);
		return !view_is(weight, "q=0") && !view_is(weight, "q=0.0") && !view_is(weight, "q=0.00") &&
		       !view_is(weight, "q=0.000");
	}
	return false;
}

/* For the few who do not take it compressed. NULL: no memory. */
static unsigned char *inflate_file(const struct pages_file *f)
{
	unsigned char *plain = malloc(f->size + 1);
	z_stream z = { .next_in = (unsigned char *)f->gzip,
		       .avail_in = (unsigned)f->gzip_size,
		       .next_out = plain,
		       .avail_out = (unsigned)f->size + 1 };

	if (!plain || inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) {
		free(plain);
		return NULL;
	}
	int r = inflate(&z, Z_FINISH);
	inflateEnd(&z);
	if (r == Z_STREAM_END && z.total_out == f->size)
		return plain;
	free(plain);
	return NULL;
}

static size_t put_headers(const struct request *r, struct http_header h[HEADERS_MAX],
			  const struct pages_file *f, bool gzip)
{
	size_t n = 0;

	for (; n < r->surface->n_headers && n < HEADERS_MAX - 4; n++)
		h[n] = r->surface->headers[n];
	h[n++] = (struct http_header){ VIEW("etag"), view_of(f->etag) };
	h[n++] = (struct http_header){ VIEW("vary"), VIEW("accept, accept-encoding") };
	h[n++] = (struct http_header){ VIEW("cache-control"),
				       f->lasting ? VIEW("public, max-age=31536000, immutable")
						  : VIEW("no-cache") };
	if (gzip)
		h[n++] = (struct http_header){ VIEW("content-encoding"), VIEW("gzip") };
	return n;
}

void pages_send(struct request *r, int status, const struct pages_file *f)
{
	struct http_header h[HEADERS_MAX];
	bool gzip = takes_gzip(r->x);
	size_t n = put_headers(r, h, f, gzip);
	struct err e = { 0 };

	if (status == 200 && http1_response_has_option(http_get_header(r->x, "if-none-match"), f->etag)) {
		http_reply(r->x, 304, NULL, VIEW_NONE, h, n);
		request_done(r);
		return;
	}
	if (gzip) {
		http_reply_shared(r->x, status, f->type, (struct view){ (const char *)f->gzip, f->gzip_size },
				  h, n);
		request_done(r);
		return;
	}
	unsigned char *plain = inflate_file(f);
	if (!plain) {
		err_sys(&e, ERR_INTERNAL, ENOMEM, "a page");
		answer_fail(r, &e);
		return;
	}
	http_reply(r->x, status, f->type, (struct view){ (const char *)plain, f->size }, h, n);
	free(plain);
	request_done(r);
}
