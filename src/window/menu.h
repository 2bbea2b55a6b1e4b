/*
 * The tray's menu as the desktop asks for it (com.canonical.dbusmenu): open, approvals, quit.
 */
#pragma once

#include "window.h"

#define MENU_PATH "/MenuBar"

/* 0: it could not be exported. */
guint menu_export(struct window_app *w);
/* The number of requests that wait is part of it. */
void menu_changed(struct window_app *w);
