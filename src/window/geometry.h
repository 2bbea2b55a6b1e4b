/*
 * The size of the main window, kept from one run to the next in $XDG_STATE_HOME/paddock/window.
 */
#pragma once

#include "window.h"

void geometry_restore(GtkWindow *window);
void geometry_save(GtkWindow *window);
