/*
 * `paddockd doctor`: each part of the walls as this machine can give it, and then the proof: a box, really
 * started and ended by the daemon's own code, in a directory of its own beside the daemon's data, so that it
 * lies on the same file system.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "caps.h"
#include "child.h"
#include "fd.h"
#include "json.h"
#include "log.h"
#include "native_walls.h"
#include "serve.h"
#include "sweep.h"
#include "trial.h"
#include "poison.h"

#define WALLET_MEMORY (160u << 20)
#define ROOM_MB       1024 /* as room.c warns */

/* Everything that a keeper opens, below one directory. */
struct doctor {
	struct config config;
	struct walls_table walls;
	struct storage storage;
	struct images images;
	struct slots slots;
	char path[600];
	int dir;
};

/* The directory of the data, or what is there of the way to it. */
static int make_dir(struct doctor *d, struct err *e)
{
	char at[512];
	if (view_to_str(d->config.data_dir, at, sizeof(at)) < 0)
		return err_set(e, ERR_INVALID, "data_dir is too long");
	struct stat st;
	while (stat(at, &st) < 0 || !S_ISDIR(st.st_mode)) {
		char *slash = strrchr(at, '/');
		if (!slash || slash == at)
			snprintf(at, sizeof(at), "/");
		else
			*slash = 0;
		if (strcmp(at, "/") == 0)
			break;
	}
	snprintf(d->path, sizeof(d->path), "%s/.paddock-doctor-XXXXXX", strcmp(at, "/") == 0 ? "" : at);
	if (!mkdtemp(d->path))
		return err_sys(e, ERR_STORAGE, errno, "cannot make a directory in %s", at);
	d->dir = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->dir < 0 || mkdirat(d->dir, "scratch", 0700) < 0 || mkdirat(d->dir, "disk", 0700) < 0 ||
	    mkdirat(d->dir, "boxes", 0700) < 0 || mkdirat(d->dir, "data", 0700) < 0)
		return err_sys(e, ERR_STORAGE, errno, "cannot make directories in %s", d->path);
	return 0;
}

static int open_storage(struct doctor *d, struct err *e)
{
	char point[640];
	_cleanup_(closep) int data = openat(d->dir, "data", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(point, sizeof(point), "%s/disk", d->path);
	if (data < 0)
		return err_sys(e, ERR_STORAGE, errno, "cannot open the trial directory");
	if (disk_open(&d->storage.disk, data, d->config.data.backend, d->config.data.size_mb, point, e) < 0 ||
	    storage_open(&d->storage, e) < 0 || images_open(&d->images, d->storage.disk.root, e) < 0 ||
	    images_add_machine(&d->images, e) < 0)
		return -1;
	return slots_open(&d->slots, (uint32_t)d->config.uids.base, (uint32_t)d->config.uids.slots, e);
}

static int open_walls(struct doctor *d, struct err *e)
{
	char bin[512], init[640];
	int r = child_find_bin(bin, sizeof(bin));
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "cannot find our own programs");
	snprintf(init, sizeof(init), "%s/paddock-init", bin);
	const struct walls_setup s = { .run_path = d->path,
				       .run = d->dir,
				       .init = init,
				       .cgroup_parent = d->config.cgroup.parent,
				       .capture = d->config.egress.capture,
				       .without = d->config.posture.left_out };
	return walls_add(&d->walls, &native_walls, &s, e);
}

