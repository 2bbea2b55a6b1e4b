/*
 * YAML: what is read must be a document that JSON can carry without change, for
 * that is how it reaches the daemon; what is refused must say on which line.
 */
#include <string.h>

#include "config_yaml.h"
#include "fuzz.h"

#include "poison.h"

#define ARENA_MAX (64u << 20)

static bool same(const struct json *a, const struct json *b)
{
	if (a->type != b->type || a->boolean != b->boolean || a->n != b->n || !view_eq(a->text, b->text))
		return false;
	for (size_t i = 0; i < a->n; i++) {
		if (a->type == JSON_ARRAY && !same(&a->items[i], &b->items[i]))
			return false;
		if (a->type == JSON_OBJECT && (!view_eq(a->members[i].key, b->members[i].key) ||
					       !same(&a->members[i].value, &b->members[i].value)))
			return false;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = ARENA_INIT(ARENA_MAX);
	struct buf text = BUF_INIT(ARENA_MAX);
	struct json *doc = NULL, *again = NULL;
	struct err e = { 0 };
	struct json_out o;

	if (config_yaml_parse(&a, (struct view){ (const char *)data, size }, &doc, &e) == 0) {
		json_out_init(&o, &text);
		json_out_value(&o, doc);
		FUZZ_CHECK(text.bad == 0);
		FUZZ_CHECK(json_parse(&a, buf_view(&text), &again, &e) == 0);
		FUZZ_CHECK(same(doc, again));
	} else {
		FUZZ_CHECK(e.code != ERR_INVALID || strncmp(e.msg, "line ", 5) == 0);
		FUZZ_CHECK(e.code != ERR_OK && e.msg[0]);
	}
	buf_done(&text);
	arena_done(&a);
	return 0;
}
