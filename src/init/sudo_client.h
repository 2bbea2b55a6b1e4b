/*
 * The programs /usr/bin/sudo and /usr/bin/su: see sudo.h.
 */
#pragma once

#include "defs.h"

/* Whether a program of this name is one of them. */
bool sudo_client_is(const char *argv0);
int sudo_client_main(int argc, char **argv, char **env);
