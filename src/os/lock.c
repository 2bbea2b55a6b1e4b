/*
 * Locking memory: see lock.h.
 */
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "fd.h"
#include "poison.h"

#define MAPS_MAX (256u * 1024)
#define STACK    (192u * 1024)
#define ENOUGH   (64u << 20)

static int lock_range(uintptr_t from, uintptr_t to)
{
	const uintptr_t page = 4096;

	from &= ~(page - 1);
	to = (to + page - 1) & ~(page - 1);
	return mlock((const void *)from, to - from) < 0 ? -errno : 0;
}

/* It grows down: what will be used is touched first, so that it is there to be locked. */
static __attribute__((noinline)) int lock_stack(void)
{
	char room[STACK];

	explicit_bzero(room, sizeof(room));
	return lock_range((uintptr_t)room, (uintptr_t)room + sizeof(room));
}

static int parse_hex(struct view v, uintptr_t *ret)
{
	uintptr_t n = 0;

	for (size_t i = 0; i < v.n; i++) {
		char c = v.p[i];
		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
			return -EINVAL;
		n = n << 4 | (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	*ret = n;
	return v.n ? 0 : -EINVAL;
}

static int lock_heap(void)
{
	_cleanup_(buf_done) struct buf maps = BUF_INIT(MAPS_MAX);
	int r = fd_slurp(AT_FDCWD, "/proc/self/maps", &maps);
	struct view rest = buf_view(&maps);

	while (r == 0 && rest.p && rest.n) {
		struct view line = view_split(rest, '\n', &rest), end;
		if (line.n < 6 || !view_is(view_skip(line, line.n - 6), "[heap]"))
			continue;
		struct view from = view_split(view_split(line, ' ', &line), '-', &end);
		uintptr_t a, b;
		r = parse_hex(from, &a);
		if (r == 0)
			r = parse_hex(end, &b);
		if (r == 0)
			r = lock_range(a, b);
	}
	return r;
}

int lock_memory(const void *p, size_t n, struct err *e)
{
	struct rlimit limit;

	/* With less than this what is left after the libraries would not be enough to work with. On fault: a
	 * page that was never touched holds no secret, and need not be there. */
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur >= ENOUGH &&
	    mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0)
		return 0;
	int r = mlockall(MCL_FUTURE) < 0 ? -errno : 0;
	if (r == 0)
		r = lock_range((uintptr_t)p, (uintptr_t)p + n);
	if (r == 0)
		r = lock_stack();
	if (r == 0)
		r = lock_heap();
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "cannot lock the memory") : 0;
}
