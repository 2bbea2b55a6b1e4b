/*
 * Setting up and running the keeper: see serve.h.
 */
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "ahead.h"
#include "boxes.h"
#include "caps.h"
#include "child.h"
#include "fd.h"
#include "gate.h"
#include "gauges.h"
#include "json.h"
#include "kernel.h"
#include "log.h"
#include "native_walls.h"
#include "num.h"
#include "owner.h"
#include "rnd.h"
#include "room.h"
#include "sha256.h"
#include "signer.h"
#include "text.h"
#include "trial.h"
#include "vault.h"
#include "poison.h"

#define NOTE_MAX         8192
#define NICE             (-10)
#define STANDARD_DISK_MB UINT64_C(10240)
#define GROW_MS          1000
#define HURRY_MS         100 /* while there is little room beneath the loop file */

static int make_path(const char *path, unsigned mode)
{
	char at[512];
	if (snprintf(at, sizeof(at), "%s", path) >= (int)sizeof(at))
		return -ENAMETOOLONG;
	for (char *p = at + 1; *p; p++)
		if (*p == '/') {
			*p = 0;
			if (mkdir(at, 0755) < 0 && errno != EEXIST)
				return -errno;
			*p = '/';
		}
	if (mkdir(at, mode) < 0 && errno != EEXIST)
		return -errno;
	int fd = open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int make_in(int dir, const char *name, unsigned mode)
{
	if (mkdirat(dir, name, mode) < 0 && errno != EEXIST)
		return -errno;
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

/* Changes nothing that is right already: on a full disk that might not work. */
static int give(int fd, uid_t to)
{
	struct stat st;
	return fstat(fd, &st) == 0 && st.st_uid == to && st.st_gid == to ? 0 : fchown(fd, to, to);
}

/* A keeper that was killed this moment may have a child between clone and exec, which
 * still holds its descriptors: a refusal is final only after a while. */
static bool take_lock(int fd)
{
	for (int i = 0; i < 100; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return true;
		if (errno != EWOULDBLOCK)
			return false;
		(void)poll(NULL, 0, 20);
	}
	return false;
}

/* A directory of the data that belongs to one of our programs. */
static int make_owned(struct keeper *k, const char *name, uint64_t uid, struct err *e)
{
	_cleanup_(closep) int fd = make_in(k->data, name, 0700);
	const int r = fd < 0 ? fd : give(fd, (uid_t)uid) < 0 ? -errno : 0;

	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "cannot make %s/%s", k->data_path, name) : 0;
}

static int open_dirs(struct keeper *k, struct err *e)
{
	if (view_to_str(k->config->data_dir, k->data_path, sizeof(k->data_path)) < 0 ||
	    view_to_str(k->config->run_dir, k->run_path, sizeof(k->run_path)) < 0)
		return err_set(e, ERR_INVALID, "data_dir or run_dir is too long");
	k->data = make_path(k->data_path, 0711);
	if (k->data < 0)
		return err_sys(e, ERR_INTERNAL, k->data, "cannot open the data directory %s", k->data_path);
	k->run = make_path(k->run_path, 0711);
	if (k->run < 0)
		return err_sys(e, ERR_INTERNAL, k->run, "cannot open the run directory %s", k->run_path);
	k->lock = openat(k->run, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (k->lock < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot open %s/lock", k->run_path);
	if (!take_lock(k->lock))
		return err_set(e, ERR_STATE, "another paddockd runs with the run directory %s", k->run_path);
	k->run_boxes = make_in(k->run, "boxes", 0700);
	if (k->run_boxes < 0)
		return err_sys(e, ERR_INTERNAL, k->run_boxes, "cannot make %s/boxes", k->run_path);
	if (make_owned(k, "store", k->config->uids.api, e) < 0 ||
	    make_owned(k, "vault", k->config->uids.vault, e) < 0)
		return -1;
	return 0;
}

/* The first key of the installation: written once, known to nobody else; its hash goes to the api. */
static int admin_key(struct keeper *k, struct err *e)
{
	struct buf text = BUF_INIT(128);
	int r = fd_slurp(k->data, "admin.key", &text);
	if (r == -ENOENT) {
		uint8_t key[20];
		char line[48] = "pdk_";
		rnd_bytes(key, sizeof(key));
		text_hex(key, sizeof(key), line + 4);
		line[44] = '\n';
		r = fd_replace(k->data, "admin.key", line, 45, 0600, true);
		buf_append(&text, line, 45);
	}
	struct view v = buf_view(&text);
	while (v.n && (v.p[v.n - 1] == '\n' || v.p[v.n - 1] == ' '))
		v.n--;
	uint8_t key[20], hash[SHA256_SIZE];
	if (r == 0 && (!view_starts(v, "pdk_") || text_unhex(view_skip(v, 4), key, sizeof(key)) < 0))
		r = -EINVAL;
	buf_done(&text);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "cannot use %s/admin.key", k->data_path);
	sha256_of((struct view){ (const char *)key, sizeof(key) }, hash);
	text_hex(hash, sizeof(hash), k->admin_hash);
	explicit_bzero(key, sizeof(key));
	return 0;
}

/* Who besides root may be the administrator. The file changes hands at every start, so that a group which is
 * no longer named cannot read it any more. */
static int admin_group(struct keeper *k, struct err *e)
{
	char name[64];
	const struct group *group = NULL;

	if (view_to_str(k->config->admin_group, name, sizeof(name)) < 0)
		return err_set(e, ERR_INVALID, "admin_group is too long");
	if (name[0] && !(group = getgrnam(name)))
		return err_set(e, ERR_INVALID,
			       "admin_group: this machine has no group named %s (groupadd --system %s)", name,
			       name);
	_cleanup_(closep) int fd = openat(k->data, "admin.key", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == 0 && st.st_gid == (group ? group->gr_gid : 0) &&
	    (st.st_mode & 07777) == (group ? 0640 : 0600))
		return 0;
	/* First the mode: the group that the file had gets nothing by the wider one. */
	if (fd < 0 || fchmod(fd, 0600) < 0 || fchown(fd, 0, group ? group->gr_gid : 0) < 0 ||
	    fchmod(fd, group ? 0640 : 0600) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot change who may read %s/admin.key",
			       k->data_path);
	return 0;
}

static int bind_one(struct keeper *k, struct view name, const struct addrinfo *ai, struct err *e)
{
	_cleanup_(closep) int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, 4096) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot listen on %.*s", VIEW_ARG(name));
	struct sockaddr_storage real;
	socklen_t len = sizeof(real);
	char host[64], port[16];
	if (getsockname(fd, (struct sockaddr *)&real, &len) < 0 ||
	    getnameinfo((struct sockaddr *)&real, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot tell the address of the listener");
	bool six = ai->ai_family == AF_INET6;
	if (k->n_listeners == 0)
		snprintf(k->address, sizeof(k->address), "%s%s%s:%s", six ? "[" : "", host, six ? "]" : "",
			 port);
	else
		log_info("listening on %s%s%s:%s for %.*s", six ? "[" : "", host, six ? "]" : "", port,
			 VIEW_ARG(k->config->listeners_of[k->n_listeners - 1].dialect));
	k->listeners[k->n_listeners++] = TAKE_FD(fd);
	return 0;
}

static int open_listener(struct keeper *k, struct view l, struct err *e)
{
	/* The configuration has checked the form: HOST:PORT or [HOST]:PORT, numeric. */
	const char *colon = memrchr(l.p, ':', l.n);
	if (!colon)
		return err_set(e, ERR_INVALID, "listen: no port");
	struct view host = view_head(l, (size_t)(colon - l.p)),
		    port = view_skip(l, (size_t)(colon - l.p) + 1);
	if (host.n >= 2 && host.p[0] == '[')
		host = (struct view){ host.p + 1, host.n - 2 };
	char h[64], p[8];
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
				  .ai_socktype = SOCK_STREAM },
			*ai;
	if (view_to_str(host, h, sizeof(h)) < 0 || view_to_str(port, p, sizeof(p)) < 0 ||
	    getaddrinfo(h[0] ? h : NULL, p, &hints, &ai) != 0)
		return err_set(e, ERR_INVALID, "listen: %.*s is not an address", VIEW_ARG(l));
	int r = bind_one(k, l, ai, e);
	freeaddrinfo(ai);
	return r;
}

/* The api binds them to their dialects in this order. */
static int open_listeners(struct keeper *k, struct err *e)
{
	static_assert(ELEMS(k->listeners) > CONFIG_LISTENERS_MOST, "a place for each");
	if (open_listener(k, k->config->listen, e) < 0)
		return -1;
	for (size_t i = 0; i < k->config->n_listeners; i++)
		if (open_listener(k, k->config->listeners_of[i].address, e) < 0)
			return -1;
	return 0;
}

/* A mount namespace of our own: what we mount here nobody else sees. */
int serve_own_mounts(struct err *e)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(e, ERR_WALLS, errno, "cannot get a mount namespace of our own");
	/* mnt_overlay and spawn_userns change ids for a moment and must keep their capabilities. */
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0)
		return err_sys(e, ERR_WALLS, errno, "cannot set the secure bits");
	return 0;
}

