/*
 * Output that came late: see late.h.
 */
#include "late.h"

#include "poison.h"

#define LATE_MAX (256u * 1024) /* of each channel */

void late_keep(struct late *l, unsigned channel, struct view data)
{
	struct buf *b = &l->channels[channel - 1];

	if (data.n > LATE_MAX) {
		data = view_skip(data, data.n - LATE_MAX);
		l->cut = true;
	}
	if (buf_len(b) + data.n > LATE_MAX) {
		buf_consume(b, buf_len(b) + data.n - LATE_MAX);
		l->cut = true;
	}
	b->max = LATE_MAX;
	if (buf_add(b, data) < 0)
		l->cut = true;
}

struct buf late_take(struct late *l, unsigned channel)
{
	struct buf b = l->channels[channel - 1];

	l->channels[channel - 1] = BUF_INIT(0);
	return b;
}

bool late_take_cut(struct late *l)
{
	bool cut = l->cut;

	l->cut = false;
	return cut;
}

void late_done(struct late *l)
{
	for (unsigned i = 0; i < EXEC_CHANNELS; i++)
		buf_done(&l->channels[i]);
}
