/*
 * Text files in answers: see file_text.h.
 */
#include "file_text.h"

#include "text.h"
#include "poison.h"

#define WINDOW_MAX (4u * 1024 * 1024) /* more than the link has under way */

/* The next bytes of `data` that are wanted, which is skipped past them. */
static struct view select_next(struct file_text *f, struct view *data)
{
	while (data->n && !f->is_over) {
		const char *end = f->lines.given ? memchr(data->p, '\n', data->n) : NULL;
		struct view part = view_head(*data, end ? (size_t)(end - data->p) + 1 : data->n);
		bool wanted = !f->lines.given || f->line >= f->lines.first;

		*data = view_skip(*data, part.n);
		f->line += end != NULL;
		f->is_over = f->lines.given && f->line >= f->lines.end;
		if (wanted)
			return part;
	}
	return VIEW_NONE;
}

static void start_over(struct file_text *f)
{
	f->line = 0;
	f->is_over = f->lines.given && f->lines.end == 0;
}

/* ---- the first time ---- */

static void check_piece(void *arg, struct view piece)
{
	struct file_text *f = arg;

	f->is_text = f->is_text && text_is_utf8(piece);
	if (f->measure && f->is_text)
		f->escaped += json_out_escaped(piece);
}

static void finish(struct file_text *f)
{
	text_pieces_end(&f->pieces, check_piece, f);
	/* Lines come without the end of the last one. */
	if (f->lines.given && f->n && f->last == '\n') {
		f->n--;
		f->escaped -= f->measure ? 2 : 0;
		if (f->kept)
			f->source.there.n--;
	}
	f->source.is_whole = f->kept;
	f->done(f, NULL);
}

static void refuse_large(struct file_text *f)
{
	struct err e = { 0 };

	files_cancel(&f->first);
	f->too_large = true;
	err_set(&e, ERR_TOO_LARGE, "the file has more than %llu bytes", (unsigned long long)f->most);
	f->done(f, &e);
}

static void on_info(struct file_op *op, const struct file_info *info)
{
	struct file_text *f = CONTAINER(op, struct file_text, first);

	if (!f->lines.given && info->size > f->most)
		refuse_large(f);
}

static void keep(struct file_text *f, struct view part)
{
	struct buf *there = &f->source.there;

	f->kept = f->kept && buf_len(there) + part.n <= FILE_TEXT_KEEP && buf_add(there, part) >= 0;
	if (!f->kept)
		buf_done(there);
	http_hold(f->r->x, there->cap + f->r->body.cap + f->r->arena.used);
}

static void on_first(struct file_op *op, struct view data)
{
	struct file_text *f = CONTAINER(op, struct file_text, first);
	size_t n = data.n;
	struct view part;

	while ((part = select_next(f, &data)).n) {
		f->n += part.n;
		f->last = part.p[part.n - 1];
		if (f->n > f->most) {
			refuse_large(f);
			return;
		}
		keep(f, part);
		text_pieces_add(&f->pieces, part, check_piece, f);
	}
	if (f->is_over) {
		files_cancel(op);
		finish(f);
		return;
	}
	files_consumed(op, n);
}

static void on_first_done(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct file_text *f = CONTAINER(op, struct file_text, first);

	if (e)
		f->done(f, e);
	else
		finish(f);
}

/* ---- and again ---- */

static void on_again(struct file_op *op, struct view data)
{
	struct file_text *f = CONTAINER(op, struct file_text, again);
	size_t n = data.n, added = 0;
	struct view part;

	while (f->left && (part = select_next(f, &data)).n) {
		part = view_head(part, (size_t)MIN((uint64_t)part.n, f->left));
		if (buf_add(&f->source.there, part) < 0) {
			answer_source_fail(&f->source);
			return;
		}
		f->left -= part.n;
		added += part.n;
	}
	files_consumed(op, n - added); /* the rest when it was sent */
	f->source.is_whole = f->left == 0;
	if (f->source.is_whole)
		files_cancel(op);
	answer_source_more(&f->source);
}

static void on_again_done(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct file_text *f = CONTAINER(op, struct file_text, again);

	if (f->left)
		answer_source_fail(&f->source);
}

static void on_again_info(struct file_op *op, const struct file_info *info)
{
}

static void begin(struct answer_source *s)
{
	static const struct file_ops ops = { .on_info = on_again_info,
					     .on_data = on_again,
					     .done = on_again_done };
	struct file_text *f = CONTAINER(s, struct file_text, source);
	struct err e = { 0 };

	if (f->kept)
		return;
	s->there = BUF_INIT(WINDOW_MAX);
	start_over(f);
	f->left = f->n;
	f->again = (struct file_op){ .ops = &ops };
	if (files_read(s->r->core, &s->r->actor, &f->place, 0, 0, &f->again, &e) < 0)
		answer_source_fail(s);
}

static void sent(struct answer_source *s, size_t n)
{
	struct file_text *f = CONTAINER(s, struct file_text, source);

	if (!f->kept && !s->is_whole)
		files_consumed(&f->again, n);
}

int file_text_read(struct file_text *f, struct request *r, const struct file_place *place, uint64_t most,
		   struct err *e)
{
	static const struct file_ops ops = { .on_info = on_info, .on_data = on_first, .done = on_first_done };

	f->r = r;
	f->place = *place;
	f->most = most;
	f->is_text = f->kept = true;
	f->source.there = BUF_INIT(FILE_TEXT_KEEP);
	f->source.begin = begin;
	f->source.sent = sent;
	f->first.ops = &ops;
	start_over(f);
	if (request_may_hold(r, e) < 0)
		return -1;
	return files_read(r->core, &r->actor, &f->place, 0, 0, &f->first, e);
}

void file_text_release(struct file_text *f)
{
	files_cancel(&f->first);
	files_cancel(&f->again);
	buf_done(&f->source.there);
}
