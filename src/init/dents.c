/*
 * See dents.h.
 */
#include "dents.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "poison.h"

struct kernel_dirent {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

int dents_next(struct dents *d, int fd, struct dents_entry *ret)
{
	for (;;) {
		if (d->at == d->n) {
			long n = syscall(SYS_getdents64, fd, d->room, sizeof(d->room));
			if (n <= 0)
				return n < 0 ? -errno : 0;
			d->n = (size_t)n;
			d->at = 0;
		}
		struct kernel_dirent *k = (struct kernel_dirent *)(void *)(d->room + d->at);
		d->at += k->reclen;
		if (strcmp(k->name, ".") == 0 || strcmp(k->name, "..") == 0)
			continue;
		*ret = (struct dents_entry){ .name = k->name, .type = k->type, .after = k->off };
		return 1;
	}
}
