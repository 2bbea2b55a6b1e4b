/*
 * The model as JSON, for test_document.py: what the tables say that are executed.
 */
#include <stdio.h>

#include "box_fields.h"
#include "box_limits.h"
#include "rule_fields.h"
#include "poison.h"

static void put_limits(struct json_out *o)
{
	json_out_key(o, "limits");
	json_out_object(o);
	for (unsigned i = 0; i < BOX_LIMITS; i++) {
		const struct box_limit_row *r = &box_limits_rows[i];

		json_out_key(o, r->name);
		json_out_object(o);
		json_out_kz(o, "type", r->kind == BOX_LIMIT_CPU ? "number" : "integer");
		json_out_key(o, "minimum");
		json_out_double(o, r->min);
		json_out_kbool(o, "fixed", r->fixed);
		json_out_kbool(o, "required", r->kind != BOX_LIMIT_DISK);
		json_out_end(o, '}');
	}
	json_out_end(o, '}');
}

struct asked {
	int unused;
#define FIELD(kind, name, ...) BOX_FIELD_##kind name;
#include "box_fields.def"
#undef FIELD
};

static void put_fields(struct json_out *o)
{
	static const struct {
		struct json_field field;
		const char *shown, *change;
	} rows[] = {
#define FIELD(kind, name, json, shown, wire, twin, pool, change, ...)                                        \
	{ { #json, .offset = offsetof(struct asked, name), BOX_FIELD_ASKED_##kind }, #shown, #change },
#include "box_fields.def"
#undef FIELD
	};

	json_out_key(o, "fields");
	json_out_object(o);
	for (size_t i = 0; i < ELEMS(rows); i++) {
		json_out_key(o, rows[i].field.name);
		json_out_object(o);
		json_out_key(o, "schema");
		json_describe_field(o, &rows[i].field);
		json_out_kbool(o, "shown", strcmp(rows[i].shown, "HIDDEN") != 0);
		json_out_kbool(o, "live", strcmp(rows[i].change, "LIVE") == 0);
		json_out_end(o, '}');
	}
	json_out_end(o, '}');
}

static void put_rules(struct json_out *o)
{
	static const struct {
		const char *name;
		bool counts;
		uint64_t min, max;
	} rows[] = {
#define FLAG(name, ...)                     { #name, false, 0, 0 },
#define COUNT(name, json, least, most, ...) { #json, true, least, most },
#include "rule_fields.def"
#undef FLAG
#undef COUNT
	};

	json_out_key(o, "rules");
	json_out_object(o);
	for (size_t i = 0; i < ELEMS(rows); i++) {
		json_out_key(o, rows[i].name);
		json_out_object(o);
		json_out_kz(o, "type", rows[i].counts ? "integer" : "boolean");
		if (rows[i].counts) {
			json_out_ku64(o, "minimum", rows[i].min);
			json_out_ku64(o, "maximum", rows[i].max);
		}
		json_out_end(o, '}');
	}
	json_out_end(o, '}');
}

int main(void)
{
	struct buf b = BUF_INIT(1u << 20);
	struct json_out o;

	json_out_init(&o, &b);
	json_out_object(&o);
	put_limits(&o);
	put_fields(&o);
	put_rules(&o);
	json_out_end(&o, '}');
	fwrite(b.p, 1, b.n, stdout);
	return b.bad || fflush(stdout) ? 1 : 0;
}
