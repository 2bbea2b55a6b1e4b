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
	static const uint8_t key[CATALOGUE_KEY];
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
