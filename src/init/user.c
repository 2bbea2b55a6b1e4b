/*
 * Users: see user.h. The two files belong to the box and may hold anything, or
 * be a FIFO; a line that does not parse is passed over.
 */
#include "user.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "caps.h"
#include "fd.h"
#include "num.h"
#include "stamp.h"
#include "poison.h"

#define ETC_FILE_MAX (1u << 20)
#define PASSWD       "/etc/passwd"
#define GROUP        "/etc/group"
#define SETTLED_S    2  /* a file that was changed within the clock's last tick may change unseen */
#define KEPT_NAME    64 /* a longer one is looked up each time */

static int read_etc(const char *path, struct buf *out)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	for (;;) {
		char *p = buf_reserve(out, 4096);
		if (!p)
			return out->bad;
		ssize_t n = read(fd, p, 4096);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return 0;
		buf_commit(out, n > 0 ? (size_t)n : 0);
	}
}

/* An id that can be used: -1 means "unchanged" to the kernel. */
static bool parse_id(struct view v, uint32_t *ret)
{
	return num_u32(v, ret) == 0 && *ret != UINT32_MAX;
}

/* name:password:uid:gid:comment:home:shell */
static bool parse_line(struct view line, struct view who, bool by_number, struct user *ret,
		       struct view *ret_name)
{
	struct view name = view_split(line, ':', &line);
	(void)view_split(line, ':', &line);
	struct view uid = view_split(line, ':', &line), gid = view_split(line, ':', &line);
	(void)view_split(line, ':', &line);
	struct view home = view_split(line, ':', &line);
	uint32_t u, g, wanted;
	if (name.n == 0 || !parse_id(uid, &u) || !parse_id(gid, &g))
		return false;
	if (by_number ? !parse_id(who, &wanted) || wanted != u : !view_eq(name, who))
		return false;
	*ret = (struct user){ .uid = u, .gid = g };
	if (home.n == 0 || home.p[0] != '/' || view_to_str(home, ret->home, sizeof(ret->home)) < 0)
		memcpy(ret->home, "/", 2);
	*ret_name = name;
	return true;
}

static bool user_parse_passwd(struct view text, struct view who, struct user *ret, struct view *ret_name)
{
	for (int by_number = 0; by_number < 2; by_number++)
		for (struct view rest = text; rest.n;)
			if (parse_line(view_split(rest, '\n', &rest), who, by_number, ret, ret_name))
				return true;
	return false;
}

static void add_group(struct user *u, gid_t gid)
{
	for (unsigned i = 0; i < u->n_groups; i++)
		if (u->groups[i] == gid)
			return;
	if (u->n_groups < USER_GROUPS && gid != u->gid)
		u->groups[u->n_groups++] = gid;
}

/* name:password:gid:member,member */
static void user_parse_group(struct view text, struct view name, struct user *u)
{
	while (text.n) {
		struct view line = view_split(text, '\n', &text);
		(void)view_split(line, ':', &line);
		(void)view_split(line, ':', &line);
		struct view gid = view_split(line, ':', &line);
		uint32_t g;
		if (!parse_id(gid, &g))
			continue;
		while (line.n)
			if (view_eq(view_split(line, ',', &line), name))
				add_group(u, g);
	}
}

/* ---- the last one ----------------------------------------------------- */

/* A command needs its user several times, and the next command mostly the same one. What was found holds as
 * long as both files are the same and unchanged. */
static struct {
	char name[KEPT_NAME];
	size_t n; /* 0: nobody */
	struct stamp passwd, group;
	struct user user;
} kept;

static bool is_settled(const struct stamp *s)
{
	struct timespec now;

	return S_ISREG(s->mode) && clock_gettime(CLOCK_REALTIME, &now) == 0 &&
	       s->changed.tv_sec + SETTLED_S < now.tv_sec;
}

static int look_up(struct view who, struct user *ret, struct err *e);

int user_find(struct view who, struct user *ret, struct err *e)
{
	/* Before they are read: a change meanwhile shows the next time. */
	struct stamp passwd = stamp_take(PASSWD), group = stamp_take(GROUP);
	bool settled = is_settled(&passwd) && is_settled(&group);
	if (settled && kept.n && view_eq(who, (struct view){ kept.name, kept.n }) &&
	    stamp_same(&passwd, &kept.passwd) && stamp_same(&group, &kept.group)) {
		*ret = kept.user;
		return 0;
	}
	kept.n = 0;
	if (look_up(who, ret, e) < 0)
		return -1;
	if (settled && who.n && who.n <= sizeof(kept.name)) {
		memcpy(kept.name, who.p, who.n);
		kept.n = who.n;
		kept.passwd = passwd;
		kept.group = group;
		kept.user = *ret;
	}
	return 0;
}

