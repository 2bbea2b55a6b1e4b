/*
 * The documentation as scripts/docs rendered it.
 */
#pragma once

#include "pages.h"

extern const struct pages_file docs_files[];
