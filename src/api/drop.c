/*
 * Giving up privileges: see drop.h. Each step that fails ends the program: an api
 * that is less boxed than it says must not run.
 *
 * Should: end as `uid`, empty of capabilities in all five sets, with the store's
 * directory as its root, confined to it by Landlock besides, filtered. Mustn't: open, read or parse anything
 * in between.
 */
#include "drop.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "caps.h"
#include "landlock.h"
#include "seccomp.h"
#include "poison.h"

#define NOFILE 65536 /* a link per box, and the clients */

static int change_identity(uint32_t uid, struct err *e)
{
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot become uid %u", uid);
	uid_t r, ef, s;
	if (getresuid(&r, &ef, &s) < 0 || r != uid || ef != uid || s != uid)
		return err_set(e, ERR_INTERNAL, "still not uid %u", uid);
	return 0;
}

/* The store is all of the file system that is left, also where the directories above
 * it are closed to our uid. */
static int enter_store(int store_fd, struct err *e)
{
	if (fchdir(store_fd) < 0 || chroot(".") < 0 || chdir("/") < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot make the store's directory the root");
	return 0;
}

static int confine(int store_fd, struct err *e)
{
	struct landlock_rule rule = { .fd = store_fd, .access = LANDLOCK_WRITE };
	struct seccomp_filter filter;
	uint8_t rules[SECCOMP_CALLS];

	int r = landlock_only(&rule, 1);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "Landlock");
	seccomp_api(rules);
	r = seccomp_compile(rules, &filter);
	if (r >= 0)
		r = seccomp_load(&filter);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "seccomp") : 0;
}

int drop_privileges(uint32_t uid, int store_fd, struct err *e)
{
	struct rlimit files = { NOFILE, NOFILE };

	if (uid == 0 || uid == UINT32_MAX)
		return err_set(e, ERR_INTERNAL, "uids.api must not be root");
	/* Less than wished is bearable: accepting then waits for a free one. */
	if (setrlimit(RLIMIT_NOFILE, &files) < 0 && getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)!setrlimit(RLIMIT_NOFILE, &files);
	}
	/* The bounding set needs CAP_SETPCAP, which goes with the uid. */
	int r = caps_bound(0);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "cannot empty the bounding set");
	if (enter_store(store_fd, e) < 0 || change_identity(uid, e) < 0)
		return -1;
	r = caps_drop_all();
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "cannot drop capabilities");
	/* After the uid changed, which undoes both. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "prctl");
	return confine(store_fd, e);
}
