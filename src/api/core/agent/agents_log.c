/*
 * What agents log: the newest entries of each, in memory and in the store. See agent.h.
 *
 * What a program writes is cut into lines. The position of a line in the output is kept with it, so that
 * after a restart of the api the output goes on where it was. Programs that write without end lose lines
 * beyond a rate, and are told so.
 */
#include "agents.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "core_base.h"
#include "store_agents.h"
#include "text.h"
#include "poison.h"

#define ENTRIES_MOST 1000
#define BYTES_MOST   (1024u * 1024)
#define LINES_BURST  500
#define LINES_EACH_S 100

static const char *const levels[AGENT_LEVELS] = { "debug", "info", "success", "warn", "error" };
static const char *const sources[AGENT_SOURCES] = { "agent", "stdout", "stderr", "build", "daemon" };

const char *agents_level_name(enum agent_level l)
{
	return levels[l];
}

const char *agents_source_name(enum agent_source s)
{
	return sources[s];
}

bool agents_level(struct view name, enum agent_level *ret)
{
	for (size_t i = 0; i < AGENT_LEVELS; i++)
		if (view_is(name, levels[i])) {
			*ret = (enum agent_level)i;
			return true;
		}
	return false;
}

/* ---- entries ---- */

static void entry_free(struct agent *a, struct agent_entry *n)
{
	a->bytes -= n->size;
	a->n_entries--;
	list_del(&n->link);
	free(n);
}

static struct agent_entry *entry_new(struct agent *a, const struct store_agent_log *row)
{
	size_t size = sizeof(struct agent_entry) + row->message.n + row->data.n;
	struct agent_entry *n = malloc(size);

	if (!n)
		return NULL;
	char *text = (char *)(n + 1);
	*n = (struct agent_entry){ .id = row->id,
				   .at_ms = row->at_ms,
				   .level = (enum agent_level)MIN(row->level, AGENT_LEVELS - 1u),
				   .source = (enum agent_source)MIN(row->source, AGENT_SOURCES - 1u),
				   .position = row->position,
				   .message = { text, row->message.n },
				   .data = { text + row->message.n, row->data.n },
				   .size = size };
	if (row->message.n)
		memcpy(text, row->message.p, row->message.n);
	if (row->data.n)
		memcpy(text + row->message.n, row->data.p, row->data.n);
	list_append(&a->entries, &n->link);
	a->n_entries++;
	a->bytes += size;
	return n;
}

/* The oldest go, a tenth at a time: each time costs a write. */
static void make_room(struct agent *a)
{
	uint64_t last = 0;

	if (a->n_entries <= ENTRIES_MOST && a->bytes <= BYTES_MOST)
		return;
	while (a->n_entries > ENTRIES_MOST * 9 / 10 || a->bytes > BYTES_MOST / 10 * 9) {
		struct agent_entry *n = CONTAINER(a->entries.next, struct agent_entry, link);
		last = n->id;
		entry_free(a, n);
	}
	store_agent_log_trim(a->core->store, view_of(a->id), last, core_store_done, a->core);
}

static void tell(struct agent *a, bool gone)
{
	LIST_EACH (it, &a->watches) {
		struct agent_watch *w = CONTAINER(it, struct agent_watch, link);
		if (gone)
			list_del(&w->link);
		w->on_more(w, gone);
	}
}

static void add(struct agent *a, enum agent_source s, enum agent_level l, uint64_t position,
		struct view message, struct view data, store_done *done, void *arg)
{
	const struct store_agent_log row = { .id = ++a->core->agents->last_entry,
					     .agent = view_of(a->id),
					     .at_ms = clock_wall_ms(),
					     .level = l,
					     .source = s,
					     .position = position,
					     .message = message,
					     .data = data.p ? data : VIEW("") };
	bool kept = entry_new(a, &row) != NULL;

	if (kept)
		store_agent_log_put(a->core->store, &row, done ? done : core_store_done,
				    done ? arg : a->core);
	else if (done)
		done(arg, &(struct err){ .code = ERR_INTERNAL, .msg = "out of memory" });
	make_room(a);
	tell(a, false);
}

/* Text of anywhere: cut at a whole character, with what is no character replaced. */
static void add_text(struct agent *a, enum agent_source s, enum agent_level l, uint64_t position,
		     struct view text)
{
	struct buf fixed = BUF_INIT(4 * AGENT_LOG_MESSAGE);

	if (a->core->stopping)
		return;
	text = view_head(text, AGENT_LOG_MESSAGE);
	if (text_utf8_fix(&fixed, text) >= 0)
		add(a, s, l, position, buf_view(&fixed).n ? buf_view(&fixed) : VIEW(""), VIEW(""), NULL,
		    NULL);
	buf_done(&fixed);
}

void agents_log_line(struct agent *a, enum agent_source s, enum agent_level l, struct view line)
{
	add_text(a, s, l, 0, line);
}

void agents_log_say(struct agent *a, enum agent_source s, enum agent_level l, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	add_text(a, s, l, 0, view_of(text));
}

/* ---- by the agent itself ---- */

struct addition {
	struct job job;
	struct core *core;
};

static void on_added(void *arg, const struct err *e)
{
	struct addition *j = arg;

	core_store_result(j->core, e);
	job_finish(&j->job, NULL, e);
	free(j);
}

