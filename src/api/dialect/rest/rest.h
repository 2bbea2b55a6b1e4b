/*
 * Our own REST dialect, version 1: api/openapi.yaml says what it is. It takes every
 * request that no other dialect claims.
 */
#pragma once

#include "dialect.h"

extern const struct dialect rest_dialect;
