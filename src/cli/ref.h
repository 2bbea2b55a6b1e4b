/*
 * Sandboxes as users name them: by id, by name, or by the beginning of an id, as
 * long as it is the only one. The daemon knows ids and names; when it says that
 * there is no such sandbox, the list is searched and the request sent again.
 */
#pragma once

#include "session.h"

/* Whether this error means that the sandbox in the path is not known. */
bool ref_is_unknown(struct view path, const struct err *e);
/* Finds the one sandbox whose id begins so and remembers it in the session. */
int ref_resolve(struct session *s, struct view path, struct err *e) _must_check_;
/* The path with the id that was found, made in `room`; or as it is. */
struct view ref_known(const struct session *s, struct view path, struct buf *room);
/* What the session knows this reference to be, or the reference itself. */
const char *ref_id(const struct session *s, const char *ref);
/* Names the sandbox and says how to find it. Returns -1. */
int ref_explain(struct view path, struct err *e);
/* All sandboxes that fit the query ("status=…&…", may be ""): arrays in the order of the pages. */
struct ref_page {
	struct ref_page *next;
	const struct json *boxes;
};
int ref_list(struct session *s, const char *query, struct ref_page **ret, size_t *ret_n,
	     struct err *e) _must_check_;
