/*
 * paddock-window: the dashboard as an application of the desktop.
 *
 * Peers: paddock-watch, a child of ours, which holds the API key and talks to the daemon (link.h); WebKit's
 * processes, which show the dashboard with a session and never see the key (page.h); the desktop's session
 * bus, for the tray, notices and the single instance. Runs as the user and holds no privilege.
 *
 * It shows requests for approval and approves none: that is done in the dashboard's page, by a person.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "defs.h"

#include "link.h"
#include "notices.h"
#include "page.h"
#include "theme.h"
#include "tray.h"
#include "window.h"

#include "poison.h"

#define NO_TRAY_MS 3000

/* Those that name the daemon, for paddock-watch. */
static const char *const DAEMON[] = { "url", "key-file", "ca", "context" };

static const char *const INSPECTORS[] = { "WEBKIT_INSPECTOR_SERVER", "WEBKIT_INSPECTOR_HTTP_SERVER" };

static const GOptionEntry OPTIONS[] = {
	{ "url", 0, 0, G_OPTION_ARG_STRING, NULL, "The daemon's address (default: as `paddock` finds it)",
	  "URL" },
	{ "key-file", 0, 0, G_OPTION_ARG_FILENAME, NULL, "A file with the API key", "FILE" },
	{ "ca", 0, 0, G_OPTION_ARG_FILENAME, NULL, "Trust the certificates of this authority", "FILE" },
	{ "context", 0, 0, G_OPTION_ARG_STRING, NULL, "The context of `paddock` to use", "NAME" },
	{ "approvals", 0, 0, G_OPTION_ARG_NONE, NULL, "Open the approvals", NULL },
	{ "hidden", 0, 0, G_OPTION_ARG_NONE, NULL, "Start in the tray, if there is one", NULL },
	{ "devtools", 0, 0, G_OPTION_ARG_NONE, NULL, "Allow WebKit's developer tools", NULL },
	{ "status", 0, 0, G_OPTION_ARG_NONE, NULL, "Print what the running window shows, as JSON", NULL },
	{ "quit", 0, 0, G_OPTION_ARG_NONE, NULL, "End the running window", NULL },
	{ "version", 0, 0, G_OPTION_ARG_NONE, NULL, "Print the version", NULL },
	{ 0 },
};

static bool has(GVariantDict *options, const char *name)
{
	return g_variant_dict_contains(options, name);
}

/* ---- starting ---- */

static void on_startup(GApplication *app, struct window_app *w)
{
	g_autoptr(GSimpleAction) status =
		g_simple_action_new_stateful("status", NULL, g_variant_new_string("{}"));

	w->bus = g_application_get_dbus_connection(app);
	w->menu_revision = 1;
	w->status = g_object_ref(status);
	g_action_map_add_action(G_ACTION_MAP(app), G_ACTION(status));
	gtk_window_set_default_icon_name(WINDOW_ID);
	theme_follow(w->bus);
}

static gboolean on_no_tray(gpointer data)
{
	struct window_app *w = data;

	if (!tray_is_shown(w->tray))
		window_show(w);
	return G_SOURCE_REMOVE;
}

static void begin(struct window_app *w, GVariantDict *options)
{
	g_autoptr(GStrvBuilder) words = g_strv_builder_new();
	g_auto(GStrv) argv = NULL;

	for (size_t i = 0; i < ELEMS(DAEMON); i++) {
		g_autoptr(GVariant) value = g_variant_dict_lookup_value(options, DAEMON[i], NULL);
		g_autofree char *flag = g_strconcat("--", DAEMON[i], NULL);

		if (!value)
			continue;
		g_strv_builder_add(words, flag);
		g_strv_builder_add(words, g_variant_is_of_type(value, G_VARIANT_TYPE_STRING)
						  ? g_variant_get_string(value, NULL)
						  : g_variant_get_bytestring(value));
	}
	argv = g_strv_builder_end(words);
	w->devtools = has(options, "devtools");
	if (!w->devtools) /* either makes every page open to whoever connects */
		for (size_t i = 0; i < ELEMS(INSPECTORS); i++)
			(void)unsetenv(INSPECTORS[i]);
	w->web = page_context_new();
	w->tray = tray_new(w);
	w->notices = notices_new(w);
	w->link = link_new(w, (const char *const *)argv, w->environment);
	g_application_hold(G_APPLICATION(w->gtk));
}

