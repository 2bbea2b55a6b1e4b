/*
 * Browsers and the authority: see trust.h.
 */
#include "trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "fd.h"
#include "file.h"
#include "user.h"
#include "wire_gen.h"
#include "poison.h"

#define PLACE    "/run/paddock"
#define CA       PLACE "/ca.pem"
#define CHROMIUM PLACE "/chromium.json"
#define FIREFOX  PLACE "/firefox.json"
#define PEM_MAX  (64u * 1024)

/* Firefox has no switch for hellos that only look encrypted: it is intercepted, and trusts that. */
static const char firefox[] =
	"{\"policies\":{\"Certificates\":{\"Install\":[\"" CA "\"]},\"DisableEncryptedClientHello\":true}}\n";

static const struct {
	const char *at, *to;
} links[] = {
	{ "/etc/chromium/policies/managed/paddock.json", CHROMIUM },
	{ "/etc/opt/chrome/policies/managed/paddock.json", CHROMIUM },
	{ "/etc/opt/chrome_for_testing/policies/managed/paddock.json", CHROMIUM },
	{ "/etc/firefox/policies/policies.json", FIREFOX },
};

int trust_chromium(struct view pem, struct buf *out)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----", end[] = "-----END CERTIFICATE-----";
	const char *from = pem.n ? memmem(pem.p, pem.n, begin, sizeof(begin) - 1) : NULL;
	const char *to = from ? memmem(from, pem.n - (size_t)(from - pem.p), end, sizeof(end) - 1) : NULL;

	if (!to)
		return -EINVAL;
	buf_puts(out, "{\"CACertificates\":[\"");
	for (const char *p = from + sizeof(begin) - 1; p < to; p++) {
		bool base64 = (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') ||
			      (*p >= '0' && *p <= '9') || strchr("+/=", *p);
		if (base64 && *p)
			buf_putc(out, *p);
		else if (*p != '\n' && *p != '\r')
			return -EINVAL;
	}
	return buf_puts(out, "\"],\"EncryptedClientHelloEnabled\":false}\n");
}

static int write_files(struct view pem)
{
	_cleanup_(buf_done) struct buf chromium = BUF_INIT(2 * PEM_MAX);
	int r = pem.n > PEM_MAX ? -EINVAL : trust_chromium(pem, &chromium);

	if (r == 0 && mkdir(PLACE, 0755) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0)
		r = fd_replace(AT_FDCWD, CA, pem.p, pem.n, 0644, false);
	if (r == 0)
		r = fd_replace(AT_FDCWD, CHROMIUM, buf_view(&chromium).p, buf_len(&chromium), 0644, false);
	return r == 0 ? fd_replace(AT_FDCWD, FIREFOX, firefox, sizeof(firefox) - 1, 0644, false) : r;
}

/* With the user's rights. One who has a ~/.pki knows what is in it. */
static void write_nssdb(struct view who, struct view data)
{
	char path[USER_HOME + 32];
	struct user user;
	struct err e = { 0 };

	if (user_find(who, &user, &e) < 0 || user_enter(&user) < 0)
		return;
	snprintf(path, sizeof(path), "%s/.pki", user.home);
	bool ours = mkdir(path, 0700) == 0;
	snprintf(path, sizeof(path), "%s/.pki/nssdb", user.home);
	ours = ours && mkdir(path, 0700) == 0;
	snprintf(path, sizeof(path), "%s/.pki/nssdb/cert9.db", user.home);
	int r = ours ? fd_replace(AT_FDCWD, path, data.p, data.n, 0600, false) : 0;
	(void)r; /* it does without */
	user_leave();
}

int trust_set(const struct conn_call *call, struct err *e)
{
	const struct wire_trust *msg = call->msg;
	int r = write_files(msg->authority);

	if (r < 0)
		return file_error(e, r, PLACE);
	for (size_t i = 0; i < ELEMS(links); i++) {
		char path[PATH_MAX];
		snprintf(path, sizeof(path), "%s", links[i].at);
		r = symlink(links[i].to, path);
		if (r < 0 && errno == ENOENT && file_make_parents(path) == 0)
			r = symlink(links[i].to, path);
		(void)r; /* the user's own, or a tree that cannot be written */
	}
	if (msg->nssdb.n) {
		write_nssdb(VIEW("root"), msg->nssdb);
		if (!view_is(msg->user, "root"))
			write_nssdb(msg->user, msg->nssdb);
	}
	conn_reply(call, &wire_trust_reply_msg, &(struct wire_trust_reply){ 0 });
	return 0;
}
