/*
 * Other security modules that confine the keeper and its boxes: see posture.h. Paddock does not set
 * them up. The posture says which are in force and what that means; the trial box shows whether
 * Paddock works with them.
 */
#include "posture.h"

#include <fcntl.h>
#include <string.h>

#include "fd.h"
#include "poison.h"

static struct view first_line(struct view v)
{
	struct view rest, line = view_split(v, '\n', &rest);
	while (line.n && line.p[line.n - 1] == 0)
		line.n--;
	return line;
}

static void judge_apparmor(struct posture *p, struct view label)
{
	bool enforced = label.n && memmem(label.p, label.n, "(enforce)", 9) != NULL;
	if (enforced)
		posture_add(p, "apparmor", true, false,
			    "enforcing: paddockd runs under the profile %.*s, which must allow mounts, user "
			    "namespaces and control groups",
			    (int)MIN(label.n, 60), label.p);
	else
		posture_add(p, "apparmor", true, false, "enabled, paddockd is not confined by it (%.*s)",
			    (int)MIN(label.n, 60), label.n ? label.p : "");
}

void posture_judge_lsm(struct posture *p, const struct posture_lsm *l)
{
	struct view label = first_line(l->label);
	if (view_is(first_line(l->selinux_enforce), "1"))
		posture_add(p, "selinux", true, false,
			    "enforcing: boxes run in paddockd's domain (%.*s), which must be allowed to make "
			    "them; "
			    "not among the tested systems",
			    (int)MIN(label.n, 60), label.n ? label.p : "");
	else if (l->selinux_enforce.n)
		posture_add(p, "selinux", true, false, "permissive: it refuses nothing");
	if (view_is(first_line(l->apparmor_enabled), "Y"))
		judge_apparmor(p, first_line(l->apparmor_label.n ? l->apparmor_label : l->label));
	if (!l->selinux_enforce.n && !view_is(first_line(l->apparmor_enabled), "Y"))
		posture_add(p, "lsm", true, false, "neither SELinux nor AppArmor is in force");
}

void posture_lsm(struct posture *p)
{
	static const char *const paths[] = { "/sys/fs/selinux/enforce",
					     "/sys/module/apparmor/parameters/enabled",
					     "/proc/self/attr/apparmor/current", "/proc/self/attr/current" };
	struct buf texts[ELEMS(paths)];
	for (size_t i = 0; i < ELEMS(paths); i++) {
		texts[i] = BUF_INIT(4096);
		if (fd_slurp(AT_FDCWD, paths[i], &texts[i]) < 0)
			buf_clear(&texts[i]);
	}
	posture_judge_lsm(p, &(struct posture_lsm){ buf_view(&texts[0]), buf_view(&texts[1]),
						    buf_view(&texts[2]), buf_view(&texts[3]) });
	for (size_t i = 0; i < ELEMS(paths); i++)
		buf_done(&texts[i]);
}
