/*
 * Egress policies: a policy that is read is written in one form, which reads as the same;
 * with its sets expanded it holds no set any more. What is no JSON is tried as a target.
 */
#include "egress.h"
#include "fuzz.h"

#include "poison.h"

static const char SETS[] =
	"{\"pypi\":[\"a.test\",\"*.b.test:8443\"],\"net\":[\"192.0.2.0/24\",\"[2001:db8::]/32\"]}";

static void check(struct arena *a, const struct egress_policy *p, const struct json *sets)
{
	struct buf once = BUF_INIT(1 << 24), twice = BUF_INIT(1 << 24);
	struct egress_policy again, flat;
	struct err e = { 0 };

	FUZZ_CHECK(p->otherwise == EGRESS_ALLOW || p->otherwise == EGRESS_DENY);
	FUZZ_CHECK(egress_write(p, &once) >= 0);
	FUZZ_CHECK(egress_parse(a, buf_view(&once), sets, &again, &e) >= 0);
	FUZZ_CHECK(egress_write(&again, &twice) >= 0);
	FUZZ_CHECK(view_eq(buf_view(&once), buf_view(&twice)));
	if (egress_flatten(a, p, sets, &flat, &e) >= 0)
		for (size_t i = 0; i < flat.n_rules; i++)
			FUZZ_CHECK(!flat.rules[i].set.n &&
				   (flat.rules[i].host.n || flat.rules[i].net.family));
	buf_done(&once);
	buf_done(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = ARENA_INIT(64u << 20);
	struct view in = { (const char *)data, size };
	struct egress_rule rule;
	struct egress_policy p;
	struct err e = { 0 };
	struct json *sets;

	FUZZ_CHECK(json_parse(&a, view_of(SETS), &sets, &e) >= 0);
	if (egress_parse(&a, in, sets, &p, &e) >= 0) {
		check(&a, &p, sets);
	} else if (egress_target(&a, in, sets, &rule, &e) >= 0) {
		rule.verdict = EGRESS_ALLOW;
		check(&a, &(struct egress_policy){ .otherwise = EGRESS_DENY, .rules = &rule, .n_rules = 1 },
		      sets);
	}
	arena_done(&a);
	return 0;
}
