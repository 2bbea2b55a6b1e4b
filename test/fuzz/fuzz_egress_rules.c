/*
 * Names, paths and addresses that come from a box: what is taken is in one form, and
 * asked about again it stays the same.
 */
#include <string.h>

#include "addr.h"
#include "fuzz.h"
#include "host_match.h"
#include "policy.h"

#include "poison.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view in = { (const char *)data, size };
	char name[256], again[256], text[ADDR_TEXT];
	struct addr a, b;

	if (policy_name(in, name) == 0) {
		FUZZ_CHECK(policy_name(view_of(name), again) == 0 && strcmp(name, again) == 0);
		FUZZ_CHECK(addr_parse(view_of(name), &a) < 0); /* no name is an address */
		FUZZ_CHECK(host_match(view_of(name), view_of(name)) && host_match(VIEW("*"), view_of(name)));
	}
	if (addr_parse(in, &a) == 0) {
		FUZZ_CHECK(addr_parse(view_of(addr_text(&a, text)), &b) == 0 && addr_eq(&a, &b));
		FUZZ_CHECK(!addr_never(&a) || addr_special(&a));
	}
	struct addr_net n;
	if (addr_net_parse(in, &n) == 0)
		FUZZ_CHECK(addr_net_has(&n, &n.base) && addr_net_within(&n, &n));
	if (policy_path_plain(in))
		FUZZ_CHECK(!memmem(in.p, in.n, "/../", 4) && !memmem(in.p, in.n, "%2f", 3));
	return 0;
}
