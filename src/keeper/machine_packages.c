/*
 * Of the machine's image: what package managers need. apt finds the machine's
 * packages as installed (their files are there: /usr is the machine's), with the
 * lists that the machine has; accounts are those of the machine's system, without
 * its people and their passwords.
 *
 * The state of dpkg is copied, not layered: one more overlay would cost every
 * create, a copy costs each new image a tenth of a second. Checksums and symbol
 * tables, two thirds of it, are left out; only `dpkg --verify` and builds of
 * Debian packages miss them.
 */
#include "machine_packages.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "fd.h"
#include "num.h"
#include "plan.h"
#include "poison.h"

#define ACCOUNTS_MAX (256u * 1024)
#define SYSTEM_LAST  999 /* ids above are people's */

/* Files of the first level of a directory of the machine's. */
static const struct {
	const char *dir;        /* below / here and there */
	const char *only;       /* NULL: all */
	const char *without[3]; /* endings */
} trees[] = {
	{ "var/lib/dpkg", "status", { 0 } },
	{ "var/lib/dpkg", "cmethopt", { 0 } },
	{ "var/lib/dpkg/alternatives", NULL, { 0 } },
	{ "var/lib/dpkg/triggers", NULL, { "Lock" } },
	{ "var/lib/dpkg/info", NULL, { ".md5sums", ".symbols" } },
	{ "var/lib/apt", "extended_states", { 0 } },
	{ "var/lib/apt/lists", NULL, { "lock" } },
	{ "etc/skel", NULL, { 0 } },
};

static const struct {
	const char *path, *text;
} files[] = {
	/* Our sudo stays where it is when a package brings one, which could not work. */
	{ "var/lib/dpkg/diversions",
	  "/usr/bin/sudo\n/usr/bin/sudo.distrib\n:\n/usr/bin/su\n/usr/bin/su.distrib\n:\n" },
	{ "var/lib/dpkg/statoverride", "" },
	{ "var/lib/dpkg/available", "" },
	/* A box is not meant to survive the machine's crash. */
	{ "etc/dpkg/dpkg.cfg.d/paddock", "force-unsafe-io\n" },
	/* What a box installs is nobody else's: PEP 668 has nobody to protect here. The machine's own
	 * configuration is /etc/pip.conf, which pip reads as well. */
	{ "etc/xdg/pip/pip.conf", "[global]\nbreak-system-packages = true\n" },
};

static const char *const dirs[] = {
	"etc/dpkg",
	"etc/dpkg/dpkg.cfg.d",
	"etc/xdg",
	"etc/xdg/pip",
	"etc/skel",
	"var/backups",
	"var/cache/apt",
	"var/cache/apt/archives",
	"var/cache/apt/archives/partial",
	"var/cache/debconf",
	"var/lib/apt",
	"var/lib/apt/lists",
	"var/lib/apt/lists/partial",
	"var/lib/dpkg",
	"var/lib/dpkg/alternatives",
	"var/lib/dpkg/info",
	"var/lib/dpkg/parts",
	"var/lib/dpkg/triggers",
	"var/lib/dpkg/updates",
	"var/lib/misc",
	"var/local",
	"var/log/apt",
	"var/mail",
	"var/opt",
	"var/spool",
};

static bool is_wanted(const char *name, const char *const without[3])
{
	for (unsigned i = 0; i < 3 && without[i]; i++) {
		size_t n = strlen(name), tail = strlen(without[i]);
		if (n >= tail && strcmp(name + n - tail, without[i]) == 0)
			return false;
	}
	return true;
}

