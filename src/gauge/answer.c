/*
 * Requests and replies: see answer.h. Each read makes the text anew: nothing is kept for a
 * box that opens a file a million times.
 */
#include "answer.h"

#include <errno.h>
#include <linux/fuse.h>
#include <string.h>
#include <sys/stat.h>

#include "poison.h"

#define ATTR_S   3600 /* its attributes never change */
#define TEXT_MAX (1u << 20)

static void reply(struct buf *out, const struct fuse_in_header *h, int error, const void *p, size_t n)
{
	struct fuse_out_header o = { .len = (uint32_t)(sizeof(o) + n), .error = error, .unique = h->unique };
	buf_append(out, &o, sizeof(o));
	if (n)
		buf_append(out, p, n);
}

static void reply_attr(struct buf *out, const struct fuse_in_header *h)
{
	const struct fuse_attr_out a = {
		.attr_valid = ATTR_S,
		.attr = { .ino = FUSE_ROOT_ID, .mode = S_IFREG | 0444, .nlink = 1, .blksize = 4096 }
	};
	reply(out, h, 0, &a, sizeof(a));
}

static void reply_read(struct buf *out, const struct fuse_in_header *h, const struct fuse_read_in *r,
		       answer_text *text, void *arg)
{
	_cleanup_(buf_done) struct buf all = BUF_INIT(TEXT_MAX);
	int e = text(arg, h->uid, &all);
	if (e == 0 && all.bad)
		e = -EIO;
	size_t from = (size_t)MIN(r->offset, all.n), n = MIN(all.n - from, (size_t)r->size);
	if (e < 0)
		reply(out, h, e, NULL, 0);
	else
		reply(out, h, 0, n ? all.p + from : NULL, n);
}

int answer_make(const void *request, size_t n, answer_text *text, void *arg, struct buf *out)
{
	struct fuse_in_header h;
	struct fuse_read_in r;
	const struct fuse_open_out opened = { .open_flags = FOPEN_DIRECT_IO };
	const struct fuse_statfs_out st = { .st = { .bsize = 4096, .namelen = 255, .frsize = 4096 } };
	if (n < sizeof(h))
		return -EBADMSG;
	memcpy(&h, request, sizeof(h));
	if (h.len != n)
		return -EBADMSG;
	switch (h.opcode) {
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT: /* the request itself is answered before the next is read */
		return 0;
	case FUSE_GETATTR:
		reply_attr(out, &h);
		return 0;
	case FUSE_OPEN:
		reply(out, &h, 0, &opened, sizeof(opened));
		return 0;
	case FUSE_READ:
		if (n < sizeof(h) + sizeof(r))
			return -EBADMSG;
		memcpy(&r, (const char *)request + sizeof(h), sizeof(r));
		reply_read(out, &h, &r, text, arg);
		return 0;
	case FUSE_RELEASE:
		reply(out, &h, 0, NULL, 0);
		return 0;
	case FUSE_STATFS:
		reply(out, &h, 0, &st, sizeof(st));
		return 0;
	default:
		reply(out, &h, -ENOSYS, NULL, 0);
		return 0;
	}
}
