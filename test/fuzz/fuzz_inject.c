/*
 * Placeholders and masking: what comes out must not depend on how the bytes are cut, and
 * no value may be left in it, also where borders of chunks cut it. The first byte chooses how it is cut.
 */
#include "fuzz.h"
#include "mask.h"
#include "place.h"

#include "poison.h"

#define SECRET "s3cret-Value/+\"x"

static bool value(void *arg, struct view name, struct view *ret)
{
	*ret = VIEW(SECRET);
	return true;
}

static void fill(struct view text, size_t piece, struct buf *out)
{
	struct buf held = BUF_INIT(1 << 24);
	struct view missing;

	for (size_t at = 0; at < text.n; at += piece) {
		buf_add(&held, view_head(view_skip(text, at), piece));
		size_t keep = at + piece >= text.n ? 0 : place_open_end(buf_view(&held)),
		       go = buf_len(&held) - keep;
		FUZZ_CHECK(place_fill(view_head(buf_view(&held), go), false, value, NULL, out, &missing) ==
			   0);
		buf_consume(&held, go);
	}
	buf_done(&held);
}

static void mask(struct view text, size_t piece, struct buf *out)
{
	struct mask m;

	mask_init(&m);
	FUZZ_CHECK(mask_add(&m, VIEW(SECRET)) == 0);
	for (size_t at = 0; at < text.n; at += piece)
		FUZZ_CHECK(mask_put(&m, view_head(view_skip(text, at), piece), out) == 0);
	FUZZ_CHECK(mask_end(&m, out) == 0);
	mask_done(&m);
}

static void mask_chunks(struct view text, size_t piece, struct buf *out)
{
	struct mask m;

	mask_init(&m);
	FUZZ_CHECK(mask_add(&m, VIEW(SECRET)) == 0);
	for (size_t at = 0; at < text.n; at += piece)
		FUZZ_CHECK(mask_put_chunked(&m, view_head(view_skip(text, at), piece), out) == 0);
	FUZZ_CHECK(mask_end(&m, out) == 0);
	mask_done(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0 || size > 65536)
		return 0;
	struct view text = { (const char *)data + 1, size - 1 };
	size_t piece = data[0] % 32 + 1;
	struct buf whole = BUF_INIT(1 << 24), pieces = BUF_INIT(1 << 24), hidden = BUF_INIT(1 << 24);

	fill(text, size, &whole);
	fill(text, piece, &pieces);
	FUZZ_CHECK(view_eq(buf_view(&whole), buf_view(&pieces)));
	mask(buf_view(&whole), piece, &hidden);
	FUZZ_CHECK(buf_len(&hidden) == buf_len(&whole));
	FUZZ_CHECK(!buf_len(&hidden) || !memmem(hidden.p, hidden.n, SECRET, sizeof(SECRET) - 1));
	buf_clear(&pieces);
	buf_clear(&hidden);
	mask_chunks(buf_view(&whole), size, &pieces);
	mask_chunks(buf_view(&whole), piece, &hidden);
	FUZZ_CHECK(view_eq(buf_view(&hidden), buf_view(&pieces)) && buf_len(&hidden) == buf_len(&whole));
	FUZZ_CHECK(!buf_len(&hidden) || !memmem(hidden.p, hidden.n, SECRET, sizeof(SECRET) - 1));
	buf_done(&whole);
	buf_done(&pieces);
	buf_done(&hidden);
	return 0;
}
