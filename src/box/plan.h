/*
 * Turns a spec into a plan: everything that will be done to make a box, as data, computed without
 * touching the machine. The backend carries the plan out.
 */
#pragma once

#include "buf.h"
#include "spec.h"

#define PLAN_IDS    65536u /* ids in a box's range */
#define PLAN_STRIDE 65664u /* 65536 would put all ranges into one bucket of the kernel's uid hash */
#define PLAN_USER   1000u  /* uid and gid of `user` in every image of ours */

/* An image is up to PLAN_LAYERS directories, each at a place of its own. */
#define PLAN_LAYERS 4
struct plan_image {
	struct {
		char at[32]; /* "/" first, then for instance "/usr" */
		int dir;     /* fd of the read-only tree */
	} layers[PLAN_LAYERS];
	unsigned n;
};

enum plan_kind {
	PLAN_LAYER,     /* a layer of the image: overlay, or the bare tree when the root is read-only */
	PLAN_STORE,     /* a directory of the box's storage, idmapped */
	PLAN_WORKSPACE, /* a named workspace, idmapped */
	PLAN_HOST,      /* a directory of the machine, idmapped so that its owner is the box's user */
	PLAN_DEV,       /* the shared read-only /dev */
	PLAN_DEVPTS,
	PLAN_TMPFS,
	PLAN_PROC,
};

struct plan_mount {
	enum plan_kind kind;
	const char *target; /* in the box; "/" for the root */
	unsigned layer;     /* PLAN_LAYER; PLAN_HOST, PLAN_WORKSPACE: index in the spec */
	const char *source; /* PLAN_STORE: directory in the storage */
	uint64_t size;      /* PLAN_TMPFS: bytes */
	const char *mode;   /* PLAN_TMPFS: octal */
	uint64_t attr;      /* MOUNT_ATTR_* */
};

struct plan_rlimit {
	int resource;
	const char *name;
	uint64_t value; /* soft and hard */
};

/* A directory of the storage, made before the first start. */
struct plan_dir {
	char name[16];
	unsigned mode;
	uint32_t owner; /* as the box sees it: that is what is on the disk */
};

struct plan {
	struct spec spec;
	uint32_t uid_base;
	struct plan_dir dirs[2 * PLAN_LAYERS + 2];
	unsigned n_dirs;
	struct plan_mount mounts[16 + SPEC_MOUNTS + SPEC_WORKSPACES];
	unsigned n_mounts;
	struct plan_rlimit rlimits[8];
	unsigned n_rlimits;
	uint64_t root_caps; /* what root in the box may hold, over its own user namespace */
};

/* /proc beside the processes: what a box sees of it. Everything else that the kernel has there is hidden
 * behind an empty file or directory; what is visible and can be written to is made read-only. */
extern const char *const plan_readonly[];
bool plan_proc_hidden(const char *name); /* an entry of /proc's top level */
#define PLAN_MASKS 96

int plan_make(const struct spec *s, const struct plan_image *image, uint32_t slot, uint32_t uids_base,
	      struct plan *ret, struct err *e) _must_check_;
