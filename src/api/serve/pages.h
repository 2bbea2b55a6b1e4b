/*
 * Files for browsers that are part of this program: the dashboard and the documentation. They are compressed
 * when they are built (scripts/pages.py) and sent from where they are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "view.h"

struct http_exchange;
struct request;

struct pages_file {
	const char *path, *type, *etag; /* path NULL: the end */
	const unsigned char *gzip;
	size_t gzip_size, size; /* size: of what is compressed */
	bool lasting;           /* its name says what is in it, so browsers keep it */
};

/* The headers of every answer of a surface with pages, beside its own content security policy. */
#define PAGES_SAFETY(policy)                                                                                 \
	{ VIEW("content-security-policy"), VIEW(policy) },                                                   \
		{ VIEW("x-content-type-options"), VIEW("nosniff") },                                         \
		{ VIEW("x-frame-options"), VIEW("DENY") }, { VIEW("referrer-policy"), VIEW("no-referrer") }, \
		{ VIEW("cross-origin-opener-policy"), VIEW("same-origin") },                                 \
		{ VIEW("cross-origin-resource-policy"), VIEW("same-origin") },                               \
	{                                                                                                    \
		VIEW("permissions-policy"),                                                                  \
			VIEW("camera=(), microphone=(), geolocation=(), payment=(), usb=()")                 \
	}

const struct pages_file *pages_find(const struct pages_file *files, struct view path);
/* Whether whoever asks takes HTML by name, as browsers do. */
bool pages_is_browser(const struct http_exchange *x);
/* Sends it with the surface's headers, or that the browser has it already. Ends the request. */
void pages_send(struct request *r, int status, const struct pages_file *f);
