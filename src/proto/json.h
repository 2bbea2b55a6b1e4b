/*
 * JSON: a strict reader into an arena and a streaming writer.
 *
 * The reader refuses what other readers disagree about: duplicate keys, trailing
 * bytes, leading zeros, lone surrogates, raw control characters, NUL in strings
 * (`\u0000`), invalid UTF-8, depth past JSON_DEPTH. Numbers keep their text.
 */
#pragma once

#include "arena.h"
#include "buf.h"
#include "err.h"

#define JSON_DEPTH 64

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_member;

struct json {
	enum json_type type;
	uint32_t line; /* where it began, from 1: for config errors */
	bool boolean;
	struct view text; /* of a string (decoded) or a number (as written) */
	size_t n;         /* of an array or an object */
	struct json *items;
	struct json_member *members; /* in the order of the text */
};

struct json_member {
	struct view key;
	struct json value;
};

/* The result lives in the arena alone: the text is copied. On failure e->msg says what is
 * wrong and where ("line 3, column 7: …"), code ERR_BAD_REQUEST (ERR_TOO_LARGE for memory). */
int json_parse(struct arena *a, struct view text, struct json **ret, struct err *e) _must_check_;

const struct json *json_get(const struct json *object,
			    const char *key); /* NULL when absent or not an object */
const char *json_type_name(enum json_type t); /* "a string", "an object", … */
bool json_is_number(struct view v);           /* all of it, by JSON's grammar */
int json_to_u64(const struct json *j,
		uint64_t *ret) _must_check_; /* -EINVAL unless a whole number, -ERANGE */
int json_to_i64(const struct json *j, int64_t *ret) _must_check_;
int json_to_double(const struct json *j, double *ret) _must_check_;

/* An object of strings and an array of strings, as they are in structs. */
struct json_strmap {
	struct view *keys, *values;
	size_t n;
};
struct json_strlist {
	struct view *items;
	size_t n;
};

/* The same document: members in any order, numbers as they are written. NULL is equal to NULL and to null. */
bool json_value_equal(const struct json *a, const struct json *b);
/* A copy that lives in the arena alone; NULL without memory. */
struct json *json_value_copy(struct arena *a, const struct json *from);

/* The writer: appends to a buf; commas and nesting are its business. Errors stick in the buf
 * (also -EOVERFLOW past JSON_DEPTH levels). */
struct json_out {
	struct buf *b;
	uint64_t nonempty; /* a bit per open container */
	unsigned depth;
	bool after_key;
	bool mask_secrets; /* tables write "***" for their secret members */
};

void json_out_init(struct json_out *o, struct buf *b);
void json_out_object(struct json_out *o);
void json_out_array(struct json_out *o);
void json_out_end(struct json_out *o, char bracket); /* '}' or ']' */
void json_out_key(struct json_out *o, const char *key);
void json_out_key_view(struct json_out *o, struct view key);
/* What stands between the quotes for at least the first n bytes of v, to the end of a character; *ret_used is
 * how many those were. Pieces of one string give what json_out_str does. */
int json_out_escape(struct buf *b, struct view v, size_t n, size_t *ret_used) _must_check_;
uint64_t json_out_escaped(struct view v);             /* the bytes of it */
void json_out_str(struct json_out *o, struct view v); /* invalid UTF-8 becomes U+FFFD */
void json_out_u64(struct json_out *o, uint64_t v);
void json_out_i64(struct json_out *o, int64_t v);
void json_out_double(struct json_out *o, double v); /* shortest that reads back equal; null if not finite */
void json_out_bool(struct json_out *o, bool v);
void json_out_null(struct json_out *o);
void json_out_value(struct json_out *o, const struct json *j);
void json_out_raw(struct json_out *o, struct view json); /* a value that is JSON already */
/* key and value in one */
void json_out_kstr(struct json_out *o, const char *key, struct view v);
void json_out_kz(struct json_out *o, const char *key, const char *z); /* null when z is NULL */
void json_out_kmap(struct json_out *o, const char *key, const struct json_strmap *m);
void json_out_ku64(struct json_out *o, const char *key, uint64_t v);
void json_out_ki64(struct json_out *o, const char *key, int64_t v);
/* null when there is none: an empty text, the number 0. */
void json_out_kstr_any(struct json_out *o, const char *key, struct view v);
void json_out_ku64_any(struct json_out *o, const char *key, uint64_t v);
void json_out_kbool(struct json_out *o, const char *key, bool v);

#include "json_table.h" /* structs to and from JSON by table */
