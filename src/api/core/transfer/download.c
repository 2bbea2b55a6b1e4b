/*
 * Reading a file for an HTTP answer: see file.h.
 */
#include "transfer.h"

#include "wire_gen.h"
#include "poison.h"

static struct download *of(struct file_op *op)
{
	return CONTAINER(op, struct download, op);
}

static void refuse(struct download *d, uint64_t size)
{
	http_range_fit(&(struct http_range){ .first = size }, size, d->range_text);
	files_cancel(&d->op);
	d->ops->on_no_range(d, size);
}

static void begin(struct download *d, int64_t length)
{
	d->begun = true;
	d->exact = length >= 0;
	d->left = d->exact ? (uint64_t)length : 0;
	d->ops->on_begin(d, length);
}

static void on_info(struct file_op *op, const struct file_info *info)
{
	struct download *d = of(op);
	uint64_t n = info->size;

	if (d->range.given) {
		n = http_range_fit(&d->range, info->size, d->range_text);
		if (n == 0) {
			refuse(d, info->size);
			return;
		}
	}
	d->ops->on_info(d, info);
	/* Files of /proc and /sys say 0 and hold more: the first bytes will tell. */
	if (n > 0)
		begin(d, (int64_t)n);
}

static void on_data(struct file_op *op, struct view data)
{
	struct download *d = of(op);
	size_t n = data.n;

	if (!d->begun)
		begin(d, -1);
	/* A file that grows while it is read ends where it was said to end. */
	if (d->exact)
		data = view_head(data, (size_t)MIN(d->left, (uint64_t)data.n));
	d->left -= d->exact ? data.n : 0;
	if (data.n == 0 || d->ops->on_bytes(d, data))
		files_consumed(op, n);
	else
		d->held += n;
}

static void on_read(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct download *d = of(op);

	if (!e && !d->begun)
		begin(d, 0);
	/* Everything that was promised is sent: the client may have begun its next request on this
	 * connection, and must not pay for a sandbox that ends before it said that the file has. */
	d->ops->done(d, d->begun && d->exact && d->left == 0 ? NULL : e);
}

static const struct file_ops read_ops = { .on_info = on_info, .on_data = on_data, .done = on_read };

static int start_read(struct download *d, struct err *e)
{
	d->op.ops = &read_ops;
	return files_read(d->core, d->actor, &d->place, d->range.first, d->range.length, &d->op, e);
}

/* "The last n bytes" needs the size first. */
static void on_size(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct download *d = of(op);
	struct err mine = { 0 };

	if (e)
		d->ops->done(d, e);
	else if (!http_range_from_end(&d->range, info->size))
		refuse(d, info->size);
	else if (start_read(d, &mine) < 0)
		d->ops->done(d, &mine);
}

static const struct file_ops size_ops = { .done = on_size };

int download_start(struct core *c, const struct actor *a, const struct file_place *p, struct view range,
		   const struct download_ops *ops, struct download *d, struct err *e)
{
	d->ops = ops;
	d->core = c;
	d->actor = a;
	d->place = *p;
	http_range_parse(range, &d->range);
	if (!d->range.from_end)
		return start_read(d, e);
	d->op.ops = &size_ops;
	return files_stat(c, a, &d->place, &d->op, e);
}

void download_writable(struct download *d)
{
	size_t n = d->held;

	d->held = 0;
	files_consumed(&d->op, n);
}

void download_cancel(struct download *d)
{
	files_cancel(&d->op);
}
