/*
 * Output for people: tables and indented JSON. Text from the daemon (names,
 * metadata, messages) may come from another user: control characters in it never
 * reach the terminal.
 */
#pragma once

#include <stdio.h>

#include "arena.h"
#include "buf.h"
#include "err.h"
#include "json.h"

#define SHOW_COLUMNS 10

struct show_table {
	size_t n_columns, n_rows, cap;
	struct view (*rows)[SHOW_COLUMNS];
	struct arena text; /* of cells that were made: show_keep */
};

void show_table_init(struct show_table *t, const char *const *titles, size_t n_columns);
void show_table_done(struct show_table *t);
void show_table_add(struct show_table *t,
		    const struct view *cells); /* n_columns of them; views stay the caller's */
void show_table_object(struct show_table *t, const struct json *object, const char *const *fields);
/* A cell of the row that was added last. */
void show_table_set(struct show_table *t, size_t column, struct view cell);
/* A member for people: a time as "3 m ago", bytes as "1.5 GiB", the rest as it is, "-" where there is none.
 */
struct view show_cell(struct show_table *t, const struct json *object, const char *field);
/* A copy that lives as long as the table. */
struct view show_keep(struct show_table *t, struct view text);
int show_table_print(const struct show_table *t, struct err *e) _must_check_;

/* The array `list` of an answer's objects: a row each, a column per field. */
int show_list(const struct json *answer, const char *list, const char *const *titles,
	      const char *const *fields, size_t n_columns, struct err *e) _must_check_;

/* "512 B", "1.5 GiB" */
void show_size(struct buf *out, uint64_t bytes);

/* Indented by two, with a newline at its end. */
int show_json(const struct json *j, struct err *e) _must_check_;
/* The bytes of the character at the front, if a terminal would act on it or it turns the direction of text;
 * else 0. */
size_t show_steers(struct view v);
/* Appends text with control characters, and those that turn its direction, replaced by '?'. */
int show_clean(struct buf *out, struct view text);
/* All bytes, or an error (nothing is said about a reader that went away). */
int show_bytes(int fd, struct view bytes, struct err *e) _must_check_;
