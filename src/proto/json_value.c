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
