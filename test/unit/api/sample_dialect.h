/* See sample_dialect.c. */
#pragma once

#include "dialect.h"

extern const struct dialect sample_dialect;
