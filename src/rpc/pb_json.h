/*
 * Protobuf messages as JSON (the proto3 mapping), by tables that scripts/gen-wire
 * --json has made.
 *
 * Reading takes names as in the .proto and in lowerCamelCase, numbers as numbers
 * or strings, enums by name or number, bytes in either alphabet of base64 with or
 * without padding, and null as absence. Fields that are not known are passed over:
 * clients are newer than we are. Of a oneof the last member counts.
 *
 * Writing leaves out what has its default, and writes 64-bit numbers as strings.
 */
#pragma once

#include "arena.h"
#include "buf.h"
#include "err.h"
#include "pb.h"

/* `out` has m->size bytes and is zeroed first; it borrows from the arena alone. ERR_INVALID. */
int pb_json_read(const struct pb_msg *m, struct view text, struct arena *a, void *out,
		 struct err *e) _must_check_;
int pb_json_write(const struct pb_msg *m, const void *in, struct buf *out) _must_check_; /* as pb_encode */

/* The name of a field in JSON; `room` is where it may be written. */
#define PB_JSON_NAME 64
const char *pb_json_name(const char *name, char room[PB_JSON_NAME]);
