/*
 * Package managers' files of an image: whatever they say, the record of them fits and
 * merges, and no set holds a pattern, an address that is not public, or what is no target.
 * The input is the content of every file there is; as a record it is tried, too.
 */
#include "config_sets.h"
#include "egress.h"
#include "fuzz.h"

#include "poison.h"

static struct view input;

static bool read_text(const struct config_tree *t, const char *path, struct buf *out)
{
	return input.n <= out->max && buf_add(out, input) >= 0;
}

static size_t list_names(const struct config_tree *t, const char *path, char (*names)[CONFIG_TREE_NAME],
			 size_t room)
{
	static const char *const all[] = { "python3", "a.list", "b.sources", "user" };
	size_t n = 0;

	for (; n < ELEMS(all) && n < room; n++)
		snprintf(names[n], CONFIG_TREE_NAME, "%s", all[n]);
	return n;
}

static void merge(struct arena *a, struct view record, bool must)
{
	static const char text[] = "{\"sets\":{\"pypi\":[\"m.test\"],\"mine\":[\"mine.test\"]},\"sources\":{"
				   "\"pypi\":[\"machine\"]}}";
	struct config_sets got;
	struct json *base;
	struct err e = { 0 };

	FUZZ_CHECK(json_parse(a, view_of(text), &base, &e) >= 0);
	const struct config_sets machine = { json_get(base, "sets"), json_get(base, "sources") };
	int r = config_sets_merge(a, &machine, record, NULL, "image", &got, &e);
	FUZZ_CHECK(r >= 0 || !must);
	if (r < 0)
		return;
	FUZZ_CHECK(egress_check_sets(a, got.sets, &e) >= 0);
	FUZZ_CHECK(json_get(got.sets, "mine")->n == 1);
	for (size_t i = 0; i < got.sets->n; i++)
		for (size_t k = 0; k < got.sets->members[i].value.n; k++) {
			struct egress_rule rule;

			FUZZ_CHECK(egress_target(a, got.sets->members[i].value.items[k].text, NULL, &rule,
						 &e) >= 0);
			FUZZ_CHECK(!rule.host.n || !memchr(rule.host.p, '*', rule.host.n));
			FUZZ_CHECK(!egress_rule_is_private(&rule));
			FUZZ_CHECK(!rule.net.family || rule.net.prefix == (rule.net.family == 4 ? 32 : 128));
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct config_tree tree = { read_text, list_names };
	struct arena a = ARENA_INIT(64u << 20);
	struct buf record = BUF_INIT(CONFIG_SETS_RECORD);

	input = (struct view){ (const char *)data, size };
	config_sets_survey(&a, &tree, &record);
	FUZZ_CHECK(!record.bad);
	merge(&a, buf_view(&record), true);
	merge(&a, input, false);
	buf_done(&record);
	arena_done(&a);
	return 0;
}
