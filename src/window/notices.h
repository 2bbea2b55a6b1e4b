/*
 * Notices of the desktop (org.freedesktop.Notifications) about requests for approval. They approve nothing:
 * a click on one opens the dashboard's page.
 */
#pragma once

#include "message.h"

#include "window.h"

struct notices;

struct notices *notices_new(struct window_app *w);
void notices_free(struct notices *n);
void notices_request(struct notices *n, const struct message *m);
/* Nothing waits any more: takes back those that still show. */
void notices_clear(struct notices *n);
