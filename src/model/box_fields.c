/*
 * See box_fields.h.
 */
#include "box_fields.h"

#include "poison.h"

static int read_not(struct arena *a, const struct json *j, const struct json_field *f, void *at,
		    struct err *e)
{
	if (j->type != JSON_BOOL)
		return err_set(e, ERR_INVALID, "must be true or false, not %s", json_type_name(j->type));
	*(bool *)at = !j->boolean;
	return 0;
}

static void write_not(struct json_out *o, const struct json_field *f, const void *at)
{
	json_out_bool(o, !*(const bool *)at);
}

static void describe_not(struct json_out *o, const struct json_field *f)
{
	json_out_kz(o, "type", "boolean");
}

const struct json_codec box_field_not = { .read = read_not, .write = write_not, .describe = describe_not };

int box_fields_check_seconds(uint64_t v, const char *field, struct err *e)
{
	return v <= BOX_FIELD_SECONDS_MAX
		       ? 0
		       : err_set(e, ERR_INVALID, "%s must be between 0 and %d", field, BOX_FIELD_SECONDS_MAX);
}
