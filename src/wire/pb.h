/*
 * A table-driven protobuf codec. A message type is a `struct pb_msg`, made by
 * scripts/gen-wire from a .proto file together with the C struct that it fills.
 *
 * Decoding is strict: lengths are checked before anything is allocated, wire
 * types must match, strings and bytes are views into the input (which must
 * outlive the struct), repeated fields are arrays in the arena, unknown fields
 * are an error unless PB_SKIP_UNKNOWN, nesting is at most PB_DEPTH. Proto3: a
 * scalar that is zero is not written; sub-messages are pointers, NULL = absent.
 */
#pragma once

#include "arena.h"
#include "buf.h"

#define PB_DEPTH 16

enum pb_kind {
	PB_U32,
	PB_U64,
	PB_I32,
	PB_I64,
	PB_S32,
	PB_S64,
	PB_BOOL,
	PB_ENUM,
	PB_DOUBLE,
	PB_STRING,
	PB_BYTES,
	PB_MSG,
};

struct pb_msg;

/* A value of an enum; a list of them ends with a NULL name. */
struct pb_value {
	const char *name;
	int32_t number;
};

/* What is not an object of its fields in JSON: src/rpc/pb_json.h. */
enum pb_form { PB_FORM_PLAIN, PB_FORM_MAP, PB_FORM_TIMESTAMP };

struct pb_field {
	uint32_t number;
	uint8_t kind; /* enum pb_kind */
	bool repeated;
	uint16_t offset; /* of the value; of a struct pb_list when repeated */
	uint16_t has;    /* offset of a bool for proto3 `optional` and oneof members, 0 = none */
	uint16_t oneof;  /* number of its oneof from 1, 0 = none: the last member on the wire wins */
	const struct pb_msg *sub;
	const char *name;              /* as in the .proto */
	const struct pb_value *values; /* of an enum; NULL without gen-wire --json */
};

struct pb_msg {
	const char *name;
	const struct pb_field *fields; /* by ascending number */
	uint16_t n_fields;
	uint16_t size; /* of the C struct */
	uint8_t form;  /* enum pb_form */
};

/* A repeated field: generated structs have `struct { T *items; size_t n; } name;` of this layout. */
struct pb_list {
	void *items;
	size_t n;
};

enum { PB_SKIP_UNKNOWN = 1 };

/* -EBADMSG, -ENOMEM. `out` has msg->size bytes and is zeroed first. */
int pb_decode(const struct pb_msg *m, struct view in, unsigned flags, struct arena *a,
	      void *out) _must_check_;
int pb_encode(const struct pb_msg *m, const void *in, struct buf *out) _must_check_; /* -ENOBUFS, -ENOMEM */
