/*
 * Giving up privileges: see drop.h.
 *
 * Should: end as `uid`, empty of capabilities in all five sets, with the store's
 * directory as its root, confined to it by Landlock besides, filtered. Mustn't: open,
 * read or parse anything in between.
 */
#include "drop.h"

#include "confine.h"
#include "seccomp.h"
#include "service.h"
#include "poison.h"

#define NOFILE 65536 /* a link per box, and the clients */

int drop_privileges(uint32_t uid, int store_fd, struct err *e)
{
	/* With less, accepting waits for a free one. */
	service_limit_fds(NOFILE);
	/* The store is all of the file system that is left, also where the directories above it are closed to
	 * our uid. */
	if (confine_identity("uids.api", uid, store_fd, e) < 0)
		return -1;
	return confine_reach(&(struct landlock_rule){ .fd = store_fd, .access = LANDLOCK_WRITE }, 1,
			     seccomp_api, e);
}
