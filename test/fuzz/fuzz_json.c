/*
 * JSON: what is read and written back must read as the same document, and
 * writing that again must give the same bytes.
 */
#include "fuzz.h"
#include "json.h"
#include "text.h"

#include "poison.h"

#define ARENA_MAX (32u << 20)

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

static void write_document(const struct json *j, struct buf *out)
{
	struct json_out o;

	json_out_init(&o, out);
	json_out_value(&o, j);
	FUZZ_CHECK(out->bad == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = ARENA_INIT(ARENA_MAX);
	struct buf once = BUF_INIT(ARENA_MAX), twice = BUF_INIT(ARENA_MAX);
	struct json *first = NULL, *second = NULL;
	struct err e = { 0 };

	if (json_parse(&a, (struct view){ (const char *)data, size }, &first, &e) == 0) {
		write_document(first, &once);
		FUZZ_CHECK(text_is_utf8(buf_view(&once)));
		FUZZ_CHECK(json_parse(&a, buf_view(&once), &second, &e) == 0);
		FUZZ_CHECK(same(first, second));
		write_document(second, &twice);
		FUZZ_CHECK(view_eq(buf_view(&once), buf_view(&twice)));
	} else {
		FUZZ_CHECK(e.code != ERR_OK && e.msg[0]);
	}
	buf_done(&once);
	buf_done(&twice);
	arena_done(&a);
	return 0;
}
