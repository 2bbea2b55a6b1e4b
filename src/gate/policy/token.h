/*
 * Tokens of the proxy port: see token.c.
 */
#pragma once

#include "view.h"

/* "Basic ..." with sandbox:jwt_...: whether it holds, and names the host. */
bool token_allows(struct view key, struct view header, struct view host, int64_t now_s);
