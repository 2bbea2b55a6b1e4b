/*
 * paddock-watch, the program that holds the key and talks to the daemon: started, read, and started again
 * when it ends.
 */
#pragma once

#include "window.h"

struct link;

/* `options` are those that name the daemon, NULL at the end; `environment` has the user's PADDOCK_ variables.
 */
struct link *link_new(struct window_app *w, const char *const *options, char **environment);
void link_free(struct link *l);
void link_send(struct link *l, const char *word);
