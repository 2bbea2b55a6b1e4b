/*
 * Starts the daemon of this machine where the user may: as a service of systemd, or, for root on a machine
 * without one, `paddock serve` in the background.
 */
#pragma once

#include "window.h"

/* Once, without asking for a password: the daemon was not there when the program started. */
void starter_try(struct window_app *w);
/* The user has asked for it: the desktop may ask for a password. */
void starter_ask(struct window_app *w);
