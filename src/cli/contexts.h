/*
 * Contexts: daemons that the user has logged in to, each with its address, key and
 * authorities, and the name of the one in use. They are kept in a file of the user's
 * own that nobody else may read: ~/.config/paddock/contexts.json.
 */
#pragma once

#include "arena.h"
#include "err.h"

#define CONTEXTS_MAX 64

struct contexts_entry {
	const char *name;           /* NULL: none */
	const char *url, *key, *ca; /* ca may be NULL */
};

struct contexts {
	struct contexts_entry items[CONTEXTS_MAX];
	size_t n;
	const char *current; /* NULL: none */
};

/* A file that is not there is an empty list; one that others may read or change is refused. */
int contexts_load(struct arena *a, struct contexts *ret, struct err *e) _must_check_;
int contexts_save(const struct contexts *c, struct err *e) _must_check_;
/* The directory of that file, which is made: for what else is remembered for the user. */
int contexts_open_directory(int *ret_fd, struct err *e) _must_check_;
struct contexts_entry *contexts_get(struct contexts *c, const char *name);
/* The one of this name, which must exist; without a name the one in use, if there is one. */
int contexts_find(struct arena *a, const char *name, struct contexts_entry *ret, struct err *e) _must_check_;
