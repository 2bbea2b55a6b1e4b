/*
 * See page.h. The dashboard runs here with the user's session, so what its view may do is decided here and
 * nowhere else: it goes nowhere but to the dashboard and its documents, asks for no permission, reads no
 * files, and trusts no certificate that the command line would not trust.
 */
#include "page.h"

#include "away.h"
#include "external.h"
#include "geometry.h"
#include "keys.h"

#include "poison.h"

#define RETRY_MS 1000

/* Scripts take the first for a language's tag: "C", which systems without a locale have, is none, and breaks
 * them. */
static void set_languages(WebKitWebContext *c)
{
	g_autoptr(GPtrArray) tags = g_ptr_array_new();
	const char *const *names = g_get_language_names();

	for (size_t i = 0; names[i]; i++)
		if (strlen(names[i]) > 1 && strcmp(names[i], "POSIX") != 0 && !strpbrk(names[i], ".@"))
			g_ptr_array_add(tags, (gpointer)names[i]);
	if (!tags->len)
		g_ptr_array_add(tags, (gpointer) "en_US");
	g_ptr_array_add(tags, NULL);
	webkit_web_context_set_preferred_languages(c, (const char *const *)tags->pdata);
}

WebKitWebContext *page_context_new(void)
{
	WebKitWebContext *c = webkit_web_context_new_ephemeral();

	/* The processes that read pages see nothing of the user's files. */
	webkit_web_context_set_sandbox_enabled(c, TRUE);
	webkit_web_context_set_spell_checking_enabled(c, FALSE);
	set_languages(c);
	webkit_website_data_manager_set_network_proxy_settings(webkit_web_context_get_website_data_manager(c),
							       WEBKIT_NETWORK_PROXY_MODE_NO_PROXY, NULL);
	webkit_cookie_manager_set_accept_policy(webkit_web_context_get_cookie_manager(c),
						WEBKIT_COOKIE_POLICY_ACCEPT_NO_THIRD_PARTY);
	return c;
}

static WebKitSettings *settings_new(bool devtools)
{
	WebKitSettings *s = webkit_settings_new();

	webkit_settings_set_enable_developer_extras(s, devtools);
	webkit_settings_set_allow_file_access_from_file_urls(s, FALSE);
	webkit_settings_set_allow_universal_access_from_file_urls(s, FALSE);
	/* The dashboard opens ports of sandboxes this way. Where to is decided below, and frames may not. */
	webkit_settings_set_javascript_can_open_windows_automatically(s, TRUE);
	webkit_settings_set_javascript_can_access_clipboard(s, TRUE); /* "Copy" */
	webkit_settings_set_enable_webrtc(s, FALSE);
	webkit_settings_set_enable_media_stream(s, FALSE);
	webkit_settings_set_enable_page_cache(s, FALSE);
	/* The dashboard needs no GPU, and WebKit waits seconds for one where there is none. */
	webkit_settings_set_hardware_acceleration_policy(s, WEBKIT_HARDWARE_ACCELERATION_POLICY_NEVER);
	webkit_settings_set_enable_webgl(s, FALSE);
	return s;
}

/* ---- where it goes ---- */

static struct view own(const struct page *p)
{
	return view_of(p->app->origin);
}

static enum confine decide(const struct page *p, const char *uri)
{
	return confine_decide(own(p), view_of(uri ? uri : ""));
}

/* What was meant for another window: a page of ours takes this one, a port of a sandbox goes to the user's
 * browser, which has no session. */
static void open_apart(struct page *p, const char *uri)
{
	enum confine where = decide(p, uri);

	if (where == CONFINE_SHOW)
		webkit_web_view_load_uri(p->view, uri);
	else if (where == CONFINE_BROWSER || (where == CONFINE_FRAME && !g_str_has_prefix(uri, "about:")))
		external_open(uri);
}

static void decide_navigation(struct page *p, WebKitPolicyDecision *d)
{
	WebKitNavigationAction *a =
		webkit_navigation_policy_decision_get_navigation_action(WEBKIT_NAVIGATION_POLICY_DECISION(d));
	const char *uri = webkit_uri_request_get_uri(webkit_navigation_action_get_request(a));

	switch (decide(p, uri)) {
	case CONFINE_SHOW:
	case CONFINE_FRAME:
		webkit_policy_decision_use(d);
		break;
	case CONFINE_DOWNLOAD:
		webkit_policy_decision_download(d);
		break;
	case CONFINE_BROWSER:
		if (webkit_navigation_action_is_user_gesture(a)) /* no page starts browsers on its own */
			external_open(uri);
		webkit_policy_decision_ignore(d);
		break;
	case CONFINE_REFUSE:
		webkit_policy_decision_ignore(d);
		break;
	}
}

static void decide_new_window(struct page *p, WebKitPolicyDecision *d)
{
	WebKitNavigationAction *a =
		webkit_navigation_policy_decision_get_navigation_action(WEBKIT_NAVIGATION_POLICY_DECISION(d));

	open_apart(p, webkit_uri_request_get_uri(webkit_navigation_action_get_request(a)));
	webkit_policy_decision_ignore(d);
}

