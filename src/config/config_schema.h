/*
 * The table of all settings: names, types and ranges, once. Reading, writing and
 * overriding walk it, so that a new setting is one line there and one in struct config.
 */
#pragma once

#include "json.h"

extern const struct json_schema config_schema; /* over struct config */