/* Plain files that everybody may read; others stay where they are. */
static int copy_file(int from, int to, const char *name)
{
	struct stat st;
	_cleanup_(closep) int in = openat(from, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (in < 0)
		return errno == ENOENT || errno == ELOOP ? 0 : -errno;
	if (fstat(in, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || !(st.st_mode & 04))
		return 0;
	_cleanup_(closep) int out =
		openat(to, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, st.st_mode & 0755);
	if (out < 0)
		return -errno;
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = sendfile(out, in, NULL, (size_t)left);
		if (n < 0)
			return -errno;
		if (n == 0)
			break; /* it has become shorter */
		left -= n;
	}
	return 0;
}

static int copy_files(int rootfs, const char *dir, const char *only, const char *const without[3])
{
	char path[64];
	snprintf(path, sizeof(path), "/%s", dir);
	int src = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (src < 0)
		return errno == ENOENT ? 0 : -errno;
	DIR *d = fdopendir(src);
	_cleanup_(closep) int dst = openat(rootfs, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = !d || dst < 0 ? -errno : 0;
	for (struct dirent *de; r == 0 && (de = readdir(d));)
		if ((only ? strcmp(de->d_name, only) == 0
			  : de->d_type == DT_REG || de->d_type == DT_UNKNOWN) &&
		    is_wanted(de->d_name, without))
			r = copy_file(dirfd(d), dst, de->d_name);
	if (d)
		closedir(d);
	else
		fd_close(src);
	return r;
}

/* ---- accounts ---- */

/* The line of a system account, without members: "name:x:ID:rest". */
static void add_account(struct buf *out, struct view line, bool group)
{
	struct view rest, name = view_split(line, ':', &rest);
	(void)view_split(rest, ':', &rest);
	struct view fields = rest, id = view_split(rest, ':', &rest);
	uint32_t n;
	if (!name.n || num_u32(id, &n) < 0 || n < 1 || n > SYSTEM_LAST || view_is(name, "user"))
		return;
	if (group)
		buf_printf(out, "%.*s:x:%u:\n", VIEW_ARG(name), n);
	else
		buf_printf(out, "%.*s:x:%.*s\n", VIEW_ARG(name), VIEW_ARG(fields));
}

static int put_accounts(int rootfs, const char *path, const char *first, const char *last, bool group)
{
	_cleanup_(buf_done) struct buf have = BUF_INIT(ACCOUNTS_MAX), out = BUF_INIT(ACCOUNTS_MAX);
	char from[32];
	snprintf(from, sizeof(from), "/%s", path);
	int r = fd_slurp(AT_FDCWD, from, &have);
	if (r < 0 && r != -ENOENT)
		return r;
	buf_puts(&out, first);
	for (struct view rest = buf_view(&have); rest.n;)
		add_account(&out, view_split(rest, '\n', &rest), group);
	buf_puts(&out, last);
	return out.bad ? out.bad : fd_replace(rootfs, path, out.p, out.n, 0644, false);
}

/* ---- homes ---- */

/* As useradd makes them: a copy of /etc/skel. */
static int fill_home(int rootfs, const char *home, uint32_t owner)
{
	_cleanup_(closep) int to = openat(rootfs, home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int src = openat(rootfs, "etc/skel", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = src < 0 ? NULL : fdopendir(src);
	int r = to < 0 || !d ? -errno : 0;
	for (struct dirent *de; r == 0 && (de = readdir(d));) {
		if (de->d_type == DT_DIR)
			continue;
		r = copy_file(dirfd(d), to, de->d_name);
		if (r == 0 && fchownat(to, de->d_name, owner, owner, AT_SYMLINK_NOFOLLOW) < 0 &&
		    errno != ENOENT)
			r = -errno;
	}
	if (d)
		closedir(d);
	else
		fd_close(src);
	return r;
}

/* /usr is root's: a user's programs go where pip puts them, too, and PATH has that. npm looks for the
 * machine's configuration below the prefix, unless it is told where it is. */
static int put_npmrc(int rootfs)
{
	static const char path[] = "home/user/.npmrc";
	char text[128];
	snprintf(text, sizeof(text), "prefix=${HOME}/.local\nglobalconfig=%s\n",
		 access("/etc/npmrc", F_OK) == 0 ? "/etc/npmrc" : "/usr/etc/npmrc");
	int r = fd_replace(rootfs, path, text, strlen(text), 0644, false);
	return r == 0 && fchownat(rootfs, path, PLAN_USER, PLAN_USER, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : r;
}

static int put_files(int rootfs)
{
	for (size_t i = 0; i < ELEMS(files); i++) {
		int r = fd_replace(rootfs, files[i].path, files[i].text, strlen(files[i].text), 0644, false);
		if (r < 0)
			return r;
	}
	return put_npmrc(rootfs);
}

int machine_packages(int rootfs, struct err *e)
{
	int r = 0;
	for (size_t i = 0; i < ELEMS(dirs); i++)
		if (mkdirat(rootfs, dirs[i], 0755) < 0 && errno != EEXIST)
			return err_sys(e, ERR_STORAGE, errno, "cannot make /%s of the machine's image",
				       dirs[i]);
	for (size_t i = 0; r == 0 && i < ELEMS(trees); i++) {
		r = copy_files(rootfs, trees[i].dir, trees[i].only, trees[i].without);
		if (r < 0)
			return err_sys(e, ERR_STORAGE, r, "cannot copy /%s into the machine's image",
				       trees[i].dir);
	}
	r = put_accounts(rootfs, "etc/passwd", "root:x:0:0:root:/root:/bin/bash\n",
			 "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
			 "user:x:1000:1000:user:/home/user:/bin/bash\n",
			 false);
	if (r == 0)
		r = put_accounts(rootfs, "etc/group", "root:x:0:\n", "nogroup:x:65534:\nuser:x:1000:\n",
				 true);
	if (r == 0)
		r = put_files(rootfs);
	if (r == 0)
		r = fill_home(rootfs, "root", 0);
	if (r == 0)
		r = fill_home(rootfs, "home/user", PLAN_USER);
	return r < 0 ? err_sys(e, ERR_STORAGE, r, "cannot make the accounts of the machine's image") : 0;
}