/* Root, but without what making boxes does not need: no modules, no raw I/O, no
 * clock, no reboot, no audit, no packet sockets, no BPF. */
static int trim_capabilities(struct err *e)
{
	uint64_t keep = POSTURE_CAPS_KEPT;
	struct caps c;
	int r = caps_bound(keep);
	if (r == 0)
		r = caps_get(&c);
	if (r == 0) {
		keep &= c.permitted;
		r = caps_set(&(struct caps){ .effective = keep, .permitted = keep });
	}
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "cannot drop capabilities") : 0;
}

/* Our programs answer while boxes take all the processors that they may. Boxes begin at 0 again
 * (native_child.c). Where it is not allowed, a container perhaps, they share as equals. */
static void raise_priority(void)
{
	(void)setpriority(PRIO_PROCESS, 0, NICE);
}

/* The kinds of walls. The first is the default. */
static const struct walls_ops *const kinds[] = { &native_walls };

/* It is said once, at the start, what cannot be had or is not the best. */
static void say_posture(const struct walls *w)
{
	struct err e = { 0 };
	if (walls_usable(w, &e) < 0)
		log_error("%s: %s", w->ops->name, e.msg);
	const struct posture_part *capture = NULL;
	for (unsigned i = 0; i < w->posture.n; i++)
		if (strcmp(w->posture.parts[i].name, "egress.capture") == 0)
			capture = &w->posture.parts[i];
	if (capture && !capture->ok)
		log_warn(
			"sandboxes reach the gate by their proxy port and DNS alone, all else is unreachable "
			"(%s)",
			capture->detail);
	else if (capture && w->capture != NETNS_SK_LOOKUP)
		log_info("connections of sandboxes are brought to the gate by: %s", capture->detail);
}

