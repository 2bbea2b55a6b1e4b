/*
 * See link.h.
 */
#include "message.h"

#include "link.h"
#include "notices.h"
#include "page.h"
#include "starter.h"
#include "tray.h"

#include "poison.h"

#define RESTART_MS 1000

struct link {
	struct window_app *app;
	char **argv, **environment;
	GSubprocess *process;
	GDataInputStream *lines;
	GCancellable *cancel;
	guint restart;
};

static void start(struct link *l);

/* ---- what it says ---- */

static void update_all(struct window_app *w, bool again)
{
	if (w->main)
		page_update(w->main, again);
	if (w->approvals)
		page_update(w->approvals, again);
	window_tell_status(w);
}

static void set_why(struct window_app *w, struct view text)
{
	g_free(w->why);
	w->why = text.n ? g_strndup(text.p, text.n) : NULL;
}

static void on_cookie(GObject *source, GAsyncResult *result, gpointer data)
{
	struct window_app *w = data;
	g_autoptr(GError) error = NULL;

	(void)webkit_cookie_manager_add_cookie_finish(WEBKIT_COOKIE_MANAGER(source), result, &error);
	if (error && g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
		return; /* the program ends */
	w->here = true;
	w->sessions += w->fresh;
	update_all(w, w->fresh);
}

/* As the server sets it for a browser: for this host alone, not for scripts, not for other sites. */
static void put_cookie(struct link *l, struct view cookie, bool tls)
{
	g_autofree char *text = g_strndup(cookie.p, cookie.n);
	g_autoptr(GUri) origin = g_uri_parse(l->app->origin, G_URI_FLAGS_NONE, NULL);
	char *value = strchr(text, '=');
	SoupCookie *c;

	if (!origin || !value)
		return;
	*value++ = '\0';
	c = soup_cookie_new(text, value, g_uri_get_host(origin), "/", -1);
	soup_cookie_set_http_only(c, TRUE);
	soup_cookie_set_secure(c, tls);
	soup_cookie_set_same_site_policy(c, SOUP_SAME_SITE_POLICY_STRICT);
	webkit_cookie_manager_add_cookie(webkit_web_context_get_cookie_manager(l->app->web), c, l->cancel,
					 on_cookie, l->app);
	soup_cookie_free(c);
}

static void on_here(struct link *l, const struct message *m)
{
	struct window_app *w = l->app;
	struct err e = { 0 };

	if (confine_origin(m->url, w->origin, &e) < 0 || view_to_str(m->ca, w->ca, sizeof(w->ca)) < 0)
		return;
	w->told = true;
	w->fresh = m->fresh;
	w->signed_in = m->cookie.n > 0;
	set_why(w, m->text);
	if (w->signed_in) {
		put_cookie(l, m->cookie, view_starts(m->url, "https://"));
		return;
	}
	w->here = true;
	update_all(w, m->fresh);
}

static void on_away(struct link *l, const struct message *m)
{
	struct window_app *w = l->app;

	w->told = true;
	w->here = false;
	w->may_start = m->local;
	set_why(w, m->text);
	update_all(w, false);
	if (m->local)
		starter_try(w);
}

static void on_pending(struct link *l, const struct message *m)
{
	l->app->pending = (unsigned)m->count;
	tray_set_pending(l->app->tray, l->app->pending);
	if (!l->app->pending)
		notices_clear(l->app->notices);
	window_tell_status(l->app);
}

static void on_request(struct link *l, const struct message *m)
{
	notices_request(l->app->notices, m);
	window_show_approvals(l->app);
}

static void on_message(struct link *l, const char *line, size_t n)
{
	struct arena a = ARENA_INIT(1u << 20);
	struct message m;
	struct err e = { 0 };

	if (message_read(&a, (struct view){ line, n }, &m, &e) < 0) {
		g_warning("paddock-watch: %s", e.msg);
	} else {
		switch (m.type) {
		case MESSAGE_HERE:
			on_here(l, &m);
			break;
		case MESSAGE_AWAY:
			on_away(l, &m);
			break;
		case MESSAGE_PENDING:
			on_pending(l, &m);
			break;
		case MESSAGE_REQUEST:
			on_request(l, &m);
			break;
		case MESSAGE_NONE:
			break;
		}
	}
	arena_done(&a);
}

/* ---- the process ---- */

static void stop(struct link *l)
{
	g_clear_object(&l->lines);
	if (l->process) /* it ends with its input */
		(void)g_output_stream_close(g_subprocess_get_stdin_pipe(l->process), NULL, NULL);
	g_clear_object(&l->process);
}

static gboolean on_restart(gpointer data)
{
	struct link *l = data;

	l->restart = 0;
	start(l);
	return G_SOURCE_REMOVE;
}

static void on_ended(struct link *l, const char *why)
{
	stop(l);
	on_away(l, &(struct message){ .text = view_of(why) });
	if (!l->restart)
		l->restart = g_timeout_add(RESTART_MS, on_restart, l);
}

static void on_line(GObject *source, GAsyncResult *result, gpointer data)
{
	g_autoptr(GError) error = NULL;
	gsize n = 0;
	g_autofree char *line =
		g_data_input_stream_read_line_finish(G_DATA_INPUT_STREAM(source), result, &n, &error);
	struct link *l = data;

	if (error && g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
		return; /* the link is gone */
	if (!line) {
		on_ended(l, error ? error->message : "paddock-watch has ended");
		return;
	}
	on_message(l, line, n);
	explicit_bzero(line, n);
	g_data_input_stream_read_line_async(l->lines, G_PRIORITY_DEFAULT, l->cancel, on_line, l);
}

static void start(struct link *l)
{
	g_autoptr(GSubprocessLauncher) launcher =
		g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE);
	g_autoptr(GError) error = NULL;

	g_subprocess_launcher_set_environ(launcher, l->environment);
	l->process = g_subprocess_launcher_spawnv(launcher, (const char *const *)l->argv, &error);
	if (!l->process) {
		on_ended(l, error->message);
		return;
	}
	g_subprocess_wait_async(l->process, NULL, NULL, NULL);
	l->lines = g_data_input_stream_new(g_subprocess_get_stdout_pipe(l->process));
	g_data_input_stream_read_line_async(l->lines, G_PRIORITY_DEFAULT, l->cancel, on_line, l);
}

/* Beside this program, as in a build directory, or in ../libexec/paddock. */
static char *find_watch(void)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
	g_autofree char *dir = g_path_get_dirname(self ? self : "/usr/bin/x");
	char *path = g_build_filename(dir, "paddock-watch", NULL);

	if (!g_file_test(path, G_FILE_TEST_IS_EXECUTABLE)) {
		g_free(path);
		path = g_build_filename(dir, "..", "libexec", "paddock", "paddock-watch", NULL);
	}
	return path;
}

struct link *link_new(struct window_app *w, const char *const *options, char **environment)
{
	struct link *l = g_new0(struct link, 1);
	g_autoptr(GStrvBuilder) argv = g_strv_builder_new();
	g_autofree char *program = find_watch();

	g_strv_builder_add(argv, program);
	g_strv_builder_addv(argv, (const char **)options);
	l->argv = g_strv_builder_end(argv);
	l->environment = g_strdupv(environment);
	l->app = w;
	l->cancel = g_cancellable_new();
	start(l);
	return l;
}

void link_free(struct link *l)
{
	if (!l)
		return;
	g_cancellable_cancel(l->cancel);
	if (l->restart)
		g_source_remove(l->restart);
	stop(l);
	g_strfreev(l->argv);
	g_strfreev(l->environment);
	g_object_unref(l->cancel);
	g_free(l);
}

void link_send(struct link *l, const char *word)
{
	g_autofree char *line = g_strconcat(word, "\n", NULL);

	if (l && l->process)
		(void)g_output_stream_write_all(g_subprocess_get_stdin_pipe(l->process), line, strlen(line),
						NULL, NULL, NULL);
}
