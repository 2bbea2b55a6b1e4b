/*
 * Where the window may go. The dashboard runs in it with a session, so it shows pages of the daemon's own
 * origin and of those only the dashboard and the documents: other addresses below the same origin are data of
 * sandboxes. Addresses are expected as WebKit writes them: lower case, without "..", without default ports.
 */
#pragma once

#include "err.h"
#include "view.h"

enum confine {
	CONFINE_REFUSE,
	CONFINE_SHOW,  /* in the window itself */
	CONFINE_FRAME, /* below a page, never as the page: the preview of a port, in a frame without rights */
	CONFINE_DOWNLOAD, /* to a file */
	CONFINE_BROWSER,  /* elsewhere: a matter for the user's browser */
};

#define CONFINE_ORIGIN_MAX 300

/* "https://host:443/" as a page of it would write it: "https://host". ERR_INVALID. */
int confine_origin(struct view url, char ret[CONFINE_ORIGIN_MAX], struct err *e) _must_check_;
enum confine confine_decide(struct view origin, struct view uri);
