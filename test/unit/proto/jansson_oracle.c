/*
 * See jansson_oracle.h.
 */
#include <jansson.h>

#include "jansson_oracle.h"

#include "poison.h"

static void put_bytes(struct buf *out, const char *p, size_t n)
{
	buf_printf(out, "s%zu:", n);
	buf_append(out, p, n);
}

static void put(struct buf *out, json_t *j)
{
	const char *key;
	json_t *value;
	size_t i;

	switch (json_typeof(j)) {
	case JSON_NULL:
		buf_putc(out, 'n');
		break;
	case JSON_TRUE:
		buf_putc(out, 't');
		break;
	case JSON_FALSE:
		buf_putc(out, 'f');
		break;
	case JSON_INTEGER:
		buf_printf(out, "i%lld", (long long)json_integer_value(j));
		break;
	case JSON_REAL:
		buf_printf(out, "r%.17g", json_real_value(j));
		break;
	case JSON_STRING:
		put_bytes(out, json_string_value(j), json_string_length(j));
		break;
	case JSON_ARRAY:
		buf_putc(out, '[');
		json_array_foreach(j, i, value) put(out, value);
		buf_putc(out, ']');
		break;
	case JSON_OBJECT:
		buf_putc(out, '{');
		json_object_foreach(j, key, value)
		{
			put_bytes(out, key, strlen(key));
			put(out, value);
		}
		buf_putc(out, '}');
		break;
	}
}

bool jansson_oracle(struct view text, struct buf *ret_canonical, const char **ret_why)
{
	static json_error_t error;
	json_t *j =
		json_loadb(text.n ? text.p : "", text.n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);

	*ret_why = j ? "" : error.text;
	if (!j)
		return false;
	put(ret_canonical, j);
	json_decref(j);
	return true;
}
