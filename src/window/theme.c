/*
 * See theme.h. Without a portal, GTK's own setting counts.
 */
#include "theme.h"

#include "poison.h"

#define PORTAL      "org.freedesktop.portal.Desktop"
#define PORTAL_PATH "/org/freedesktop/portal/desktop"
#define SETTINGS    "org.freedesktop.portal.Settings"
#define NAMESPACE   "org.freedesktop.appearance"
#define KEY         "color-scheme"

/* 0: no preference, 1: dark, 2: light. Portals wrap it in one variant or in two. */
static void apply(GVariant *value)
{
	g_autoptr(GVariant) inner = g_variant_ref(value);

	while (g_variant_is_of_type(inner, G_VARIANT_TYPE_VARIANT)) {
		GVariant *next = g_variant_get_variant(inner);

		g_variant_unref(inner);
		inner = next;
	}
	if (g_variant_is_of_type(inner, G_VARIANT_TYPE_UINT32))
		g_object_set(gtk_settings_get_default(), "gtk-application-prefer-dark-theme",
			     g_variant_get_uint32(inner) == 1, NULL);
}

static void on_read(GObject *source, GAsyncResult *result, gpointer data _unused_)
{
	g_autoptr(GVariant) answer = g_dbus_connection_call_finish(G_DBUS_CONNECTION(source), result, NULL);
	g_autoptr(GVariant) value = answer ? g_variant_get_child_value(answer, 0) : NULL;

	if (value)
		apply(value);
}

static void on_changed(GDBusConnection *bus _unused_, const char *sender _unused_, const char *path _unused_,
		       const char *interface _unused_, const char *signal _unused_, GVariant *parameters,
		       gpointer data _unused_)
{
	const char *namespace, *key;
	g_autoptr(GVariant) value = NULL;

	if (!g_variant_is_of_type(parameters, G_VARIANT_TYPE("(ssv)")))
		return;
	g_variant_get(parameters, "(&s&sv)", &namespace, &key, &value);
	if (strcmp(namespace, NAMESPACE) == 0 && strcmp(key, KEY) == 0)
		apply(value);
}

void theme_follow(GDBusConnection *bus)
{
	if (!bus)
		return;
	g_dbus_connection_signal_subscribe(bus, PORTAL, SETTINGS, "SettingChanged", PORTAL_PATH, NAMESPACE,
					   G_DBUS_SIGNAL_FLAGS_NONE, on_changed, NULL, NULL);
	g_dbus_connection_call(bus, PORTAL, PORTAL_PATH, SETTINGS, "Read",
			       g_variant_new("(ss)", NAMESPACE, KEY), G_VARIANT_TYPE("(v)"),
			       G_DBUS_CALL_FLAGS_NONE, -1, NULL, on_read, NULL);
}
