/*
 * See tray.h. The desktop's side is a watcher, with which the item registers whenever it appears, and a host,
 * which draws it: a watcher without a host shows nothing.
 */
#include "defs.h"

#include "icon.h"
#include "menu.h"
#include "tray.h"

#include <unistd.h>

#include "poison.h"

#define WATCHER      "org.kde.StatusNotifierWatcher"
#define WATCHER_PATH "/StatusNotifierWatcher"
#define ITEM         "org.kde.StatusNotifierItem"
#define ITEM_PATH    "/StatusNotifierItem"

static const char XML[] =
	"<node><interface name='" ITEM "'>"
	"<property name='Category' type='s' access='read'/>"
	"<property name='Id' type='s' access='read'/>"
	"<property name='Title' type='s' access='read'/>"
	"<property name='Status' type='s' access='read'/>"
	"<property name='WindowId' type='i' access='read'/>"
	"<property name='IconName' type='s' access='read'/>"
	"<property name='IconPixmap' type='a(iiay)' access='read'/>"
	"<property name='AttentionIconPixmap' type='a(iiay)' access='read'/>"
	"<property name='ToolTip' type='(sa(iiay)ss)' access='read'/>"
	"<property name='ItemIsMenu' type='b' access='read'/>"
	"<property name='Menu' type='o' access='read'/>"
	"<method name='Activate'><arg type='i' direction='in'/><arg type='i' direction='in'/></method>"
	"<method name='SecondaryActivate'><arg type='i' direction='in'/><arg type='i' "
	"direction='in'/></method>"
	"<method name='ContextMenu'><arg type='i' direction='in'/><arg type='i' direction='in'/></method>"
	"<method name='Scroll'><arg type='i' direction='in'/><arg type='s' direction='in'/></method>"
	"<signal name='NewTitle'/><signal name='NewIcon'/><signal name='NewAttentionIcon'/>"
	"<signal name='NewToolTip'/><signal name='NewStatus'><arg type='s'/></signal>"
	"</interface></node>";

struct tray {
	struct window_app *app;
	GCancellable *cancel;
	guint item, menu, watch, hosts;
	unsigned pending;
	bool shown;
};

/* ---- the item ---- */

static char *tip(const struct tray *t)
{
	if (!t->pending)
		return g_strdup("No request waits for approval");
	return g_strdup_printf(t->pending == 1 ? "%u request waits for approval"
					       : "%u requests wait for approval",
			       t->pending);
}

static const char *status(const struct tray *t)
{
	return t->pending ? "NeedsAttention" : "Active";
}

static GVariant *on_get(GDBusConnection *bus _unused_, const char *sender _unused_, const char *path _unused_,
			const char *interface _unused_, const char *name, GError **error, gpointer data)
{
	const struct tray *t = data;
	g_autofree char *text = tip(t);

	if (strcmp(name, "Category") == 0)
		return g_variant_new_string("ApplicationStatus");
	if (strcmp(name, "Id") == 0)
		return g_variant_new_string("paddock-window");
	if (strcmp(name, "Title") == 0)
		return g_variant_new_string("Paddock");
	if (strcmp(name, "Status") == 0)
		return g_variant_new_string(status(t));
	if (strcmp(name, "WindowId") == 0)
		return g_variant_new_int32(0);
	if (strcmp(name, "IconName") == 0) /* a name would win over the drawing, which has the number */
		return g_variant_new_string("");
	if (strcmp(name, "IconPixmap") == 0 || strcmp(name, "AttentionIconPixmap") == 0)
		return icon_pixmaps(t->pending);
	if (strcmp(name, "ToolTip") == 0)
		return g_variant_new("(sa(iiay)ss)", "", NULL, "Paddock", text);
	if (strcmp(name, "ItemIsMenu") == 0)
		return g_variant_new_boolean(FALSE);
	if (strcmp(name, "Menu") == 0)
		return g_variant_new_object_path(MENU_PATH);
	g_set_error(error, G_DBUS_ERROR, G_DBUS_ERROR_UNKNOWN_PROPERTY, "no property %s", name);
	return NULL;
}

static void on_call(GDBusConnection *bus _unused_, const char *sender _unused_, const char *path _unused_,
		    const char *interface _unused_, const char *method, GVariant *parameters _unused_,
		    GDBusMethodInvocation *call, gpointer data)
{
	struct tray *t = data;

	g_dbus_method_invocation_return_value(call, NULL);
	if (strcmp(method, "Activate") == 0)
		window_show(t->app);
	else if (strcmp(method, "SecondaryActivate") == 0)
		window_show_approvals(t->app);
}

