/*
 * The ioctl requests of a box: an allow list. One number reaches every driver and file system of the kernel,
 * so the requests are named one by one: terminals, what every file and socket has, questions about
 * interfaces, and copies that share blocks. Everything else answers ENOTTY, as a file does that does not know
 * a request, so that programs fall back as they do elsewhere.
 *
 * Left out on purpose: requests of btrfs (a subvolume escapes limits, snapshots and removal), flags of files
 * (FS_IOC_SETFLAGS: compression and others change what a limit counts), FIEMAP, namespaces behind
 * descriptors, line disciplines, and devices, of which a box has none.
 *
 * Requests of seccomp's listener are PID 1's. Another program of the box has nothing to make them with: the
 * kernel refuses a second listener below PID 1's.
 */
#include "seccomp.h"

#include <linux/fs.h>
#include <linux/random.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "poison.h"

/* Of TCGETS2 and its kin glibc knows the names alone. */
struct termios2_like {
	uint32_t flags[4];
	uint8_t line, cc[19];
	uint32_t speeds[2];
};
#define GETS2           _IOR('T', 0x2A, struct termios2_like)
#define SETS2           _IOW('T', 0x2B, struct termios2_like)
#define SETSF2          _IOW('T', 0x2D, struct termios2_like)
#define NOTIF_SET_FLAGS _IOW('!', 4, uint64_t) /* Linux 6.6 */
static_assert(GETS2 == 0x802c542a, "as in asm-generic/ioctls.h");

/* Sorted by number; neighbours are joined. */
static const struct {
	uint32_t first, last;
	uint8_t rule;
} requests[] = {
	{ FIGETBSZ, FIGETBSZ, SECCOMP_ALLOW },
	{ TCGETS, TIOCOUTQ, SECCOMP_ALLOW },  /* attributes, breaks, controlling terminal, process group */
	{ TIOCSTI, TIOCSTI, SECCOMP_REFUSE }, /* typing into another's terminal */
	{ TIOCGWINSZ, TIOCSWINSZ, SECCOMP_ALLOW },
	{ FIONREAD, FIONREAD, SECCOMP_ALLOW },
	{ TIOCLINUX, TIOCLINUX, SECCOMP_REFUSE },
	{ TIOCPKT, TIOCNOTTY, SECCOMP_ALLOW },  /* with FIONBIO between them */
	{ TIOCSETD, TIOCSETD, SECCOMP_REFUSE }, /* line disciplines are modules */
	{ TIOCGETD, TCSBRKP, SECCOMP_ALLOW },
	{ TIOCSBRK, TIOCGSID, SECCOMP_ALLOW },
	{ TIOCGPTPEER, TIOCGPTPEER, SECCOMP_ALLOW },
	{ FIONCLEX, FIOASYNC, SECCOMP_ALLOW }, /* with FIOCLEX between them */
	{ FIOQSIZE, FIOQSIZE, SECCOMP_ALLOW },
	{ FIOSETOWN, SIOCGSTAMPNS_OLD, SECCOMP_ALLOW },
	{ SIOCGIFNAME, SIOCGIFNAME, SECCOMP_ALLOW },
	{ SIOCGIFCONF, SIOCGIFFLAGS, SECCOMP_ALLOW },
	{ SIOCGIFADDR, SIOCGIFADDR, SECCOMP_ALLOW },
	{ SIOCGIFDSTADDR, SIOCGIFDSTADDR, SECCOMP_ALLOW },
	{ SIOCGIFBRDADDR, SIOCGIFBRDADDR, SECCOMP_ALLOW },
	{ SIOCGIFNETMASK, SIOCGIFNETMASK, SECCOMP_ALLOW },
	{ SIOCGIFMETRIC, SIOCGIFMETRIC, SECCOMP_ALLOW },
	{ SIOCGIFMTU, SIOCGIFMTU, SECCOMP_ALLOW },
	{ SIOCGIFHWADDR, SIOCGIFHWADDR, SECCOMP_ALLOW },
	{ SIOCGIFINDEX, SIOCGIFINDEX, SECCOMP_ALLOW },
	{ SIOCGIFTXQLEN, SIOCGIFTXQLEN, SECCOMP_ALLOW },
	{ SIOCETHTOOL, SIOCETHTOOL, SECCOMP_NO_OP }, /* what psutil expects of an interface without it */
	{ SIOCGIFMAP, SIOCGIFMAP, SECCOMP_ALLOW },
	{ TIOCSPTLCK, TIOCSPTLCK, SECCOMP_ALLOW },
	{ TIOCSIG, TIOCSIG, SECCOMP_ALLOW },
	{ FICLONE, FICLONE, SECCOMP_ALLOW },
	{ SECCOMP_IOCTL_NOTIF_ID_VALID, SECCOMP_IOCTL_NOTIF_ID_VALID, SECCOMP_ASK },
	{ NOTIF_SET_FLAGS, NOTIF_SET_FLAGS, SECCOMP_ASK },
	{ FICLONERANGE, FICLONERANGE, SECCOMP_ALLOW },
	{ SETS2, SETSF2, SECCOMP_ALLOW },
	{ RNDGETENTCNT, RNDGETENTCNT, SECCOMP_ALLOW },
	{ TIOCGPTN, TIOCGPTN, SECCOMP_ALLOW },
	{ TIOCGDEV, TIOCGDEV, SECCOMP_ALLOW },
	{ TIOCGPKT, TIOCGPTLCK, SECCOMP_ALLOW },
	{ TIOCGEXCL, TIOCGEXCL, SECCOMP_ALLOW },
	{ FS_IOC_GETFLAGS, FS_IOC_GETFLAGS, SECCOMP_ALLOW }, /* lsattr */
	{ SIOCGSTAMP_NEW, SIOCGSTAMPNS_NEW, SECCOMP_ALLOW },
	{ GETS2, GETS2, SECCOMP_ALLOW },
	{ SECCOMP_IOCTL_NOTIF_SEND, SECCOMP_IOCTL_NOTIF_SEND, SECCOMP_ASK },
	{ SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_ASK },
};
static_assert(2 * ELEMS(requests) + 1 <= SECCOMP_IOCTLS, "seccomp.h has room for SECCOMP_IOCTLS");

size_t seccomp_ioctl(struct seccomp_range ret[SECCOMP_IOCTLS], bool listens)
{
	size_t n = 0;
	uint32_t next = 0; /* the first number that has no rule yet */
	for (size_t i = 0; i < ELEMS(requests); i++) {
		assert(requests[i].first >= next && requests[i].last >= requests[i].first);
		if (requests[i].first > next)
			ret[n++] = (struct seccomp_range){ next, SECCOMP_NOTTY };
		uint8_t rule = requests[i].rule;
		if (rule == SECCOMP_ASK)
			rule = listens ? SECCOMP_ALLOW : SECCOMP_NOTTY;
		ret[n++] = (struct seccomp_range){ requests[i].first, rule };
		next = requests[i].last + 1;
	}
	ret[n++] = (struct seccomp_range){ next, SECCOMP_NOTTY };
	return n;
}
