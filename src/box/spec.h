/*
 * The spec of a box in the keeper, checked against the keeper's own limits. The keeper does not trust
 * the api's checks.
 */
#pragma once

#include "box_fields.h"
#include "box_limits.h"
#include "err.h"
#include "view.h"

#define SPEC_ID      20 /* characters of [a-z0-9] */
#define SPEC_BACKEND 16 /* room for a backend's name */

#define SPEC_BACKEND_NATIVE "native" /* also of boxes that were made before there was a choice */

#define SPEC_MOUNTS     8
#define SPEC_MOUNT_PATH 256

/* Directories of the machine. */
struct spec_mounts {
	struct {
		char source[SPEC_MOUNT_PATH], target[SPEC_MOUNT_PATH];
		bool readonly;
	} items[SPEC_MOUNTS];
	unsigned n;
};

#define SPEC_WORKSPACES 8
#define SPEC_WORKSPACE  "/workspace" /* where a box has its own, unless a named one is there */

/* Named workspaces and where they are mounted. */
struct spec_workspaces {
	struct {
		char id[SPEC_ID + 1], path[SPEC_MOUNT_PATH];
		bool readonly;
	} items[SPEC_WORKSPACES];
	unsigned n;
};

struct spec {
	char id[SPEC_ID + 1];
	char backend[SPEC_BACKEND]; /* whose walls: walls.h */
	char hostname[64];
	struct box_limits limits;
	/* What the keeper has to know of box_fields.def, as the wire names it: `sudo` is whether its users
	 * may become root. */
#define MEMBER(kind, json)                        BOX_FIELD_##kind json;
#define FIELD(kind, name, json, shown, wire, ...) BOX_FIELD_IF_##wire(MEMBER, kind, json)
#include "box_fields.def"
#undef FIELD
#undef MEMBER
	uint32_t thrash_s; /* of thrashing that PID 1 bears before it kills; 0: any. The keeper's own setting
			    */
	char snapshot[SPEC_ID + 1];               /* whose files it starts with, "" = the image's alone */
	bool existing;                            /* starts again with the files it has */
	uint32_t require;                         /* FEATURE_BITs that it must have */
	const struct spec_mounts *mounts;         /* borrowed, for the start only; NULL: none */
	const struct spec_workspaces *workspaces; /* borrowed, also while it runs; NULL: none */
};

bool spec_id_ok(struct view id);
bool spec_has_workspace(const struct spec *s, const char *id, bool writable_only);
/* ERR_INVALID that names the field. */
int spec_check(const struct spec *s, const struct box_limits *ceiling, struct err *e) _must_check_;