/* WebKit does not say of a navigation whether it is a frame's; of an answer it does. */
static void decide_response(struct page *p, WebKitPolicyDecision *d)
{
	WebKitResponsePolicyDecision *r = WEBKIT_RESPONSE_POLICY_DECISION(d);
	const char *uri = webkit_uri_response_get_uri(webkit_response_policy_decision_get_response(r));
	enum confine where = decide(p, uri);
	bool whole = webkit_response_policy_decision_is_main_frame_main_resource(r);

	if (where == CONFINE_DOWNLOAD)
		webkit_policy_decision_download(d);
	else if ((where == CONFINE_SHOW || (where == CONFINE_FRAME && !whole)) &&
		 webkit_response_policy_decision_is_mime_type_supported(r))
		webkit_policy_decision_use(d);
	else
		webkit_policy_decision_ignore(d);
}

static gboolean on_decide(WebKitWebView *view _unused_, WebKitPolicyDecision *d,
			  WebKitPolicyDecisionType type, struct page *p)
{
	switch (type) {
	case WEBKIT_POLICY_DECISION_TYPE_NAVIGATION_ACTION:
		decide_navigation(p, d);
		break;
	case WEBKIT_POLICY_DECISION_TYPE_NEW_WINDOW_ACTION:
		decide_new_window(p, d);
		break;
	case WEBKIT_POLICY_DECISION_TYPE_RESPONSE:
		decide_response(p, d);
		break;
	}
	return TRUE;
}

/* ---- what it asks for ---- */

static gboolean on_permission(WebKitWebView *view _unused_, WebKitPermissionRequest *r,
			      struct page *p _unused_)
{
	webkit_permission_request_deny(r);
	return TRUE;
}

/* Scripts ask for windows here, links in on_decide. Neither gets one. */
static GtkWidget *on_create(WebKitWebView *view _unused_, WebKitNavigationAction *a, struct page *p)
{
	open_apart(p, webkit_uri_request_get_uri(webkit_navigation_action_get_request(a)));
	return NULL;
}

/* The authority of --ca signs the daemon's certificate, as for the command line. */
static gboolean on_bad_certificate(WebKitWebView *view, char *uri, GTlsCertificate *certificate,
				   GTlsCertificateFlags errors _unused_, struct page *p)
{
	g_autoptr(GUri) u = g_uri_parse(uri, G_URI_FLAGS_NONE, NULL);
	g_autoptr(GTlsCertificate) authority =
		p->app->ca[0] ? g_tls_certificate_new_from_file(p->app->ca, NULL) : NULL;
	g_autoptr(GSocketConnectable) host = NULL;

	if (!u || !authority || decide(p, uri) != CONFINE_SHOW)
		return FALSE;
	host = g_network_address_new(g_uri_get_host(u), 443);
	if (g_tls_certificate_verify(certificate, host, authority) != 0)
		return FALSE;
	webkit_web_context_allow_tls_certificate_for_host(p->app->web, certificate, g_uri_get_host(u));
	webkit_web_view_load_uri(view, uri);
	return TRUE;
}

static gboolean on_retry(gpointer data)
{
	struct page *p = data;

	p->retry = 0;
	page_update(p, false);
	return G_SOURCE_REMOVE;
}

/* paddock-watch says whether the daemon is there; WebKit's own page about it helps nobody. */
static gboolean on_failed(WebKitWebView *view _unused_, WebKitLoadEvent event _unused_, char *uri _unused_,
			  GError *error, struct page *p)
{
	if (g_error_matches(error, WEBKIT_POLICY_ERROR,
			    WEBKIT_POLICY_ERROR_FRAME_LOAD_INTERRUPTED_BY_POLICY_CHANGE) ||
	    g_error_matches(error, WEBKIT_NETWORK_ERROR, WEBKIT_NETWORK_ERROR_CANCELLED))
		return TRUE;
	p->loaded = false;
	g_free(p->failure);
	p->failure = g_strdup(error->message);
	if (!p->retry)
		p->retry = g_timeout_add(RETRY_MS, on_retry, p);
	page_update(p, false);
	return TRUE;
}

static void on_crashed(WebKitWebView *view _unused_, WebKitWebProcessTerminationReason reason _unused_,
		       struct page *p)
{
	p->loaded = false;
	page_update(p, true);
}

static void on_title(WebKitWebView *view, GParamSpec *spec _unused_, struct page *p)
{
	const char *title = webkit_web_view_get_title(view);

	gtk_window_set_title(GTK_WINDOW(p->window), title && *title ? title : "Paddock");
	window_tell_status(p->app);
}

/* ---- the window around it ---- */

static gboolean on_delete(GtkWidget *window _unused_, GdkEvent *event _unused_, struct page *p)
{
	struct window_app *w = p->app;

	if (p->kind == PAGE_APPROVALS) {
		w->approvals = NULL;
		page_free(p);
		window_tell_status(w);
	} else {
		window_close(w);
	}
	return TRUE;
}

