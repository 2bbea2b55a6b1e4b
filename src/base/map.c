/*
 * The hash map: see map.h. Chained, seeded (keys come from outside), load <= 1.
 */
#include "map.h"

#include <errno.h>
#include <stdlib.h>

#include "rnd.h"
#include "poison.h"

/* FNV-1a with a random seed and a final mix: short keys, and an attacker who
 * picks names cannot aim at one slot without knowing the seed. */
static uint64_t hash(const struct map *m, struct view key)
{
	uint64_t h = m->seed;
	for (size_t i = 0; i < key.n; i++)
		h = (h ^ (unsigned char)key.p[i]) * 0x100000001b3ull;
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ull;
	return h ^ h >> 32;
}

void map_init(struct map *m)
{
	*m = (struct map){ 0 };
	rnd_bytes(&m->seed, sizeof(m->seed));
}

void map_done(struct map *m)
{
	free(m->slots);
	m->slots = NULL;
	m->n = m->n_slots = 0;
}

struct map_node *map_get(const struct map *m, struct view key)
{
	if (!m->n_slots)
		return NULL;
	uint64_t h = hash(m, key);
	for (struct map_node *n = m->slots[h & (m->n_slots - 1)]; n; n = n->next)
		if (n->hash == h && view_eq(n->key, key))
			return n;
	return NULL;
}

static int grow(struct map *m)
{
	size_t size = m->n_slots ? m->n_slots * 2 : 16;
	struct map_node **slots = calloc(size, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_slots; i++)
		for (struct map_node *n = m->slots[i], *next; n; n = next) {
			next = n->next;
			n->next = slots[n->hash & (size - 1)];
			slots[n->hash & (size - 1)] = n;
		}
	free(m->slots);
	m->slots = slots;
	m->n_slots = size;
	return 0;
}

int map_put(struct map *m, struct map_node *node, struct view key)
{
	if (map_get(m, key))
		return -EEXIST;
	if (m->n >= m->n_slots) {
		int r = grow(m);
		if (r < 0)
			return r;
	}
	node->key = key;
	node->hash = hash(m, key);
	struct map_node **slot = &m->slots[node->hash & (m->n_slots - 1)];
	node->next = *slot;
	*slot = node;
	m->n++;
	return 0;
}

void map_del(struct map *m, struct map_node *node)
{
	if (!m->n_slots)
		return;
	for (struct map_node **at = &m->slots[node->hash & (m->n_slots - 1)]; *at; at = &(*at)->next)
		if (*at == node) {
			*at = node->next;
			node->next = NULL;
			m->n--;
			return;
		}
}

static struct map_node *from_slot(const struct map *m, size_t i)
{
	for (; i < m->n_slots; i++)
		if (m->slots[i])
			return m->slots[i];
	return NULL;
}

struct map_node *map_first(const struct map *m)
{
	return from_slot(m, 0);
}

struct map_node *map_next(const struct map *m, const struct map_node *node)
{
	if (node->next)
		return node->next;
	return from_slot(m, (node->hash & (m->n_slots - 1)) + 1);
}
