/*
 * A question that must be answered with yes before something is done.
 */
#pragma once

#include "err.h"

/* yes: it was answered on the command line. Without a terminal it must be. */
int consent_ask(bool yes, const char *question, struct err *e) _must_check_;
