/*
 * The table of uid ranges: see slots.h.
 */
#include "slots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "fd.h"
#include "poison.h"

#define RECORD 640

int slots_open(struct slots *s, uint32_t base, uint32_t n, struct err *e)
{
	char path[64];
	snprintf(path, sizeof(path), "/run/paddock-uids.%u", base);
	*s = (struct slots){ .n = n };
	s->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->fd < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot open the table of uid ranges %s", path);
	return 0;
}

void slots_close(struct slots *s)
{
	fd_close(s->fd);
	s->fd = -1;
}

static bool is_free(struct slots *s, uint32_t slot)
{
	char holder[RECORD];
	ssize_t n = pread(s->fd, holder, sizeof(holder) - 1, (off_t)slot * RECORD);
	if (n <= 0 || holder[0] == 0)
		return n >= 0;
	holder[n] = 0;
	return access(holder, F_OK) < 0 && errno == ENOENT;
}

static int put(struct slots *s, uint32_t slot, const char *holder)
{
	char record[RECORD] = { 0 };
	if (snprintf(record, sizeof(record), "%s", holder) >= (int)sizeof(record))
		return -ENAMETOOLONG;
	return pwrite(s->fd, record, sizeof(record), (off_t)slot * RECORD) == (ssize_t)sizeof(record) ? 0
												      : -EIO;
}

static int lock(struct slots *s)
{
	while (flock(s->fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

int slots_take(struct slots *s, const char *holder, uint32_t *ret, struct err *e)
{
	int r = lock(s);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "cannot lock the table of uid ranges");
	r = -ENOSPC;
	for (uint32_t i = 0; i < s->n && r == -ENOSPC; i++) {
		uint32_t slot = (s->next + i) % s->n;
		if (!is_free(s, slot))
			continue;
		r = put(s, slot, holder);
		s->next = (slot + 1) % s->n;
		*ret = slot;
	}
	flock(s->fd, LOCK_UN);
	if (r == -ENOSPC)
		return err_set(e, ERR_QUOTA, "all %u uid ranges of this machine are in use", s->n);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "cannot write the table of uid ranges") : 0;
}

/* Under the lock: to others the range is free as long as the record and the directory differ. */
int slots_move(struct slots *s, uint32_t slot, const char *holder, int from_dir, const char *from, int to_dir,
	       const char *to)
{
	int r = lock(s);
	if (r < 0)
		return r;
	r = put(s, slot, holder);
	if (r == 0 && renameat(from_dir, from, to_dir, to) < 0)
		r = -errno;
	flock(s->fd, LOCK_UN);
	return r;
}

void slots_free(struct slots *s, uint32_t slot)
{
	/* Our holder is gone, so the range was free already, and another keeper may have
	 * it by now: then the record names a holder that exists, and is not ours to clear. */
	if (lock(s) < 0)
		return;
	if (is_free(s, slot))
		(void)!put(s, slot, "");
	flock(s->fd, LOCK_UN);
}
