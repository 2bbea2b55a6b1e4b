/*
 * Sealed files: parsing never reads past its input, its parts lie in it, and nothing that
 * was not sealed with the key can be opened.
 */
#include <errno.h>

#include "fuzz.h"
#include "seal.h"

#include "poison.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t bytes[SEAL_KEY] = { 42 };
	struct view file = { (const char *)data, size };
	struct seal_key k = { 0 };
	struct sealed s;

	if (seal_parse(file, &s) < 0)
		return 0;
	FUZZ_CHECK(s.head.p == file.p && s.head.n + s.cipher.n + s.tag.n == file.n);
	const struct view last = s.label.notes.n ? s.label.notes : s.label.name;
	FUZZ_CHECK(last.p + last.n == s.head.p + s.head.n && s.cipher.p == s.head.p + s.head.n);
	FUZZ_CHECK(s.label.notes.n <= SEAL_NOTES);
	FUZZ_CHECK(s.cipher.n >= 1 && s.cipher.n <= SEAL_VALUE && s.label.version > 0);
	struct buf out = { .max = SEAL_VALUE, .secret = true };
	seal_key_set(&k, bytes);
	memcpy(k.id, s.key_id.p, SEAL_KEY_ID); /* or nothing would get past the id */
	FUZZ_CHECK(seal_open(&k, &s, &out) == -EBADMSG && buf_len(&out) == 0);
	buf_done(&out);
	return 0;
}
