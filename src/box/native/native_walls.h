/*
 * The backend "native": see native.h.
 */
#pragma once

#include "walls.h"

extern const struct walls_ops native_walls;
