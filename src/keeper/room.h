/*
 * The room beneath the loop file. It is sparse, so that the disk that holds it can fill up while the btrfs in
 * it has room: writes then fail with EIO, the file system turns read-only, and every box loses. So the room
 * is watched; before it is gone, the btrfs is made to look full: a file in it reserves what is free, which
 * writes nothing, and boxes get "No space left" until there is room again.
 */
#pragma once

#include "defs.h"

struct keeper;

enum room {
	ROOM_FINE,
	ROOM_LOW,     /* /readyz says so */
	ROOM_HELD,    /* nothing more can be written by boxes */
	ROOM_READONLY /* too late, or a fault of the disk */
};

/* Regularly, and lets the loop file grow. True: there is little room, come again soon. */
bool room_watch(struct keeper *k);
/* To an api that was just started. */
void room_tell(struct keeper *k);
