/*
 * Output that is cut in the middle, and times in seconds.
 */
#include <stdio.h>

#include "aio_impl.h"
#include "answer_long.h"
#include "text.h"
#include "poison.h"

uint64_t aio_ms(double seconds)
{
	if (!(seconds > 0))
		return 0;
	return seconds < 0.001 ? 1 : (uint64_t)(MIN(seconds, (double)AIO_SECONDS_MAX) * 1000);
}

uint64_t aio_limit_ms(const struct core *c, double seconds)
{
	uint64_t most = core_config(c)->max.exec_timeout_ms, ms = aio_ms(seconds);

	return most ? MIN(ms, most) : ms;
}

/* What is no UTF-8 counts by bytes. */
static bool begins(char c, bool utf8)
{
	return !utf8 || ((unsigned char)c & 0xc0) != 0x80;
}

/* The byte at which the n-th character begins. */
static size_t place(struct view v, bool utf8, size_t n)
{
	for (size_t i = 0; i < v.n; i++)
		if (begins(v.p[i], utf8) && n-- == 0)
			return i;
	return v.n;
}

int aio_cut(struct buf *out, struct view text, size_t chars)
{
	bool utf8 = text_is_utf8(text);
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++)
		n += begins(text.p[i], utf8);
	if (!chars || n <= chars)
		return buf_add(out, text);
	buf_add(out, view_head(text, place(text, utf8, chars / 2)));
	buf_printf(out, "\n[... %zu characters left out ...]\n", n - chars);
	return buf_add(out, view_skip(text, place(text, utf8, n - (chars - chars / 2))));
}

struct view aio_whole(struct view text)
{
	for (size_t n = 1; n <= 3 && n <= text.n; n++)
		if (text_utf8_begins(view_skip(text, text.n - n)))
			return view_head(text, text.n - n);
	return text;
}

void aio_put_cut(struct request *r, const char *key, struct view text, size_t chars)
{
	struct buf b = BUF_INIT(text.n + 4096);
	struct view cut = text;

	if (chars && text.n > chars)
		cut = aio_cut(&b, text, chars) < 0 ? VIEW("") /* no memory */ : buf_view(&b);
	if (cut.p != text.p && cut.n >= ANSWER_LONG_FROM)
		cut = arena_view(&r->arena, cut);
	answer_put_long(r, key, ANSWER_STRING, cut);
	buf_done(&b);
}
