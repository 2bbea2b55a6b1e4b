/*
 * Mounted secrets: see secrets.h.
 */
#include "secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fd.h"
#include "file.h"
#include "wire_gen.h"
#include "poison.h"

#define DIR_PATH  "/run/secrets"
#define FILES_MAX 64
/* A certificate is no secret; what is public lies beside. */
#define PUBLIC_PATH "/run/paddock"
#define CA_PATH     PUBLIC_PATH "/ca.pem"
#define BUNDLE_PATH PUBLIC_PATH "/ca-bundle.pem"
#define STORE_PATH  "/etc/ssl/certs/ca-certificates.crt"
#define STORE_MAX   (2u * 1024 * 1024)

/* One per PID 1, kept until the next message or the end of the box. */
static struct {
	struct arena memory;
	struct wire_env_var *env;
	size_t n;
} held;

static bool is_name(struct view v)
{
	return v.n >= 1 && v.n <= 64 && v.p[0] != '.' && !memchr(v.p, '/', v.n) && !memchr(v.p, 0, v.n);
}

/* As root of the box: nobody else can be in the way between the making and the handing over. */
static int write_file(int dir, const struct wire_secret_file *f, const struct user *user)
{
	char name[80];

	if (!is_name(f->name) || view_to_str(f->name, name, sizeof(name)) < 0)
		return -EINVAL;
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return -errno;
	_cleanup_(closep) int fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	if (fd < 0)
		return -errno;
	int r = fd_write_all(fd, f->value.p, f->value.n);
	return r < 0 ? r : fchown(fd, user->uid, user->gid) < 0 ? -errno : 0;
}

static int write_files(const struct wire_secrets_set *msg, struct err *e)
{
	struct user user;

	if (!msg->files.n)
		return 0;
	if (user_find(msg->user, &user, e) < 0)
		return -1;
	if (mkdir(DIR_PATH, 0711) < 0 && errno != EEXIST)
		return file_error(e, errno, DIR_PATH);
	_cleanup_(closep) int dir = open(DIR_PATH, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return file_error(e, errno, DIR_PATH);
	for (size_t i = 0; i < msg->files.n; i++) {
		int r = write_file(dir, &msg->files.items[i], &user);
		if (r < 0)
			return file_error(e, r, DIR_PATH);
	}
	return 0;
}

/* ---- the authority ---- */

static int write_public(const char *path, struct view a, struct view b)
{
	struct buf all = BUF_INIT(2 * STORE_MAX);

	buf_add(&all, a);
	if (a.n && a.p[a.n - 1] != '\n')
		buf_putc(&all, '\n');
	buf_add(&all, b);
	int r = all.bad ? all.bad
			: fd_replace(AT_FDCWD, path, buf_view(&all).p ? buf_view(&all).p : "", buf_len(&all),
				     0644, false);
	buf_done(&all);
	return r;
}

/* The image's own list, where it has one: programs that look at no variable read it. */
static void add_to_store(struct view store, struct view pem)
{
	_cleanup_(closep) int fd =
		open(STORE_PATH, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	int r = -1;

	if (store.n && memmem(store.p, store.n, pem.p, pem.n))
		return;
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		r = fd_write_all(fd, pem.p, pem.n);
	(void)r; /* a read-only root: the variables must do */
}

static int trust(struct view pem, struct err *e)
{
	struct buf store = BUF_INIT(STORE_MAX);
	struct stat st;
	int r = lstat(STORE_PATH, &st) == 0 && S_ISREG(st.st_mode) ? fd_slurp(AT_FDCWD, STORE_PATH, &store)
								   : 0;

	if (r < 0)
		buf_clear(&store);
	if (mkdir(PUBLIC_PATH, 0755) < 0 && errno != EEXIST)
		r = -errno;
	else
		r = write_public(CA_PATH, pem, VIEW(""));
	if (r == 0)
		r = write_public(BUNDLE_PATH, buf_view(&store), pem);
	if (r == 0)
		add_to_store(buf_view(&store), pem);
	buf_done(&store);
	return r < 0 ? file_error(e, r, PUBLIC_PATH) : 0;
}

static const struct wire_env_var trust_vars[] = {
	{ VIEW("SSL_CERT_FILE"), VIEW(BUNDLE_PATH) },      { VIEW("CURL_CA_BUNDLE"), VIEW(BUNDLE_PATH) },
	{ VIEW("REQUESTS_CA_BUNDLE"), VIEW(BUNDLE_PATH) }, { VIEW("GIT_SSL_CAINFO"), VIEW(BUNDLE_PATH) },
	{ VIEW("NODE_EXTRA_CA_CERTS"), VIEW(CA_PATH) },
};

static int hold_env(const struct wire_secrets_set *msg)
{
	arena_done(&held.memory);
	held.memory = (struct arena){ .max = 8u * 1024 * 1024, .secret = true };
	held.n = 0;
	held.env = arena_array(&held.memory, msg->env.n + ELEMS(trust_vars), sizeof(*held.env));
	if (!held.env)
		return -ENOMEM;
	for (; held.n < msg->env.n; held.n++) {
		struct wire_env_var *v = &held.env[held.n];
		v->name = arena_view(&held.memory, msg->env.items[held.n].name);
		v->value = arena_view(&held.memory, msg->env.items[held.n].value);
		if (!v->name.p || !v->value.p)
			return -ENOMEM;
	}
	for (size_t i = 0; msg->authority.n && i < ELEMS(trust_vars); i++)
		held.env[held.n++] = trust_vars[i];
	return 0;
}

int secrets_set(const struct conn_call *call, struct err *e)
{
	const struct wire_secrets_set *msg = call->msg;

	/* From here on what this connection brings is not left lying about. */
	call->conn->link.in.secret = true;
	call->arena->secret = true;
	if (msg->files.n > FILES_MAX || msg->env.n > FILES_MAX)
		return err_set(e, ERR_INVALID, "more than %d secrets", FILES_MAX);
	if (write_files(msg, e) < 0 || (msg->authority.n && trust(msg->authority, e) < 0))
		return -1;
	if (hold_env(msg) < 0)
		return err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
	conn_reply(call, &wire_secrets_set_reply_msg, &(struct wire_secrets_set_reply){ 0 });
	return 0;
}

static bool names(const struct wire_start *msg, struct view name)
{
	for (size_t i = 0; i < msg->env.n; i++)
		if (view_eq(msg->env.items[i].name, name))
			return true;
	return false;
}

int secrets_add_env(struct arena *a, struct wire_start *msg)
{
	if (!held.n)
		return 0;
	size_t n = msg->env.n;
	struct wire_env_var *all = arena_array(a, n + held.n, sizeof(*all));
	if (!all)
		return -ENOMEM;
	a->secret = true;
	if (n)
		memcpy(all, msg->env.items, n * sizeof(*all));
	for (size_t i = 0; i < held.n; i++)
		if (!names(msg, held.env[i].name))
			all[n++] = held.env[i];
	msg->env.items = all;
	msg->env.n = n;
	return 0;
}
