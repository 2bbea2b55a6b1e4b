/*
 * The limits of a sandbox. box_limits.def has them; everything that goes through all limits is made of that
 * list. The keeper checks what it is sent by the same list, but by itself: src/box/spec.c.
 */
#pragma once

#include "json_table.h"

struct wire_limits;

#define BOX_LIMITS_MEMORY_MB_MAX (UINT64_C(1) << 24)
#define BOX_LIMITS_DISK_MB_MAX   (UINT64_C(1) << 30)

/* Of a sandbox: all are known. */
struct box_limits {
	uint32_t cpu_milli; /* thousandths of a core */
	uint64_t memory_mb, pids, nofile;
	uint64_t disk_mb; /* 0: none */
};

/* As clients and settings name them. Of a wish, what is absent is the default. */
struct box_limits_wish {
	double cpu; /* cores */
	uint64_t memory_mb, pids, nofile, disk_mb;
	bool has_cpu, has_memory_mb, has_pids, has_nofile, has_disk_mb; /* not of settings, but disk_mb's */
};

enum box_limit_kind { BOX_LIMIT_CPU, BOX_LIMIT_MEMORY, BOX_LIMIT_COUNT, BOX_LIMIT_DISK };

enum box_limit {
#define LIMIT(kind, name, ...) BOX_LIMIT_AT_##name,
#include "box_limits.def"
#undef LIMIT
	BOX_LIMITS
};

struct box_limit_row {
	const char *name;       /* "cpu", "memory_mb" */
	const char *kept;       /* "cpu_milli": its unit, for messages of the keeper */
	size_t at, wished, has; /* in struct box_limits; in struct box_limits_wish */
	enum box_limit_kind kind;
	double min, max; /* in the wish's unit */
	double standard, most;
	bool fixed;
};
extern const struct box_limit_row box_limits_rows[BOX_LIMITS];

/* In the sandbox's unit: of CPU thousandths. */
uint64_t box_limits_get(const struct box_limits *l, enum box_limit i);
uint64_t box_limits_min(enum box_limit i);
bool box_limits_equal(const struct box_limits *a, const struct box_limits *b);

/* ---- JSON ---- */

extern const struct json_schema box_limits_wish_schema; /* reads a client's struct box_limits_wish */
extern const struct json_schema box_limits_schema;      /* writes a struct box_limits */
extern const struct json_schema box_limits_set_schema;  /* writes those of a wish or setting that are not 0 */
/* Settings, but disk_mb, which lies beside them. */
extern const struct json_schema box_limits_default_schema;
extern const struct json_schema box_limits_max_schema; /* 0 of some: what the machine has */

/* ---- wishes and settings ---- */

/* The settings of a configuration that says nothing. */
void box_limits_preset(struct box_limits_wish *ret_standard, struct box_limits_wish *ret_most);
/* Whether anything can be wished that is at most this. */
bool box_limits_most_works(enum box_limit i, const struct box_limits_wish *most);
/* Lowers a default that nobody set to its ceiling. False: somebody did set it, and it is above that. */
bool box_limits_fit(enum box_limit i, struct box_limits_wish *standard, const struct box_limits_wish *most,
		    bool given);
/* A setting without bounds of a client: as it is. */
void box_limits_of(const struct box_limits_wish *w, struct box_limits *ret);
void box_limits_to_wish(const struct box_limits *l, struct box_limits_wish *ret);
/* What `over` has takes the place of what `w` has. */
void box_limits_override(struct box_limits_wish *w, const struct box_limits_wish *over);
/* Checks what was wished and completes it. ERR_INVALID names the limit. */
int box_limits_take(const struct box_limits_wish *w, const struct box_limits_wish *standard,
		    const struct box_limits_wish *most, struct box_limits *ret, struct err *e) _must_check_;
/* One of them that is no fraction; `field` is for the message. */
int box_limits_take_one(enum box_limit i, const struct box_limits_wish *w,
			const struct box_limits_wish *standard, const struct box_limits_wish *most,
			const char *field, uint64_t *ret, struct err *e) _must_check_;
/* ERR_INVALID: the wish names one that a running sandbox cannot change. */
int box_limits_check_change(const struct box_limits_wish *w, struct err *e) _must_check_;

/* ---- the wire ---- */

void box_limits_to_wire(const struct box_limits *l, struct wire_limits *ret, uint64_t *ret_disk_bytes);
/* -EINVAL: none, or a size that is not a whole number of MiB. */
int box_limits_from_wire(const struct wire_limits *w, uint64_t disk_bytes,
			 struct box_limits *ret) _must_check_;
