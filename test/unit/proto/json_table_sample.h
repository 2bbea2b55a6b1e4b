/*
 * A struct with a member of every kind, its table, and random values for it: for the tests of json_table.h.
 */
#pragma once

#include "json.h"

enum sample_color { SAMPLE_RED, SAMPLE_HOLE, SAMPLE_BLUE };

struct sample_limits {
	double cpu;
	uint64_t pids;
	bool has_pids;
};

struct sample_rule {
	struct view host;
	uint16_t port;
	char token[8];
};

struct sample_rules {
	struct sample_rule *items;
	size_t n;
};

struct sample_ports {
	uint16_t *items;
	size_t n;
};

struct sample {
	struct view name;
	bool on;
	uint64_t big;
	double share;
	struct sample_limits limits;
	struct json_strmap env;
	struct json_strlist argv;
	const struct json *extra;
	uint32_t u32;
	uint16_t u16;
	int64_t i64;
	int32_t exit_code;
	bool has_exit_code;
	const char *z;
	char id[8];
	enum sample_color color;
	uint32_t features;
	const struct sample_limits *most;
	struct sample_rules rules;
	struct sample_ports ports;
	struct sample_rule first[3];
	size_t n_first;
	uint32_t cpu_milli;
	int64_t at_ms;
	struct view raw;
	struct {
		uint32_t from, to;
	} range; /* "FROM-TO", by a codec */
	struct view password;
};

extern const struct json_schema sample_schema, sample_limits_schema;

/* Any value that the table can read: by the generator's state, which it moves on. */
void sample_random(struct arena *a, uint64_t *state, struct sample *ret);
uint64_t sample_next(uint64_t *state, uint64_t below);
