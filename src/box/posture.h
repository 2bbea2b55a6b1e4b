/*
 * What this machine can give: each part of the walls, tried, with the detail
 * that a person needs. Read by `paddock doctor`, /v1/posture and /readyz.
 */
#pragma once

#include "cgroup.h"

#define POSTURE_PARTS 24

struct posture {
	struct posture_part {
		const char *name;
		bool ok, required;
		char detail[112];
	} parts[POSTURE_PARTS];
	unsigned n;
	bool ok; /* every required part is */
};

/* Namespaces are really made (in short-lived children), controllers come from `h`. */
void posture_probe(struct posture *p, const struct cgroup_host *h);
void posture_add(struct posture *p, const char *name, bool ok, bool required, const char *fmt, ...)
	_printf_(5, 6);
