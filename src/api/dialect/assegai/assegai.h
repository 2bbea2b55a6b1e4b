/*
 * Assegai's API proxy, as an agent finds it at http://host.docker.internal:8765 of its sandbox. The calls to
 * models below /api are the gateway's (src/api/dialect/models).
 */
#pragma once

#include "dialect.h"

extern const struct dialect assegai_dialect;
