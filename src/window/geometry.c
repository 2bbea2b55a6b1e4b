/*
 * See geometry.h. Where a window is placed is the desktop's business.
 */
#include "geometry.h"

#include "poison.h"

#define GROUP "window"

static char *place(void)
{
	return g_build_filename(g_get_user_state_dir(), "paddock", "window", NULL);
}

void geometry_restore(GtkWindow *window)
{
	g_autoptr(GKeyFile) file = g_key_file_new();
	g_autofree char *path = place();
	int width = 1280, height = 860;

	if (g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, NULL)) {
		width = g_key_file_get_integer(file, GROUP, "width", NULL);
		height = g_key_file_get_integer(file, GROUP, "height", NULL);
		if (g_key_file_get_boolean(file, GROUP, "maximized", NULL))
			gtk_window_maximize(window);
	}
	gtk_window_set_default_size(window, CLAMP(width, 360, 16000), CLAMP(height, 360, 16000));
}

void geometry_save(GtkWindow *window)
{
	g_autoptr(GKeyFile) file = g_key_file_new();
	g_autofree char *path = place(), *dir = g_path_get_dirname(path);
	bool maximized = gtk_window_is_maximized(window);
	int width = 0, height = 0;

	gtk_window_get_size(window, &width, &height);
	/* Of a maximized window the size before is kept. */
	if (maximized && g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, NULL))
		width = height = 0;
	if (width > 0 && height > 0) {
		g_key_file_set_integer(file, GROUP, "width", width);
		g_key_file_set_integer(file, GROUP, "height", height);
	}
	g_key_file_set_boolean(file, GROUP, "maximized", maximized);
	if (g_mkdir_with_parents(dir, 0700) == 0)
		(void)g_key_file_save_to_file(file, path, NULL);
}
