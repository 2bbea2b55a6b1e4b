/*
 * The index of a catalogue behind its signature: what is read is written in one form, which reads as the
 * same, and every archive in it is a plain name.
 */
#include "catalogue.h"
#include "fuzz.h"

#include "poison.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = ARENA_INIT(64u << 20);
	struct buf once = BUF_INIT(1 << 24), twice = BUF_INIT(1 << 24);
	struct view in = { (const char *)data, size };
	/* Of RFC 8032. Zeros would be a point of small order, under which zeros sign one text in four. */
	static const uint8_t key[CATALOGUE_KEY] = { 0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7,
						    0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a,
						    0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25,
						    0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a };
	struct catalogue c, again;
	struct err e = { 0 };

	FUZZ_CHECK(catalogue_read(&a, in, key, 0, &c, &e) < 0); /* nobody has signed it */
	if (catalogue_parse(&a, in, 0, &c, &e) >= 0 && catalogue_put(&once, &c) >= 0) {
		for (size_t i = 0; i < c.n; i++) {
			FUZZ_CHECK(c.agents[i].archive.n && c.agents[i].archive.p[0] != '.');
			FUZZ_CHECK(!memchr(c.agents[i].archive.p, '/', c.agents[i].archive.n));
			FUZZ_CHECK(catalogue_find(&c, c.agents[i].name, c.agents[i].version) == &c.agents[i]);
			FUZZ_CHECK(catalogue_compare(c.agents[i].version, c.agents[i].version) == 0);
		}
		FUZZ_CHECK(catalogue_parse(&a, buf_view(&once), 0, &again, &e) >= 0);
		FUZZ_CHECK(catalogue_put(&twice, &again) >= 0);
		FUZZ_CHECK(view_eq(buf_view(&once), buf_view(&twice)));
	}
	buf_done(&once);
	buf_done(&twice);
	arena_done(&a);
	return 0;
}