static int open_walls(struct keeper *k, struct err *e)
{
	char init[640];
	snprintf(init, sizeof(init), "%s/paddock-init", k->bin_path);
	const struct walls_setup s = { .run_path = k->run_path,
				       .run = k->run,
				       .init = init,
				       .cgroup_parent = k->config->cgroup.parent,
				       .capture = k->config->egress.capture,
				       .parts = (unsigned)k->config->parts,
				       .without = k->config->posture.left_out };
	for (size_t i = 0; i < ELEMS(kinds); i++) {
		if (walls_add(&k->walls, kinds[i], &s, e) < 0)
			return -1;
	}
	struct rlimit rl;
	/* Nothing of ours leaves a core file, from its first instruction on. */
	(void)!setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	getrlimit(RLIMIT_NOFILE, &rl);
	rl.rlim_cur = rl.rlim_max;
	setrlimit(RLIMIT_NOFILE, &rl);
	box_limits_of(&k->config->max.limits, &k->ceiling);
	k->ceiling.nofile = MIN(k->ceiling.nofile, (uint64_t)rl.rlim_max);
	return 0;
}

/* Our own files on the disk of the boxes: written where they are missing or of another version. */
static int make_own_files(struct keeper *k, struct err *e)
{
	for (unsigned i = 0; i < k->walls.n; i++) {
		struct walls *w = k->walls.all[i];
		if (w->ops->furnish && w->ops->furnish(w, k->storage.disk.root, e) < 0)
			return -1;
	}
	return images_add_machine(&k->images, e);
}

static bool no_room(const struct err *e)
{
	return e->sys == ENOSPC || e->sys == EDQUOT || e->sys == EIO || e->sys == EROFS;
}

