/*
 * The secrets on disk: a file for each version (seal.h), named after a hash of whose it
 * is and what it is called. In memory there is an index of names and versions, never a
 * value: that is read and opened when it is asked for.
 */
#pragma once

#include "err.h"
#include "list.h"
#include "map.h"
#include "seal.h"

#define SHELF_VERSIONS  8             /* that are kept */
#define SHELF_OF_TENANT 4096          /* secrets, those of its boxes included */
#define SHELF_NOTES     (512u * 1024) /* bytes of a tenant's notes: they are in memory, and in one answer */

/* The first is the one that new files are sealed with. */
#define SHELF_KEYS 4
struct shelf_keys {
	struct seal_key key[SHELF_KEYS];
	unsigned n;
};

struct shelf_version {
	uint32_t version;
	int64_t created_ms;
	uint32_t bytes; /* of its file */
};

struct shelf_secret {
	struct map_node node;
	struct list link;
	char key[3 * SEAL_NAME + 3]; /* tenant NUL box NUL name */
	struct view tenant, box, name;
	struct shelf_version versions[SHELF_VERSIONS]; /* the newest first */
	unsigned n;
	struct buf notes; /* of the newest version */
};

struct shelf {
	int dir;
	const struct shelf_keys *keys;
	struct map secrets;
	struct list all;
};

/* Takes nothing; `dir` and `keys` must outlive it. */
int shelf_open(struct shelf *s, int dir, const struct shelf_keys *keys, struct err *e) _must_check_;
void shelf_close(struct shelf *s);

const struct shelf_secret *shelf_find(const struct shelf *s, struct view tenant, struct view box,
				      struct view name);
/* What the tenant has, those of its boxes included. */
struct shelf_total {
	uint64_t secrets, bytes;
	uint64_t notes; /* bytes of the newest versions' */
};
struct shelf_total shelf_total(const struct shelf *s, struct view tenant);
/* A new version. `most`: what the tenant may have then; 0: SHELF_OF_TENANT, and any number of bytes.
 * `notes`: that take the place of those before; NULL: they stay. On disk when this returns. */
struct shelf_new {
	struct view tenant, box, name, value;
	const struct view *notes;
};
const struct shelf_secret *shelf_put(struct shelf *s, const struct shelf_new *w,
				     const struct shelf_total *most, struct err *e) _must_check_;
/* version 0: the newest. `out` should be secret. */
int shelf_read(const struct shelf *s, const struct shelf_secret *secret, uint32_t version, struct buf *out,
	       struct err *e) _must_check_;
int shelf_remove(struct shelf *s, const struct shelf_secret *secret, struct err *e) _must_check_;
/* Everything of one box. */
void shelf_remove_box(struct shelf *s, struct view box);
/* Seals with the first key what is sealed with another. How many there were, or -errno for the first that
 * failed. */
int shelf_reseal(struct shelf *s);
/* One file more that is not in the index (the authority's key). 1: resealed, 0: it was so already. */
int shelf_reseal_file(int dir, const char *path, const struct shelf_keys *keys);
/* Opens one file with whichever key fits. -ENOKEY, -EBADMSG, -errno. */
int shelf_open_file(int dir, const char *path, const struct shelf_keys *keys, const struct seal_label *want,
		    struct buf *out) _must_check_;
bool shelf_is_name(struct view v); /* [A-Za-z_][A-Za-z0-9_.-]{0,63} */
