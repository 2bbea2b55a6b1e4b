/*
 * An intrusive doubly linked ring. A list head is a link that points to itself
 * when empty; so is a link that is on no list (after list_init or list_del).
 */
#pragma once

#include "defs.h"

struct list {
	struct list *next, *prev;
};

#define LIST_INIT(name) ((struct list){ &(name), &(name) })

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}
static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}
static inline void list_append(struct list *head, struct list *item)
{
	item->prev = head->prev;
	item->next = head;
	head->prev->next = item;
	head->prev = item;
}
static inline void list_del(struct list *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	list_init(item);
}
/* The body may delete `it`. */
#define LIST_EACH(it, head)                                                                                  \
	for (struct list *it = (head)->next, *_n_##it = it->next; it != (head);                              \
	     it = _n_##it, _n_##it = it->next)
