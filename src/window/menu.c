/*
 * See menu.h. The menu never changes but for the number in one label, so there is one level and nothing to
 * prepare.
 */
#include "defs.h"

#include "menu.h"

#include "poison.h"

#define INTERFACE "com.canonical.dbusmenu"

static const char XML[] =
	"<node><interface name='" INTERFACE "'>"
	"<property name='Version' type='u' access='read'/>"
	"<property name='TextDirection' type='s' access='read'/>"
	"<property name='Status' type='s' access='read'/>"
	"<property name='IconThemePath' type='as' access='read'/>"
	"<method name='GetLayout'><arg type='i' direction='in'/><arg type='i' direction='in'/>"
	"<arg type='as' direction='in'/><arg type='u' direction='out'/>"
	"<arg type='(ia{sv}av)' direction='out'/></method>"
	"<method name='GetGroupProperties'><arg type='ai' direction='in'/><arg type='as' direction='in'/>"
	"<arg type='a(ia{sv})' direction='out'/></method>"
	"<method name='GetProperty'><arg type='i' direction='in'/><arg type='s' direction='in'/>"
	"<arg type='v' direction='out'/></method>"
	"<method name='Event'><arg type='i' direction='in'/><arg type='s' direction='in'/>"
	"<arg type='v' direction='in'/><arg type='u' direction='in'/></method>"
	"<method name='EventGroup'><arg type='a(isvu)' direction='in'/><arg type='ai' "
	"direction='out'/></method>"
	"<method name='AboutToShow'><arg type='i' direction='in'/><arg type='b' direction='out'/></method>"
	"<method name='AboutToShowGroup'><arg type='ai' direction='in'/><arg type='ai' direction='out'/>"
	"<arg type='ai' direction='out'/></method>"
	"<signal name='ItemsPropertiesUpdated'><arg type='a(ia{sv})'/><arg type='a(ias)'/></signal>"
	"<signal name='LayoutUpdated'><arg type='u'/><arg type='i'/></signal>"
	"</interface></node>";

enum { ITEM_ROOT, ITEM_OPEN, ITEM_APPROVALS, ITEM_LINE, ITEM_QUIT, ITEMS };

static void act(struct window_app *w, int item, const char *event)
{
	if (strcmp(event, "clicked") != 0)
		return;
	if (item == ITEM_OPEN)
		window_show(w);
	else if (item == ITEM_APPROVALS)
		window_show_approvals(w);
	else if (item == ITEM_QUIT)
		window_quit(w);
}

static GVariant *properties(const struct window_app *w, int item)
{
	GVariantBuilder b;

	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	if (item == ITEM_ROOT)
		g_variant_builder_add(&b, "{sv}", "children-display", g_variant_new_string("submenu"));
	else if (item == ITEM_OPEN)
		g_variant_builder_add(&b, "{sv}", "label", g_variant_new_string("Open Paddock"));
	else if (item == ITEM_APPROVALS && w->pending)
		g_variant_builder_add(&b, "{sv}", "label",
				      g_variant_new_printf("Approvals (%u)", w->pending));
	else if (item == ITEM_APPROVALS)
		g_variant_builder_add(&b, "{sv}", "label", g_variant_new_string("Approvals"));
	else if (item == ITEM_LINE)
		g_variant_builder_add(&b, "{sv}", "type", g_variant_new_string("separator"));
	else if (item == ITEM_QUIT)
		g_variant_builder_add(&b, "{sv}", "label", g_variant_new_string("Quit"));
	return g_variant_builder_end(&b);
}

static GVariant *layout(const struct window_app *w, int parent, int depth)
{
	GVariantBuilder children;

	g_variant_builder_init(&children, G_VARIANT_TYPE("av"));
	for (int i = ITEM_OPEN; parent == ITEM_ROOT && depth != 0 && i < ITEMS; i++)
		g_variant_builder_add(&children, "v",
				      g_variant_new("(i@a{sv}av)", i, properties(w, i), NULL));
	return g_variant_new("(u(i@a{sv}av))", w->menu_revision, parent, properties(w, parent), &children);
}

