/*
 * What is made of the list of limits: see box_limits.h.
 */
#include "box_limits.h"

#include <errno.h>
#include <stdio.h>

#include "wire_gen.h"
#include "poison.h"

#define FIXED_LIVE  false
#define FIXED_FIXED true

const struct box_limit_row box_limits_rows[BOX_LIMITS] = {
#define LIMIT(k, n, m, wire, least, largest, std, ceiling, change, ...)                                      \
	{ .name = #n,                                                                                        \
	  .kept = #m,                                                                                        \
	  .at = offsetof(struct box_limits, m),                                                              \
	  .wished = offsetof(struct box_limits_wish, n),                                                     \
	  .has = offsetof(struct box_limits_wish, has_##n),                                                  \
	  .kind = BOX_LIMIT_##k,                                                                             \
	  .min = (least),                                                                                    \
	  .max = (double)(largest),                                                                          \
	  .standard = (std),                                                                                 \
	  .most = (ceiling),                                                                                 \
	  .fixed = FIXED_##change },
#include "box_limits.def"
#undef LIMIT
};

static uint64_t in_milli(double cpu)
{
	return (uint64_t)(cpu * 1000 + 0.5);
}

uint64_t box_limits_get(const struct box_limits *l, enum box_limit i)
{
	const struct box_limit_row *r = &box_limits_rows[i];
	const void *at = (const char *)l + r->at;

	return r->kind == BOX_LIMIT_CPU ? *(const uint32_t *)at : *(const uint64_t *)at;
}

uint64_t box_limits_min(enum box_limit i)
{
	const struct box_limit_row *r = &box_limits_rows[i];

	return r->kind == BOX_LIMIT_CPU ? in_milli(r->min) : (uint64_t)r->min;
}

bool box_limits_equal(const struct box_limits *a, const struct box_limits *b)
{
	for (unsigned i = 0; i < BOX_LIMITS; i++)
		if (box_limits_get(a, i) != box_limits_get(b, i))
			return false;
	return true;
}

/* ---- JSON ---- */

#define WISH_CPU    JSON_F_DOUBLE
#define WISH_MEMORY JSON_F_U64
#define WISH_COUNT  JSON_F_U64
#define WISH_DISK   JSON_F_U64

static const struct json_field wish_fields[] = {
#define LIMIT(kind, name, ...)                                                                               \
	{ #name, WISH_##kind, offsetof(struct box_limits_wish, name),                                        \
	  .has = offsetof(struct box_limits_wish, has_##name), .nullable = true },
#include "box_limits.def"
#undef LIMIT
};
const struct json_schema box_limits_wish_schema = { JSON_SCHEMA(wish_fields) };

static const struct json_field set_fields[] = {
#define LIMIT(kind, name, ...)                                                                               \
	{ #name, WISH_##kind, offsetof(struct box_limits_wish, name), .skip = JSON_SKIP_EMPTY },
#include "box_limits.def"
#undef LIMIT
};
const struct json_schema box_limits_set_schema = { JSON_SCHEMA(set_fields) };

#define OUT_CPU    JSON_F_MILLI
#define OUT_MEMORY JSON_F_U64
#define OUT_COUNT  JSON_F_U64
#define OUT_DISK   JSON_F_U64, .skip = JSON_SKIP_EMPTY

static const struct json_field out_fields[] = {
#define LIMIT(k, n, member, ...) { #n, .offset = offsetof(struct box_limits, member), .kind = OUT_##k },
#include "box_limits.def"
#undef LIMIT
};
const struct json_schema box_limits_schema = { JSON_SCHEMA(out_fields) };

#define SETTING_CPU(name, least, largest)                                                                    \
	{ #name, JSON_F_DOUBLE, offsetof(struct box_limits_wish, name), .fmin = (least), .fmax = (largest) },
#define SETTING_MEMORY(name, least, largest)                                                                 \
	{ #name, JSON_F_U64, offsetof(struct box_limits_wish, name), .min = (least), .max = (largest) },
#define SETTING_COUNT SETTING_MEMORY
#define SETTING_DISK(name, least, largest)

static const struct json_field default_fields[] = {
#define LIMIT(kind, name, member, wire, least, largest, ...) SETTING_##kind(name, least, largest)
#include "box_limits.def"
#undef LIMIT
};
const struct json_schema box_limits_default_schema = { JSON_SCHEMA(default_fields) };

#define CEILING_CPU(name, least, largest)    SETTING_CPU(name, 0, largest)
#define CEILING_MEMORY(name, least, largest) SETTING_MEMORY(name, 0, largest)
#define CEILING_COUNT                        SETTING_COUNT
#define CEILING_DISK(name, least, largest)

static const struct json_field max_fields[] = {
#define LIMIT(kind, name, member, wire, least, largest, ...) CEILING_##kind(name, least, largest)
#include "box_limits.def"
#undef LIMIT
};
const struct json_schema box_limits_max_schema = { JSON_SCHEMA(max_fields) };

/* ---- wishes and settings ---- */

static uint64_t wished(const struct box_limits_wish *w, const struct box_limit_row *r)
{
	return *(const uint64_t *)(const void *)((const char *)w + r->wished);
}

static bool has(const struct box_limits_wish *w, const struct box_limit_row *r)
{
	return *(const bool *)((const char *)w + r->has);
}

void box_limits_preset(struct box_limits_wish *ret_standard, struct box_limits_wish *ret_most)
{
	*ret_standard = (struct box_limits_wish){
#define LIMIT(k, name, m, wire, least, largest, std, ceiling, ...) .name = (std),
#include "box_limits.def"
#undef LIMIT
	};
	*ret_most = (struct box_limits_wish){
#define LIMIT(k, name, m, wire, least, largest, std, ceiling, ...) .name = (ceiling),
#include "box_limits.def"
#undef LIMIT
	};
}

bool box_limits_most_works(enum box_limit i, const struct box_limits_wish *most)
{
	const struct box_limit_row *r = &box_limits_rows[i];

	if (r->kind == BOX_LIMIT_DISK && !wished(most, r))
		return true;
	return r->kind == BOX_LIMIT_CPU ? most->cpu >= r->min : wished(most, r) >= (uint64_t)r->min;
}

bool box_limits_fit(enum box_limit i, struct box_limits_wish *standard, const struct box_limits_wish *most,
		    bool given)
{
	const struct box_limit_row *r = &box_limits_rows[i];
	uint64_t *v = (uint64_t *)(void *)((char *)standard + r->wished);
	bool above = r->kind == BOX_LIMIT_CPU ? standard->cpu > most->cpu : *v > wished(most, r);

	if (!above || r->kind == BOX_LIMIT_DISK) /* it has a message of its own */
		return true;
	if (given)
		return false;
	if (r->kind == BOX_LIMIT_CPU)
		standard->cpu = most->cpu;
	else
		*v = wished(most, r);
	return true;
}

#define FROM_CPU(v)    (uint32_t) in_milli(v)
#define FROM_MEMORY(v) (v)
#define FROM_COUNT(v)  (v)
#define FROM_DISK(v)   (v)

void box_limits_of(const struct box_limits_wish *w, struct box_limits *ret)
{
	*ret = (struct box_limits){
#define LIMIT(kind, name, member, ...) .member = FROM_##kind(w->name),
#include "box_limits.def"
#undef LIMIT
	};
}

#define TO_CPU(name, v)    .name = (v) / 1000.0, .has_##name = true
#define TO_MEMORY(name, v) .name = (v), .has_##name = true
#define TO_COUNT           TO_MEMORY
#define TO_DISK(name, v)   .name = (v), .has_##name = (v) > 0

void box_limits_to_wish(const struct box_limits *l, struct box_limits_wish *ret)
{
	*ret = (struct box_limits_wish){
#define LIMIT(kind, name, member, ...) TO_##kind(name, l->member),
#include "box_limits.def"
#undef LIMIT
	};
}

void box_limits_override(struct box_limits_wish *w, const struct box_limits_wish *over)
{
#define LIMIT(kind, name, ...)                                                                               \
	if (over->has_##name) {                                                                              \
		w->name = over->name;                                                                        \
		w->has_##name = true;                                                                        \
	}
#include "box_limits.def"
#undef LIMIT
}

int box_limits_take_one(enum box_limit i, const struct box_limits_wish *w,
			const struct box_limits_wish *standard, const struct box_limits_wish *most,
			const char *field, uint64_t *ret, struct err *e)
{
	const struct box_limit_row *r = &box_limits_rows[i];
	uint64_t v = has(w, r) ? wished(w, r) : wished(standard, r), max = wished(most, r);

	if (r->kind == BOX_LIMIT_DISK && max == 0)
		max = (uint64_t)r->max;
	if (has(w, r) && (v < (uint64_t)r->min || v > max))
		return err_set(e, ERR_INVALID, "%s must be between %llu and %llu", field,
			       (unsigned long long)r->min, (unsigned long long)max);
	*ret = v;
	return 0;
}

static int take_cpu(const struct box_limit_row *r, const struct box_limits_wish *w,
		    const struct box_limits_wish *standard, const struct box_limits_wish *most, uint32_t *ret,
		    struct err *e)
{
	if (w->has_cpu && !(w->cpu >= r->min && w->cpu <= most->cpu))
		return err_set(e, ERR_INVALID, "limits.cpu must be between %g and %g", r->min, most->cpu);
	*ret = (uint32_t)in_milli(w->has_cpu ? w->cpu : standard->cpu);
	return 0;
}

int box_limits_take(const struct box_limits_wish *w, const struct box_limits_wish *standard,
		    const struct box_limits_wish *most, struct box_limits *ret, struct err *e)
{
	struct box_limits l = { 0 };

	for (unsigned i = 0; i < BOX_LIMITS; i++) {
		const struct box_limit_row *r = &box_limits_rows[i];
		void *at = (char *)&l + r->at;
		char field[64];
		int rc;

		snprintf(field, sizeof(field), "limits.%s", r->name);
		rc = r->kind == BOX_LIMIT_CPU ? take_cpu(r, w, standard, most, at, e)
					      : box_limits_take_one(i, w, standard, most, field, at, e);
		if (rc < 0)
			return -1;
	}
	*ret = l;
	return 0;
}

int box_limits_check_change(const struct box_limits_wish *w, struct err *e)
{
	for (unsigned i = 0; i < BOX_LIMITS; i++)
		if (box_limits_rows[i].fixed && has(w, &box_limits_rows[i]))
			return err_set(e, ERR_INVALID,
				       "limits.%s cannot be changed: processes have it from their start",
				       box_limits_rows[i].name);
	return 0;
}

/* ---- the wire ---- */

#define TO_WIRE_CPU(member, wire)    ret->wire = l->member;
#define TO_WIRE_MEMORY(member, wire) ret->wire = l->member << 20;
#define TO_WIRE_COUNT(member, wire)  ret->wire = (uint32_t)l->member;
#define TO_WIRE_DISK(member, wire)   *ret_##wire = l->member << 20;

void box_limits_to_wire(const struct box_limits *l, struct wire_limits *ret, uint64_t *ret_disk_bytes)
{
	*ret = (struct wire_limits){ 0 };
#define LIMIT(kind, name, member, wire, ...) TO_WIRE_##kind(member, wire)
#include "box_limits.def"
#undef LIMIT
}

#define MIB(member, bytes)                                                                                   \
	if ((bytes) & ((1u << 20) - 1))                                                                      \
		return -EINVAL;                                                                              \
	l.member = (bytes) >> 20;
#define FROM_WIRE_CPU(member, wire)    l.member = w->wire;
#define FROM_WIRE_MEMORY(member, wire) MIB(member, w->wire)
#define FROM_WIRE_COUNT(member, wire)  l.member = w->wire;
#define FROM_WIRE_DISK(member, wire)   MIB(member, wire)

int box_limits_from_wire(const struct wire_limits *w, uint64_t disk_bytes, struct box_limits *ret)
{
	struct box_limits l;

	if (!w)
		return -EINVAL;
#define LIMIT(kind, name, member, wire, ...) FROM_WIRE_##kind(member, wire)
#include "box_limits.def"
#undef LIMIT
	*ret = l;
	return 0;
}