struct job *agents_log_add(struct agent *a, enum agent_level level, struct view message, struct view data,
			   job_done *done, void *arg, struct err *e)
{
	if (message.n > AGENT_LOG_MESSAGE || data.n > AGENT_LOG_DATA) {
		err_set(e, ERR_TOO_LARGE, "message has at most %d bytes, data %u", AGENT_LOG_MESSAGE,
			AGENT_LOG_DATA);
		return NULL;
	}
	if (!rate_spend(&a->lines, loop_now(a->core->loop))) {
		err_set(e, ERR_RATE, "Rate limit exceeded");
		return NULL;
	}
	struct addition *j = calloc(1, sizeof(*j));
	if (!j) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "log");
		return NULL;
	}
	*j = (struct addition){ .job = { .done = done, .arg = arg }, .core = a->core };
	add(a, AGENT_BY_ITSELF, level, 0, message, data, on_added, j);
	return &j->job;
}

/* ---- output ---- */

static void put_line(struct agent *a, unsigned channel, struct view line)
{
	enum agent_source s = channel == 1 ? AGENT_BY_STDOUT : AGENT_BY_STDERR;
	enum agent_level l = channel == 1 ? AGENT_INFO : AGENT_ERROR;

	if (!rate_spend(&a->lines, loop_now(a->core->loop))) {
		a->dropped++;
		return;
	}
	if (a->dropped) {
		agents_log_say(a, AGENT_BY_DAEMON, AGENT_WARN, "%llu lines were dropped: there were too many",
			       (unsigned long long)a->dropped);
		a->dropped = 0;
	}
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	add_text(a, s, l, a->position[channel - 1], line);
}

static void take_lines(struct agent *a, unsigned channel, bool all)
{
	struct buf *b = &a->partial[channel - 1];

	for (;;) {
		struct view v = buf_view(b);
		const char *nl = v.n ? memchr(v.p, '\n', v.n) : NULL;
		size_t n = nl ? (size_t)(nl - v.p) : v.n;

		if (!v.n || (!nl && !all && v.n < AGENT_LOG_MESSAGE))
			return;
		n = MIN(n, (size_t)AGENT_LOG_MESSAGE);
		bool whole = nl && n == (size_t)(nl - v.p);
		a->position[channel - 1] += n + whole;
		put_line(a, channel, view_head(v, n));
		buf_consume(b, n + whole);
	}
}

void agents_log_output(struct agent *a, unsigned channel, struct view data)
{
	while (data.n && channel >= 1 && channel <= EXEC_CHANNELS) {
		struct view part = view_head(data, AGENT_LOG_MESSAGE);
		buf_add(&a->partial[channel - 1], part);
		take_lines(a, channel, false);
		data = view_skip(data, part.n);
	}
}

void agents_log_output_end(struct agent *a)
{
	for (unsigned channel = 1; channel <= EXEC_CHANNELS; channel++)
		take_lines(a, channel, true);
}

/* The entry has position 1, by which a later api knows where the output of this program began. */
void agents_log_begin(struct agent *a)
{
	for (unsigned i = 0; i < EXEC_CHANNELS; i++) {
		a->position[i] = 0;
		buf_clear(&a->partial[i]);
	}
	if (!a->core->stopping)
		add(a, AGENT_BY_DAEMON, AGENT_INFO, 1, VIEW("starting"), VIEW(""), NULL, NULL);
}

/* ---- reading ---- */

const struct agent_entry *agents_log_next(const struct agent *a, uint64_t after)
{
	/* Whoever follows wants the newest ones. */
	const struct agent_entry *found = NULL;

	for (struct list *it = a->entries.prev; it != &a->entries; it = it->prev) {
		const struct agent_entry *n = CONTAINER(it, struct agent_entry, link);
		if (n->id <= after)
			break;
		found = n;
	}
	return found;
}

void agents_log_watch(struct agent *a, struct agent_watch *w)
{
	list_init(&w->link);
	list_append(&a->watches, &w->link);
}

void agents_log_unwatch(struct agent_watch *w)
{
	if (w->link.next)
		list_del(&w->link);
}

/* ---- life ---- */

void agents_log_init(struct agent *a)
{
	list_init(&a->entries);
	list_init(&a->watches);
	a->lines = RATE(LINES_BURST, LINES_EACH_S);
	for (unsigned i = 0; i < EXEC_CHANNELS; i++)
		buf_init(&a->partial[i], 2 * AGENT_LOG_MESSAGE + 2);
}

void agents_log_done(struct agent *a)
{
	tell(a, true);
	LIST_EACH (it, &a->entries)
		entry_free(a, CONTAINER(it, struct agent_entry, link));
	for (unsigned i = 0; i < EXEC_CHANNELS; i++)
		buf_done(&a->partial[i]);
}

void agents_log_load(struct core *c, const struct store_agent_log *row)
{
	struct map_node *n = map_get(&c->agents->by_id, row->agent);
	struct agent *a = n ? CONTAINER(n, struct agent, by_id) : NULL;

	c->agents->last_entry = MAX(c->agents->last_entry, row->id);
	if (!a || !entry_new(a, row))
		return;
	if (row->source == AGENT_BY_DAEMON && row->position == 1)
		a->position[0] = a->position[1] = 0;
	else if (row->source == AGENT_BY_STDOUT)
		a->position[0] = row->position;
	else if (row->source == AGENT_BY_STDERR)
		a->position[1] = row->position;
}
