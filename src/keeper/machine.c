/*
 * The default image: a view of this machine. Its /usr is a layer of its own (the
 * machine's, read-only below an overlay); the rest is a small tree of ours, made
 * here: the links of a merged /usr, an /etc with two users, the few files of the
 * machine's /etc without which its programs do not run (the linker's cache, the
 * alternatives, certificates), none of which is secret.
 */
#include "images.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "machine_packages.h"
#include "sha256.h"
#include "text.h"
#include "poison.h"

#define FORMAT "6" /* changes when what is made here changes */

static const struct {
	const char *path;
	unsigned mode;
	uint32_t owner;
} dirs[] = {
	{ "dev", 0755, 0 },
	{ "etc", 0755, 0 },
	{ "home", 0755, 0 },
	{ "home/user", 0755, PLAN_USER },
	{ "mnt", 0755, 0 },
	{ "opt", 0755, 0 },
	{ "proc", 0755, 0 },
	{ "root", 0700, 0 },
	{ "run", 0755, 0 },
	{ "srv", 0755, 0 },
	{ "sys", 0755, 0 },
	{ "tmp", 01777, 0 },
	{ "usr", 0755, 0 },
	{ "var", 0755, 0 },
	{ "var/cache", 0755, 0 },
	{ "var/lib", 0755, 0 },
	{ "var/log", 0755, 0 },
	{ "var/tmp", 01777, 0 },
	{ "workspace", 0755, PLAN_USER },
	{ "etc/profile.d", 0755, 0 },
	{ "etc/chromium.d", 0755, 0 },
};

static const struct {
	const char *path, *text;
} files[] = {
	{ "etc/profile", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
			 "[ \"$HOME\" = /root ] || PATH=\"$HOME/.local/bin:$PATH\"\n"
			 "export PATH\n"
			 "umask 022\n"
			 "for i in /etc/profile.d/*.sh; do [ ! -r \"$i\" ] || . \"$i\"; done\n"
			 "unset i\n" },
	{ "etc/hosts", "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n" },
	{ "etc/resolv.conf", "nameserver 127.0.0.1\n" },
	{ "etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
			       "networks: files\nprotocols: files\nservices: files\n" },
	{ "etc/shells", "/bin/sh\n/bin/bash\n" },
	{ "etc/issue", "paddock\n" },
	/* Debian's chromium does not start without one; those of the machine may hold keys. */
	{ "etc/chromium.d/paddock",
	  "export CHROMIUM_FLAGS=\"$CHROMIUM_FLAGS --no-default-browser-check --disable-dev-shm-usage\"\n" },
};

/* Of the machine's /etc: what programs need to start, and nothing that is private. */
static const char *const copied[] = {
	"alternatives",
	"ld.so.cache",
	"ld.so.conf",
	"ld.so.conf.d",
	"ssl/certs",
	"ssl/openssl.cnf",
	"ca-certificates.conf",
	"debian_version",
	"os-release",
	"localtime",
	"timezone",
	"mime.types",
	"protocols",
	"services",
	"fonts",
	"matplotlibrc",
	"python3",
	"python3.11",
	"perl",
	"java-11-openjdk",
	"java-17-openjdk",
	"java-21-openjdk",
	"R",
	"terminfo",
	"inputrc",
	"magic",
	"magic.mime",
	"rpc",
	"networks",
	"ethertypes",
	/* Where packages come from: the sets `pypi`, `npm` and `apt` of egress policies follow the same
	   files. */
	"pip.conf",
	"npmrc",
	"apt",
	"dpkg",
	"debconf.conf",
	"adduser.conf",
	"deluser.conf",
	"login.defs",
	"default/useradd",
	"default/locale",
	"locale.alias",
	"pam.conf",
	"pam.d",
	"security",
	"bash.bashrc",
};

static const char *const merged[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };

