/*
 * Sandkasten's HTTP API: /v1/sessions and the files of /v1/workspaces. A session is a sandbox with a
 * stateful shell, whose time to live begins anew with each use.
 *
 * Where /v1/workspaces is Paddock's own path too (the list and the removal), Sandkasten's form is
 * served by a listener that is bound to this dialect; docs/sandkasten.md says what differs.
 */
#pragma once

#include "dialect.h"

extern const struct dialect sandkasten_dialect;