static bool names_daemon(GVariantDict *options)
{
	for (size_t i = 0; i < ELEMS(DAEMON); i++)
		if (has(options, DAEMON[i]))
			return true;
	return has(options, "devtools");
}

static int refuse(GApplicationCommandLine *line, const char *why)
{
	g_application_command_line_printerr(line, "paddock-window: %s\n", why);
	return 1;
}

/* In the instance that runs, for its own command line and those of later starts. */
static int on_command_line(GApplication *app _unused_, GApplicationCommandLine *line, struct window_app *w)
{
	GVariantDict *options = g_application_command_line_get_options_dict(line);

	if ((has(options, "status") || has(options, "quit")) && !w->link)
		return refuse(line, "no window runs");
	if (has(options, "status")) {
		g_autoptr(GVariant) state = g_action_get_state(G_ACTION(w->status));

		g_application_command_line_print(line, "%s\n", g_variant_get_string(state, NULL));
		return 0;
	}
	if (has(options, "quit")) {
		window_quit(w);
		return 0;
	}
	if (w->link && names_daemon(options))
		return refuse(line, "a window runs already; end it first (paddock-window --quit)");
	if (!w->link)
		begin(w, options);
	if (has(options, "approvals"))
		window_show_approvals(w);
	else if (has(options, "hidden"))
		g_timeout_add(NO_TRAY_MS, on_no_tray, w);
	else
		window_show(w);
	return 0;
}

static int on_local_options(GApplication *app _unused_, GVariantDict *options, struct window_app *w _unused_)
{
	if (!has(options, "version"))
		return -1;
	puts("paddock-window " PADDOCK_VERSION);
	return 0;
}

/* ---- the whole ---- */

/* WebKit's processes, browsers and whatever else is started from here get none of them: one may hold a key.
 */
static char **take_environment(void)
{
	char **all = g_get_environ();

	for (size_t i = 0; all[i]; i++) {
		g_autofree char *name = g_strndup(all[i], strcspn(all[i], "="));
		char *value = g_str_has_prefix(name, "PADDOCK_") ? getenv(name) : NULL;

		if (!value)
			continue;
		explicit_bzero(value, strlen(value)); /* /proc/PID/environ, too */
		(void)unsetenv(name);
	}
	return all;
}

static void done(struct window_app *w)
{
	link_free(w->link);
	notices_free(w->notices);
	tray_free(w->tray);
	g_clear_object(&w->web);
	g_clear_object(&w->status);
	g_strfreev(w->environment);
	g_free(w->why);
	g_free(w->start_note);
}

int main(int argc, char **argv)
{
	struct window_app w = { .environment = take_environment() };
	int code;

	g_set_prgname(WINDOW_ID); /* what Wayland's desktops match windows and .desktop files by */
	g_set_application_name("Paddock");
	w.gtk = gtk_application_new(WINDOW_ID, G_APPLICATION_HANDLES_COMMAND_LINE);
	g_application_add_main_option_entries(G_APPLICATION(w.gtk), OPTIONS);
	g_application_set_option_context_summary(G_APPLICATION(w.gtk),
						 "Opens Paddock's dashboard as an application.");
	g_signal_connect(w.gtk, "startup", G_CALLBACK(on_startup), &w);
	g_signal_connect(w.gtk, "handle-local-options", G_CALLBACK(on_local_options), &w);
	g_signal_connect(w.gtk, "command-line", G_CALLBACK(on_command_line), &w);
	code = g_application_run(G_APPLICATION(w.gtk), argc, argv);
	done(&w);
	g_object_unref(w.gtk);
	return code;
}
