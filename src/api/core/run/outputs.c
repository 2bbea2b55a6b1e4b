/*
 * Output that is kept until somebody has read it: see run.h.
 */
#include "outputs.h"

#include <stdlib.h>

#include "core_base.h"
#include "who.h"
#include "poison.h"

struct outputs_row {
	struct list link;
	const struct tenant *tenant;
	size_t bytes;
	unsigned n; /* outputs that count here */
};

void outputs_init(struct outputs *o)
{
	list_init(&o->rows);
	o->bytes = 0;
}

static struct outputs_row *find(const struct core *c, const struct tenant *t)
{
	LIST_EACH (it, &c->outputs->rows) {
		struct outputs_row *row = CONTAINER(it, struct outputs_row, link);
		if (row->tenant == t)
			return row;
	}
	return NULL;
}

static struct outputs_row *find_or_make(struct core *c, const struct tenant *t)
{
	struct outputs_row *row = find(c, t);

	if (row)
		return row;
	row = calloc(1, sizeof(*row));
	if (!row)
		return NULL;
	row->tenant = t;
	list_append(&c->outputs->rows, &row->link);
	return row;
}

void outputs_beside(struct core *c, outputs_beside_fn beside, void *arg)
{
	c->outputs->beside = beside;
	c->outputs->beside_arg = arg;
}

struct outputs_held outputs_held(const struct core *c, const struct tenant *t)
{
	const struct outputs_row *row = find(c, t);

	return (struct outputs_held){ row ? row->bytes : 0, c->outputs->bytes };
}

/* With what requests and answers hold. */
static struct outputs_held held(const struct core *c, const struct tenant *t)
{
	struct outputs_held own = outputs_held(c, t), beside = { 0 };

	if (c->outputs->beside)
		beside = c->outputs->beside(c->outputs->beside_arg, t);
	return (struct outputs_held){ own.tenant + beside.tenant, own.all + beside.all };
}

int outputs_admit(struct core *c, const struct tenant *t, struct err *e)
{
	struct outputs_held h = held(c, t);

	if (h.tenant >= OUTPUTS_TENANT)
		return err_set(e, ERR_QUOTA,
			       "%u MiB of output and answers of this tenant's commands wait to be read",
			       OUTPUTS_TENANT >> 20);
	if (h.all >= OUTPUTS_ALL)
		return err_set(e, ERR_UNAVAILABLE, "too much output of commands waits to be read");
	return 0;
}

void outputs_start(struct output *o, struct core *c, const struct tenant *t)
{
	*o = (struct output){ .core = c, .tenant = t };
	for (size_t i = 0; i < ELEMS(o->bytes); i++)
		o->bytes[i] = BUF_INIT(c->config->max.exec_output_bytes);
}

size_t outputs_room(const struct output *o, unsigned channel)
{
	return buf_room(&o->bytes[channel - 1]);
}

static bool take_row(struct output *o)
{
	if (o->row)
		return true;
	o->row = find_or_make(o->core, o->tenant);
	if (!o->row)
		return false;
	o->row->n++;
	return true;
}

/* A little more than it may have in all is better than a test for every byte. */
static bool is_full(const struct output *o)
{
	const struct outputs_held h = held(o->core, o->tenant);
	return h.tenant >= OUTPUTS_TENANT || h.all >= OUTPUTS_ALL;
}

bool outputs_add(struct output *o, unsigned channel, struct view data)
{
	struct buf *b = &o->bytes[channel - 1];
	struct view fits = view_head(data, buf_room(b));

	if (!fits.n)
		return data.n == 0;
	if (!take_row(o) || is_full(o) || buf_add(b, fits) < 0)
		return false;
	o->row->bytes += fits.n;
	o->core->outputs->bytes += fits.n;
	return fits.n == data.n;
}

bool outputs_count(struct output *o, size_t bytes)
{
	if (!take_row(o) || (bytes > o->beside && is_full(o)))
		return false;
	o->row->bytes += bytes - o->beside;
	o->core->outputs->bytes += bytes - o->beside;
	o->beside = bytes;
	return true;
}

void outputs_done(struct output *o)
{
	size_t n = o->beside;

	for (size_t i = 0; i < ELEMS(o->bytes); i++) {
		n += buf_len(&o->bytes[i]);
		buf_done(&o->bytes[i]);
	}
	o->beside = 0;
	if (!o->row)
		return;
	o->row->bytes -= n;
	o->core->outputs->bytes -= n;
	if (--o->row->n == 0) {
		list_del(&o->row->link);
		free(o->row);
	}
	o->row = NULL;
}
