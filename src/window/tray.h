/*
 * The icon in the desktop's tray (org.kde.StatusNotifierItem) with the number of requests that wait.
 */
#pragma once

#include "window.h"

struct tray;

struct tray *tray_new(struct window_app *w);
void tray_free(struct tray *t);
void tray_set_pending(struct tray *t, unsigned pending);
/* Whether a desktop shows it: only then may the window be closed into it. */
bool tray_is_shown(const struct tray *t);
