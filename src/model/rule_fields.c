/*
 * See rule_fields.h.
 */
#include "rule_fields.h"

#include "signer_gen.h"
#include "poison.h"

#define OF_AGENT         true
#define OF_BOTH          false
#define MAX_SIGNER(most) (most)
#define MAX_API(most)    UINT32_MAX

const struct rule_field_row rule_fields_rows[RULE_FIELDS] = {
#define FLAG(n, s, scope, p, flag, yes, no)                                                                  \
	{ .name = #n,                                                                                        \
	  .part = (p),                                                                                       \
	  .at = offsetof(struct sgn_rules, n),                                                               \
	  .of_agent = OF_##scope,                                                                            \
	  .sense = RULE_##s,                                                                                 \
	  .max = 1,                                                                                          \
	  .on = (yes),                                                                                       \
	  .off = (no) },
#define COUNT(n, json, least, most, u, s, scope, un, by, flag, help, what)                                   \
	{ .name = #n,                                                                                        \
	  .part = (flag),                                                                                    \
	  .at = offsetof(struct sgn_rules, n),                                                               \
	  .counts = true,                                                                                    \
	  .of_agent = OF_##scope,                                                                            \
	  .sense = RULE_##s,                                                                                 \
	  .unit = RULE_##un,                                                                                 \
	  .max = MAX_##by(most),                                                                             \
	  .usual = (u),                                                                                      \
	  .on = (what) },
#include "rule_fields.def"
#undef FLAG
#undef COUNT
};

uint32_t rule_fields_get(const struct sgn_rules *r, enum rule_field i)
{
	const void *at = (const char *)r + rule_fields_rows[i].at;

	return rule_fields_rows[i].counts ? *(const uint32_t *)at : *(const bool *)at;
}

uint32_t rule_fields_in_force(const struct sgn_rules *r, enum rule_field i)
{
	uint32_t v = rule_fields_get(r, i);

	return v ? v : rule_fields_rows[i].usual;
}

void rule_fields_reset(struct sgn_rules *r, enum rule_field i)
{
	void *at = (char *)r + rule_fields_rows[i].at;

	if (rule_fields_rows[i].counts)
		*(uint32_t *)at = 0;
	else
		*(bool *)at = false;
}

bool rule_fields_looser(enum rule_field i, uint32_t before, uint32_t now)
{
	switch (rule_fields_rows[i].sense) {
	case RULE_LESS:
		return now < before;
	case RULE_MORE:
		return now > before;
	case RULE_MORE_0:
		return before != 0 && (now == 0 || now > before);
	}
	return true;
}

static void put(struct json_out *o, const char *name, enum rule_field i, uint32_t v)
{
	if (rule_fields_rows[i].counts)
		json_out_ku64(o, name, v);
	else
		json_out_kbool(o, name, v);
}

void rule_fields_put(struct json_out *o, const struct sgn_rules *r, enum rule_field i)
{
	put(o, rule_fields_rows[i].name, i, rule_fields_get(r, i));
}

void rule_fields_put_in_force(struct json_out *o, const struct sgn_rules *r, enum rule_field i)
{
	static const char *const names[] = {
#define FLAG(name, ...)        #name,
#define COUNT(name, json, ...) #json,
#include "rule_fields.def"
#undef FLAG
#undef COUNT
	};

	put(o, names[i], i, rule_fields_in_force(r, i));
}
