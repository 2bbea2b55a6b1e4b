/*
 * The chain of the audit log: an entry's hash covers all of it and the hash of the entry before, so that
 * nothing before a known hash can be changed or left out unseen. Pure; the daemon makes the hashes and
 * `paddock audit verify` makes them again.
 *
 * SHA-256 of the 32 bytes of the previous hash (of the first entry: zeros), and of each field in the order
 * of the struct: its length in decimal digits, a colon, its bytes, a line feed. Numbers are in decimal
 * digits, too.
 */
#pragma once

#include "sha256.h"
#include "view.h"

struct audit_fact {
	struct view chain; /* entries are numbered and chained within one */
	uint64_t number;   /* from 1 on */
	uint64_t id;
	int64_t at_ms;
	struct view tenant, role, key, via, from, request; /* tenant: the id */
	struct view action, target, detail, verdict, code;
};

void audit_chain_hash(const struct audit_fact *f, const uint8_t before[SHA256_SIZE],
		      uint8_t ret[SHA256_SIZE]);