/* A full disk has room that was set aside for them. Without it a daemon that was upgraded uses the older
 * ones: a start is worth more, since only a daemon that runs can delete anything. */
static int make_own_files_anyway(struct keeper *k, struct err *e)
{
	if (make_own_files(k, e) == 0)
		return 0;
	if (!no_room(e))
		return -1;
	(void)disk_use_aside(k->storage.disk.root);
	*e = (struct err){ 0 };
	if (make_own_files(k, e) == 0)
		return 0;
	if (!no_room(e) || !images_named(&k->images, VIEW(IMAGES_MACHINE)))
		return -1;
	log_warn("%s: those of an earlier start are used", e->msg);
	return 0;
}

/* One sandbox alone does not fill the disk. E2B's clients, for one, cannot ask for a limit. */
static uint64_t standard_disk(const struct keeper *k)
{
	const struct config *c = k->config;
	uint64_t mb = MIN(STANDARD_DISK_MB, MAX((k->told.size >> 20) / 4, 1));

	if (c->defaults.limits.has_disk_mb)
		return c->defaults.limits.disk_mb;
	if (!k->storage.disk.btrfs)
		return 0;
	return c->max.limits.disk_mb ? MIN(mb, c->max.limits.disk_mb) : mb;
}

static int open_storage(struct keeper *k, struct err *e)
{
	char point[640];
	snprintf(point, sizeof(point), "%s/disk", k->run_path);
	if (mkdir(point, 0700) < 0 && errno != EEXIST)
		return err_sys(e, ERR_INTERNAL, errno, "cannot make %s", point);
	room_last(k);
	if (disk_open(&k->storage.disk, k->data, k->config->data.backend, k->config->data.size_mb, point, e) <
	    0)
		return -1;
	k->storage.wanted = (unsigned)k->config->parts;
	room_begin(k);
	k->standard_disk_mb = standard_disk(k);
	return storage_open(&k->storage, e) < 0 || images_open(&k->images, k->storage.disk.root, e) < 0
		       ? -1
		       : make_own_files_anyway(k, e);
}

void serve_ready(struct keeper *k)
{
	k->api_ready = true;
	if (k->announced)
		return;
	k->announced = true;
	printf("paddock: ready on %s://%s (key in %s/admin.key)\n", k->config->tls.cert.n ? "https" : "http",
	       k->address, k->data_path);
	fflush(stdout);
}

static void on_signal(struct loop_signals *s, int signo)
{
	struct keeper *k = CONTAINER(s, struct keeper, signals);
	if (signo == SIGTERM || signo == SIGINT) {
		size_t n = k->boxes.by_id.n;
		if (n)
			log_info("stopping; %zu sandboxes go on and are adopted by the next start", n);
		child_stop_api(k);
	}
}

void serve_try_walls(struct keeper *k, struct walls *w)
{
	char run_path[560];
	snprintf(run_path, sizeof(run_path), "%s/boxes", k->run_path);
	w->posture = w->untried;
	trial_run(&(struct trial){ .walls = w,
				   .storage = &k->storage,
				   .images = &k->images,
				   .slots = &k->slots,
				   .uid_base = (uint32_t)k->config->uids.base,
				   .run_boxes = k->run_boxes,
				   .run_path = run_path,
				   .without = k->config->posture.left_out,
				   .machine = view_is(k->config->defaults.image, IMAGES_MACHINE) },
		  &w->posture);
}

/* A box is made before anybody asks for one: where that fails, creates are refused with the reason. What the
 * configuration requires must be there, or there is no start. */
static int try_walls(struct keeper *k, struct err *e)
{
	for (unsigned i = 0; i < k->walls.n; i++) {
		struct walls *w = k->walls.all[i];
		w->untried = w->posture;
		serve_try_walls(k, w);
		say_posture(w);
		/* What a box that could not be made would have had is not known: creates will ask. */
		if (w->posture.ok && posture_require(&w->posture, k->config->posture.required, e) < 0)
			return err_wrap(e, "posture.require");
	}
	return 0;
}

