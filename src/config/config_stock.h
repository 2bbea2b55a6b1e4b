/*
 * The images that every installation of Sandkasten has: base, python and node, also as sandbox-runtime:….
 */
#pragma once

#include "view.h"

bool config_stock_is(struct view image);
