/*
 * Rules of nf_tables, written as netlink messages: only as much of the kernel's language as is needed
 * to pass a namespace's TCP connections to one listener.
 *
 * Building is pure: a batch is bytes in a struct. Applying sends the batch in one piece, and the
 * kernel accepts all of it or nothing.
 */
#pragma once

#include "defs.h"

#define NFT_BATCH_MOST 2048
#define NFT_TABLE      "paddock" /* of the family inet; the namespace is ours, so is the name */
#define NFT_CHAIN      "capture"

struct nft_batch {
	_Alignas(4) unsigned char p[NFT_BATCH_MOST];
	size_t n;
	size_t message; /* where the message begins that is being written */
	uint32_t seq;   /* of the last message */
	bool bad;       /* it did not fit */
};

/*
 * A new table whose only chain gives each TCP packet to an address that is not loopback
 * to the connection that it belongs to or, if there is none, to the transparent listener
 * (IP_TRANSPARENT) on `port`. Without a listener it goes its usual way. -EMSGSIZE.
 */
int nft_capture(struct nft_batch *b, uint16_t port) _must_check_;
/* In the namespace of the calling thread. -EEXIST: the table is there already, and so is all of it. */
int nft_apply(const struct nft_batch *b) _must_check_;
