/*
 * The kernel's version: see kernel.h.
 */
#include "kernel.h"

#include <errno.h>
#include <sys/utsname.h>

#include "num.h"
#include "view.h"
#include "poison.h"

static struct view digits(struct view v, struct view *ret_rest)
{
	size_t n = 0;
	while (n < v.n && v.p[n] >= '0' && v.p[n] <= '9')
		n++;
	*ret_rest = view_skip(v, n);
	return view_head(v, n);
}

int kernel_version(const char *release, unsigned *ret_major, unsigned *ret_minor)
{
	struct view rest = view_of(release), major = digits(rest, &rest);
	uint32_t a, b;
	if (rest.n == 0 || rest.p[0] != '.')
		return -EINVAL;
	struct view minor = digits(view_skip(rest, 1), &rest);
	if (num_u32(major, &a) < 0 || num_u32(minor, &b) < 0)
		return -EINVAL;
	*ret_major = a;
	*ret_minor = b;
	return 0;
}

static bool at_least(unsigned a, unsigned b, unsigned major, unsigned minor)
{
	return a > major || (a == major && b >= minor);
}

bool kernel_at_least(unsigned major, unsigned minor)
{
	struct utsname u;
	unsigned a, b;
	return uname(&u) == 0 && kernel_version(u.release, &a, &b) == 0 && at_least(a, b, major, minor);
}

int kernel_check(const char *release, struct err *e)
{
	unsigned major, minor;
	if (kernel_version(release, &major, &minor) < 0)
		return err_set(e, ERR_WALLS, "cannot tell the kernel's version from \"%.40s\"", release);
	if (at_least(major, minor, KERNEL_OLDEST_MAJOR, KERNEL_OLDEST_MINOR))
		return 0;
	return err_set(e, ERR_WALLS,
		       "the kernel %.40s is too old: Paddock needs Linux %u.%u or newer (Debian 12 has 6.1)",
		       release, KERNEL_OLDEST_MAJOR, KERNEL_OLDEST_MINOR);
}
