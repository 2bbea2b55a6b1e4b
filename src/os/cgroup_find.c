/*
 * Where the controllers live: see cgroup.h.
 *
 * A v1 hierarchy is a `cgroup` mount whose super options name its controllers;
 * the v2 hierarchy is the `cgroup2` mount, whose controllers must be enabled in
 * each cgroup.subtree_control on the way down. Hybrid machines have both, the v2
 * tree then perhaps without controllers but still with cgroup.kill.
 *
 * We stay below our own group of each hierarchy (/proc/self/cgroup), with two
 * exceptions. A v2 group cannot have processes and children with controllers both.
 * systemd 254 and newer puts the daemon into a leaf of the service's group
 * (DelegateSubgroup=daemon), and our groups are beside that leaf: the service's limits
 * hold for boxes, too. Older ones do not, and could not put the next daemon's process
 * into a group with boxes in it (systemd 252: "Failed to attach to cgroup"): boxes would
 * not survive a restart. There, where v2's root has the controllers, our groups are below
 * the root.
 */
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fd.h"
#include "num.h"
#include "poison.h"

#define LEAF          "daemon" /* as in etc/paddock.service */
#define DAEMON_WEIGHT "1000"   /* beside all boxes together, which have 100 */

static const char *const names[CGROUP_CONTROLLERS] = {
	[CGROUP_MEMORY] = "memory",
	[CGROUP_CPU] = "cpu",
	[CGROUP_PIDS] = "pids",
	[CGROUP_CPUACCT] = "cpuacct",
};

/* The controllers that a comma- or space-separated list names, as bits. */
static unsigned controllers_in(struct view list, char sep)
{
	unsigned bits = 0;
	while (list.n) {
		struct view one = view_split(list, sep, &list);
		for (unsigned c = 0; c < CGROUP_CONTROLLERS; c++)
			if (view_is(one, names[c]))
				bits |= 1u << c;
	}
	return bits;
}

/* Our own path in the hierarchy with the given controllers (0 = v2), "/" when unknown. */
static void own_path(struct view table, unsigned controllers, char *dst, size_t size)
{
	snprintf(dst, size, "/");
	while (table.n) {
		struct view line = view_split(table, '\n', &table), rest, path;
		struct view id = view_split(line, ':', &rest);
		struct view list = view_split(rest, ':', &path);
		bool v2 = view_is(id, "0") && list.n == 0;
		if (controllers ? (controllers_in(list, ',') & controllers) != 0 : v2) {
			if (view_to_str(path, dst, size) < 0)
				snprintf(dst, size, "/");
			return;
		}
	}
}

