/*
 * See starter.h. What is started goes on when the window is closed: sandboxes live longer than windows.
 */
#include "starter.h"

#include <fcntl.h>
#include <unistd.h>

#include "page.h"

#include "poison.h"

#define BY_HAND                                                                                              \
	"Start it as root: `systemctl start paddock`, or `paddock serve` where it is not installed as a "    \
	"service."

/* Variables for clients: to the daemon, PADDOCK_ variables are settings. */
static const char *const CLIENTS[] = { "PADDOCK_URL", "PADDOCK_API_KEY", "PADDOCK_KEY_FILE", "PADDOCK_CA",
				       "PADDOCK_CONTEXT" };

static void note(struct window_app *w, const char *text)
{
	g_free(w->start_note);
	w->start_note = g_strdup(text);
	if (w->main)
		page_update(w->main, false);
	window_tell_status(w);
}

static void on_systemctl(GObject *source, GAsyncResult *result, gpointer data)
{
	struct window_app *w = data;
	g_autofree char *errors = NULL, *text = NULL;
	g_autoptr(GError) error = NULL;

	if (!g_subprocess_communicate_utf8_finish(G_SUBPROCESS(source), result, NULL, &errors, &error) ||
	    !g_subprocess_get_successful(G_SUBPROCESS(source))) {
		text = g_strdup_printf("It could not be started: %s\n" BY_HAND,
				       error ? error->message : g_strstrip(errors));
		note(w, text);
	} else {
		note(w, "It was started, and answers in a moment.");
	}
	g_application_release(G_APPLICATION(w->gtk));
}

static void start_service(struct window_app *w, bool ask)
{
	const char *const argv[] = { "systemctl", ask ? "--quiet" : "--no-ask-password", "start",
				     "paddock.service", NULL };
	g_autoptr(GError) error = NULL;
	g_autoptr(GSubprocess) process = g_subprocess_newv(
		argv, G_SUBPROCESS_FLAGS_STDERR_PIPE | G_SUBPROCESS_FLAGS_STDOUT_SILENCE, &error);

	if (!process) {
		note(w, BY_HAND);
		return;
	}
	note(w, "Starting it…");
	g_application_hold(G_APPLICATION(w->gtk));
	g_subprocess_communicate_utf8_async(process, NULL, NULL, on_systemctl, w);
}

/* Beside this program, as in a build directory, or where packages put it; never from PATH: it runs as root.
 */
static char *find_paddock(void)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
	g_autofree char *dir = self ? g_path_get_dirname(self) : NULL;
	char *path = dir ? g_build_filename(dir, "paddock", NULL) : NULL;

	if (path && g_file_test(path, G_FILE_TEST_IS_EXECUTABLE))
		return path;
	g_free(path);
	return NULL;
}

static void leave(gpointer data _unused_)
{
	(void)setsid();
}

static void serve(struct window_app *w)
{
	g_autofree char *program = find_paddock();
	char *argv[] = { program, (char *)"serve", NULL };
	g_auto(GStrv) environment = g_strdupv(w->environment);
	g_autoptr(GError) error = NULL;

	for (size_t i = 0; i < ELEMS(CLIENTS); i++)
		environment = g_environ_unsetenv(environment, CLIENTS[i]);

	if (!program) {
		note(w, "The program `paddock` is not installed here. " BY_HAND);
		return;
	}
	if (!g_spawn_async(NULL, argv, environment, G_SPAWN_STDOUT_TO_DEV_NULL, leave, NULL, NULL, &error))
		note(w, error->message);
	else
		note(w, "It was started, and answers in a moment.");
}

static bool has_service(void)
{
	return g_file_test("/run/systemd/system", G_FILE_TEST_IS_DIR) &&
	       (g_file_test("/lib/systemd/system/paddock.service", G_FILE_TEST_EXISTS) ||
		g_file_test("/usr/local/lib/systemd/system/paddock.service", G_FILE_TEST_EXISTS) ||
		g_file_test("/etc/systemd/system/paddock.service", G_FILE_TEST_EXISTS));
}

static void start(struct window_app *w, bool ask)
{
	if (has_service())
		start_service(w, ask);
	else if (geteuid() == 0)
		serve(w);
	else
		note(w, BY_HAND);
}

void starter_try(struct window_app *w)
{
	if (w->start_tried)
		return;
	w->start_tried = true;
	start(w, false);
}

void starter_ask(struct window_app *w)
{
	start(w, true);
}
