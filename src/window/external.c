/*
 * See external.h.
 */
#include "window.h"

#include "external.h"

#include "poison.h"

void external_open(const char *uri)
{
	const char *const argv[] = { "xdg-open", uri, NULL };
	g_autoptr(GError) error = NULL;
	g_autoptr(GSubprocess) process = g_subprocess_newv(
		argv, G_SUBPROCESS_FLAGS_STDOUT_SILENCE | G_SUBPROCESS_FLAGS_STDERR_SILENCE, &error);

	if (!process)
		g_warning("xdg-open: %s", error->message);
	else
		g_subprocess_wait_async(process, NULL, NULL, NULL); /* so that it is reaped */
}