static int open_dir(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Whether no other process is in the group. */
static bool ours_alone(int dir)
{
	struct buf b = BUF_INIT(65536);
	uint32_t pid;
	bool alone = fd_slurp(dir, "cgroup.procs", &b) == 0;
	struct view rest = buf_view(&b);
	while (alone && rest.n)
		alone = num_u32(view_split(rest, '\n', &rest), &pid) == 0 && pid == (uint32_t)getpid();
	buf_done(&b);
	return alone;
}

/* v2: our processes must not be in a group whose children have controllers. Where
 * the group is ours alone (a container's), we move to a leaf of it. */
static bool move_to_leaf(int dir)
{
	return ours_alone(dir) && (mkdirat(dir, LEAF, 0755) == 0 || errno == EEXIST) &&
	       fd_put(dir, LEAF "/cgroup.procs", "0") == 0;
}

/* The controllers that the group's children may now have; *ret_offered are those that it has itself. */
static unsigned enable_v2(int dir, unsigned *ret_offered)
{
	unsigned have = 0;
	struct buf b = BUF_INIT(512);
	if (fd_slurp(dir, "cgroup.controllers", &b) == 0)
		have = controllers_in(view_trim((struct view){ b.p, b.n ? b.n - 1 : 0 }), ' ');
	buf_done(&b);
	have &= ~(1u << CGROUP_CPUACCT);
	*ret_offered = have;
	for (unsigned c = 0; c < CGROUP_CONTROLLERS; c++) {
		char word[16];
		snprintf(word, sizeof(word), "+%s", names[c]);
		int r = have & 1u << c ? fd_put(dir, "cgroup.subtree_control", word) : 0;
		/* It has processes. What can be had nevertheless (cpu, pids) would make its children threaded
		 * groups, which no box can be in: memory is asked for first, and then nothing more. */
		if (r == -EBUSY)
			return 0;
		if (r < 0)
			have &= ~(1u << c);
	}
	return have;
}

/* Opens (makes) name below dir; v2 controllers are enabled for its children. */
static int descend(int dir, const char *name, bool v2, unsigned *controllers)
{
	if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unsigned offered;
	if (v2)
		*controllers = enable_v2(fd, &offered);
	return fd;
}

static int add_tree(struct cgroup_host *h, const char *base, const char *parent, const char *instance,
		    bool v2, unsigned controllers, bool in_leaf)
{
	_cleanup_(closep) int top = open_dir(base);
	if (top < 0)
		return -errno;
	if (v2) {
		unsigned offered;
		controllers = enable_v2(top, &offered);
		/* Not where nothing is to be had by it: a hybrid's v2 tree has no controllers. */
		if (offered && !controllers && move_to_leaf(top)) {
			controllers = enable_v2(top, &offered);
			in_leaf = true;
		}
		if (controllers && in_leaf)
			(void)!fd_put(top, LEAF "/cpu.weight", DAEMON_WEIGHT);
	}
	_cleanup_(closep) int mid = descend(top, parent, v2, &controllers);
	if (mid < 0)
		return mid;
	int dir = descend(mid, instance, v2, &controllers);
	if (dir < 0)
		return dir;
	struct cgroup_tree *t = &h->trees[h->n];
	*t = (struct cgroup_tree){ .dir = dir, .v2 = v2, .controllers = controllers };
	if (v2)
		t->controllers |= controllers & 1u << CGROUP_CPU ? 1u << CGROUP_CPUACCT : 0;
	if (snprintf(t->path, sizeof(t->path), "%s/%s/%s", base, parent, instance) >= (int)sizeof(t->path)) {
		fd_close(dir);
		return -ENAMETOOLONG;
	}
	if (v2)
		h->unified = (int)h->n;
	h->n++;
	return 0;
}

/* One line of mountinfo: root, mount point, type and super options. */
static bool mount_line(struct view line, struct view *root, struct view *point, struct view *type,
		       struct view *super)
{
	struct view rest = line;
	for (int i = 0; i < 3; i++)
		(void)view_split(rest, ' ', &rest);
	*root = view_split(rest, ' ', &rest);
	*point = view_split(rest, ' ', &rest);
	const char *dash = rest.n ? memmem(rest.p, rest.n, " - ", 3) : NULL;
	if (!dash)
		return false;
	rest = view_skip(rest, (size_t)(dash - rest.p) + 3);
	*type = view_split(rest, ' ', &rest);
	(void)view_split(rest, ' ', &rest);
	*super = rest;
	return true;
}

/* Whether this is the machine's root group (the only one without a type) and its children can have
 * controllers. */
static bool root_has_memory(struct view point)
{
	char path[512];
	if (view_to_str(point, path, sizeof(path)) < 0)
		return false;
	_cleanup_(closep) int dir = open_dir(path);
	unsigned offered;
	return dir >= 0 && faccessat(dir, "cgroup.type", F_OK, 0) < 0 && errno == ENOENT &&
	       enable_v2(dir, &offered) & 1u << CGROUP_MEMORY;
}

/* Whether systemd has put us into the leaf of a group that it leaves to us. */
static bool in_leaf_of_service(struct view point, struct view path)
{
	const size_t n = sizeof("/" LEAF) - 1;
	char dir[512], mark[2];
	if (path.n <= n || memcmp(path.p + path.n - n, "/" LEAF, n) != 0 ||
	    snprintf(dir, sizeof(dir), "%.*s%.*s", VIEW_ARG(point), VIEW_ARG(view_head(path, path.n - n))) >=
		    (int)sizeof(dir))
		return false;
	return getxattr(dir, "trusted.delegate", mark, sizeof(mark)) == 1 && mark[0] == '1';
}

static void consider_mount(struct cgroup_host *h, struct view line, struct view self, const char *parent,
			   const char *instance, unsigned *seen)
{
	struct view root, point, type, super;
	if (!mount_line(line, &root, &point, &type, &super))
		return;
	bool v2 = view_is(type, "cgroup2");
	if ((!v2 && !view_is(type, "cgroup")) || h->n == CGROUP_TREES || (v2 && h->unified >= 0))
		return;
	unsigned controllers = v2 ? 0 : controllers_in(super, ',') & ~*seen;
	if (!v2 && !controllers)
		return;
	char own[256], base[512];
	own_path(self, v2 ? 0 : controllers, own, sizeof(own));
	/* In a cgroup namespace the mount's root is not "/": what is above it is not ours to see. */
	struct view path = view_of(own);
	if (root.n > 1 && path.n >= root.n && memcmp(path.p, root.p, root.n) == 0 &&
	    (path.n == root.n || path.p[root.n] == '/'))
		path = view_skip(path, root.n);
	if (path.n == 1)
		path.n = 0;
	bool in_leaf = v2 && in_leaf_of_service(point, path);
	if (in_leaf)
		path.n -= sizeof("/" LEAF) - 1;
	else if (v2 && root_has_memory(point))
		path.n = 0;
	if (snprintf(base, sizeof(base), "%.*s%.*s", VIEW_ARG(point), VIEW_ARG(path)) >= (int)sizeof(base))
		return;
	int r = add_tree(h, base, parent, instance, v2, controllers, in_leaf);
	/* Which controllers a v2 tree would have had is not known: all that nobody else has. */
	for (unsigned c = 0; r < 0 && c < CGROUP_CONTROLLERS; c++)
		if (v2 ? !h->why[c][0] : (controllers & 1u << c) != 0)
			snprintf(h->why[c], sizeof(h->why[c]), "%.40s: %s", base, strerror(-r));
	if (r == 0)
		*seen |= h->trees[h->n - 1].controllers;
}

static bool has_swap_limit(const struct cgroup_host *h)
{
	struct sysinfo si;
	if (sysinfo(&si) == 0 && si.totalswap == 0)
		return true; /* nothing to limit */
	for (unsigned i = 0; i < h->n; i++) {
		const struct cgroup_tree *t = &h->trees[i];
		if (t->controllers & 1u << CGROUP_MEMORY)
			return t->v2 || faccessat(t->dir, "memory.memsw.limit_in_bytes", W_OK, 0) == 0;
	}
	return false;
}

static bool has_socket_limit(const struct cgroup_host *h)
{
	for (unsigned i = 0; i < h->n; i++) {
		const struct cgroup_tree *t = &h->trees[i];
		if (t->controllers & 1u << CGROUP_MEMORY)
			return t->v2 || faccessat(t->dir, "memory.kmem.tcp.limit_in_bytes", W_OK, 0) == 0;
	}
	return false;
}

static uint64_t read_number(const char *path)
{
	struct buf text = BUF_INIT(4096);
	uint64_t n = UINT64_MAX;

	if (fd_slurp(AT_FDCWD, path, &text) < 0 ||
	    num_u64((struct view){ text.p, text.n ? text.n - 1 : 0 }, &n) < 0) /* without the newline */
		n = UINT64_MAX;
	buf_done(&text);
	return n;
}

/* All boxes together leave a quarter of the machine's processes to everything else. */
static int limit_all(const struct cgroup_host *h)
{
	uint64_t most =
		MIN(read_number("/proc/sys/kernel/pid_max"), read_number("/proc/sys/kernel/threads-max"));
	char text[24];
	int r = 0;

	snprintf(text, sizeof(text), "%llu", (unsigned long long)(most - most / 4));
	for (unsigned i = 0; r == 0 && most != UINT64_MAX && i < h->n; i++)
		if (h->trees[i].controllers & 1u << CGROUP_PIDS)
			r = fd_put(h->trees[i].dir, "pids.max", text);
	return r;
}

static void close_trees(struct cgroup_host *h)
{
	while (h->n)
		fd_close(h->trees[--h->n].dir);
}

static int open_once(struct cgroup_host *h, const char *parent, const char *instance, struct err *e)
{
	*h = (struct cgroup_host){ .unified = -1, .lock = -1 };
	struct buf mounts = BUF_INIT(1u << 20), self = BUF_INIT(65536);
	int r = fd_slurp(AT_FDCWD, "/proc/self/mountinfo", &mounts);
	if (r == 0)
		r = fd_slurp(AT_FDCWD, "/proc/self/cgroup", &self);
	unsigned seen = 0;
	struct view rest = buf_view(&mounts);
	while (r == 0 && rest.n)
		consider_mount(h, view_split(rest, '\n', &rest), buf_view(&self), parent, instance, &seen);
	buf_done(&mounts);
	buf_done(&self);
	if (r < 0)
		return err_sys(e, ERR_WALLS, r, "cannot read the machine's control groups");
	for (unsigned c = 0; c < CGROUP_CONTROLLERS; c++)
		if (seen & 1u << c)
			h->why[c][0] = 0; /* another hierarchy has it */
		else if (!h->why[c][0])
			snprintf(h->why[c], sizeof(h->why[c]),
				 "no mounted hierarchy offers it to this group");
	h->swap_limit = has_swap_limit(h);
	h->socket_limit = has_socket_limit(h);
	r = limit_all(h);
	return r < 0 ? err_sys(e, ERR_WALLS, r, "cannot limit the processes of all sandboxes") : 0;
}

int cgroup_open(struct cgroup_host *h, const char *parent, const char *instance, struct err *e)
{
	int r = -ESTALE;
	for (int i = 0; r == -ESTALE && i < 10; i++) {
		if (i)
			close_trees(h);
		if (open_once(h, parent, instance, e) < 0)
			return -1;
		r = cgroup_lock(h);
	}
	return r < 0 ? err_sys(e, ERR_WALLS, r, "cannot lock the control groups") : 0;
}

int cgroup_save(const struct cgroup_host *h, struct buf *out)
{
	for (unsigned i = 0; i < h->n; i++)
		buf_printf(out, "%d %u %s\n", h->trees[i].v2, h->trees[i].controllers, h->trees[i].path);
	return out->bad;
}

static int restore_tree(struct cgroup_tree *t, struct view line)
{
	struct view rest, v2 = view_split(line, ' ', &rest), bits = view_split(rest, ' ', &rest);
	if (num_u32(bits, &t->controllers) < 0 || view_to_str(rest, t->path, sizeof(t->path)) < 0)
		return -EINVAL;
	t->v2 = view_is(v2, "1");
	t->dir = open_dir(t->path);
	return t->dir < 0 ? -errno : 0;
}

int cgroup_restore(struct cgroup_host *h, struct view text)
{
	*h = (struct cgroup_host){ .unified = -1, .lock = -1 };
	unsigned seen = 0;
	while (text.n && h->n < CGROUP_TREES) {
		struct cgroup_tree *t = &h->trees[h->n];
		int r = restore_tree(t, view_split(text, '\n', &text));
		if (r < 0) {
			close_trees(h);
			return r;
		}
		if (t->v2) {
			h->unified = (int)h->n;
			/* systemd removes the leaf between a stop and a start. None is there at the root. */
			(void)!fd_put(t->dir, "../../" LEAF "/cpu.weight", DAEMON_WEIGHT);
		}
		seen |= t->controllers;
		h->n++;
	}
	for (unsigned c = 0; c < CGROUP_CONTROLLERS; c++)
		if (!(seen & 1u << c))
			snprintf(h->why[c], sizeof(h->why[c]),
				 "no mounted hierarchy offered it at the first start");
	h->swap_limit = has_swap_limit(h);
	h->socket_limit = has_socket_limit(h);
	int r = h->n ? cgroup_lock(h) : -ENOENT;
	if (r < 0)
		close_trees(h);
	return r;
}

void cgroup_close(struct cgroup_host *h)
{
	fd_close(h->lock);
	h->lock = -1;
	for (unsigned i = 0; i < h->n; i++) {
		fd_close(h->trees[i].dir);
		/* Only when empty; boxes that go on living keep it. */
		(void)rmdir(h->trees[i].path);
		char *slash = strrchr(h->trees[i].path, '/');
		if (slash) {
			*slash = 0;
			(void)rmdir(h->trees[i].path);
		}
	}
	h->n = 0;
}
