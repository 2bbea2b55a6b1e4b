/*
 * E2B's in-sandbox daemon, as its clients see it on port 49983 of a box: the
 * services of api/e2b over Connect, /files and a few plain paths. All of it
 * happens here, in the api; in the box there is nothing but PID 1.
 */
#pragma once

#include "dialect.h"

extern const struct surface envd_surface;
/* dialect_port.find, .proves, .anyway */
struct view envd_find(const struct http_exchange *x, struct core *c);
bool envd_proves(const struct http_exchange *x, const struct core *c, const struct box *b);
bool envd_preflight(struct http_exchange *x);
/* The login shell of a new box's first command, which clients run next. It starts with the box
 * (box_wish.early) or, where something has to be done in the box first, while clients read the answer
 * (envd_ahead, called behind the answer). From the first time on boxes of the pool have one, too. */
void envd_early(struct core *core, const struct box *b);
void envd_ahead(struct core *core, struct loop *loop, const struct box *b);
