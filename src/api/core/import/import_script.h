/*
 * What unpacks an archive, in a box of ours: see import_script.c.
 */
#pragma once

extern const char import_script[];
