/*
 * The room beneath the loop file. It is sparse, so that the disk that holds it can fill up while the btrfs in
 * it has room: writes then fail with EIO, the file system turns read-only, and every box loses. So the room
 * is watched; before it is gone, the btrfs is made to look full: a file in it reserves what is free, which
 * writes nothing, and boxes get "No space left" until there is room again.
 */
#pragma once

#include "err.h"

struct keeper;

enum room {
	ROOM_FINE,
	ROOM_LOW,     /* /readyz says so */
	ROOM_FULL,    /* in the storage itself: nothing new is made */
	ROOM_HELD,    /* nothing more can be written by boxes */
	ROOM_READONLY /* too late, or a fault of the disk */
};

/* Before anything is written; then regularly. Lets the loop file grow. True: there is little room, come again
 * soon. */
void room_begin(struct keeper *k);
/* Before that, and whenever nothing at all is left: room that was set aside is given up. */
void room_last(struct keeper *k);
bool room_watch(struct keeper *k);
/* Whether something new can be made: ERR_STORAGE and why not. */
int room_admit(const struct keeper *k, struct err *e) _must_check_;
/* To an api that was just started. */
void room_tell(struct keeper *k);
