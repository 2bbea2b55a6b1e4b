/*
 * The plain rules of spending, of which rule_fields.def is the list, as tables over the signer's message. The
 * policy has a struct of its own, made of the same list: src/policy/policy_rules.h.
 */
#pragma once

#include "json_table.h"

struct sgn_rules;

enum rule_sense { RULE_LESS, RULE_MORE, RULE_MORE_0 };
enum rule_unit { RULE_NUMBER, RULE_TIME };

/* What 0 means. */
enum {
#define FLAG(...)
#define COUNT(name, json, min, max, usual, ...) RULE_USUAL_##name = (usual),
#include "rule_fields.def"
#undef FLAG
#undef COUNT
};

enum rule_field {
#define FLAG(name, ...)  RULE_FIELD_##name,
#define COUNT(name, ...) RULE_FIELD_##name,
#include "rule_fields.def"
#undef FLAG
#undef COUNT
	RULE_FIELDS
};

struct rule_field_row {
	const char *name, *part;
	size_t at; /* in struct sgn_rules: a bool, or a uint32_t */
	bool counts;
	bool of_agent; /* alone */
	enum rule_sense sense;
	enum rule_unit unit;
	uint32_t max, usual;  /* max: of everybody */
	const char *on, *off; /* of a count: `on` is what it counts */
};
extern const struct rule_field_row rule_fields_rows[RULE_FIELDS];

uint32_t rule_fields_get(const struct sgn_rules *r, enum rule_field i); /* 0 is 0 */
uint32_t rule_fields_in_force(const struct sgn_rules *r, enum rule_field i);
void rule_fields_reset(struct sgn_rules *r, enum rule_field i);
/* Whether the second allows more than the first. */
bool rule_fields_looser(enum rule_field i, uint32_t before, uint32_t now);
/* A member: as it is, or the value in force by the name that clients know. */
void rule_fields_put(struct json_out *o, const struct sgn_rules *r, enum rule_field i);
void rule_fields_put_in_force(struct json_out *o, const struct sgn_rules *r, enum rule_field i);
