/*
 * Looking into a parsed document: members by name, numbers by type. Numbers keep
 * their text until somebody asks, so that nothing is rounded on the way.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "json.h"
#include "json_scan.h"
#include "num.h"

#include "poison.h"

#define NUMBER_TEXT_MAX 1024 /* of a number that is converted; any length may be kept */

const struct json *json_get(const struct json *object, const char *key)
{
	struct view k = view_of(key);

	if (!object || object->type != JSON_OBJECT)
		return NULL;
	for (size_t i = 0; i < object->n; i++)
		if (view_eq(object->members[i].key, k))
			return &object->members[i].value;
	return NULL;
}

const char *json_type_name(enum json_type t)
{
	switch (t) {
	case JSON_NULL:
		return "null";
	case JSON_BOOL:
		return "a boolean";
	case JSON_NUMBER:
		return "a number";
	case JSON_STRING:
		return "a string";
	case JSON_ARRAY:
		return "an array";
	case JSON_OBJECT:
		return "an object";
	}
	return "nothing";
}

bool json_is_number(struct view v)
{
	char text[NUMBER_TEXT_MAX];

	return view_to_str(v, text, sizeof(text)) == 0 && v.n > 0 && json_scan_number(text) == v.n;
}

int json_to_double(const struct json *j, double *ret)
{
	char text[NUMBER_TEXT_MAX];
	double d;

	if (j->type != JSON_NUMBER)
		return -EINVAL;
	if (view_to_str(j->text, text, sizeof(text)) < 0)
		return -ERANGE;
	if (j->text.n == 0 || json_scan_number(text) != j->text.n)
		return -EINVAL; /* not from json_parse; strtod would take "inf" and "0x1" */
	d = strtod(text, NULL);
	if (!isfinite(d))
		return -ERANGE;
	*ret = d;
	return 0;
}

/* A whole number may be spelled 1e3 or 5.0; beyond 2^53 only digits are exact. */
static int whole_double(const struct json *j, double *ret)
{
	double d;
	int rc = json_to_double(j, &d);

	if (rc < 0)
		return rc;
	if (fabs(d) > 9007199254740992.0)
		return -ERANGE;
	if (d != (double)(int64_t)d)
		return -EINVAL;
	*ret = d;
	return 0;
}

int json_to_u64(const struct json *j, uint64_t *ret)
{
	double d;
	int rc;

	if (j->type != JSON_NUMBER)
		return -EINVAL;
	rc = num_u64(j->text, ret);
	if (rc != -EINVAL)
		return rc;
	rc = whole_double(j, &d);
	if (rc < 0)
		return rc;
	if (d < 0)
		return -ERANGE;
	*ret = (uint64_t)d;
	return 0;
}

int json_to_i64(const struct json *j, int64_t *ret)
{
	double d;
	int rc;

	if (j->type != JSON_NUMBER)
		return -EINVAL;
	rc = num_i64(j->text, ret);
	if (rc != -EINVAL)
		return rc;
	rc = whole_double(j, &d);
	if (rc < 0)
		return rc;
	*ret = (int64_t)d;
	return 0;
}

static bool members_equal(const struct json *a, const struct json *b)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct json_member *m = &a->members[i];
		const struct json *other = NULL;

		for (size_t k = 0; k < b->n && !other; k++) {
			const struct json_member *candidate = &b->members[(i + k) % b->n];

			if (view_eq(candidate->key, m->key))
				other = &candidate->value;
		}
		if (!other || !json_value_equal(&m->value, other))
			return false;
	}
	return true;
}

bool json_value_equal(const struct json *a, const struct json *b)
{
	if (!a || !b)
		return (!a || a->type == JSON_NULL) && (!b || b->type == JSON_NULL);
	if (a->type != b->type)
		return false;
	switch (a->type) {
	case JSON_NULL:
		return true;
	case JSON_BOOL:
		return a->boolean == b->boolean;
	case JSON_NUMBER:
	case JSON_STRING:
		return view_eq(a->text, b->text);
	case JSON_ARRAY:
		if (a->n != b->n)
			return false;
		for (size_t i = 0; i < a->n; i++)
			if (!json_value_equal(&a->items[i], &b->items[i]))
				return false;
		return true;
	case JSON_OBJECT:
		return a->n == b->n && members_equal(a, b);
	}
	return false;
}

static int copy_value(struct arena *a, const struct json *from, struct json *to);

static int copy_text(struct arena *a, struct view from, struct view *to)
{
	*to = arena_view(a, from);
	return to->p ? 0 : -ENOMEM;
}

static int copy_children(struct arena *a, const struct json *from, struct json *to)
{
	if (from->type == JSON_ARRAY) {
		to->items = arena_array(a, from->n, sizeof(*to->items));
		for (size_t i = 0; to->items && i < from->n; i++)
			if (copy_value(a, &from->items[i], &to->items[i]) < 0)
				return -ENOMEM;
		return to->items ? 0 : -ENOMEM;
	}
	to->members = arena_array(a, from->n, sizeof(*to->members));
	for (size_t i = 0; to->members && i < from->n; i++)
		if (copy_text(a, from->members[i].key, &to->members[i].key) < 0 ||
		    copy_value(a, &from->members[i].value, &to->members[i].value) < 0)
			return -ENOMEM;
	return to->members ? 0 : -ENOMEM;
}

static int copy_value(struct arena *a, const struct json *from, struct json *to)
{
	*to = *from;
	if (from->type == JSON_STRING || from->type == JSON_NUMBER)
		return copy_text(a, from->text, &to->text);
	if (from->type == JSON_ARRAY || from->type == JSON_OBJECT)
		return copy_children(a, from, to);
	return 0;
}

struct json *json_value_copy(struct arena *a, const struct json *from)
{
	struct json *to = arena_array(a, 1, sizeof(*to));

	return to && copy_value(a, from, to) == 0 ? to : NULL;
}
