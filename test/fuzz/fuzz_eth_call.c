/*
 * Call data: the first byte chooses among lists of types for the ABI; all of it is read as a call.
 */
#include "abi.h"
#include "call.h"
#include "fuzz.h"

#include "poison.h"

static size_t count(const struct abi *v, struct view data)
{
	size_t n = 1;

	if (v->kind != ABI_LIST) {
		FUZZ_CHECK(v->bytes.p >= data.p && v->bytes.p + v->bytes.n <= data.p + data.n);
		return n;
	}
	for (size_t i = 0; i < v->n; i++)
		n += count(&v->items[i], data);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const types[] = {
		"bytes[]",       "(address,(uint256,bytes)[],string)[]", "uint8[3][],bool", "bytes32,bytes",
		"int128[][2][]",
	};
	const struct view all = { (const char *)data, size };
	struct arena a = ARENA_INIT(4u << 20);
	struct abi v;
	struct call c;

	if (size && abi_decode(&a, types[data[0] % ELEMS(types)], view_skip(all, 1), &v) == 0)
		FUZZ_CHECK(count(&v, view_skip(all, 1)) <= ABI_VALUES + 1);
	arena_done(&a);
	const struct call_input in = { .account = address_native, .to = address_zero, .data = all };
	call_read(&in, &c);
	FUZZ_CHECK(c.n <= CALL_EFFECTS && call_class_name(c.class));
	FUZZ_CHECK(c.class != CALL_NATIVE || size == 0);
	buf_done(&c.tree);
	return 0;
}
