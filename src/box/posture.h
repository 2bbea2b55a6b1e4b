/*
 * What this machine supports: each part of the isolation is tried, and the result has a detail for
 * people. Used by `paddock doctor`, /v1/posture and /readyz.
 *
 * Some parts are optional features (feature.h): a box can be made without them. `features` has the
 * available ones; the detail of a missing one says what the consequence is.
 */
#pragma once

#include <linux/capability.h>

#include "caps.h"
#include "cgroup.h"
#include "feature.h"

#define POSTURE_PARTS 48

struct posture {
	struct posture_part {
		const char *name;
		bool ok, required;
		char detail[224];
	} parts[POSTURE_PARTS];
	unsigned n;
	bool ok;           /* every required part is */
	uint32_t features; /* FEATURE_BITs */
};

/* What making boxes takes; and what the keeper keeps, where it has it. */
#define POSTURE_CAPS                                                                                         \
	(CAPS(CAP_CHOWN) | CAPS(CAP_DAC_OVERRIDE) | CAPS(CAP_DAC_READ_SEARCH) | CAPS(CAP_FOWNER) |           \
	 CAPS(CAP_FSETID) | CAPS(CAP_KILL) | CAPS(CAP_MKNOD) | CAPS(CAP_NET_ADMIN) | CAPS(CAP_SETGID) |      \
	 CAPS(CAP_SETPCAP) | CAPS(CAP_SETUID) | CAPS(CAP_SYS_ADMIN) | CAPS(CAP_SYS_CHROOT) |                 \
	 CAPS(CAP_SYS_PTRACE))
#define POSTURE_CAPS_KEPT (POSTURE_CAPS | CAPS(CAP_SYS_RESOURCE))

/* Namespaces are really made (in short-lived children), controllers come from `h`; the features
 * `without` are not used. */
void posture_probe(struct posture *p, const struct cgroup_host *h, uint32_t without);
void posture_add(struct posture *p, const char *name, bool ok, bool required, const char *fmt, ...)
	_printf_(5, 6);
/* A feature that is there or not, with its texts; or with `detail`, where that is not NULL. */
void posture_feature(struct posture *p, enum feature f, bool have, uint32_t without, const char *detail);
const struct posture_part *posture_find(const struct posture *p, const char *name);
/* The first part that is required and not there, or NULL. */
const struct posture_part *posture_failed(const struct posture *p);
/* Everything of `features` must be there: ERR_WALLS that names what is not, and why. */
int posture_require(const struct posture *p, uint32_t features, struct err *e) _must_check_;
/* LANDLOCK_* that boxes get. */
unsigned posture_landlock(uint32_t without);

/* Whether this process can make boxes at all: root of the machine with POSTURE_CAPS. */
int posture_privilege(struct err *e) _must_check_;
/* The same of what /proc says: the text of uid_map, the effective uid and the permitted capabilities. */
int posture_judge(struct view uid_map, unsigned uid, uint64_t permitted, struct err *e) _must_check_;

/* posture_lsm.c: other security modules, as their files tell; "" where there is none. */
struct posture_lsm {
	struct view selinux_enforce;       /* /sys/fs/selinux/enforce */
	struct view apparmor_enabled;      /* /sys/module/apparmor/parameters/enabled */
	struct view apparmor_label, label; /* /proc/self/attr/apparmor/current, /proc/self/attr/current */
};
void posture_judge_lsm(struct posture *p, const struct posture_lsm *l);
void posture_lsm(struct posture *p);
