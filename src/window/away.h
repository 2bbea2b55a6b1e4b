/*
 * The page in place of the dashboard while the daemon is away: why, what to do, and a button for it.
 */
#pragma once

#include "page.h"

GtkWidget *away_new(struct page *p);
void away_update(struct page *p);
