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

/*
 * One schema check for bodies and for the configuration: a table of fields read
 * into a struct. Unknown fields and wrong types are errors that name the field
 * (with its path: "limits.cpu") and, for the configuration, the line.
 */
enum json_field_kind {
	JSON_F_STRING,  /* struct view */
	JSON_F_BOOL,    /* bool */
	JSON_F_U64,     /* uint64_t, min..max */
	JSON_F_DOUBLE,  /* double, fmin..fmax */
	JSON_F_OBJECT,  /* a nested struct, by `sub` */
	JSON_F_STRMAP,  /* struct json_strmap: an object of strings */
	JSON_F_STRLIST, /* struct json_strlist: an array of strings */
	JSON_F_ANY,     /* const struct json * */
};

struct json_strmap {
	struct view *keys, *values;
	size_t n;
};
struct json_strlist {
	struct view *items;
	size_t n;
};

struct json_field {
	const char *name;
	enum json_field_kind kind;
	size_t offset;
	size_t has;        /* offset of a bool that tells presence; 0 = none (put nothing at offset 0) */
	uint64_t min, max; /* U64: the value; STRING: bytes; STRMAP/STRLIST: the count (max 0 = no limit) */
	double fmin, fmax; /* DOUBLE (fmax 0 = no limit) */
	bool required;
	bool nullable; /* null counts as absent */
	const struct json_schema *sub;
};

struct json_schema {
	const struct json_field *fields;
	size_t n;
	bool open; /* fields that it does not know mean nothing */
};

/* Fields that are absent leave `out` as it is: put the defaults there first. `with_lines`
 * puts "line N: " before the message (not for values with line 0). code ERR_INVALID. */
int json_read(struct arena *a, const struct json *j, const struct json_schema *s, void *out, bool with_lines,
	      struct err *e) _must_check_;

/* The writer: appends to a buf; commas and nesting are its business. Errors stick in the buf
 * (also -EOVERFLOW past JSON_DEPTH levels). */
struct json_out {
	struct buf *b;
	uint64_t nonempty; /* a bit per open container */
	unsigned depth;
	bool after_key;
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
