/*
 * The documentation of this version, at /docs, for everybody.
 */
#pragma once

#include "dialect.h"

extern const struct dialect docs_dialect;
