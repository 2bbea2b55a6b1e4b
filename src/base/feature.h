/*
 * Optional isolation features, which depend on the kernel or the configuration. The posture lists the
 * available ones, a spec can require them, and `posture.without` leaves some out. Their names are part
 * of the API.
 */
#pragma once

#include "view.h"

/* The bits are in boxes' state files: new ones come last. */
enum feature {
	FEATURE_LANDLOCK_TRUNCATE,
	FEATURE_LANDLOCK_IOCTL_DEV,
	FEATURE_LANDLOCK_SCOPES,
	FEATURE_DETACHED_LAYERS,
	FEATURE_CGROUP_KILL,
	FEATURE_FREEZER,
	FEATURE_SOCKET_MEMORY,
	FEATURE_DISK_QUOTA,
	FEATURE_CAPTURE,
	FEATURE_OWN_PROC,
	FEATURE_OWN_UPTIME,
	FEATURE_OWN_CALLS,
	FEATURES
};

#define FEATURE_BIT(f) (1u << (f))

struct feature_text {
	const char *name;
	const char *gives; /* with it */
	const char *lacks; /* without it: what is missing, and what it costs */
	const char *needs; /* to have it */
	bool optional;     /* `posture.without` can leave it out */
};

extern const struct feature_text feature_texts[FEATURES];
/* FEATURES where there is none of this name. */
enum feature feature_named(struct view name);
