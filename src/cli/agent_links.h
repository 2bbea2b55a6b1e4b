/*
 * The links of an archive, once all of them are known: one that stays inside by its text may still lead out
 * where a directory on its way is a link itself.
 */
#pragma once

#include "arena.h"
#include "buf.h"

struct agent_links {
	struct arena arena;
	struct buf all; /* struct agent_link */
};

#define AGENT_LINKS_INIT ((struct agent_links){ ARENA_INIT(64u << 20), BUF_INIT(16u << 20) })

void agent_links_done(struct agent_links *l);
/* `path` is without "." and double slashes, and so is a hard link's target, which begins at the archive's
 * top. False: they are too many. */
bool agent_links_add(struct agent_links *l, const char *path, struct view target, bool hard) _must_check_;
/* The path of a link that takes a ".." behind another link, or is a hard link to a symbolic one, whose target
 * would begin elsewhere. NULL: there is none. To be called once. */
const char *agent_links_find_bad(struct agent_links *l);
