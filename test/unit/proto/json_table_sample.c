/*
 * The sample of the table tests: see json_table_sample.h.
 */
#include "json_table_sample.h"

#include <stdio.h>
#include <stdlib.h>

#include "num.h"

#include "poison.h"

#define PROBABLY(state, percent) (sample_next(state, 100) < (percent))

static const char *const colors[] = { [SAMPLE_RED] = "red", [SAMPLE_BLUE] = "blue" };
static const char *const features[] = { "lsm", NULL, "seccomp", "userns" };

#define AT(f) offsetof(struct sample_limits, f)
static const struct json_field limits_fields[] = {
	{ "cpu", JSON_F_DOUBLE, AT(cpu), .fmin = 0, .fmax = 64 },
	{ "pids", JSON_F_U64, AT(pids), AT(has_pids), .max = 4096 },
};
#undef AT
const struct json_schema sample_limits_schema = { JSON_SCHEMA(limits_fields), .name = "Limits",
						  .size = sizeof(struct sample_limits) };

#define AT(f) offsetof(struct sample_rule, f)
static const struct json_field rule_fields[] = {
	{ "host", JSON_F_STRING, AT(host), .required = true, .min = 1, .max = 8 },
	{ "port", JSON_F_U16, AT(port), .skip = JSON_SKIP_EMPTY },
	{ "token", JSON_F_CHARS, AT(token), .size = sizeof(((struct sample_rule *)0)->token), .secret = true,
	  .skip = JSON_SKIP_EMPTY },
};
#undef AT
static const struct json_schema rule_schema = { JSON_SCHEMA(rule_fields),
						.size = sizeof(struct sample_rule) };

struct range {
	uint32_t from, to;
};

static int read_range(struct arena *a, const struct json *j, const struct json_field *f, void *at,
		      struct err *e)
{
	struct range *r = at;
	struct view to, from = view_split(j->text, '-', &to);

	if (j->type != JSON_STRING || num_u32(from, &r->from) < 0 || num_u32(to, &r->to) < 0)
		return err_set(e, ERR_INVALID, "must be FROM-TO");
	return 0;
}

static void write_range(struct json_out *o, const struct json_field *f, const void *at)
{
	const struct range *r = at;
	char text[32];

	snprintf(text, sizeof(text), "%u-%u", r->from, r->to);
	json_out_str(o, view_of(text));
}

static bool empty_range(const struct json_field *f, const void *at)
{
	const struct range *r = at;

	return r->from == 0 && r->to == 0;
}

static void describe_range(struct json_out *o, const struct json_field *f)
{
	json_out_kz(o, "type", "string");
}

static const struct json_codec range_codec = {
	.read = read_range, .write = write_range, .empty = empty_range, .describe = describe_range
};

static const struct json_field port_item = { .kind = JSON_F_U16, .min = 1 };

#define AT(f) offsetof(struct sample, f)
static const struct json_field sample_fields[] = {
	{ "name", JSON_F_STRING, AT(name), .max = 64 },
	{ "on", JSON_F_BOOL, AT(on) },
	{ "big", JSON_F_U64, AT(big) },
	{ "share", JSON_F_DOUBLE, AT(share) },
	{ "limits", JSON_F_OBJECT, AT(limits), .sub = &sample_limits_schema },
	{ "env", JSON_F_STRMAP, AT(env), .skip = JSON_SKIP_EMPTY },
	{ "argv", JSON_F_STRLIST, AT(argv), .skip = JSON_NULL_EMPTY, .nullable = true },
	{ "extra", JSON_F_ANY, AT(extra), .nullable = true },
	{ "u32", JSON_F_U32, AT(u32), .skip = JSON_SKIP_EMPTY },
	{ "u16", JSON_F_U16, AT(u16), .skip = JSON_NULL_EMPTY, .nullable = true },
	{ "i64", JSON_F_I64, AT(i64) },
	{ "exit_code", JSON_F_I32, AT(exit_code), AT(has_exit_code), .imin = -1, .imax = 255,
	  .skip = JSON_NULL_EMPTY, .nullable = true },
	{ "z", JSON_F_Z, AT(z), .nullable = true },
	{ "id", JSON_F_CHARS, AT(id), .size = sizeof(((struct sample *)0)->id) },
	{ "color", JSON_F_ENUM, AT(color), JSON_NAMES(colors) },
	{ "features", JSON_F_BITS, AT(features), JSON_NAMES(features), .skip = JSON_SKIP_EMPTY },
	{ "most", JSON_F_PTR, AT(most), .sub = &sample_limits_schema, .skip = JSON_NULL_EMPTY,
	  .nullable = true },
	{ "rules", JSON_F_LIST, AT(rules), .sub = &rule_schema, .max = 4 },
	{ "ports", JSON_F_LIST, AT(ports), .item = &port_item, .skip = JSON_SKIP_EMPTY },
	{ "first", JSON_F_ARRAY, AT(first), .sub = &rule_schema, .max = 3, .count = AT(n_first) },
	{ "cpu", JSON_F_MILLI, AT(cpu_milli), .fmax = 64 },
	{ "at", JSON_F_TIME_MS, AT(at_ms), .skip = JSON_NULL_EMPTY, .nullable = true },
	{ "raw", JSON_F_RAW, AT(raw), .skip = JSON_SKIP_EMPTY },
	{ "range", JSON_F_CUSTOM, AT(range), .codec = &range_codec, .size = sizeof(struct range),
	  .skip = JSON_SKIP_EMPTY },
	{ "password", JSON_F_STRING, AT(password), .skip = JSON_SKIP_EMPTY, .secret = true },
};
#undef AT
const struct json_schema sample_schema = { JSON_SCHEMA(sample_fields), .name = "Sample",
					   .size = sizeof(struct sample) };

