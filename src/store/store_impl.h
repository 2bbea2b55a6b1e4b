/*
 * Shared by the files of src/store: turns a call into a write. No other code includes this.
 */
#pragma once

#include "store_sql.h"

#define STORE_ARGS_MAX 256 /* bytes of a call's arguments, without what their views point to */

/* By the writer's thread, within its transaction. */
typedef int store_apply(struct store_sql *q, const void *args, struct err *e);

/* Copies the arguments and the views that lie at the given offsets of them. */
void store_submit(struct store *s, store_apply *apply, const void *args, size_t size, const size_t *views,
		  size_t n_views, store_done *done, void *arg);
/* The same for a struct of arguments; at least one of its members is a view. */
#define STORE_SUBMIT(s, apply, args, done, arg, ...)                                                         \
	do {                                                                                                 \
		static const size_t views_[] = { __VA_ARGS__ };                                              \
		static_assert(sizeof(*(args)) <= STORE_ARGS_MAX, "store_submit takes it");                   \
		store_submit(s, apply, args, sizeof(*(args)), views_, ELEMS(views_), done, arg);             \
	} while (0)
