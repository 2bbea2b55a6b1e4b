/*
 * Landlock: see landlock.h. The kernel headers of Debian 12 are older than the
 * kernels we run on, so the newer constants stand here.
 */
#include "landlock.h"

#include <errno.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fd.h"
#include "poison.h"

#define FS_REFER       (1ull << 13) /* ABI 2 */
#define FS_TRUNCATE    (1ull << 14) /* ABI 3 */
#define FS_IOCTL_DEV   (1ull << 15) /* ABI 5 */
#define SCOPE_ABSTRACT 1ull         /* ABI 6 */
#define SCOPE_SIGNAL   2ull

struct ruleset_attr {
	uint64_t fs, net, scoped;
};

int landlock_abi(void)
{
	long r = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	return r < 0 ? -errno : (int)r;
}

unsigned landlock_parts(int abi)
{
	return (abi >= 3 ? LANDLOCK_TRUNCATE : 0u) | (abi >= 5 ? LANDLOCK_IOCTL_DEV : 0u) |
	       (abi >= 6 ? LANDLOCK_SCOPES : 0u);
}

static uint64_t all_of(int abi, unsigned parts)
{
	uint64_t fs = (1ull << 13) - 1;
	fs |= abi >= 2 ? FS_REFER : 0;
	fs |= parts & LANDLOCK_TRUNCATE ? FS_TRUNCATE : 0;
	fs |= parts & LANDLOCK_IOCTL_DEV ? FS_IOCTL_DEV : 0;
	return fs;
}

static uint64_t bits(enum landlock_access access, uint64_t all)
{
	const uint64_t read = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
	const uint64_t nodes = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
			       LANDLOCK_ACCESS_FS_EXECUTE | FS_IOCTL_DEV;
	switch (access) {
	case LANDLOCK_READ:
		return read;
	case LANDLOCK_RUN:
		return read | LANDLOCK_ACCESS_FS_EXECUTE;
	case LANDLOCK_WRITE:
		return all & ~nodes;
	case LANDLOCK_ALL:
		return all;
	}
	return 0;
}

/* The kernel refuses a rule for a file that speaks of what only directories can have. */
static uint64_t fitting(int fd, uint64_t access)
{
	const uint64_t file = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
			      LANDLOCK_ACCESS_FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV;
	struct stat st;
	return fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode) ? access & file : access;
}

int landlock_only(const struct landlock_rule *rules, size_t n)
{
	return landlock_only_with(LANDLOCK_PARTS, rules, n);
}

int landlock_only_with(unsigned parts, const struct landlock_rule *rules, size_t n)
{
	int abi = landlock_abi();
	if (abi < 0)
		return abi;
	parts &= landlock_parts(abi);
	uint64_t all = all_of(abi, parts);
	struct ruleset_attr attr = { .fs = all,
				     .scoped = parts & LANDLOCK_SCOPES ? SCOPE_ABSTRACT | SCOPE_SIGNAL : 0 };
	size_t size = abi >= 6 ? sizeof(attr) : abi >= 4 ? 16 : 8;
	_cleanup_(closep) int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < n; i++) {
		struct landlock_path_beneath_attr rule = { .allowed_access = fitting(
								   rules[i].fd, bits(rules[i].access, all)),
							   .parent_fd = rules[i].fd };
		if (syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
			return -errno;
	}
	return syscall(SYS_landlock_restrict_self, fd, 0) < 0 ? -errno : 0;
}