/* xorshift64* */
uint64_t sample_next(uint64_t *state, uint64_t below)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717) % below;
}

static struct view any_text(struct arena *a, uint64_t *state, size_t least, size_t most)
{
	static const char *const letters[] = { "a", "Z", "0", " ", "\"", "\\", "\n", "\x01", "é", "/" };
	struct buf b = BUF_INIT(256);
	struct view v;

	while (buf_len(&b) < least || PROBABLY(state, 60)) {
		const char *letter = letters[sample_next(state, ELEMS(letters))];

		if (buf_len(&b) + strlen(letter) > most)
			break;
		buf_puts(&b, letter);
	}
	while (buf_len(&b) < least)
		buf_putc(&b, 'x');
	v = arena_view(a, buf_view(&b));
	buf_done(&b);
	return v;
}

static void any_chars(struct arena *a, uint64_t *state, char *dst, size_t size)
{
	if (view_to_str(any_text(a, state, 0, size - 1), dst, size) < 0)
		abort();
}

static struct sample_limits any_limits(uint64_t *state)
{
	struct sample_limits l = { .cpu = (double)sample_next(state, 64000) / 1000,
				   .has_pids = PROBABLY(state, 50) };

	if (l.has_pids)
		l.pids = sample_next(state, 4097);
	return l;
}

static struct sample_rule any_rule(struct arena *a, uint64_t *state)
{
	struct sample_rule r = { .host = any_text(a, state, 1, 8),
				 .port = (uint16_t)(PROBABLY(state, 50) ? 0 : sample_next(state, 65536)) };

	any_chars(a, state, r.token, sizeof(r.token));
	return r;
}

static const struct json *any_json(struct arena *a, uint64_t *state)
{
	static const char *const texts[] = { "1", "[1,{\"a\":null}]", "{\"b\":\"c\",\"d\":[]}", "true",
					     "\"s\"" };
	struct json *j;
	struct err e = { 0 };

	if (PROBABLY(state, 30))
		return NULL;
	if (json_parse(a, view_of(texts[sample_next(state, ELEMS(texts))]), &j, &e) < 0)
		abort();
	return j;
}

static void any_lists(struct arena *a, uint64_t *state, struct sample *s)
{
	s->env.n = sample_next(state, 4);
	s->env.keys = arena_array(a, s->env.n, sizeof(struct view));
	s->env.values = arena_array(a, s->env.n, sizeof(struct view));
	for (size_t i = 0; i < s->env.n; i++) {
		char key[24];

		snprintf(key, sizeof(key), "K%zu", i);
		s->env.keys[i] = arena_view(a, view_of(key));
		s->env.values[i] = any_text(a, state, 0, 20);
	}
	s->argv.n = sample_next(state, 4);
	s->argv.items = arena_array(a, s->argv.n, sizeof(struct view));
	for (size_t i = 0; i < s->argv.n; i++)
		s->argv.items[i] = any_text(a, state, 0, 20);
	s->rules.n = sample_next(state, 5);
	s->rules.items = arena_array(a, s->rules.n, sizeof(*s->rules.items));
	for (size_t i = 0; i < s->rules.n; i++)
		s->rules.items[i] = any_rule(a, state);
	s->n_first = sample_next(state, 4);
	for (size_t i = 0; i < s->n_first; i++)
		s->first[i] = any_rule(a, state);
	s->ports.n = sample_next(state, 4);
	s->ports.items = arena_array(a, s->ports.n, sizeof(*s->ports.items));
	for (size_t i = 0; i < s->ports.n; i++)
		s->ports.items[i] = (uint16_t)(1 + sample_next(state, 65535));
}

void sample_random(struct arena *a, uint64_t *state, struct sample *ret)
{
	struct sample s = { .name = any_text(a, state, 0, 40),
			    .on = PROBABLY(state, 50),
			    .big = sample_next(state, PROBABLY(state, 50) ? 5 : UINT64_MAX),
			    .share = (double)sample_next(state, 1000000) / 997.0,
			    .limits = any_limits(state),
			    .extra = any_json(a, state),
			    .u32 = (uint32_t)(PROBABLY(state, 50) ? 0 : sample_next(state, UINT32_MAX)),
			    .u16 = (uint16_t)(PROBABLY(state, 50) ? 0 : sample_next(state, 65536)),
			    .i64 = (int64_t)sample_next(state, UINT64_MAX),
			    .has_exit_code = PROBABLY(state, 50),
			    .color = PROBABLY(state, 50) ? SAMPLE_RED : SAMPLE_BLUE,
			    .features = (uint32_t)sample_next(state, 16) & 13,
			    .cpu_milli = (uint32_t)sample_next(state, 64001),
			    .at_ms = PROBABLY(state, 50) ? 0 : (int64_t)sample_next(state, 4000000000000),
			    .range = { (uint32_t)sample_next(state, 3), (uint32_t)sample_next(state, 3) },
			    .password = any_text(a, state, 0, 10) };

	if (s.has_exit_code)
		s.exit_code = (int32_t)sample_next(state, 257) - 1;
	if (PROBABLY(state, 50))
		s.z = any_text(a, state, 0, 10).p;
	any_chars(a, state, s.id, sizeof(s.id));
	if (PROBABLY(state, 50)) {
		struct sample_limits *most = arena_alloc(a, sizeof(*most));

		*most = any_limits(state);
		s.most = most;
	}
	any_lists(a, state, &s);
	if (PROBABLY(state, 50))
		s.raw = VIEW("{\"kept\":[1,2]}");
	*ret = s;
}
