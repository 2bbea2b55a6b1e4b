/*
 * Calls to models that are over, one by one: the newest AILOG_BOX of each box and AILOG_ALL
 * together, in memory and in the store. What was refused before it was sent is none. Where
 * somebody asked for it their text is kept, too, as long as its box is there; the oldest
 * goes first when there are more than AILOG_TEXT bytes of it.
 */
#pragma once

#include "list.h"
#include "map.h"
#include "store_usage.h"

struct core;

#define AILOG_BOX  1000
#define AILOG_ALL  20000
#define AILOG_TEXT (32u * 1024 * 1024)

struct ailog {
	struct map boxes;
	struct list all;   /* by their ends */
	struct list texts; /* of those that have some, likewise */
	size_t n, n_text;
};

/* To memory and to the store. */
void ailog_add(struct core *c, const struct store_ai_log *l);
/* The newest of the box that are older than `before` (0: all), the newest first; false ends it. */
void ailog_each(const struct core *c, struct view box, uint64_t before,
		bool (*each)(void *arg, const struct store_ai_log *l), void *arg);

/* One of the box's, or NULL. */
const struct store_ai_log *ailog_find(const struct core *c, struct view box, uint64_t id);
/* The box is gone; from the store its text goes with its row. */
void ailog_forget_box(struct core *c, struct view box);

void ailog_init(struct core *c);
int ailog_load(struct core *c, const struct store_ai_log *row) _must_check_;
void ailog_done(struct core *c);
