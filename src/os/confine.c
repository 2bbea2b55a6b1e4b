/*
 * Giving up privileges: see confine.h. Nothing is opened, read or parsed here.
 */
#include "confine.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "caps.h"
#include "seccomp.h"
#include "poison.h"

static int change_uid(uint32_t uid, struct err *e)
{
	uid_t r, ef, s;

	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot become uid %u", uid);
	if (getresuid(&r, &ef, &s) < 0 || r != uid || ef != uid || s != uid)
		return err_set(e, ERR_INTERNAL, "still not uid %u", uid);
	return 0;
}

int confine_identity(const char *setting, uint32_t uid, int root, struct err *e)
{
	pid_t parent = getppid();

	if (uid == 0 || uid == UINT32_MAX)
		return err_set(e, ERR_INTERNAL, "%s must not be root", setting);
	/* The bounding set needs CAP_SETPCAP, and a root CAP_SYS_CHROOT: both go with the uid. */
	int r = caps_bound(0);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "cannot empty the bounding set");
	if (root >= 0 && (fchdir(root) < 0 || chroot(".") < 0 || chdir("/") < 0))
		return err_sys(e, ERR_INTERNAL, errno, "cannot change the root directory");
	if (change_uid(uid, e) < 0)
		return -1;
	r = caps_drop_all();
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "cannot drop capabilities");
	if (setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 }) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot forbid core files");
	/* After the uid changed, which undoes both. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "prctl");
	/* Who started this program may have died in between, and nobody would end it. */
	if (getppid() != parent)
		return err_set(e, ERR_INTERNAL, "paddockd is gone");
	return 0;
}

int confine_reach(const struct landlock_rule *files, size_t n, void (*filter)(uint8_t *rules), struct err *e)
{
	struct seccomp_filter code;
	uint8_t rules[SECCOMP_CALLS];

	int r = landlock_only(files, n);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "Landlock");
	filter(rules);
	r = seccomp_compile(rules, &code);
	if (r >= 0)
		r = seccomp_load(&code);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "seccomp") : 0;
}
