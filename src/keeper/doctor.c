/*
 * `paddockd doctor`: each part of the walls as this machine can give it, and then
 * the proof: one box, really started and ended, in directories of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "clock.h"
#include "fd.h"
#include "native.h"
#include "rnd.h"
#include "serve.h"
#include "sweep.h"
#include "poison.h"

/* The directory is ours alone; its fd closes with the tree. */
static int start_and_end(struct native *n, int dir, struct err *e)
{
	struct plan_image image = { .n = 1 };
	struct spec s = { .hostname = "doctor",
			  .limits = {
				  .cpu_milli = 500, .memory_bytes = 64 << 20, .pids = 32, .nofile = 64 } };
	struct plan plan;
	rnd_name(s.id, SPEC_ID);
	snprintf(image.layers[0].at, sizeof(image.layers[0].at), "/");
	if (mkdirat(dir, "root", 0755) < 0 || mkdirat(dir, "store", 0755) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "trial directories");
	_cleanup_(closep) int root = openat(dir, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(closep) int store = openat(dir, "store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(closep) int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (root < 0 || store < 0 || listener < 0 || machine_build(root, e) < 0)
		return e->code ? -1 : err_sys(e, ERR_INTERNAL, errno, "trial directories");
	image.layers[0].dir = root;
	/* The last slot: the one that a busy keeper reaches last. */
	if (plan_make(&s, &image, 4000, 1879048192u, &plan, e) < 0 || walls_storage(&plan, store, e) < 0)
		return -1;
	struct native_box b;
	if (native_start(n, &plan, &image, &(struct native_files){ store, -1, listener }, &b, e) < 0)
		return -1;
	(void)syscall(SYS_pidfd_send_signal, b.pidfd, SIGKILL, NULL, 0);
	(void)waitpid(b.pid, NULL, 0);
	fd_close(b.pidfd);
	(void)!cgroup_remove(&n->cgroups, s.id);
	return 0;
}

static int trial(struct native *n, struct posture *p, struct err *e)
{
	char path[] = "/tmp/paddock-doctor-XXXXXX", scratch[64], bin[512], init[640];
	if (!mkdtemp(path))
		return err_sys(e, ERR_INTERNAL, errno, "a directory for the trial");
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(scratch, sizeof(scratch), "%s/scratch", path);
	int r = mkdir(scratch, 0700) < 0 ? -errno : child_find_bin(bin, sizeof(bin));
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "a directory for the trial");
	snprintf(init, sizeof(init), "%s/paddock-init", bin);
	r = native_open(n, scratch, init, e);
	if (r == 0)
		r = native_capture(n, VIEW("auto"), p, e);
	if (r == 0)
		r = start_and_end(n, dir, e);
	native_close(n);
	(void)umount2(scratch, MNT_DETACH);
	sweep_tree(dir);
	(void)rmdir(path);
	return r;
}

int doctor_main(void)
{
	struct native n = { .scratch = -1, .empty_ns = -1, .init = -1, .host_net = -1 };
	struct posture p;
	struct err e = { 0 };
	char instance[24];
	snprintf(instance, sizeof(instance), "doctor-%d", getpid());
	if (cgroup_open(&n.cgroups, "paddock", instance, &e) < 0)
		fprintf(stderr, "paddockd: %s\n", e.msg);
	posture_probe(&p, &n.cgroups);
	if (p.ok) {
		bool own = unshare(CLONE_NEWNS) == 0 &&
			   mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
			   prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) == 0;
		uint64_t before = clock_mono_ns();
		bool ok = own && trial(&n, &p, &e) == 0;
		if (ok)
			posture_add(&p, "trial box", true, true,
				    "started and ended in %.1f ms (with its image)",
				    (double)(clock_mono_ns() - before) / 1e6);
		else
			posture_add(&p, "trial box", false, true, "%.100s", own ? e.msg : strerror(errno));
	}
	for (unsigned i = 0; i < p.n; i++)
		printf("%-4s  %-18s %s\n",
		       p.parts[i].ok         ? "ok"
		       : p.parts[i].required ? "FAIL"
					     : "--",
		       p.parts[i].name, p.parts[i].detail);
	cgroup_close(&n.cgroups);
	return p.ok ? 0 : 1;
}