static int setup(struct keeper *k, struct err *e)
{
	struct utsname u;
	if (uname(&u) < 0 || kernel_check(u.release, e) < 0 || posture_privilege(e) < 0)
		return -1;
	int r = child_find_bin(k->bin_path, sizeof(k->bin_path));
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "cannot find our own programs");
	k->loop = loop_new(e);
	if (!k->loop)
		return -1;
	static const int signos[] = { SIGTERM, SIGINT, SIGHUP, SIGPIPE };
	r = loop_signals_start(k->loop, &k->signals, signos, ELEMS(signos), on_signal);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "signals");
	map_init(&k->boxes.by_id);
	list_init(&k->answered.link);
	list_init(&k->ending.link);
	gate_init(k);
	list_init(&k->flushes);
	list_init(&k->clones);
	list_init(&k->surveys);
	umask(022);
	raise_priority(); /* while we may */
	/* Mounts first: a directory opened before belongs to mounts that a path no longer leads to. */
	if (serve_own_mounts(e) < 0 || open_dirs(k, e) < 0 || admin_key(k, e) < 0 || admin_group(k, e) < 0 ||
	    open_listeners(k, e) < 0 || owner_listen(k, e) < 0 || gauges_open(k, e) < 0 ||
	    trim_capabilities(e) < 0 || open_walls(k, e) < 0 ||
	    slots_open(&k->slots, (uint32_t)k->config->uids.base, (uint32_t)k->config->uids.slots, e) < 0 ||
	    open_storage(k, e) < 0)
		return -1;
	return try_walls(k, e);
}

/* Often enough that a quarter of the smallest file is not written meanwhile. */
static void on_grow(struct loop_timer *t)
{
	struct keeper *k = CONTAINER(t, struct keeper, grow);
	loop_timer_start(k->loop, t, room_watch(k) ? HURRY_MS : GROW_MS, on_grow);
}

int serve_read_config(int fd, struct arena *a, struct config *c, struct err *e)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	struct buf text = BUF_INIT(1u << 20);
	int r = fd_slurp(AT_FDCWD, path, &text);
	if (r < 0)
		return err_sys(e, ERR_INVALID, r, "no configuration on fd %d (start it by `paddock serve`)",
			       fd);
	struct view copy = arena_view(a, buf_view(&text));
	buf_done(&text);
	return config_from_json(a, copy, c, e);
}

/* `paddock serve` has left it with our pid, unless another daemon's was there. */
static void take_note_away(void)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(NOTE_MAX);
	struct arena a = ARENA_INIT(64u << 10);
	struct json *doc;
	struct err e = { 0 };
	uint64_t pid;

	if (fd_slurp(AT_FDCWD, CONFIG_NOTE, &text) >= 0 && json_parse(&a, buf_view(&text), &doc, &e) == 0) {
		const struct json *j = json_get(doc, "pid");
		if (j && json_to_u64(j, &pid) == 0 && pid == (uint64_t)getpid())
			(void)unlink(CONFIG_NOTE);
	}
	arena_done(&a);
}

int serve_main(int config_fd)
{
	static struct keeper k; /* one keeper, and its size need not be on a stack */
	struct arena a = ARENA_INIT(4u << 20);
	struct config config;
	struct err e = { 0 };
	k.config = &config;
	k.config_fd = config_fd;
	k.api.io.fd = -1;
	k.signer.io.fd = -1;
	int r = serve_read_config(config_fd, &a, &config, &e);
	if (r == 0) {
		enum log_level level = view_is(config.log_level, "error")   ? LOG_LEVEL_ERROR
				       : view_is(config.log_level, "warn")  ? LOG_LEVEL_WARN
				       : view_is(config.log_level, "debug") ? LOG_LEVEL_DEBUG
									    : LOG_LEVEL_INFO;
		log_setup("paddockd", level);
		r = setup(&k, &e);
	}
	if (r < 0) {
		log_error("%s", e.msg);
		take_note_away();
		arena_done(&a);
		return 1;
	}
	boxes_adopt(&k);
	on_grow(&k.grow);
	gate_start(&k);
	gauges_start(&k);
	vault_start(&k);
	signer_start(&k);
	child_start_api(&k);
	r = loop_run(k.loop);
	ahead_drop(&k);
	walls_close(&k.walls, k.boxes.by_id.n == 0);
	take_note_away();
	arena_done(&a);
	return r < 0 ? 1 : r;
}
