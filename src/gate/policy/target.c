/*
 * Where a request says that it goes: see target.h.
 */
#include "target.h"

#include <errno.h>
#include <string.h>

#include "num.h"
#include "policy.h"
#include "poison.h"

int target_parse(struct view text, struct target *ret)
{
	struct target t = { 0 };
	struct view host = text;
	const char *colon = text.n ? memrchr(text.p, ':', text.n) : NULL;
	uint32_t port;

	if (colon && !(text.p[text.n - 1] == ']')) {
		host = view_head(text, (size_t)(colon - text.p));
		struct view digits = view_skip(text, host.n + 1);
		if (digits.n && (num_u32(digits, &port) < 0 || port < 1 || port > 65535))
			return -EINVAL;
		t.port = digits.n ? (uint16_t)port : 0;
	}
	if (host.n == 0)
		return -EINVAL;
	bool brackets = host.p[0] == '[';
	if (memchr(host.p, ':', host.n) && !brackets)
		return -EINVAL;
	if (addr_parse(host, &t.addr) < 0 && (brackets || policy_name(host, t.name) < 0))
		return -EINVAL;
	*ret = t;
	return 0;
}