static int add_stat(struct sha256 *s, const char *path)
{
	struct stat st;
	char line[256];
	if (stat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	snprintf(line, sizeof(line), "%s %lld %lld.%09ld\n", path, (long long)st.st_size,
		 (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	sha256_add(s, line, strlen(line));
	return 0;
}

int machine_key(char ret[65], struct err *e)
{
	struct sha256 s;
	sha256_init(&s);
	sha256_add(&s, FORMAT, sizeof(FORMAT));
	/* Package changes show in dpkg's status file; other systems show in the directories. */
	static const char *const signs[] = {
		"/var/lib/dpkg/status",   "/usr/bin",         "/usr/lib",
		"/etc/alternatives",      "/etc/ld.so.cache", "/etc/ssl/certs",
		"/etc/pip.conf",          "/etc/npmrc",       "/etc/apt/sources.list",
		"/etc/apt/sources.list.d"
	};
	for (size_t i = 0; i < ELEMS(signs); i++) {
		int r = add_stat(&s, signs[i]);
		if (r < 0)
			return err_sys(e, ERR_INTERNAL, r, "cannot look at %s", signs[i]);
	}
	uint8_t digest[SHA256_SIZE];
	sha256_end(&s, digest);
	text_hex(digest, sizeof(digest), ret);
	return 0;
}

/* A URL with a user in it, or npm's ways to say who one is. */
static bool has_credentials(int fd)
{
	static const char *const words[] = { "_authToken", "_password", "_auth=" };
	char text[65536];
	ssize_t n = pread(fd, text, sizeof(text), 0);
	size_t left = n > 0 ? (size_t)n : 0;

	for (size_t i = 0; i < ELEMS(words); i++)
		if (left && memmem(text, left, words[i], strlen(words[i])))
			return true;
	for (const char *p = text, *at; left && (at = memmem(p, left, "://", 3));) {
		at += 3;
		left -= (size_t)(at - p);
		p = at;
		for (size_t i = 0; i < left && !strchr("/ \t\r\n\"'", p[i]); i++)
			if (p[i] == '@')
				return true;
	}
	return false;
}

static int copy_file(int from, int to, const char *name, mode_t mode)
{
	_cleanup_(closep) int in = openat(from, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (in < 0)
		return -errno;
	if (has_credentials(in))
		return 0;
	_cleanup_(closep) int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode & 0755);
	if (out < 0)
		return -errno;
	for (;;) {
		char chunk[65536];
		ssize_t n = read(in, chunk, sizeof(chunk));
		if (n <= 0)
			return n < 0 ? -errno : 0;
		int r = fd_write_all(out, chunk, (size_t)n);
		if (r < 0)
			return r;
	}
}

static int copy_entry(int from, int to, const char *name, unsigned depth);

static int copy_dir(int from, int to, const char *name, unsigned depth)
{
	if (depth > 8)
		return -ELOOP;
	if (mkdirat(to, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	int src = openat(from, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_(closep) int dst = openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *d = src < 0 ? NULL : fdopendir(src);
	if (!d || dst < 0) {
		int r = -errno;
		if (d)
			closedir(d);
		else
			fd_close(src);
		return r;
	}
	int r = 0;
	for (struct dirent *de; r == 0 && (de = readdir(d));)
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
			r = copy_entry(dirfd(d), dst, de->d_name, depth + 1);
	closedir(d);
	return r;
}

/* What is not for everybody to read, or holds a password for all that, stays where it is. */
static int copy_entry(int from, int to, const char *name, unsigned depth)
{
	struct stat st;
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(st.st_mode)) {
		char target[4096];
		ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);
		if (n < 0)
			return -errno;
		target[n] = 0;
		return symlinkat(target, to, name) < 0 ? -errno : 0;
	}
	if (S_ISDIR(st.st_mode))
		return st.st_mode & 05 ? copy_dir(from, to, name, depth) : 0;
	if (S_ISREG(st.st_mode) && st.st_mode & 04)
		return copy_file(from, to, name, st.st_mode);
	return 0;
}

static int copy_etc(int rootfs, const char *name)
{
	_cleanup_(closep) int from = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(closep) int to = openat(rootfs, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (from < 0 || to < 0)
		return -errno;
	const char *slash = strchr(name, '/');
	if (!slash)
		return copy_entry(from, to, name, 0);
	char first[64];
	snprintf(first, sizeof(first), "%.*s", (int)(slash - name), name);
	if (mkdirat(to, first, 0755) < 0 && errno != EEXIST)
		return -errno;
	_cleanup_(closep) int sub_from = openat(from, first, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(closep) int sub_to = openat(to, first, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sub_from < 0)
		return errno == ENOENT ? 0 : -errno;
	return sub_to < 0 ? -errno : copy_entry(sub_from, sub_to, slash + 1, 0);
}

static int make_links(int rootfs, struct err *e)
{
	for (size_t i = 0; i < ELEMS(merged); i++) {
		char path[16], target[64];
		snprintf(path, sizeof(path), "/%s", merged[i]);
		struct stat st;
		if (lstat(path, &st) < 0)
			continue;
		ssize_t n = S_ISLNK(st.st_mode) ? readlink(path, target, sizeof(target) - 1) : 0;
		target[n > 0 ? n : 0] = 0;
		const char *rel = target[0] == '/' ? target + 1 : target;
		if (n <= 0 || strncmp(rel, "usr/", 4) != 0)
			return err_set(e, ERR_UNSUPPORTED,
				       "/%s is not a link into /usr: import an image, this machine cannot "
				       "serve as one",
				       merged[i]);
		if (symlinkat(rel, rootfs, merged[i]) < 0)
			return err_sys(e, ERR_STORAGE, errno, "cannot make the machine's image");
	}
	return 0;
}

int machine_build(int rootfs, struct err *e)
{
	for (size_t i = 0; i < ELEMS(dirs); i++)
		if (mkdirat(rootfs, dirs[i].path, 0755) < 0 ||
		    fchmodat(rootfs, dirs[i].path, dirs[i].mode, 0) < 0 ||
		    fchownat(rootfs, dirs[i].path, dirs[i].owner, dirs[i].owner, 0) < 0)
			return err_sys(e, ERR_STORAGE, errno, "cannot make /%s of the machine's image",
				       dirs[i].path);
	for (size_t i = 0; i < ELEMS(files); i++) {
		int r = fd_replace(rootfs, files[i].path, files[i].text, strlen(files[i].text), 0644, false);
		if (r < 0)
			return err_sys(e, ERR_STORAGE, r, "cannot make /%s of the machine's image",
				       files[i].path);
	}
	for (size_t i = 0; i < ELEMS(copied); i++) {
		int r = copy_etc(rootfs, copied[i]);
		if (r < 0)
			return err_sys(e, ERR_STORAGE, r, "cannot copy /etc/%s into the machine's image",
				       copied[i]);
	}
	if (symlinkat("/run", rootfs, "var/run") < 0)
		return err_sys(e, ERR_STORAGE, errno, "cannot make the machine's image");
	return machine_packages(rootfs, e) < 0 ? -1 : make_links(rootfs, e);
}
