/*
 * See identity.h. The files are the box's: they may be anything, and nothing
 * that fails here matters to anybody else.
 */
#include "identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "fd.h"
#include "poison.h"

#define FILE_MAX (64u * 1024)
#define MARK     " # paddock"

static struct view next_word(struct view *rest)
{
	while (rest->n && (rest->p[0] == ' ' || rest->p[0] == '\t'))
		*rest = view_skip(*rest, 1);
	size_t n = 0;
	while (n < rest->n && rest->p[n] != ' ' && rest->p[n] != '\t')
		n++;
	struct view word = view_head(*rest, n);
	*rest = view_skip(*rest, n);
	return word;
}

/* Whether the line, an address and names, has this name; six: the address must be IPv6. */
static bool names(struct view line, struct view name, bool six)
{
	struct view rest = view_split(line, '#', &line);
	struct view address = next_word(&rest);
	if (!address.n || (memchr(address.p, ':', address.n) != NULL) != six)
		return false;
	for (struct view word; (word = next_word(&rest)).n;)
		if (view_eq_nocase(word, name))
			return true;
	return false;
}

static bool is_ours(struct view line)
{
	size_t n = sizeof(MARK) - 1;
	return line.n >= n && memcmp(line.p + line.n - n, MARK, n) == 0;
}

int identity_hosts(struct view old, struct view name, struct buf *out)
{
	bool four = false, six = false, own = false;
	for (struct view rest = old; rest.n;) {
		struct view line = view_split(rest, '\n', &rest);
		if (is_ours(line))
			continue;
		four |= names(line, VIEW("localhost"), false);
		six |= names(line, VIEW("ip6-localhost"), true);
		own |= names(line, name, false) || names(line, name, true);
		buf_add(out, line);
		buf_putc(out, '\n');
	}
	if (!four)
		buf_puts(out, "127.0.0.1 localhost" MARK "\n");
	if (!six)
		buf_puts(out, "::1 localhost ip6-localhost ip6-loopback" MARK "\n");
	if (!own && name.n)
		buf_printf(out, "127.0.1.1 %.*s" MARK "\n", VIEW_ARG(name));
	if (out->bad)
		return out->bad;
	if (view_eq(old, buf_view(out)))
		buf_clear(out);
	return 0;
}

/* The whole of a plain file; empty for one that is not there. False: it is something else. */
static bool load(const char *path, struct buf *out)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	if (fd < 0)
		return errno == ENOENT;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
		return false;
	/* Not more than that is kept of it: the first command of the box waits for us. */
	size_t size = (size_t)st.st_size + 1;
	char *p = buf_reserve(out, size);
	ssize_t n = p ? read(fd, p, size) : -1;
	if (n > 0)
		buf_commit(out, (size_t)n);
	return n >= 0;
}

/* A file that is not there is made where it belongs: nobody runs yet who could see half of it. */
static void put(const char *path, struct view text)
{
	_cleanup_(closep) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd >= 0) {
		(void)!fd_write_all(fd, text.p, text.n);
		return;
	}
	(void)!fd_replace(AT_FDCWD, path, text.p, text.n, 0644, false);
}

static void write_hosts(struct view name)
{
	_cleanup_(buf_done) struct buf old = BUF_INIT(FILE_MAX + 1), new = BUF_INIT(2 * FILE_MAX);
	if (load("/etc/hosts", &old) && identity_hosts(buf_view(&old), name, &new) == 0 && buf_len(&new))
		put("/etc/hosts", buf_view(&new));
}

static void write_hostname(struct view name)
{
	_cleanup_(buf_done) struct buf old = BUF_INIT(FILE_MAX + 1);
	char line[80];
	int n = snprintf(line, sizeof(line), "%.*s\n", VIEW_ARG(name));
	struct view want = { line, (size_t)MIN(n, (int)sizeof(line) - 1) };
	if (load("/etc/hostname", &old) && !view_eq(buf_view(&old), want))
		put("/etc/hostname", want);
}

/* Also where it is a link into a /run that is not there, as images of machines with systemd have it. */
static void write_resolver(void)
{
	_cleanup_(buf_done) struct buf old = BUF_INIT(FILE_MAX + 1);
	if (load("/etc/resolv.conf", &old) && view_trim(buf_view(&old)).n == 0)
		put("/etc/resolv.conf", VIEW("nameserver 127.0.0.1\n"));
}

static void write_machine_id(void)
{
	_cleanup_(buf_done) struct buf old = BUF_INIT(FILE_MAX + 1);
	uint8_t random[16];
	char text[40];
	size_t n = 0;
	if (!load("/etc/machine-id", &old) || buf_len(&old) >= 32 ||
	    getrandom(random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		return;
	for (size_t i = 0; i < sizeof(random); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%02x", random[i]);
	text[n++] = '\n';
	put("/etc/machine-id", (struct view){ text, n });
}

/* A file of RFC 8536 that says nothing but the present rule: for images without the zone's own. */
static void put_zone_file(char *path, const struct zone *z)
{
	/* Version, 15 unused bytes, then six counts of four bytes: one change, one type, one byte of names.
	 * glibc looks at the rule only behind the last change, so that there must be one: in 1901, the
	 * earliest that version 1 can say. Its moment is followed by the number of its type, then come the
	 * type (offset, daylight saving, index of its name) and the names. */
	static const char head[44] = { 'T', 'Z', 'i', 'f', '2', [35] = 1, [39] = 1, [43] = 1 };
	static const char moment[8] = { '\xff', '\xff', '\xff', '\xff', '\x80' }, rest[8];
	_cleanup_(buf_done) struct buf b = BUF_INIT(512);

	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		(void)mkdir(path, 0755);
		*p = '/';
	}
	for (size_t size = 4; size <= 8; size += 4) { /* for readers of version 1, then for all others */
		buf_add(&b, (struct view){ head, sizeof(head) });
		buf_add(&b, (struct view){ moment + sizeof(moment) - size, size });
		buf_add(&b, (struct view){ rest, sizeof(rest) });
	}
	buf_printf(&b, "\n%s\n", z->rule);
	if (!b.bad)
		put(path, buf_view(&b));
}

/* A link, since some programs read the name of the zone from it. */
static void write_zone(const struct zone *z)
{
	_cleanup_(buf_done) struct buf old = BUF_INIT(FILE_MAX + 1);
	char path[128], now[128], line[80];
	ssize_t n;

	snprintf(path, sizeof(path), "/usr/share/zoneinfo/%s", z->name);
	if (access(path, R_OK) < 0)
		put_zone_file(path, z);
	n = readlink("/etc/localtime", now, sizeof(now));
	if (n < 0 || !view_eq((struct view){ now, (size_t)n }, view_of(path))) {
		(void)unlink("/etc/localtime.paddock");
		if (symlink(path, "/etc/localtime.paddock") == 0)
			(void)rename("/etc/localtime.paddock", "/etc/localtime");
	}
	snprintf(line, sizeof(line), "%s\n", z->name);
	if (load("/etc/timezone", &old) && !view_eq(buf_view(&old), view_of(line)))
		put("/etc/timezone", view_of(line));
}

void identity_write(const struct zone *z)
{
	static bool done;
	struct utsname self;
	if (done || uname(&self) < 0)
		return;
	done = true;
	if (access("/etc", W_OK) < 0 && (errno != ENOENT || mkdir("/etc", 0755) < 0))
		return;
	struct view name = view_of(self.nodename);
	write_hosts(name);
	write_hostname(name);
	write_resolver();
	write_machine_id();
	if (z->name[0])
		write_zone(z);
}
