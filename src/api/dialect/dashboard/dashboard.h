/*
 * The dashboard: pages for browsers at /, and their sessions. The pages use the REST API.
 */
#pragma once

#include "dialect.h"

extern const struct dialect dashboard_dialect;
