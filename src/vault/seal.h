/*
 * Sealed files. A value is encrypted with AES-256-GCM under the master key and a
 * nonce of its own; what it is (tenant, box, name, version, time, notes) stands before it in
 * the clear and is authenticated with it, so that no file can pass for another.
 *
 *   0   8  "PDKVLT1\n"
 *   8   8  which key: the first bytes of a hash of it
 *  16  12  nonce
 *  28   4  version, little-endian
 *  32   8  time of its making, ms, little-endian
 *  40   3  lengths of tenant, box and name, a byte each
 *  43   1  1: there are notes; else 0
 *  44   …  tenant, box, name
 *       …  notes, where there are some: 2 bytes of length, little-endian, and the notes
 *       …  ciphertext, as long as the value
 *      16  tag, over everything before it
 *
 * Parsing is pure and believes nothing.
 */
#pragma once

#include "buf.h"

#define SEAL_KEY    32
#define SEAL_KEY_ID 8
#define SEAL_NONCE  12
#define SEAL_TAG    16
#define SEAL_NAME   64 /* of tenant, box and name each */
#define SEAL_VALUE  (64u * 1024)
#define SEAL_NOTES  8320 /* metadata: 32 names and values of 8192 bytes together, each ended by a NUL */
#define SEAL_FILE   (44 + 3 * SEAL_NAME + 2 + SEAL_NOTES + SEAL_VALUE + SEAL_TAG)

struct seal_key {
	uint8_t bytes[SEAL_KEY], id[SEAL_KEY_ID];
	bool set;
};

struct seal_label {
	struct view tenant, box, name;
	uint32_t version;
	int64_t created_ms;
	struct view notes; /* what clients wrote beside it; not secret */
};

/* Views into the file. */
struct sealed {
	struct seal_label label;
	struct view key_id, nonce, head, cipher, tag;
};

/* Once, before the files of the system are out of reach. */
int seal_init(void) _must_check_;
void seal_key_set(struct seal_key *k, const uint8_t bytes[SEAL_KEY]);
void seal_key_wipe(struct seal_key *k);
int seal_parse(struct view file, struct sealed *ret) _must_check_; /* -EBADMSG */
/* A whole file into `out`. -EINVAL for a label or a value that does not fit. */
int seal_close(const struct seal_key *k, const struct seal_label *l, struct view value,
	       struct buf *out) _must_check_;
/* The value into `out`, which should be secret. -ENOKEY: sealed with another key; -EBADMSG: it was changed.
 */
int seal_open(const struct seal_key *k, const struct sealed *s, struct buf *out) _must_check_;
