/*
 * What all boxes share: see struct native. Made once, at the keeper's start.
 */
#include "native.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fd.h"
#include "mnt.h"
#include "native_gauge.h"
#include "native_sys.h"
#include "poison.h"

static const struct {
	const char *name;
	unsigned major, minor;
} nodes[] = { { "null", 1, 3 },   { "zero", 1, 5 },    { "full", 1, 7 },
	      { "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 } };

static const struct {
	const char *name, *target;
} links[] = { { "fd", "/proc/self/fd" },
	      { "stdin", "/proc/self/fd/0" },
	      { "stdout", "/proc/self/fd/1" },
	      { "stderr", "/proc/self/fd/2" },
	      { "ptmx", "pts/ptmx" } };

static int fill_dev(int dev)
{
	for (size_t i = 0; i < ELEMS(nodes); i++)
		if (mknodat(dev, nodes[i].name, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)) < 0)
			return -errno;
	for (size_t i = 0; i < ELEMS(links); i++)
		if (symlinkat(links[i].target, dev, links[i].name) < 0)
			return -errno;
	if (mkdirat(dev, "pts", 0755) < 0 || mkdirat(dev, "shm", 0755) < 0)
		return -errno;
	return 0;
}

/* Not a copy of one for all: boxes would see by inotify when others open /dev/null, and could lock it. */
int native_dev(uint64_t attr)
{
	const struct mnt_option options[] = { { "mode", "0755" }, { "size", "64k" }, { "nr_inodes", "32" } };
	_cleanup_(closep) int fd = mnt_fs("tmpfs", options, ELEMS(options), attr & ~MOUNT_ATTR_RDONLY);
	if (fd < 0)
		return fd;
	mode_t before = umask(0);
	int r = fill_dev(fd);
	(void)umask(before);
	if (r == 0)
		r = mnt_set_attr(fd, attr & MOUNT_ATTR_RDONLY);
	return r < 0 ? r : TAKE_FD(fd);
}

/* Attached to our own mount namespace: older kernels copy attached mounts only. */
static int make_scratch(const char *path)
{
	const struct mnt_option options[] = { { "mode", "0755" }, { "size", "1m" } };
	_cleanup_(closep) int fd =
		mnt_fs("tmpfs", options, ELEMS(options), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	int r = fd < 0 ? fd : mnt_move(fd, AT_FDCWD, path);
	if (r < 0)
		return r;
	static const char *const dirs[] = { "lower", "over", "store" };
	for (size_t i = 0; i < ELEMS(dirs); i++)
		if (mkdirat(fd, dirs[i], 0755) < 0)
			return -errno;
	return TAKE_FD(fd);
}

static int make_file(int dir, const char *name)
{
	_cleanup_(closep) int fd = openat(dir, name, O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0444);
	return fd < 0 ? -errno : 0;
}

/* What masks of /proc are copies of, and where its own files wait: a box's namespace begins as a copy. */
static int fill_empty(int root)
{
	int r = make_file(root, NATIVE_NULL);
	for (unsigned i = 0; r == 0 && i < GAUGE_FILES; i++)
		r = make_file(root, gauge_names[i]);
	if (r == 0 && mkdirat(root, NATIVE_EMPTY, 0555) < 0)
		r = -errno;
	return r < 0 ? r : mnt_set_attr(root, MOUNT_ATTR_RDONLY);
}

/* In a process of its own: its root becomes a read-only tmpfs. */
static int empty_root(const char *at)
{
	const struct mnt_option options[] = { { "mode", "0555" }, { "size", "4k" } };
	int fd = mnt_fs("tmpfs", options, ELEMS(options),
			MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	int r = fd < 0 ? fd : fill_empty(fd);
	if (r < 0)
		return -r;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mnt_move(fd, AT_FDCWD, at) < 0 || fchdir(fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return errno ? errno : EIO;
	return 0;
}

static int make_empty_ns(const char *at)
{
	int said[2], go[2];
	if (pipe2(said, O_CLOEXEC) < 0)
		return -errno;
	_cleanup_(closep) int rd = said[0];
	_cleanup_(closep) int say = said[1];
	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	_cleanup_(closep) int wait = go[0];
	_cleanup_(closep) int wr = go[1];
	pid_t pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		int r = empty_root(at);
		char c;
		close(wr);
		(void)!write(say, &r, sizeof(r));
		(void)!read(wait, &c, 1); /* until the parent has opened our namespace */
		_exit(0);
	}
	closep(&say);
	closep(&wait);
	int error = EIO;
	int r = fd_read_all(rd, &error, sizeof(error));
	char path[48];
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	int ns = r < 0 ? r : error ? -error : open(path, O_RDONLY | O_CLOEXEC);
	if (r == 0 && !error && ns < 0)
		ns = -errno;
	closep(&wr);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return ns;
}

/* Sealed, so that a box that finds its way to /proc/1/exe cannot change it. */
static int load_init(const char *path)
{
	_cleanup_(closep) int file = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(closep) int fd = memfd_create("paddock-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct stat st;
	if (file < 0 || fd < 0 || fstat(file, &st) < 0)
		return -errno;
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = sendfile(fd, file, NULL, (size_t)left);
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		left -= n;
	}
	if (fchmod(fd, 0555) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	/* Execution through a read-only descriptor: a writable one is ETXTBSY. */
	char self[32];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	int ro = open(self, O_RDONLY | O_CLOEXEC);
	return ro < 0 ? -errno : ro;
}

/* /proc has the same entries in every pid namespace. A module may add one while we run; those of the kernel
 * itself are there from the start. */
static int look_at_proc(struct native *n)
{
	int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	int r = d ? 0 : -errno;
	if (!d) {
		fd_close(fd);
		return r;
	}
	n->n_masks = 0;
	for (struct dirent *de; r == 0 && (de = readdir(d));) {
		struct native_mask *m = &n->masks[n->n_masks];
		struct stat st;
		if (!plan_proc_hidden(de->d_name) || fstatat(fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (n->n_masks == PLAN_MASKS || strlen(de->d_name) >= sizeof(m->name) ||
		    S_ISLNK(st.st_mode)) {
			r = -E2BIG;
			continue;
		}
		memcpy(m->name, de->d_name, strlen(de->d_name) + 1);
		m->dir = S_ISDIR(st.st_mode);
		n->n_masks++;
	}
	closedir(d);
	return r;
}

static bool is_spared(void)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(32);
	return fd_slurp(AT_FDCWD, "/proc/self/oom_score_adj", &text) == 0 && text.n && text.p[0] == '-';
}

int native_open(struct native *n, const char *scratch, const char *init_path, struct err *e)
{
	n->scratch = n->empty_ns = n->init = n->tools = -1;
	memset(n->gauge_devs, 0xff, sizeof(n->gauge_devs));
	memset(n->gauge_mounts, 0xff, sizeof(n->gauge_mounts));
	memset(n->group_views, 0xff, sizeof(n->group_views));
	native_sys_open(n);
	n->n_late = n->n_nets = n->wanted_nets = 0;
	n->capture = NETNS_UNKNOWN;
	n->spared = is_spared();
	n->host_net = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int r = look_at_proc(n);
	if (r < 0)
		return err_sys(e, ERR_WALLS, r, "cannot hide what /proc has");
	uint8_t rules[SECCOMP_CALLS];
	seccomp_box(rules);
	r = seccomp_compile(rules, &n->filter);
	seccomp_box_asking(rules);
	if (r == 0)
		r = seccomp_compile(rules, &n->filter_asking);
	n->asks = !(n->without & FEATURE_BIT(FEATURE_OWN_CALLS)) && seccomp_can_ask();
	if (r < 0)
		return err_sys(e, ERR_WALLS, r, "system call filter");
	n->empty_ns = make_empty_ns(scratch);
	if (n->empty_ns < 0)
		return err_sys(e, ERR_WALLS, n->empty_ns, "empty mount namespace");
	n->scratch = make_scratch(scratch);
	if (n->scratch < 0)
		return err_sys(e, ERR_WALLS, n->scratch, "templates of the masks");
	n->init = load_init(init_path);
	if (n->init < 0)
		return err_sys(e, ERR_WALLS, n->init, "cannot load %s", init_path);
	return 0;
}

void native_close(struct native *n)
{
	native_forget(n);
	native_tidy(n, 0);
	while (n->n_nets) {
		struct native_net *net = &n->nets[--n->n_nets];
		fd_close(net->ns);
		netns_gate_close(&net->gate);
	}
	native_gauge_close(n);
	fd_close(n->host_net);
	fd_close(n->scratch);
	fd_close(n->empty_ns);
	fd_close(n->init);
	fd_close(n->tools);
	for (unsigned i = 0; i < ELEMS(n->group_views); i++)
		fd_close(n->group_views[i]);
	fd_close(n->cpuset);
	fd_close(n->cpuset_tasks);
	n->scratch = n->empty_ns = n->init = n->tools = n->host_net = -1;
}
