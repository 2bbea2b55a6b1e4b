/*
 * api/openapi.yaml as JSON; made by scripts/openapi-json when the program is built.
 */
#pragma once

#include <stddef.h>

extern const char openapi_json[];
extern const size_t openapi_json_size;
