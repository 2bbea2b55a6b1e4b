/*
 * Capabilities: see caps.h.
 */
#include "caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "poison.h"

int caps_get(struct caps *ret)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2];
	if (syscall(SYS_capget, &h, d) < 0)
		return -errno;
	*ret = (struct caps){
		.effective = (uint64_t)d[1].effective << 32 | d[0].effective,
		.permitted = (uint64_t)d[1].permitted << 32 | d[0].permitted,
		.inheritable = (uint64_t)d[1].inheritable << 32 | d[0].inheritable,
	};
	return 0;
}

int caps_set(const struct caps *c)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = {
		{ (uint32_t)c->effective, (uint32_t)c->permitted, (uint32_t)c->inheritable },
		{ (uint32_t)(c->effective >> 32), (uint32_t)(c->permitted >> 32),
		  (uint32_t)(c->inheritable >> 32) },
	};
	return syscall(SYS_capset, &h, d) < 0 ? -errno : 0;
}

int caps_bound(uint64_t keep)
{
	/* The kernel knows how many there are: the first unknown one is EINVAL. */
	for (unsigned c = 0; c < 64; c++) {
		if (!(keep & CAPS(c)) && prctl(PR_CAPBSET_DROP, c) == 0)
			continue;
		int error = errno, have = prctl(PR_CAPBSET_READ, c);
		if (have < 0)
			return c > CAP_CHOWN ? 0 : -errno;
		if (have &&
		    !(keep & CAPS(c))) /* where it is gone already nobody needs the right to drop it */
			return -error;
	}
	return 0;
}

int caps_drop_all(void)
{
	const struct caps none = { 0 };
	int r = caps_bound(0);
	if (r < 0)
		return r;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return caps_set(&none);
}
