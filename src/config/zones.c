/*
 * See zones.h.
 */
#include "zones.h"

#include <string.h>

#include "nearest.h"

#include "poison.h"

#define ZONE(name, rule) { name, rule },
static const struct zone {
	const char *name, *rule;
} zones[] = {
#include "zones.def"
};
#undef ZONE

const char *zones_rule(struct view name)
{
	size_t low = 0, high = ELEMS(zones);

	while (low < high) {
		size_t mid = low + (high - low) / 2, n = strlen(zones[mid].name);
		int order = name.n ? memcmp(name.p, zones[mid].name, MIN(name.n, n)) : -1;

		if (order == 0 && name.n == n)
			return zones[mid].rule;
		if (order < 0 || (order == 0 && name.n < n))
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

/* "berlin" and "Berlin" stand for Europe/Berlin. */
static const char *by_city(struct view name)
{
	for (size_t i = 0; i < ELEMS(zones); i++) {
		const char *city = strrchr(zones[i].name, '/');

		if (view_eq_nocase(name, view_of(city ? city + 1 : zones[i].name)) ||
		    view_eq_nocase(name, view_of(zones[i].name)))
			return zones[i].name;
	}
	return NULL;
}

int zones_check(struct view name, const char *field, struct err *e)
{
	struct nearest n = NEAREST(name);
	const char *city;

	if (zones_rule(name))
		return 0;
	city = by_city(name);
	for (size_t i = 0; i < ELEMS(zones) && !city; i++)
		nearest_try(&n, zones[i].name);
	if (city || n.best)
		return err_set(e, ERR_INVALID, "%s: there is no such time zone; did you mean %s?", field,
			       city ? city : n.best);
	return err_set(e, ERR_INVALID, "%s must be the name of a time zone, such as Europe/Berlin or UTC",
		       field);
}
