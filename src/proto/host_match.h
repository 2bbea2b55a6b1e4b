/*
 * Which hosts a pattern of a policy, a grant or a token means. The only place that knows: what one program
 * lets pass, another must not refuse.
 */
#pragma once

#include <stdbool.h>

#include "view.h"

/*
 * "a.example" is that name, "*.example" every name below it but not itself, "*" every name. Case and a dot at
 * the end do not count (RFC 4343, RFC 1034). What is empty matches nothing. `host` may be such a pattern,
 * too: then it is whether all that `host` matches, `pattern` matches.
 */
bool host_match(struct view pattern, struct view host);
