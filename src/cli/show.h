/*
 * Output for people: tables and indented JSON. Text from the daemon (names,
 * metadata, messages) may come from another user: control characters in it never
 * reach the terminal.
 */
#pragma once

#include <stdio.h>

#include "buf.h"
#include "err.h"
#include "json.h"

#define SHOW_COLUMNS 10

struct show_table {
	size_t n_columns, n_rows, cap;
	struct view (*rows)[SHOW_COLUMNS];
};

void show_table_init(struct show_table *t, const char *const *titles, size_t n_columns);
void show_table_done(struct show_table *t);
void show_table_add(struct show_table *t,
		    const struct view *cells); /* n_columns of them; views stay the caller's */
void show_table_object(struct show_table *t, const struct json *object, const char *const *fields);
int show_table_print(const struct show_table *t, struct err *e) _must_check_;

/* The array `list` of an answer's objects: a row each, a column per field. */
int show_list(const struct json *answer, const char *list, const char *const *titles,
	      const char *const *fields, size_t n_columns, struct err *e) _must_check_;

/* Indented by two, with a newline at its end. */
int show_json(const struct json *j, struct err *e) _must_check_;
/* Appends text with control characters replaced by '?'. */
int show_clean(struct buf *out, struct view text);
/* All bytes, or an error (nothing is said about a reader that went away). */
int show_bytes(int fd, struct view bytes, struct err *e) _must_check_;
