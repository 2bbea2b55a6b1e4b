/*
 * E2B, as its own clients speak it: the control plane (api/e2b/openapi.yaml), and on
 * ports of every box envd (process.proto and filesystem.proto beside it) and the code interpreter
 * (api/e2b/interpreter.yaml).
 */
#pragma once

#include "dialect.h"

extern const struct dialect e2b_dialect;
