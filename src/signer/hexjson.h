/*
 * Bytes in the JSON of the audit log.
 */
#pragma once

#include "json.h"
#include "text.h"

/* As 0x…; null for none. At most 64 bytes of it. */
static inline void hexjson_put(struct json_out *o, const char *key, struct view v)
{
	char text[2 * 64 + 3] = "0x";

	if (v.n)
		text_hex(v.p, MIN(v.n, 64u), text + 2);
	json_out_kz(o, key, v.n ? text : NULL);
}
