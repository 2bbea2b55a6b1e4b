/*
 * The files of the dashboard as scripts/dashboard built them.
 */
#pragma once

#include "pages.h"

extern const struct pages_file dashboard_files[];
