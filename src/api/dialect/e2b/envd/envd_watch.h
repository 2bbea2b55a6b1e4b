/*
 * The filesystem service's four methods that watch.
 */
#pragma once

#include "envd_impl.h"

void envd_watch_dir(struct request *c, const void *request);
void envd_create_watcher(struct request *c, const void *request);
void envd_get_watcher_events(struct request *c, const void *request);
void envd_remove_watcher(struct request *c, const void *request);
