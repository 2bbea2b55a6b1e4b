/*
 * Redaction: bounded, and what is put between two lines of any text goes. The first byte
 * says whether the text was cut.
 */
#include "fuzz.h"
#include "redact.h"
#include "poison.h"

#define SECRET "sk-Fuzz-0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0 || size > 65536)
		return 0;
	struct view text = { (const char *)data + 1, size - 1 };
	struct buf out = BUF_INIT(REDACT_GROWTH * 65536), with = BUF_INIT(1 << 20),
		   hidden = BUF_INIT(1 << 22);

	FUZZ_CHECK(redact(text, data[0] & 1, &out) == 0);
	FUZZ_CHECK(buf_len(&out) <= REDACT_GROWTH * text.n);
	buf_add(&with, text);
	buf_puts(&with, "\n" SECRET "\n");
	buf_add(&with, text);
	FUZZ_CHECK(redact(buf_view(&with), data[0] & 1, &hidden) == 0);
	/* Text may hold it, too, as a part of something else. */
	if (!text.n || !memmem(text.p, text.n, "sk-Fuzz", 7))
		FUZZ_CHECK(!memmem(hidden.p, hidden.n, SECRET, sizeof(SECRET) - 1));
	buf_done(&out);
	buf_done(&with);
	buf_done(&hidden);
	return 0;
}
