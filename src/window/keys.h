/*
 * The keys of a window: back, forward, reload, zoom, quit. Terminals in the page have all others, Ctrl+W and
 * Ctrl+R among them.
 */
#pragma once

#include "page.h"

void keys_add(struct page *p);