static int look_up(struct view who, struct user *ret, struct err *e)
{
	_cleanup_(buf_done) struct buf passwd = BUF_INIT(ETC_FILE_MAX), group = BUF_INIT(ETC_FILE_MAX);
	struct view name;
	if (who.n == 0)
		return err_set(e, ERR_INVALID, "user is empty");
	int r = read_etc(PASSWD, &passwd);
	uint32_t number;
	if (r == -ENOENT && (view_is(who, "root") || view_is(who, "user") || parse_id(who, &number))) {
		/* An image without users still has those that the kernel knows, and our default user. */
		number = view_is(who, "root") ? 0 : view_is(who, "user") ? 1000 : number;
		*ret = (struct user){ .uid = number, .gid = number, .home = "/" };
		return 0;
	}
	if (r == -ENOENT) {
		err_set(e, ERR_INVALID,
			"there is no user '%.*s': the image has no /etc/passwd; give root or a number",
			VIEW_ARG(view_head(who, 64)));
		if (e)
			e->sys = ERR_SYS_NO_USER;
		return -1;
	}
	if (r < 0)
		return err_sys(e, ERR_INVALID, r, "the sandbox's /etc/passwd");
	if (!user_parse_passwd(buf_view(&passwd), who, ret, &name)) {
		err_set(e, ERR_INVALID, "there is no user '%.*s' in the sandbox",
			VIEW_ARG(view_head(who, 64)));
		if (e)
			e->sys = ERR_SYS_NO_USER;
		return -1;
	}
	if (read_etc(GROUP, &group) == 0)
		user_parse_group(buf_view(&group), name, ret);
	return 0;
}

/* ---- names ------------------------------------------------------------ */

void user_names_load(struct user_names *n)
{
	*n = (struct user_names){ BUF_INIT(ETC_FILE_MAX), BUF_INIT(ETC_FILE_MAX) };
	if (read_etc(PASSWD, &n->passwd) < 0)
		buf_clear(&n->passwd);
	if (read_etc(GROUP, &n->group) < 0)
		buf_clear(&n->group);
}

void user_names_done(struct user_names *n)
{
	buf_done(&n->passwd);
	buf_done(&n->group);
}

/* The first field of the line whose third is the id. */
static struct view name_in(struct view text, uint32_t id, char room[16])
{
	while (text.n) {
		struct view line = view_split(text, '\n', &text);
		struct view name = view_split(line, ':', &line);
		(void)view_split(line, ':', &line);
		uint32_t found;
		if (name.n && parse_id(view_split(line, ':', &line), &found) && found == id)
			return name;
	}
	return (struct view){ room, (size_t)snprintf(room, 16, "%u", id) };
}

struct view user_name_of(const struct user_names *n, uid_t uid, char room[16])
{
	return name_in(buf_view(&n->passwd), uid, room);
}

struct view user_group_of(const struct user_names *n, gid_t gid, char room[16])
{
	return name_in(buf_view(&n->group), gid, room);
}

/* ---- rights ----------------------------------------------------------- */

/*
 * Only the ids that the file system looks at are changed. When fsuid leaves 0
 * the kernel takes the file capabilities out of the effective set, and puts
 * them back when it returns to 0. The raw call: libc's setgroups would do it
 * for threads that are not there.
 */
static int set_groups(const gid_t *groups, unsigned n)
{
	return syscall(SYS_setgroups, (size_t)n, groups) < 0 ? -errno : 0;
}

/* The file capabilities are still permitted: back into the effective set with them. */
static int raise_rights(void)
{
	struct caps c;
	int r = caps_get(&c);
	if (r < 0)
		return r;
	c.effective = c.permitted;
	return caps_set(&c);
}

int user_enter(const struct user *u)
{
	if (u->uid == 0 && u->gid == 0 && u->n_groups == 0)
		return 0;
	int r = set_groups(u->groups, u->n_groups);
	if (r < 0)
		return r;
	setfsgid(u->gid);
	setfsuid(u->uid);
	/* They report nothing: ask (an invalid id changes nothing and returns the present one). */
	r = (uid_t)setfsuid((uid_t)-1) == u->uid && (gid_t)setfsgid((gid_t)-1) == u->gid ? 0 : -EPERM;
	if (r == 0 && u->as_root)
		r = raise_rights();
	if (r < 0)
		user_leave();
	return r;
}

void user_leave(void)
{
	setfsuid(0);
	setfsgid(0);
	(void)set_groups(NULL, 0);
}
