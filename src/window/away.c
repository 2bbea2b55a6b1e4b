/*
 * See away.h. Texts come from elsewhere and are shown as text, never as markup.
 */
#include "away.h"

#include "link.h"
#include "starter.h"

#include "poison.h"

static void on_start(GtkButton *button _unused_, struct page *p)
{
	starter_ask(p->app);
}

static void on_again(GtkButton *button _unused_, struct page *p)
{
	link_send(p->app->link, "again");
}

static GtkWidget *label_new(const char *class)
{
	GtkWidget *label = gtk_label_new(NULL);

	gtk_label_set_line_wrap(GTK_LABEL(label), TRUE);
	gtk_label_set_selectable(GTK_LABEL(label), TRUE);
	gtk_label_set_max_width_chars(GTK_LABEL(label), 64);
	gtk_label_set_justify(GTK_LABEL(label), GTK_JUSTIFY_CENTER);
	if (class)
		gtk_style_context_add_class(gtk_widget_get_style_context(label), class);
	return label;
}

GtkWidget *away_new(struct page *p)
{
	GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 12);
	GtkWidget *buttons = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 12);
	GtkWidget *again = gtk_button_new_with_label("Try again");

	p->title = label_new("large-title");
	p->text = label_new(NULL);
	p->spinner = gtk_spinner_new();
	p->start = gtk_button_new_with_label("Start the daemon");
	gtk_style_context_add_class(gtk_widget_get_style_context(p->start), "suggested-action");
	gtk_widget_set_no_show_all(p->start, TRUE);
	gtk_widget_set_halign(buttons, GTK_ALIGN_CENTER);
	gtk_widget_set_valign(box, GTK_ALIGN_CENTER);
	gtk_widget_set_halign(box, GTK_ALIGN_CENTER);
	gtk_container_set_border_width(GTK_CONTAINER(box), 32);
	gtk_container_add(GTK_CONTAINER(buttons), again);
	gtk_container_add(GTK_CONTAINER(buttons), p->start);
	gtk_container_add(GTK_CONTAINER(box), p->title);
	gtk_container_add(GTK_CONTAINER(box), p->text);
	gtk_container_add(GTK_CONTAINER(box), p->spinner);
	gtk_container_add(GTK_CONTAINER(box), buttons);
	g_signal_connect(again, "clicked", G_CALLBACK(on_again), p);
	g_signal_connect(p->start, "clicked", G_CALLBACK(on_start), p);
	gtk_widget_show_all(box);
	return box;
}

void away_update(struct page *p)
{
	struct window_app *w = p->app;
	const char *why = p->failure ? p->failure : w->why ? w->why : "";
	g_autofree char *text = NULL;

	if (w->here && p->loaded) {
		gtk_spinner_stop(GTK_SPINNER(p->spinner));
		return;
	}
	text = g_strdup_printf("%s\n\n%s", why,
			       w->start_note ? w->start_note
					     : "The window comes back by itself when the daemon answers.");
	gtk_label_set_text(GTK_LABEL(p->title),
			   w->told ? "The daemon is not reachable" : "Looking for the daemon…");
	gtk_label_set_text(GTK_LABEL(p->text), w->told ? text : "");
	gtk_widget_set_visible(p->start, w->may_start);
	gtk_spinner_start(GTK_SPINNER(p->spinner));
}