static void emit(struct tray *t, const char *signal, GVariant *parameters)
{
	(void)g_dbus_connection_emit_signal(t->app->bus, NULL, ITEM_PATH, ITEM, signal, parameters, NULL);
}

void tray_set_pending(struct tray *t, unsigned pending)
{
	if (!t || !t->item || t->pending == pending)
		return;
	t->pending = pending;
	emit(t, "NewIcon", NULL);
	emit(t, "NewAttentionIcon", NULL);
	emit(t, "NewToolTip", NULL);
	emit(t, "NewStatus", g_variant_new("(s)", status(t)));
	menu_changed(t->app);
}

/* ---- the desktop's side ---- */

static void set_shown(struct tray *t, bool shown)
{
	t->shown = shown;
	window_tell_status(t->app);
}

static void on_hosts(GObject *source, GAsyncResult *result, gpointer data)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(GVariant) answer = g_dbus_connection_call_finish(G_DBUS_CONNECTION(source), result, &error);
	g_autoptr(GVariant) value = NULL;

	if (!answer)
		return; /* the tray may be gone, too */
	g_variant_get(answer, "(v)", &value);
	if (g_variant_is_of_type(value, G_VARIANT_TYPE_BOOLEAN))
		set_shown(data, g_variant_get_boolean(value));
}

static void ask_hosts(struct tray *t)
{
	g_dbus_connection_call(t->app->bus, WATCHER, WATCHER_PATH, "org.freedesktop.DBus.Properties", "Get",
			       g_variant_new("(ss)", WATCHER, "IsStatusNotifierHostRegistered"),
			       G_VARIANT_TYPE("(v)"), G_DBUS_CALL_FLAGS_NONE, -1, t->cancel, on_hosts, t);
}

static void on_hosts_changed(GDBusConnection *bus _unused_, const char *sender _unused_,
			     const char *path _unused_, const char *interface _unused_, const char *signal,
			     GVariant *parameters _unused_, gpointer data)
{
	if (g_str_has_prefix(signal, "StatusNotifierHost"))
		ask_hosts(data);
}

static void on_watcher(GDBusConnection *bus, const char *name _unused_, const char *owner _unused_,
		       gpointer data)
{
	struct tray *t = data;

	g_dbus_connection_call(bus, WATCHER, WATCHER_PATH, WATCHER, "RegisterStatusNotifierItem",
			       g_variant_new("(s)", g_dbus_connection_get_unique_name(bus)), NULL,
			       G_DBUS_CALL_FLAGS_NONE, -1, NULL, NULL, NULL);
	ask_hosts(t);
}

static void on_no_watcher(GDBusConnection *bus _unused_, const char *name _unused_, gpointer data)
{
	set_shown(data, false);
}

bool tray_is_shown(const struct tray *t)
{
	return t && t->shown;
}

struct tray *tray_new(struct window_app *w)
{
	static const GDBusInterfaceVTable table = { on_call, on_get, NULL, { 0 } };
	g_autoptr(GDBusNodeInfo) node = g_dbus_node_info_new_for_xml(XML, NULL);
	struct tray *t = g_new0(struct tray, 1);

	t->app = w;
	t->cancel = g_cancellable_new();
	if (!w->bus || !node)
		return t;
	t->menu = menu_export(w);
	t->item = g_dbus_connection_register_object(w->bus, ITEM_PATH, node->interfaces[0], &table, t, NULL,
						    NULL);
	if (!t->menu || !t->item)
		return t;
	t->hosts = g_dbus_connection_signal_subscribe(w->bus, WATCHER, WATCHER, NULL, WATCHER_PATH, NULL,
						      G_DBUS_SIGNAL_FLAGS_NONE, on_hosts_changed, t, NULL);
	t->watch = g_bus_watch_name_on_connection(w->bus, WATCHER, G_BUS_NAME_WATCHER_FLAGS_NONE, on_watcher,
						  on_no_watcher, t, NULL);
	return t;
}

void tray_free(struct tray *t)
{
	if (!t)
		return;
	g_cancellable_cancel(t->cancel);
	if (t->watch)
		g_bus_unwatch_name(t->watch);
	if (t->hosts)
		g_dbus_connection_signal_unsubscribe(t->app->bus, t->hosts);
	if (t->item)
		g_dbus_connection_unregister_object(t->app->bus, t->item);
	if (t->menu)
		g_dbus_connection_unregister_object(t->app->bus, t->menu);
	g_object_unref(t->cancel);
	g_free(t);
}
