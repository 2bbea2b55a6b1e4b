/*
 * The gate's grants, by box, as the api set them: a secret, in requests to certain hosts. Everything
 * else is refused. Grants are kept only in memory; the api sends them again after every start of
 * either program.
 */
#pragma once

#include "arena.h"
#include "list.h"
#include "map.h"

struct wire_vault_box;

struct grants {
	struct map boxes;
	struct list all;
};

struct grants_box {
	struct map_node node;
	struct list link;
	struct arena arena;
	struct view id, tenant;
	struct grants_grant {
		struct view secret;
		struct view *hosts;
		size_t n_hosts;
	} * grants;
	size_t n;
};

void grants_init(struct grants *g);
void grants_done(struct grants *g);
int grants_put(struct grants *g, const struct wire_vault_box *m) _must_check_; /* -ENOMEM, -EINVAL */
void grants_remove(struct grants *g, struct view box);
struct grants_box *grants_box(const struct grants *g, struct view box);
/* Whether a grant of the box names this secret for this host. */
bool grants_allows(const struct grants_box *b, struct view secret, struct view host);
