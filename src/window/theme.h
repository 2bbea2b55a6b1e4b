/*
 * Dark or light as the desktop has it: the setting of the portal, which pages see as prefers-color-scheme.
 */
#pragma once

#include "window.h"

void theme_follow(GDBusConnection *bus);
