/*
 * An intrusive hash map from bytes to objects: the object embeds a map_node
 * whose key view points into the object. Grows; never shrinks.
 */
#pragma once

#include "view.h"

struct map_node {
	struct map_node *next;
	struct view key;
	uint64_t hash;
};

struct map {
	struct map_node **slots;
	size_t n_slots, n;
	uint64_t seed;
};

void map_init(struct map *m);
void map_done(struct map *m); /* frees the slots, not the objects */
struct map_node *map_get(const struct map *m, struct view key);
int map_put(struct map *m, struct map_node *node, struct view key) _must_check_; /* -EEXIST, -ENOMEM */
void map_del(struct map *m, struct map_node *node);
/* Iteration in no order. Whoever deletes the node at hand asks for the next one first. */
struct map_node *map_first(const struct map *m);
struct map_node *map_next(const struct map *m, const struct map_node *node);
