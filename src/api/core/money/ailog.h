/*
 * The log of calls to models, for the core itself: see money.h.
 */
#pragma once

#include "list.h"
#include "map.h"
#include "money.h"
#include "store_usage.h"

#define AILOG_BOX  1000
#define AILOG_ALL  20000
#define AILOG_TEXT (32u * 1024 * 1024)

struct box_part;

struct ailog {
	struct map boxes;
	struct list all;   /* by their ends */
	struct list texts; /* of those that have some, likewise */
	size_t n, n_text;
};

/* To memory and to the store. */
void ailog_add(struct core *c, const struct store_ai_log *l);
/* The box is gone; from the store its text goes with its row. */
extern const struct box_part ailog_part;

void ailog_init(struct core *c);
int ailog_load(struct core *c, const struct store_ai_log *row) _must_check_;
void ailog_done(struct core *c);
