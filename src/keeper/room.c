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
#include "fd.h"
#include "keeper.h"
#include "log.h"
#include "num.h"
#include "poison.h"

#define MB          (1ull << 20)
#define HOLD_BELOW  (512 * MB)
#define LOW_BELOW   (1024 * MB)
#define FINE_ABOVE  (1280 * MB)
#define HURRY_BELOW (4096 * MB)

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
	calls_storage(k, explain(k->room));
}

static enum room judge(enum room before, uint64_t left, bool readonly)
{
	if (readonly)
		return ROOM_READONLY;
	if (left < HOLD_BELOW || (before == ROOM_HELD && left < LOW_BELOW))
		return ROOM_HELD;
	return left < LOW_BELOW || (before != ROOM_FINE && left < FINE_ABOVE) ? ROOM_LOW : ROOM_FINE;
}

bool room_watch(struct keeper *k)
{
	struct disk *d = &k->storage.disk;
	uint64_t left = room_left(d);
	enum room room = judge(k->room, left, d->btrfs && is_readonly(d));
	if (room == ROOM_HELD)
		disk_hold(d); /* again each time: what boxes remove must not be written anew */
	else if (k->room == ROOM_HELD)
		disk_release(d);
	if (room == ROOM_FINE)
		disk_grow(d);
	if (room != k->room) {
		k->room = room;
		if (room == ROOM_FINE)
			log_info("storage: there is room again");
		else
			log_warn("%s", explain(room));
		room_tell(k);
	}
	return left < HURRY_BELOW;
}