static void try_box(struct doctor *d, struct walls *w)
{
	char run_path[640];
	struct err e = { 0 };
	if (open_storage(d, &e) < 0) {
		posture_add(&w->posture, "storage", false, true, "%s", e.msg);
		return;
	}
	snprintf(run_path, sizeof(run_path), "%s/boxes", d->path);
	_cleanup_(closep) int run = open(run_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	trial_run(&(struct trial){ .walls = w,
				   .storage = &d->storage,
				   .images = &d->images,
				   .slots = &d->slots,
				   .uid_base = (uint32_t)d->config.uids.base,
				   .run_boxes = run,
				   .run_path = run_path,
				   .without = d->config.posture.left_out,
				   .machine = view_is(d->config.defaults.image, IMAGES_MACHINE) },
		  &w->posture);
	if (w->posture.ok && posture_require(&w->posture, d->config.posture.required, &e) < 0)
		posture_add(&w->posture, "posture.require", false, true, "%s", e.msg);
}

/* The signer locks its memory, and a keystore's password is stretched in 128 MiB of it. */
static void look_at_memory(struct posture *p)
{
	struct rlimit limit;
	struct caps c;
	bool much = getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
		    (limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= WALLET_MEMORY);

	if (much || (caps_get(&c) == 0 && (c.effective & CAPS(CAP_SYS_RESOURCE))))
		posture_add(p, "wallets.memory", true, false, "enough memory can be locked for keystores");
	else
		posture_add(
			p, "wallets.memory", false, false,
			"at most %llu MiB can be locked: wallets cannot be exported, and keystores of other "
			"programs not imported (LimitMEMLOCK=infinity)",
			(unsigned long long)limit.rlim_max >> 20);
}

/* A loop file larger than the disk beneath is filled by sandboxes before it is full itself. */
static void look_at_room(const struct doctor *d, struct posture *p)
{
	struct statvfs v;
	if (fstatvfs(d->dir, &v) < 0)
		return;
	uint64_t mb = (uint64_t)v.f_bavail * v.f_frsize >> 20, all = (uint64_t)v.f_blocks * v.f_frsize >> 20;
	posture_add(p, "storage.room", mb >= ROOM_MB, false,
		    "%llu of %llu MiB are free on the disk of data_dir%s", (unsigned long long)mb,
		    (unsigned long long)all, mb < ROOM_MB ? ": sandboxes will soon be unable to write" : "");
}

/* Mounts first, so that the tree below is ours alone to empty. */
static void tidy(struct doctor *d)
{
	static const char *const points[] = { "scratch", "disk" };
	walls_close(&d->walls, true);
	if (d->storage.disk.root >= 0) {
		images_close(&d->images);
		storage_close(&d->storage);
		disk_close(&d->storage.disk);
	}
	for (size_t i = 0; d->dir >= 0 && i < ELEMS(points); i++) {
		char path[640];
		snprintf(path, sizeof(path), "%s/%s", d->path, points[i]);
		(void)umount2(path, MNT_DETACH);
	}
	if (d->dir >= 0) {
		sweep_tree(TAKE_FD(d->dir));
		(void)rmdir(d->path);
	}
}

static void print_parts(const struct posture *p)
{
	for (unsigned i = 0; i < p->n; i++)
		printf("%-4s  %-20s %s\n",
		       p->parts[i].ok         ? "ok"
		       : p->parts[i].required ? "FAIL"
					      : "--",
		       p->parts[i].name, p->parts[i].detail);
}

/* As GET /v1/posture has it. */
static int print_json(const struct posture *p)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(256u << 10);
	struct json_out o;

	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_kbool(&o, "ok", p->ok);
	json_out_key(&o, "parts");
	json_out_array(&o);
	for (unsigned i = 0; i < p->n; i++) {
		json_out_object(&o);
		json_out_kz(&o, "name", p->parts[i].name);
		json_out_kbool(&o, "ok", p->parts[i].ok);
		json_out_kbool(&o, "required", p->parts[i].required);
		json_out_kz(&o, "detail", p->parts[i].detail);
		json_out_end(&o, '}');
	}
	json_out_end(&o, ']');
	json_out_end(&o, '}');
	return b.bad ? b.bad : fd_write_all(STDOUT_FILENO, b.p, b.n);
}

int doctor_main(int config_fd, bool json)
{
	static struct doctor d = { .storage = { .disk = { .root = -1, .file = -1, .dev = -1 },
						.boxes = -1,
						.spare = -1,
						.snapshots = -1,
						.workspaces = -1,
						.trash = -1 },
				   .slots.fd = -1,
				   .dir = -1 };
	static struct posture none; /* of a machine on which nothing can be opened */
	struct arena a = ARENA_INIT(4u << 20);
	struct err e = { 0 };
	log_setup("paddockd", LOG_LEVEL_WARN);
	if (serve_read_config(config_fd, &a, &d.config, &e) < 0) {
		fprintf(stderr, "paddockd: %s\n", e.msg);
		return 1;
	}
	struct cgroup_host no_groups = { .unified = -1 };
	for (unsigned c = 0; c < CGROUP_CONTROLLERS; c++)
		snprintf(no_groups.why[c], sizeof(no_groups.why[c]), "not looked at");
	posture_probe(&none, &no_groups, d.config.posture.left_out);
	const struct posture *p = &none;
	/* Without root there is nothing to try. */
	if (posture_find(&none, "root")->ok && posture_find(&none, "kernel")->ok) {
		if (serve_own_mounts(&e) < 0 || make_dir(&d, &e) < 0 || open_walls(&d, &e) < 0) {
			posture_add(&none, "walls", false, true, "%s", e.msg);
		} else {
			try_box(&d, d.walls.all[0]);
			look_at_memory(&d.walls.all[0]->posture);
			look_at_room(&d, &d.walls.all[0]->posture);
			p = &d.walls.all[0]->posture;
		}
	}
	bool ok = p->ok;
	if (!json)
		print_parts(p);
	else if (print_json(p) < 0)
		ok = false;
	tidy(&d);
	arena_done(&a);
	return ok ? 0 : 1;
}
