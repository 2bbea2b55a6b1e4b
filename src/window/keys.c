/*
 * See keys.h.
 */
#include "defs.h"

#include "keys.h"

#include "poison.h"

static void on_back(GSimpleAction *a _unused_, GVariant *v _unused_, gpointer data)
{
	webkit_web_view_go_back(((struct page *)data)->view);
}

static void on_forward(GSimpleAction *a _unused_, GVariant *v _unused_, gpointer data)
{
	webkit_web_view_go_forward(((struct page *)data)->view);
}

static void on_reload(GSimpleAction *a _unused_, GVariant *v _unused_, gpointer data)
{
	struct page *p = data;

	if (p->loaded)
		webkit_web_view_reload(p->view);
}

static void on_quit(GSimpleAction *a _unused_, GVariant *v _unused_, gpointer data)
{
	window_quit(((struct page *)data)->app);
}

static void zoom(struct page *p, double factor)
{
	double level = factor > 0 ? webkit_web_view_get_zoom_level(p->view) * factor : 1;

	webkit_web_view_set_zoom_level(p->view, CLAMP(level, 0.3, 4));
}

static void on_larger(GSimpleAction *a _unused_, GVariant *v _unused_, gpointer data)
{
	zoom(data, 1.1);
}

static void on_smaller(GSimpleAction *a _unused_, GVariant *v _unused_, gpointer data)
{
	zoom(data, 1 / 1.1);
}

static void on_normal(GSimpleAction *a _unused_, GVariant *v _unused_, gpointer data)
{
	zoom(data, 0);
}

static const GActionEntry ACTIONS[] = {
	{ "back", on_back },     { "forward", on_forward }, { "reload", on_reload }, { "quit", on_quit },
	{ "larger", on_larger }, { "smaller", on_smaller }, { "normal", on_normal },
};

static const struct {
	const char *action;
	const char *keys[3];
} KEYS[] = {
	{ "win.back", { "<Alt>Left" } },
	{ "win.forward", { "<Alt>Right" } },
	{ "win.reload", { "<Control><Shift>r" } },
	{ "win.quit", { "<Control><Shift>q" } },
	{ "win.larger", { "<Control>plus", "<Control>KP_Add" } },
	{ "win.smaller", { "<Control>minus", "<Control>KP_Subtract" } },
	{ "win.normal", { "<Control>0", "<Control>KP_0" } },
};

void keys_add(struct page *p)
{
	g_action_map_add_action_entries(G_ACTION_MAP(p->window), ACTIONS, ELEMS(ACTIONS), p);
	for (size_t i = 0; i < ELEMS(KEYS); i++)
		gtk_application_set_accels_for_action(p->app->gtk, KEYS[i].action, KEYS[i].keys);
}
