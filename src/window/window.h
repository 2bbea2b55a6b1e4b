/*
 * paddock-window's parts and what they know of each other. All of it runs on GTK's one thread.
 */
#pragma once

#include "confine.h"

#include <gtk/gtk.h>
#include <webkit2/webkit2.h>

#define WINDOW_ID        "org.paddock.Window"
#define WINDOW_PATH      "/org/paddock/Window"
#define WINDOW_APPROVALS "/#/approvals"

struct tray;
struct notices;
struct link;
struct page;

struct window_app {
	GtkApplication *gtk;
	GDBusConnection *bus; /* NULL: a desktop without a session bus */
	char **environment;   /* as the user set it; ours has no PADDOCK_ variables any more */
	struct link *link;
	struct tray *tray;
	struct notices *notices;
	WebKitWebContext *web;
	struct page *main, *approvals; /* approvals: NULL while it is closed */
	GSimpleAction *status;
	guint menu_revision;

	/* What paddock-watch has told: */
	char origin[CONFINE_ORIGIN_MAX]; /* "": not known yet */
	char ca[1024];                   /* "": the system's authorities */
	bool told;                       /* anything at all */
	bool here, fresh, signed_in;
	unsigned pending, sessions;
	char *why; /* of not being here, or not being signed in */

	bool may_start, start_tried;
	char *start_note; /* what came of starting the daemon */
	bool devtools;
};

/* Says what `paddock-window --status` prints. */
void window_tell_status(struct window_app *w);
void window_show(struct window_app *w);
void window_show_approvals(struct window_app *w);
/* The user closes the main window: into the tray, or for good. */
void window_close(struct window_app *w);
void window_quit(struct window_app *w);
