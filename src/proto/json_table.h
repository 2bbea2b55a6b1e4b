/*
 * Structs as tables: one table of fields per JSON object. The same table reads a document into a
 * struct, writes the struct, compares and copies it, names differences and describes the object as
 * JSON Schema.
 *
 * The order of fields is the order of members in the output. A zero in a field of the table means
 * "no such rule", so that a table names only what is special.
 */
#pragma once

#include "json.h"

enum json_field_kind {
	JSON_F_STRING,  /* struct view, min..max bytes */
	JSON_F_BOOL,    /* bool */
	JSON_F_U64,     /* uint64_t (or size_t), min..max */
	JSON_F_DOUBLE,  /* double, fmin..fmax */
	JSON_F_OBJECT,  /* a nested struct, by `sub` */
	JSON_F_STRMAP,  /* struct json_strmap: an object of strings, min..max entries */
	JSON_F_STRLIST, /* struct json_strlist: an array of strings, min..max items */
	JSON_F_ANY,     /* const struct json * */
	JSON_F_U32,     /* uint32_t, min..max */
	JSON_F_U16,     /* uint16_t, min..max */
	JSON_F_I64,     /* int64_t, imin..imax */
	JSON_F_I32,     /* int32_t, imin..imax */
	JSON_F_Z,       /* const char *; empty: NULL */
	JSON_F_CHARS,   /* char[size], NUL-terminated */
	JSON_F_ENUM,    /* an enum of the size of int, by `names` */
	JSON_F_BITS,    /* uint32_t: an array of the names of its set bits */
	JSON_F_PTR,     /* const struct T *, by `sub`, which has a size; empty: NULL */
	JSON_F_LIST,    /* struct { T *items; size_t n; }, by `sub` or `item`, min..max items */
	JSON_F_ARRAY,   /* T[max] and its count (a size_t at `count`), by `sub` or `item` */
	JSON_F_MILLI,   /* uint32_t thousandths: 500 is 0.5; fmin..fmax */
	JSON_F_TIME_MS, /* int64_t, milliseconds since 1970: a string of RFC 3339; empty: 0 */
	JSON_F_RAW,     /* struct view of JSON text */
	JSON_F_CUSTOM,  /* by `codec` */
};

/* How a member without a value is written. No value: `has` is false; without `has`, a value that is zero
 * (of LIST and the like: no items; of OBJECT: all members empty). */
enum json_skip {
	JSON_ALWAYS,     /* as it is; left out if `has` is false */
	JSON_SKIP_EMPTY, /* left out */
	JSON_NULL_EMPTY, /* null */
};

struct json_field {
	const char *name;
	enum json_field_kind kind;
	size_t offset;
	size_t has;        /* offset of a bool that tells presence; 0 = none (put nothing at offset 0) */
	uint64_t min, max; /* of a number its value, else bytes or the count (max 0 = no limit) */
	double fmin, fmax; /* DOUBLE, MILLI (fmax 0 = no limit) */
	bool required;
	bool nullable; /* null counts as absent */
	const struct json_schema *sub;

	int64_t imin, imax; /* I64, I32 (both 0 = no limit) */
	size_t size;        /* CHARS: its room; LIST, ARRAY: of an item (0 = the size of `sub` or of `item`);
			       CUSTOM: what a copy without a function copies */
	size_t count;       /* LIST, ARRAY: offset of their size_t count (LIST: 0 = behind the pointer) */
	const struct json_field *item; /* LIST, ARRAY: items that are no objects; its name is not used */
	const char *const *names; /* ENUM, BITS: by value or bit, NULL for one without a name; JSON_NAMES */
	size_t n_names;
	const struct json_codec *codec;
	enum json_skip skip;
	bool secret;     /* masked in differences, described as a password */
	bool read_only;  /* in answers only: unknown in a request */
	bool write_only; /* in requests only: never written */
};

#define JSON_NAMES(array) .names = (array), .n_names = ELEMS(array)

struct json_schema {
	const struct json_field *fields;
	size_t n;
	bool open;        /* fields that it does not know mean nothing */
	const char *name; /* of the component in OpenAPI; NULL: described where it is used */
	size_t size;      /* of the struct, for PTR, LIST, ARRAY and copies */
};

#define JSON_SCHEMA(array) .fields = (array), .n = ELEMS(array)

/* What a table cannot say. `at` is the struct's address plus the field's offset (which may be 0: the whole
 * struct). Functions that are NULL: `read` makes the field unknown in requests, `write` leaves it out,
 * `empty` is never so, `equal` compares what is written, `copy` copies `size` bytes, `describe` allows
 * anything. */
struct json_codec {
	/* e->msg is without the field's name; json_read puts it before. */
	int (*read)(struct arena *a, const struct json *j, const struct json_field *f, void *at,
		    struct err *e);
	void (*write)(struct json_out *o, const struct json_field *f, const void *at); /* one value */
	bool (*empty)(const struct json_field *f, const void *at);
	bool (*equal)(const struct json_field *f, const void *a, const void *b);
	int (*copy)(struct arena *a, const struct json_field *f, const void *from, void *to); /* -errno */
	void (*describe)(struct json_out *o, const struct json_field *f); /* members of its JSON Schema */
};

/* Fields that are absent leave `out` as it is: put the defaults there first. Unknown fields and wrong types
 * are errors that name the field (with its path: "limits.cpu"); `with_lines` puts "line N: " before the
 * message (not for values with line 0). code ERR_INVALID. */
int json_read(struct arena *a, const struct json *j, const struct json_schema *s, void *out, bool with_lines,
	      struct err *e) _must_check_;

void json_write(struct json_out *o, const struct json_schema *s, const void *in); /* an object */
/* Its members only, within an object that the caller opened. */
void json_write_members(struct json_out *o, const struct json_schema *s, const void *in);
void json_out_kwrite(struct json_out *o, const char *key, const struct json_schema *s, const void *in);

/* Whether all members are equal; a member that is absent on both sides is, whatever its value. The order
 * of a map's entries does not count. */
bool json_equal(const struct json_schema *s, const void *a, const void *b);

/* Copies the members that the table knows; what they point to is in the arena. -ENOMEM; `to` is then
 * half-written, but nothing in it is to be freed. */
int json_copy(struct arena *a, const struct json_schema *s, const void *from, void *to) _must_check_;

/* A member that differs: its path ("limits.cpu") and both values as JSON text, empty for an absent one.
 * A secret's values are "***". Below 0 ends it. */
typedef int json_diff_fn(void *arg, const char *path, struct view before, struct view after);
/* Calls fn for each difference, in the table's order. Objects are entered; lists and maps differ as a whole.
 * -errno (-ENOBUFS: a value is too large to be shown) or what fn returned. */
int json_diff(const struct json_schema *s, const void *before, const void *after, json_diff_fn *fn,
	      void *arg) _must_check_;

/* A JSON Schema object as OpenAPI 3.1 has it; sub-schemas that have a name are referred to. */
void json_describe(struct json_out *o, const struct json_schema *s);
void json_describe_field(struct json_out *o, const struct json_field *f);
