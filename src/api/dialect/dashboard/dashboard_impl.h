/*
 * For the files of this dialect.
 */
#pragma once

#include "answer.h"
#include "dashboard.h"

extern const struct route dashboard_session_routes[];
extern const struct route dashboard_state_routes[];
extern const struct route dashboard_template_routes[];