static GVariant *group(const struct window_app *w, GVariant *parameters)
{
	g_autoptr(GVariantIter) ids = NULL, names = NULL;
	GVariantBuilder all;
	bool any = false;
	int id;

	g_variant_get(parameters, "(aias)", &ids, &names);
	g_variant_builder_init(&all, G_VARIANT_TYPE("a(ia{sv})"));
	while (g_variant_iter_next(ids, "i", &id)) {
		any = true;
		if (id >= ITEM_ROOT && id < ITEMS)
			g_variant_builder_add(&all, "(i@a{sv})", id, properties(w, id));
	}
	for (id = ITEM_ROOT; !any && id < ITEMS; id++)
		g_variant_builder_add(&all, "(i@a{sv})", id, properties(w, id));
	return g_variant_new("(a(ia{sv}))", &all);
}

static GVariant *one(const struct window_app *w, GVariant *parameters)
{
	g_autoptr(GVariant) all = NULL, value = NULL;
	const char *name;
	int id;

	g_variant_get(parameters, "(i&s)", &id, &name);
	all = g_variant_ref_sink(properties(w, id));
	value = g_variant_lookup_value(all, name, NULL);
	return g_variant_new("(v)", value ? value : g_variant_new_string(""));
}

static void act_all(struct window_app *w, GVariant *parameters)
{
	g_autoptr(GVariantIter) events = NULL;
	GVariant *data;
	const char *event;
	guint32 when;
	int id;

	g_variant_get(parameters, "(a(isvu))", &events);
	while (g_variant_iter_next(events, "(i&s@vu)", &id, &event, &data, &when)) {
		act(w, id, event);
		g_variant_unref(data);
	}
}

static void on_call(GDBusConnection *bus _unused_, const char *sender _unused_, const char *path _unused_,
		    const char *interface _unused_, const char *method, GVariant *parameters,
		    GDBusMethodInvocation *call, gpointer data)
{
	struct window_app *w = data;
	GVariant *answer = NULL;

	if (strcmp(method, "GetLayout") == 0) {
		int parent, depth;

		g_variant_get(parameters, "(iias)", &parent, &depth, NULL);
		answer = layout(w, parent, depth);
	} else if (strcmp(method, "GetGroupProperties") == 0) {
		answer = group(w, parameters);
	} else if (strcmp(method, "GetProperty") == 0) {
		answer = one(w, parameters);
	} else if (strcmp(method, "AboutToShow") == 0) {
		answer = g_variant_new("(b)", FALSE);
	} else if (strcmp(method, "AboutToShowGroup") == 0) {
		answer = g_variant_new("(aiai)", NULL, NULL);
	} else if (strcmp(method, "EventGroup") == 0) {
		answer = g_variant_new("(ai)", NULL);
	}
	g_dbus_method_invocation_return_value(call, answer);
	/* Answered first: "quit" ends the program. */
	if (strcmp(method, "Event") == 0) {
		g_autoptr(GVariant) id = g_variant_get_child_value(parameters, 0);
		g_autoptr(GVariant) event = g_variant_get_child_value(parameters, 1);

		act(w, g_variant_get_int32(id), g_variant_get_string(event, NULL));
	} else if (strcmp(method, "EventGroup") == 0) {
		act_all(w, parameters);
	}
}

static GVariant *on_get(GDBusConnection *bus _unused_, const char *sender _unused_, const char *path _unused_,
			const char *interface _unused_, const char *name, GError **error _unused_,
			gpointer data _unused_)
{
	if (strcmp(name, "Version") == 0)
		return g_variant_new_uint32(3);
	if (strcmp(name, "IconThemePath") == 0)
		return g_variant_new_strv(NULL, 0);
	return g_variant_new_string(strcmp(name, "Status") == 0 ? "normal" : "ltr");
}

guint menu_export(struct window_app *w)
{
	static const GDBusInterfaceVTable table = { on_call, on_get, NULL, { 0 } };
	g_autoptr(GDBusNodeInfo) node = g_dbus_node_info_new_for_xml(XML, NULL);

	return node ? g_dbus_connection_register_object(w->bus, MENU_PATH, node->interfaces[0], &table, w,
							NULL, NULL)
		    : 0;
}

void menu_changed(struct window_app *w)
{
	(void)g_dbus_connection_emit_signal(w->bus, NULL, MENU_PATH, INTERFACE, "LayoutUpdated",
					    g_variant_new("(ui)", ++w->menu_revision, ITEM_ROOT), NULL);
}
