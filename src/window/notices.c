/*
 * See notices.h. Servers read the body as markup, and agents have a say in what it holds: it is escaped.
 */
#include "notices.h"

#include "poison.h"

#define NAME      "org.freedesktop.Notifications"
#define PATH      "/org/freedesktop/Notifications"
#define SHOWN_MAX 32

struct notices {
	struct window_app *app;
	GCancellable *cancel;
	guint subscription;
	guint32 shown[SHOWN_MAX]; /* their ids; 0: none */
	size_t next;
};

static void on_action(GDBusConnection *bus _unused_, const char *sender _unused_, const char *path _unused_,
		      const char *interface _unused_, const char *signal _unused_, GVariant *parameters,
		      gpointer data)
{
	struct notices *n = data;
	const char *action;
	guint32 id;

	if (!g_variant_is_of_type(parameters, G_VARIANT_TYPE("(us)")))
		return;
	g_variant_get(parameters, "(u&s)", &id, &action);
	for (size_t i = 0; i < ELEMS(n->shown); i++)
		if (id && n->shown[i] == id)
			window_show_approvals(n->app);
}

static void on_shown(GObject *source, GAsyncResult *result, gpointer data)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(GVariant) answer = g_dbus_connection_call_finish(G_DBUS_CONNECTION(source), result, &error);
	struct notices *n = data;

	if (!answer) {
		if (!g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
			g_debug("no notice: %s", error->message);
		return;
	}
	g_variant_get(answer, "(u)", &n->shown[n->next]);
	n->next = (n->next + 1) % SHOWN_MAX;
}

static char *escaped(struct view v)
{
	return g_markup_escape_text(v.p ? v.p : "", (gssize)v.n);
}

void notices_request(struct notices *n, const struct message *m)
{
	g_autofree char *text = escaped(m->text), *agent = escaped(m->agent), *chain = escaped(m->chain);
	g_autofree char *body = NULL;
	GVariantBuilder hints;

	if (!n || !n->app->bus)
		return;
	body = m->agent.n ? g_strdup_printf("%s\n%s · %s", text, agent, chain) : g_strdup(text);
	g_variant_builder_init(&hints, G_VARIANT_TYPE_VARDICT);
	g_variant_builder_add(&hints, "{sv}", "desktop-entry", g_variant_new_string(WINDOW_ID));
	g_variant_builder_add(&hints, "{sv}", "urgency",
			      g_variant_new_byte(2)); /* it stays until it is seen */
	g_dbus_connection_call(
		n->app->bus, NAME, PATH, NAME, "Notify",
		g_variant_new("(susss@asa{sv}i)", "Paddock", 0, WINDOW_ID, "An agent asks for approval", body,
			      g_variant_new_strv((const char *const[]){ "default", "Show" }, 2), &hints, -1),
		G_VARIANT_TYPE("(u)"), G_DBUS_CALL_FLAGS_NONE, -1, n->cancel, on_shown, n);
}

void notices_clear(struct notices *n)
{
	for (size_t i = 0; n && i < ELEMS(n->shown); i++) {
		if (n->shown[i])
			g_dbus_connection_call(n->app->bus, NAME, PATH, NAME, "CloseNotification",
					       g_variant_new("(u)", n->shown[i]), NULL,
					       G_DBUS_CALL_FLAGS_NONE, -1, NULL, NULL, NULL);
		n->shown[i] = 0;
	}
}

struct notices *notices_new(struct window_app *w)
{
	struct notices *n = g_new0(struct notices, 1);

	n->app = w;
	n->cancel = g_cancellable_new();
	if (w->bus)
		n->subscription =
			g_dbus_connection_signal_subscribe(w->bus, NAME, NAME, "ActionInvoked", PATH, NULL,
							   G_DBUS_SIGNAL_FLAGS_NONE, on_action, n, NULL);
	return n;
}

void notices_free(struct notices *n)
{
	if (!n)
		return;
	g_cancellable_cancel(n->cancel);
	if (n->subscription)
		g_dbus_connection_signal_unsubscribe(n->app->bus, n->subscription);
	g_object_unref(n->cancel);
	g_free(n);
}
