/*
 * See window.h: which windows there are, and when.
 */
#include "json.h"

#include "window.h"

#include "page.h"
#include "tray.h"

#include "poison.h"

void window_tell_status(struct window_app *w)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(65536);
	struct json_out o;

	if (!w->status)
		return;
	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_kz(&o, "state", w->here ? "here" : w->told ? "away" : "looking");
	json_out_kz(&o, "url", w->origin[0] ? w->origin : NULL);
	json_out_kbool(&o, "signed_in", w->here && w->signed_in);
	json_out_ku64(&o, "sessions", w->sessions); /* so far */
	json_out_ku64(&o, "pending", w->pending);
	json_out_kz(&o, "title", w->main ? page_title(w->main) : NULL);
	json_out_kz(&o, "approvals", w->approvals ? page_title(w->approvals) : NULL);
	json_out_kbool(&o, "visible", w->main && gtk_widget_get_visible(w->main->window));
	json_out_kz(&o, "start", w->here ? NULL : w->start_note); /* what came of starting the daemon */
	json_out_kbool(&o, "tray", tray_is_shown(w->tray));
	json_out_end(&o, '}');
	buf_putc(&b, '\0');
	if (!b.bad)
		g_simple_action_set_state(w->status, g_variant_new_string(b.p));
}

void window_show(struct window_app *w)
{
	if (!w->main)
		w->main = page_new(w, PAGE_MAIN);
	gtk_window_present(GTK_WINDOW(w->main->window));
	window_tell_status(w);
}

/* Nothing is approved without the dashboard's page: this shows it. */
void window_show_approvals(struct window_app *w)
{
	if (!w->approvals)
		w->approvals = page_new(w, PAGE_APPROVALS);
	gtk_widget_show(w->approvals->window);
	gtk_window_set_urgency_hint(GTK_WINDOW(w->approvals->window), TRUE);
	window_tell_status(w);
}

void window_close(struct window_app *w)
{
	if (!tray_is_shown(w->tray)) {
		window_quit(w);
		return;
	}
	gtk_widget_hide(w->main->window);
	window_tell_status(w);
}

void window_quit(struct window_app *w)
{
	page_free(w->approvals);
	page_free(w->main);
	w->approvals = w->main = NULL;
	g_application_quit(G_APPLICATION(w->gtk));
}
