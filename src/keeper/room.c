/*
 * The room beneath the loop file: see room.h.
 */
#include "room.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "calls.h"
#include "clock.h"
#include "fd.h"
#include "keeper.h"
#include "log.h"
#include "num.h"
#include "poison.h"

#define MB         (1ull << 20)
#define HOLD_BELOW (512 * MB)
#define LOW_BELOW  (1024 * MB)
#define FINE_ABOVE (1280 * MB)
#define FULL_BELOW (64 * MB) /* in the storage itself */
#define FREE_ABOVE (96 * MB)
#define LAST_BELOW (8 * MB)

#define RECLAIM_MS       60000 /* after something was removed */
#define RECLAIM_AGAIN_MS 1000
#define HURRY_BELOW      (4096 * MB)

/* Written by programs, but not yet to the disk: it will take room beneath. Of the whole machine, so too much.
 */
static uint64_t dirty_bytes(void)
{
	struct buf b = BUF_INIT(16384);
	uint64_t sum = 0;
	int r = fd_slurp(AT_FDCWD, "/proc/meminfo", &b);
	for (struct view rest = buf_view(&b); r == 0 && rest.n;) {
		uint64_t kb;
		struct view value, line = view_split(rest, '\n', &rest), name = view_split(line, ':', &value);
		value = view_trim(value);
		if ((view_is(name, "Dirty") || view_is(name, "Writeback")) &&
		    num_u64(view_split(value, ' ', &value), &kb) == 0)
			sum += kb << 10;
	}
	buf_done(&b);
	return sum;
}

/* UINT64_MAX where nothing can run out: no loop file, or one that has all its blocks. */
static uint64_t room_left(const struct disk *d)
{
	struct statvfs v;
	struct stat st;
	if (d->file < 0 || fstatvfs(d->file, &v) < 0 || fstat(d->file, &st) < 0 ||
	    (uint64_t)st.st_blocks * 512 >= (uint64_t)st.st_size)
		return UINT64_MAX;
	uint64_t left = (uint64_t)v.f_bavail * v.f_frsize;
	if (left >= HURRY_BELOW)
		return left;
	uint64_t dirty = dirty_bytes();
	return left > dirty ? left - dirty : 0;
}

static bool is_readonly(const struct disk *d)
{
	struct statvfs v;
	return fstatvfs(d->root, &v) == 0 && v.f_flag & ST_RDONLY;
}

static const char *explain(enum room room)
{
	switch (room) {
	case ROOM_LOW:
		return "the disk beneath the storage (data_dir) is nearly full";
	case ROOM_FULL:
		return "the storage is full and nothing can be created: delete sandboxes, snapshots, "
		       "workspaces "
		       "or images, or enlarge it (data.size_mb)";
	case ROOM_HELD:
		return "the disk beneath the storage (data_dir) is full: sandboxes cannot write; free some "
		       "space there";
	case ROOM_READONLY:
		return "the storage is read-only after an error of the disk: free some space in data_dir or "
		       "mend the "
		       "disk, then restart";
	case ROOM_FINE:
		break;
	}
	return "";
}

void room_tell(struct keeper *k)
{
	disk_look(&k->storage.disk, &k->told);
	calls_storage(k, explain(k->room), &k->told);
}

static enum room judge(enum room before, uint64_t left, uint64_t inside, bool readonly)
{
	if (readonly)
		return ROOM_READONLY;
	if (left < HOLD_BELOW || (before == ROOM_HELD && left < LOW_BELOW))
		return ROOM_HELD;
	if (inside < FULL_BELOW || (before == ROOM_FULL && inside < FREE_ABOVE))
		return ROOM_FULL;
	return left < LOW_BELOW || (before != ROOM_FINE && left < FINE_ABOVE) ? ROOM_LOW : ROOM_FINE;
}

static bool differs(uint64_t a, uint64_t b)
{
	return (a > b ? a - b : b - a) >= MB;
}

static bool is_news(const struct disk_room *was, const struct disk_room *is)
{
	return differs(was->size, is->size) || differs(was->free, is->free) ||
	       differs(was->beneath, is->beneath);
}

/* By itself btrfs takes half a minute until what was deleted is free. */
static void reclaim(struct keeper *k)
{
	uint64_t now = clock_mono_ms();

	if (k->room == ROOM_FINE || !k->removed_ms || now - k->removed_ms > RECLAIM_MS ||
	    now - k->reclaimed_ms < RECLAIM_AGAIN_MS)
		return;
	k->reclaimed_ms = now;
	disk_reclaim(&k->storage.disk);
}

bool room_watch(struct keeper *k)
{
	struct disk *d = &k->storage.disk;
	uint64_t left = room_left(d);
	struct disk_room now;
	enum room was = k->room;

	disk_look(d, &now);
	/* What is held is free as soon as there is room beneath. */
	k->room = judge(was, left, was == ROOM_HELD ? UINT64_MAX : now.free, d->btrfs && is_readonly(d));
	if (k->room == ROOM_HELD)
		disk_hold(d); /* again each time: what boxes remove must not be written anew */
	else if (was == ROOM_HELD)
		disk_release(d);
	if (k->room == ROOM_FINE) {
		disk_set_aside(d->root);
		disk_set_aside(k->data);
	}
	if (now.beneath < LAST_BELOW)
		room_last(k);
	if (k->room == ROOM_FINE || k->room == ROOM_FULL)
		disk_grow(d);
	reclaim(k);
	if (k->room != was) {
		disk_discard(d, k->room != ROOM_FINE);
		if (k->room == ROOM_FINE)
			log_info("storage: there is room again");
		else
			log_warn("%s", explain(k->room));
	}
	if (k->room != was || is_news(&k->told, &now))
		room_tell(k);
	return left < HURRY_BELOW;
}

/* Others have filled the disk: btrfs and the database still write what it takes to delete something. */
void room_last(struct keeper *k)
{
	struct statvfs v;

	if (fstatvfs(k->data, &v) == 0 && (uint64_t)v.f_bavail * v.f_frsize < LAST_BELOW &&
	    disk_use_aside(k->data))
		log_warn("the disk that holds data_dir is full: room that was set aside is used");
}

void room_begin(struct keeper *k)
{
	struct disk *d = &k->storage.disk;

	/* Held by an earlier keeper: not for a moment can boxes fill what is beneath. */
	k->room = d->file >= 0 && disk_is_held(d) ? ROOM_HELD : ROOM_FINE;
	disk_discard(d, k->room != ROOM_FINE);
	(void)room_watch(k);
}

int room_admit(const struct keeper *k, struct err *e)
{
	return k->room == ROOM_FINE || k->room == ROOM_LOW ? 0
							   : err_set(e, ERR_STORAGE, "%s", explain(k->room));
}