static GtkWidget *bar_new(struct page *p)
{
	p->bar = gtk_info_bar_new();
	p->bar_text = gtk_label_new(NULL);
	gtk_label_set_line_wrap(GTK_LABEL(p->bar_text), TRUE);
	gtk_label_set_xalign(GTK_LABEL(p->bar_text), 0);
	gtk_container_add(GTK_CONTAINER(gtk_info_bar_get_content_area(GTK_INFO_BAR(p->bar))), p->bar_text);
	gtk_info_bar_set_message_type(GTK_INFO_BAR(p->bar), GTK_MESSAGE_WARNING);
	gtk_widget_show(p->bar_text);
	gtk_widget_set_no_show_all(p->bar, TRUE);
	return p->bar;
}

static WebKitWebView *view_new(struct page *p)
{
	g_autoptr(WebKitSettings) settings = settings_new(p->app->devtools);
	WebKitWebView *view = WEBKIT_WEB_VIEW(
		g_object_new(WEBKIT_TYPE_WEB_VIEW, "web-context", p->app->web, "settings", settings, NULL));

	g_signal_connect(view, "decide-policy", G_CALLBACK(on_decide), p);
	g_signal_connect(view, "permission-request", G_CALLBACK(on_permission), p);
	g_signal_connect(view, "create", G_CALLBACK(on_create), p);
	g_signal_connect(view, "load-failed", G_CALLBACK(on_failed), p);
	g_signal_connect(view, "load-failed-with-tls-errors", G_CALLBACK(on_bad_certificate), p);
	g_signal_connect(view, "web-process-terminated", G_CALLBACK(on_crashed), p);
	g_signal_connect(view, "notify::title", G_CALLBACK(on_title), p);
	return view;
}

static void put_window(struct page *p)
{
	GtkWindow *window = GTK_WINDOW(p->window);

	gtk_window_set_title(window, "Paddock");
	gtk_window_set_icon_name(window, WINDOW_ID);
	if (p->kind == PAGE_MAIN) {
		geometry_restore(window);
		return;
	}
	/* It must be seen, and must not take the keys that are being typed into another window. */
	gtk_window_set_default_size(window, 720, 860);
	gtk_window_set_keep_above(window, TRUE);
	gtk_window_set_focus_on_map(window, FALSE);
	gtk_window_set_urgency_hint(window, TRUE);
	gtk_window_stick(window);
}

struct page *page_new(struct window_app *w, enum page_kind kind)
{
	struct page *p = g_new0(struct page, 1);
	GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0);

	p->app = w;
	p->kind = kind;
	p->window = gtk_application_window_new(w->gtk);
	p->view = view_new(p);
	p->stack = gtk_stack_new();
	put_window(p);
	gtk_stack_add_named(GTK_STACK(p->stack), away_new(p), "away");
	gtk_stack_add_named(GTK_STACK(p->stack), GTK_WIDGET(p->view), "here");
	gtk_box_pack_start(GTK_BOX(box), bar_new(p), FALSE, FALSE, 0);
	gtk_box_pack_start(GTK_BOX(box), p->stack, TRUE, TRUE, 0);
	gtk_container_add(GTK_CONTAINER(p->window), box);
	gtk_widget_show_all(box);
	g_signal_connect(p->window, "delete-event", G_CALLBACK(on_delete), p);
	keys_add(p);
	page_update(p, true);
	return p;
}

void page_free(struct page *p)
{
	if (!p)
		return;
	if (p->kind == PAGE_MAIN)
		geometry_save(GTK_WINDOW(p->window));
	if (p->retry)
		g_source_remove(p->retry);
	g_signal_handlers_disconnect_by_data(p->view, p);
	gtk_widget_destroy(p->window);
	g_free(p->failure);
	g_free(p);
}

void page_update(struct page *p, bool again)
{
	struct window_app *w = p->app;

	if (w->here && !p->retry && (again || !p->loaded)) {
		g_autofree char *home =
			g_strconcat(w->origin, p->kind == PAGE_MAIN ? "/" : WINDOW_APPROVALS, NULL);
		const char *at = webkit_web_view_get_uri(p->view);

		/* Back to where the user was. */
		if (at && decide(p, at) == CONFINE_SHOW && p->loaded)
			webkit_web_view_reload(p->view);
		else
			webkit_web_view_load_uri(p->view, home);
		p->loaded = true;
		g_clear_pointer(&p->failure, g_free);
	}
	gtk_label_set_text(GTK_LABEL(p->bar_text), w->why ? w->why : "");
	gtk_widget_set_visible(p->bar, w->here && !w->signed_in && w->why);
	away_update(p);
	gtk_stack_set_visible_child_name(GTK_STACK(p->stack), w->here && p->loaded ? "here" : "away");
	if (!w->here)
		gtk_window_set_title(GTK_WINDOW(p->window), "Paddock is not reachable");
	else
		on_title(p->view, NULL, p);
}

const char *page_title(const struct page *p)
{
	return gtk_window_get_title(GTK_WINDOW(p->window));
}
