/*
 * The files by which a box knows itself: /etc/hosts, hostname, resolv.conf and
 * machine-id. Supplied where the image has none; lines of ours in /etc/hosts end
 * with "# paddock" and follow the host name. A box with a time zone gets
 * /etc/localtime and /etc/timezone. Where the root cannot be written
 * nothing is, and the gate's DNS still knows localhost and the box's name.
 */
#pragma once

#include "buf.h"

/* A time zone by name, with its rule as POSIX spells it; empty: as the image says. */
struct zone {
	char name[65], rule[64];
};

/* Once, when somebody has greeted us: not before, since nobody should wait for it. */
void identity_write(const struct zone *z);

/* Pure: what /etc/hosts has to be; `out` is empty when it is fine as it is. */
int identity_hosts(struct view old, struct view name, struct buf *out) _must_check_;
