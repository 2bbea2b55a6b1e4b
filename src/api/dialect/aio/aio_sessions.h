/*
 * Sessions of jupyter and nodejs: code contexts of one language, by their ids.
 */
#pragma once

#include "aio_run.h"

/* The one with this id ("": a new one); where it exists already, that one. */
void aio_sessions_make(struct request *r, const char *language, struct view id, struct view cwd,
		       void (*then)(struct request *r, const struct context_info *c, bool created));
/* All contexts, of any language. */
void aio_sessions_list(struct request *r,
		       void (*then)(struct request *r, const struct context_info *list, size_t n));
/* Answers with those of the list that are of the language, by their ids. */
void aio_sessions_put(struct request *r, const struct context_info *list, size_t n, const char *language,
		      void (*put)(struct json_out *o, const struct context_info *c));
/* One of the language; an answer where there is none. */
void aio_sessions_get(struct request *r, const char *language, struct view id,
		      void (*then)(struct request *r, const struct context_info *c, bool created));
/* One of the language, or with VIEW_NONE all of them; `then` is told how many. */
void aio_sessions_remove(struct request *r, const char *language, struct view id,
			 void (*then)(struct request *r, size_t n));
int64_t aio_sessions_age(const struct context_info *c); /* seconds */
