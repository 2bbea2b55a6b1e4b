/*
 * The image store: images/HEX/{manifest.json,sets.json,rootfs/} on the boxes' disk (or, of an
 * imported image on btrfs, unit/workspace: a snapshot of the box that unpacked it), where HEX is the
 * SHA-256 of the archive that was unpacked (for the machine's own image: of what
 * it was made from), and DATA/images/names/NAME, a file that holds a digest.
 *
 * An image of a snapshot is a unit, a box's storage as it was, over the layers of
 * another image (its base, never one of a snapshot): a box of it begins with a copy
 * of that unit.
 * Images are never changed once they have their name; owners on disk are the ids
 * that the box sees.
 */
#pragma once

#include "disk.h"
#include "err.h"
#include "plan.h"

#define IMAGES_DIGEST  72 /* "sha256:" + 64 hex digits and a NUL */
#define IMAGES_NAME    64
#define IMAGES_MACHINE "machine"
#define IMAGES_CONFIG  (64u << 10)

struct image {
	struct image *next;
	char digest[IMAGES_DIGEST];
	uint64_t created_ms;
	bool machine;             /* has a layer /usr that is the machine's own */
	char base[IMAGES_DIGEST]; /* of a snapshot: the image whose layers are below; else "" */
	char *record; /* what it says about where packages come from (survey.h); NULL: not read yet */
	size_t record_size;
	char *config; /* what came with it, for the api; NULL: nothing */
	size_t config_size;
};

struct image_name {
	struct image_name *next;
	char name[IMAGES_NAME];
	char digest[IMAGES_DIGEST];
};

struct images {
	int dir, names_dir;
	struct image *all;
	struct image_name *names;
};

/* Reads the store and makes the machine's image where it is missing or outdated. */
int images_open(struct images *im, int data, struct err *e) _must_check_;
void images_close(struct images *im);
const struct image *images_find(const struct images *im, struct view digest);
const struct image *images_named(const struct images *im, struct view name);
/* Opens the layers; images_release closes them. */
int images_layers(const struct images *im, const struct image *i, struct plan_image *ret,
		  struct err *e) _must_check_;
void images_release(struct plan_image *p);
/* Takes the tree (UNIT/workspace of a box that has ended, below `dir`) as an image. */
int images_commit(struct images *im, const struct disk *d, int dir, const char *tree, struct view name,
		  struct view digest, const struct image **ret, struct err *e) _must_check_;
/* Takes the snapshot (a unit below `dir`) over the image `base`, or over its base. */
int images_seed(struct images *im, const struct disk *d, int dir, const char *snapshot, struct view base,
		struct view name, struct view digest, const struct image **ret, struct err *e) _must_check_;
/* The unit that a box of this image begins with; -ENOENT where it begins with nothing. */
int images_unit(const struct images *im, const struct image *i) _must_check_;
/* Keeps what a survey has found, beside the manifest. */
int images_keep_record(struct images *im, struct view digest, struct view record) _must_check_;
/* Keeps what came with it, likewise. */
int images_keep_config(struct images *im, struct view digest, struct view config) _must_check_;
/* By name: the name goes; the files go to `trash` when no other name is left. By digest: all. */
int images_remove(struct images *im, const struct disk *d, struct view name_or_digest, int trash,
		  struct err *e) _must_check_;

bool images_name_ok(struct view name);
bool images_digest_ok(struct view digest);

/* machine.c */
/* The key of what the machine's image would be made from now: changes when it is outdated. */
int machine_key(char ret[65], struct err *e) _must_check_;
int machine_build(int rootfs, struct err *e) _must_check_;
/* images_add.c, for machine images */
int images_add_machine(struct images *im, struct err *e) _must_check_;
