/*
 * The trial box: see trial.h. A keeper that is killed meanwhile leaves what any half-made box leaves, and the
 * next start removes that.
 */
#include "trial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "btrfs.h"
#include "clock.h"
#include "fd.h"
#include "mnt.h"
#include "rnd.h"
#include "spawn.h"
#include "sweep.h"
#include "poison.h"

#define FREEZE_MS 5000
#define DISK_MB   64

/* Only what the storage is. */
static void trial_storage(const struct disk *d, struct posture *p)
{
	char where[64];
	if (d->file >= 0)
		snprintf(where, sizeof(where), "btrfs in a loop file on %s", mnt_type(d->file));
	else
		snprintf(where, sizeof(where), "%s on %s", d->btrfs ? "subvolumes" : "plain directories",
			 mnt_type(d->root));
	posture_add(p, "storage", true, true, "%s", where);
	bool simple = d->btrfs && btrfs_quota_simple(d->root);
	posture_feature(
		p, FEATURE_DISK_QUOTA, d->btrfs, 0,
		!d->btrfs ? NULL
		: simple  ? "simple quotas of btrfs"
			  : "quota groups of btrfs (before Linux 6.7): snapshots and removals take longer");
}

/* ---- the box's parts ---- */

static int try_idmap(int dir, int userns)
{
	_cleanup_(closep) int fd =
		mnt_tree(dir, "", MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_RDONLY, userns);
	return fd < 0 ? fd : 0;
}

/* Layers and storage are mounted with their ids shifted into the box's range: the kernel must know how to,
 * for each of their file systems. */
static bool probe_idmap(const struct plan *plan, const struct plan_image *image, int storage,
			struct posture *p)
{
	_cleanup_(closep) int userns = -1;
	char text[160] = "";
	size_t n = 0;
	int r = spawn_userns(plan->uid_base, PLAN_IDS, &userns);
	if (r < 0) {
		posture_add(p, "idmap", false, true, "no user namespace for a sandbox: %s", strerror(-r));
		return false;
	}
	for (unsigned i = 0; i <= image->n; i++) {
		int dir = i < image->n ? image->layers[i].dir : storage;
		const char *what = i < image->n ? image->layers[i].at : "storage";
		r = try_idmap(dir, userns);
		if (r < 0) {
			posture_add(p, "idmap", false, true,
				    "%s lies on %s, which this kernel cannot mount with shifted ids (%s)",
				    what, mnt_type(dir), strerror(-r));
			return false;
		}
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s on %s", i ? ", " : "", what,
				      mnt_type(dir));
		n = MIN(n, sizeof(text) - 1);
	}
	posture_add(p, "idmap", true, true, "%s", text);
	return true;
}

/* The walls as the kernel tells of them. */
static int check_status(pid_t pid, struct err *e)
{
	static const char *const want[] = { "\nSeccomp:\t2\n", "\nNoNewPrivs:\t1\n",
					    "\nCapBnd:\t0000000000000000\n" };
	char path[48];
	struct buf text = BUF_INIT(16384);
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	int r = fd_slurp(AT_FDCWD, path, &text);
	if (r < 0)
		err_sys(e, ERR_WALLS, r, "cannot look at the trial sandbox");
	for (size_t i = 0; r == 0 && i < ELEMS(want); i++)
		if (!memmem(text.p, text.n, want[i], strlen(want[i])))
			r = err_set(e, ERR_WALLS, "PID 1 of the trial sandbox lacks %.12s", want[i] + 1);
	buf_done(&text);
	return r;
}

static int check_namespaces(pid_t pid, struct err *e)
{
	static const char *const kinds[] = { "user", "pid", "mnt", "net", "ipc", "uts", "cgroup" };
	for (size_t i = 0; i < ELEMS(kinds); i++) {
		char path[48], own[48];
		struct stat theirs, ours;
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kinds[i]);
		snprintf(own, sizeof(own), "/proc/self/ns/%s", kinds[i]);
		if (stat(path, &theirs) < 0 || stat(own, &ours) < 0)
			return err_sys(e, ERR_WALLS, errno, "cannot look at the trial sandbox");
		if (theirs.st_ino == ours.st_ino)
			return err_set(e, ERR_WALLS, "the trial sandbox has no %s namespace of its own",
				       kinds[i]);
	}
	return 0;
}

static int check_freezer(const struct walls_box *b, const struct posture *p, struct err *e)
{
	if (!(p->features & FEATURE_BIT(FEATURE_FREEZER)))
		return 0;
	int r = walls_freeze(b, true, FREEZE_MS);
	if (r == 0)
		r = walls_freeze(b, false, FREEZE_MS);
	return r < 0 ? err_sys(e, ERR_WALLS, r, "the trial sandbox cannot be frozen") : 0;
}

/* As every box ends. */
static int end_box(struct walls_box *b, struct err *e)
{
	const struct walls_ops *ops = b->walls->ops;
	int r;
	ops->kill(b->walls, b);
	while (waitpid(b->pid, NULL, 0) < 0 && errno == EINTR)
		;
	b->pid = 0;
	fd_close(b->pidfd);
	b->pidfd = -1;
	/* Its last process may still be on its way out of the group. */
	for (int i = 0; (r = ops->clear(b->walls, b)) == -EBUSY && i < 200; i++)
		(void)usleep(1000);
	return r < 0 ? err_sys(e, ERR_WALLS, r, "the trial sandbox cannot be removed") : 0;
}

