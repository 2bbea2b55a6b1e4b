/*
 * The plain fields of a sandbox's spec, of which box_fields.def is the list: what they are in C and in JSON.
 * Who needs one thing for each of them defines FIELD and includes the list.
 */
#pragma once

#include "json_table.h"

/* A type in C. */
#define BOX_FIELD_BOOL    bool
#define BOX_FIELD_NOT     bool
#define BOX_FIELD_SECONDS uint64_t
#define BOX_FIELD_TEXT    struct view
#define BOX_FIELD_ZONE    struct view
#define BOX_FIELD_HOST    struct view

#define BOX_FIELD_SECONDS_MAX INT32_MAX
#define BOX_FIELD_HOST_MAX    255

/* `x` of those that are LIVE, PLAIN or WIRE. */
#define BOX_FIELD_IF_LIVE(x, ...) x(__VA_ARGS__)
#define BOX_FIELD_IF_FIXED(x, ...)
#define BOX_FIELD_IF_PLAIN(x, ...) x(__VA_ARGS__)
#define BOX_FIELD_IF_ANY(x, ...)
#define BOX_FIELD_IF_WIRE(x, ...) x(__VA_ARGS__)
#define BOX_FIELD_IF_LOCAL(x, ...)

extern const struct json_codec box_field_not; /* a bool of which JSON says the opposite */

/* The rest of a struct json_field, after its name and offset: in a request, in an answer, in a row. */
#define BOX_FIELD_ASKED_BOOL    .kind = JSON_F_BOOL
#define BOX_FIELD_ASKED_NOT     .kind = JSON_F_CUSTOM, .codec = &box_field_not
#define BOX_FIELD_ASKED_SECONDS .kind = JSON_F_U64
#define BOX_FIELD_ASKED_TEXT    .kind = JSON_F_STRING, .min = 1
#define BOX_FIELD_ASKED_ZONE    BOX_FIELD_ASKED_TEXT
#define BOX_FIELD_ASKED_HOST    .kind = JSON_F_STRING, .max = BOX_FIELD_HOST_MAX

#define BOX_FIELD_SHOWN_BOOL    BOX_FIELD_ASKED_BOOL
#define BOX_FIELD_SHOWN_NOT     BOX_FIELD_ASKED_NOT
#define BOX_FIELD_SHOWN_SECONDS BOX_FIELD_ASKED_SECONDS
#define BOX_FIELD_SHOWN_TEXT    .kind = JSON_F_STRING
#define BOX_FIELD_SHOWN_ZONE    .kind = JSON_F_STRING, .skip = JSON_NULL_EMPTY
#define BOX_FIELD_SHOWN_HOST    BOX_FIELD_SHOWN_TEXT

#define BOX_FIELD_KEPT_BOOL    .kind = JSON_F_BOOL
#define BOX_FIELD_KEPT_NOT     .kind = JSON_F_BOOL
#define BOX_FIELD_KEPT_SECONDS .kind = JSON_F_U64, .max = BOX_FIELD_SECONDS_MAX
#define BOX_FIELD_KEPT_TEXT    .kind = JSON_F_STRING
#define BOX_FIELD_KEPT_ZONE    .kind = JSON_F_STRING, .skip = JSON_SKIP_EMPTY
#define BOX_FIELD_KEPT_HOST    .kind = JSON_F_STRING

/* ERR_INVALID that names the field. */
int box_fields_check_seconds(uint64_t v, const char *field, struct err *e) _must_check_;
