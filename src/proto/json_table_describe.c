/*
 * The table's description: JSON Schema as OpenAPI 3.1 uses it. It says what json_read takes and json_write
 * gives; prose is not its business.
 */
#include "json_kind.h"

#include "poison.h"

#define REFERENCE "#/components/schemas/"

/* "string", or with null: ["string", "null"]. */
static void put_type(struct json_out *o, const struct json_field *f, const char *type)
{
	json_out_key(o, "type");
	if (!f->nullable && f->skip != JSON_NULL_EMPTY) {
		json_out_str(o, view_of(type));
		return;
	}
	json_out_array(o);
	json_out_str(o, view_of(type));
	json_out_str(o, VIEW("null"));
	json_out_end(o, ']');
}

static void put_count(struct json_out *o, const struct json_field *f, const char *min, const char *max)
{
	if (f->min)
		json_out_ku64(o, min, f->min);
	if (f->max)
		json_out_ku64(o, max, f->max);
}

static void put_names(struct json_out *o, const struct json_field *f)
{
	json_out_key(o, "enum");
	json_out_array(o);
	for (size_t i = 0; i < f->n_names; i++)
		if (f->names[i])
			json_out_str(o, view_of(f->names[i]));
	if (f->kind == JSON_F_ENUM && (f->nullable || f->skip == JSON_NULL_EMPTY))
		json_out_null(o);
	json_out_end(o, ']');
}

static void describe_text(struct json_out *o, const struct json_field *f)
{
	put_type(o, f, "string");
	if (f->kind == JSON_F_TIME_MS) {
		json_out_kz(o, "format", "date-time");
		return;
	}
	if (f->kind == JSON_F_ENUM) {
		put_names(o, f);
		return;
	}
	put_count(o, f, "minLength", "maxLength");
	if (f->kind == JSON_F_CHARS && !f->max)
		json_out_ku64(o, "maxLength", f->size - 1);
}

static void describe_whole(struct json_out *o, const struct json_field *f)
{
	bool is_signed = f->kind == JSON_F_I64 || f->kind == JSON_F_I32;

	put_type(o, f, "integer");
	if (is_signed && (f->imin || f->imax)) {
		json_out_ki64(o, "minimum", f->imin);
		json_out_ki64(o, "maximum", f->imax);
	} else if (!is_signed) {
		json_out_ku64(o, "minimum", f->min);
		if (f->max)
			json_out_ku64(o, "maximum", f->max);
	}
}

static void describe_number(struct json_out *o, const struct json_field *f)
{
	put_type(o, f, "number");
	if (f->fmin != 0 || f->fmax != 0 || f->kind == JSON_F_MILLI) {
		json_out_key(o, "minimum");
		json_out_double(o, f->fmin);
	}
	if (f->fmax != 0) {
		json_out_key(o, "maximum");
		json_out_double(o, f->fmax);
	}
}

static void describe_members(struct json_out *o, const struct json_schema *s)
{
	size_t required = 0;

	json_out_key(o, "properties");
	json_out_object(o);
	for (size_t i = 0; i < s->n; i++) {
		required += s->fields[i].required;
		json_out_key(o, s->fields[i].name);
		json_describe_field(o, &s->fields[i]);
	}
	json_out_end(o, '}');
	if (required) {
		json_out_key(o, "required");
		json_out_array(o);
		for (size_t i = 0; i < s->n; i++)
			if (s->fields[i].required)
				json_out_str(o, view_of(s->fields[i].name));
		json_out_end(o, ']');
	}
	if (!s->open)
		json_out_kbool(o, "additionalProperties", false);
}

static void put_reference(struct json_out *o, const struct json_schema *s)
{
	char to[256];

	assert(strlen(s->name) < sizeof(to) - sizeof(REFERENCE));
	memcpy(to, REFERENCE, sizeof(REFERENCE) - 1);
	memcpy(to + sizeof(REFERENCE) - 1, s->name, strlen(s->name) + 1);
	json_out_kz(o, "$ref", to);
}

static void describe_object(struct json_out *o, const struct json_field *f)
{
	bool null = f->nullable || f->skip == JSON_NULL_EMPTY;

	if (!f->sub->name) {
		put_type(o, f, "object");
		describe_members(o, f->sub);
		return;
	}
	if (!null) {
		put_reference(o, f->sub);
		return;
	}
	json_out_key(o, "anyOf");
	json_out_array(o);
	json_out_object(o);
	put_reference(o, f->sub);
	json_out_end(o, '}');
	json_out_object(o);
	json_out_kz(o, "type", "null");
	json_out_end(o, '}');
	json_out_end(o, ']');
}

static void describe_list(struct json_out *o, const struct json_field *f)
{
	const struct json_field object = { .kind = JSON_F_OBJECT, .sub = f->sub };

	put_type(o, f, "array");
	put_count(o, f, "minItems", "maxItems");
	json_out_key(o, "items");
	if (f->kind == JSON_F_LIST || f->kind == JSON_F_ARRAY) {
		json_describe_field(o, f->item ? f->item : &object);
		return;
	}
	json_out_object(o);
	json_out_kz(o, "type", "string");
	if (f->kind == JSON_F_BITS)
		put_names(o, f);
	json_out_end(o, '}');
}

static void describe_strmap(struct json_out *o, const struct json_field *f)
{
	put_type(o, f, "object");
	put_count(o, f, "minProperties", "maxProperties");
	json_out_key(o, "additionalProperties");
	json_out_object(o);
	json_out_kz(o, "type", "string");
	json_out_end(o, '}');
}

static void describe_value(struct json_out *o, const struct json_field *f)
{
	switch (f->kind) {
	case JSON_F_STRING:
	case JSON_F_Z:
	case JSON_F_CHARS:
	case JSON_F_ENUM:
	case JSON_F_TIME_MS:
		describe_text(o, f);
		break;
	case JSON_F_BOOL:
		put_type(o, f, "boolean");
		break;
	case JSON_F_U64:
	case JSON_F_U32:
	case JSON_F_U16:
	case JSON_F_I64:
	case JSON_F_I32:
		describe_whole(o, f);
		break;
	case JSON_F_DOUBLE:
	case JSON_F_MILLI:
		describe_number(o, f);
		break;
	case JSON_F_OBJECT:
	case JSON_F_PTR:
		describe_object(o, f);
		break;
	case JSON_F_STRMAP:
		describe_strmap(o, f);
		break;
	case JSON_F_STRLIST:
	case JSON_F_BITS:
	case JSON_F_LIST:
	case JSON_F_ARRAY:
		describe_list(o, f);
		break;
	case JSON_F_CUSTOM:
		if (f->codec->describe)
			f->codec->describe(o, f);
		break;
	case JSON_F_ANY:
	case JSON_F_RAW:
		break; /* anything */
	}
}

void json_describe_field(struct json_out *o, const struct json_field *f)
{
	json_out_object(o);
	describe_value(o, f);
	if (f->secret)
		json_out_kz(o, "format", "password");
	if (f->read_only || (f->kind == JSON_F_CUSTOM && !f->codec->read))
		json_out_kbool(o, "readOnly", true);
	if (f->write_only || (f->kind == JSON_F_CUSTOM && !f->codec->write))
		json_out_kbool(o, "writeOnly", true);
	json_out_end(o, '}');
}

void json_describe(struct json_out *o, const struct json_schema *s)
{
	json_out_object(o);
	json_out_kz(o, "type", "object");
	describe_members(o, s);
	json_out_end(o, '}');
}