static void add_overlay(const struct trial *t, const struct plan_image *image, int storage, struct posture *p)
{
	posture_add(p, "overlay", true, true, "%u layers, written to %s", image->n, mnt_type(storage));
	posture_feature(p, FEATURE_DETACHED_LAYERS,
			!mnt_attached || t->without & FEATURE_BIT(FEATURE_DETACHED_LAYERS), t->without, NULL);
}

static int run_box(const struct trial *t, const struct plan *plan, const struct plan_image *image, int run,
		   struct posture *p, struct err *e)
{
	_cleanup_(closep) int storage = storage_make(t->storage, plan, -1, e);
	bool native = strcmp(t->walls->ops->name, SPEC_BACKEND_NATIVE) == 0;
	if (storage < 0)
		return -1;
	if (native && !probe_idmap(plan, image, storage, p))
		return err_set(e, ERR_WALLS, "%s", p->parts[p->n - 1].detail);
	struct walls_box b = { .walls = t->walls, .id = plan->spec.id, .pidfd = -1 };
	struct netns_gate gate = NETNS_GATE_NONE;
	const struct walls_start s = { .plan = plan, .image = image, .storage = storage, .run = run };
	if (t->walls->ops->start(t->walls, &s, &b, &gate, e) < 0)
		return -1;
	netns_gate_close(&gate);
	int r = 0;
	if (native) {
		add_overlay(t, image, storage, p);
		r = check_status(b.pid, e);
		if (r == 0)
			r = check_namespaces(b.pid, e);
	}
	if (r == 0)
		r = check_freezer(&b, p, e);
	struct err also = { 0 };
	if (end_box(&b, r == 0 ? e : &also) < 0)
		r = -1;
	return r;
}

static bool has_usr(const struct plan *plan, const struct plan_image *layers, struct posture *p)
{
	_cleanup_(closep) int userns = -1;
	if (layers->n < 2 || spawn_userns(plan->uid_base, PLAN_IDS, &userns) < 0)
		return true; /* said by probe_idmap */
	int r = try_idmap(layers->layers[1].dir, userns);
	if (r < 0)
		posture_add(p, "image.machine", false, false,
			    "the machine's /usr lies on %s, which this kernel cannot mount with shifted ids: "
			    "the image \"machine\" does not work",
			    mnt_type(layers->layers[1].dir));
	return r == 0;
}

static int with_image(const struct trial *t, struct spec *s, uint32_t slot, int run, struct posture *p,
		      struct err *e)
{
	const struct image *image = images_named(t->images, VIEW(IMAGES_MACHINE));
	struct plan_image layers = { 0 };
	struct plan plan;
	if (!image)
		return err_set(e, ERR_NOT_FOUND, "the machine's image is missing");
	if (images_layers(t->images, image, &layers, e) < 0)
		return -1;
	int r = plan_make(s, &layers, slot, t->uid_base, &plan, e);
	/* Images of others work, even where the machine's /usr cannot be one. */
	unsigned all = layers.n;
	if (r == 0 && !t->machine && !has_usr(&plan, &layers, p)) {
		layers.n = 1;
		r = plan_make(s, &layers, slot, t->uid_base, &plan, e);
	}
	if (r == 0) {
		r = run_box(t, &plan, &layers, run, p, e);
		(void)!storage_drop(t->storage, s->id);
	}
	layers.n = all;
	images_release(&layers);
	if (t->walls->ops->tidy)
		t->walls->ops->tidy(t->walls, 0);
	return r;
}

static int with_slot(const struct trial *t, struct posture *p, struct err *e)
{
	struct spec s = { .hostname = "trial",
			  .limits = { .cpu_milli = 500,
				      .memory_mb = 64,
				      .pids = 32,
				      .nofile = 64,
				      .disk_mb = t->storage->disk.btrfs ? DISK_MB : 0 } };
	char holder[640];
	uint32_t slot;
	rnd_name(s.id, SPEC_ID);
	snprintf(s.backend, sizeof(s.backend), "%s", t->walls->ops->name);
	snprintf(holder, sizeof(holder), "%s/%s", t->run_path, s.id);
	if (mkdirat(t->run_boxes, s.id, 0700) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot make the trial sandbox's run directory");
	_cleanup_(closep) int run = openat(t->run_boxes, s.id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = slots_take(t->slots, holder, &slot, e);
	if (r == 0)
		r = with_image(t, &s, slot, run, p, e);
	if (run >= 0)
		sweep_tree(TAKE_FD(run));
	(void)unlinkat(t->run_boxes, s.id, AT_REMOVEDIR);
	if (r == 0)
		slots_free(t->slots, slot);
	return r;
}

void trial_run(const struct trial *t, struct posture *p)
{
	struct err e = { 0 };
	const struct posture_part *failed = posture_failed(p);
	trial_storage(&t->storage->disk, p);
	if (failed) {
		posture_add(p, "box", false, true, "not tried, since %s failed", failed->name);
		return;
	}
	uint64_t before = clock_mono_ns();
	if (with_slot(t, p, &e) < 0)
		posture_add(p, "box", false, true, "%s", e.msg);
	else
		posture_add(p, "box", true, true,
			    "a trial sandbox was started, looked at and ended in %.1f ms",
			    (double)(clock_mono_ns() - before) / 1e6);
}
