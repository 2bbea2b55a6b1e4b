/*
 * The icon of the tray, drawn: Paddock's fence, with the number of requests that wait.
 */
#pragma once

#include <gtk/gtk.h>

/* a(iiay) of StatusNotifierItem: sizes, and ARGB in network byte order. */
GVariant *icon_pixmaps(unsigned pending);
