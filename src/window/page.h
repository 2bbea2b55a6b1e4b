/*
 * A window with the dashboard in it: WebKit's view, confined to the daemon (confine.h), and in its place a
 * page of our own while the daemon is away.
 */
#pragma once

#include "window.h"

enum page_kind { PAGE_MAIN, PAGE_APPROVALS };

struct page {
	struct window_app *app;
	enum page_kind kind;
	GtkWidget *window, *stack, *bar, *bar_text;
	GtkWidget *title, *text, *spinner, *start;
	WebKitWebView *view;
	bool loaded;
	char *failure; /* of loading it */
	guint retry;   /* the timer; 0: none */
};

/* Of all pages: nothing that they store outlives the program. */
WebKitWebContext *page_context_new(void);
struct page *page_new(struct window_app *w, enum page_kind kind);
void page_free(struct page *p);
/* Shows what the state of the application asks for. `again`: the page that is loaded counts no longer. */
void page_update(struct page *p, bool again);
const char *page_title(const struct page *p);
