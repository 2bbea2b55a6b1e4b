/*
 * paddock events, stats, top: what happens, and what sandboxes use.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "call.h"
#include "clock.h"
#include "ref.h"
#include "text.h"

#include "poison.h"

#define PAGE_BYTES (64u << 20)
#define LINE_BYTES (1u << 20)

/* ---- events ---- */

struct events_flags {
	bool follow;
	const char *box, *type;
	uint64_t after;
};

#define AT(member) offsetof(struct events_flags, member)
static const struct opt EVENTS_OPTS[] = {
	{ "follow", 'f', OPT_FLAG, AT(follow), NULL, "go on with what comes, until interrupted" },
	{ "sandbox", 's', OPT_TEXT, AT(box), "SANDBOX", "only those of this sandbox (its id)" },
	{ "type", 0, OPT_TEXT, AT(type), "TYPE", "only these, such as sandbox.created" },
	{ "after", 0, OPT_COUNT, AT(after), "ID", "only what came behind this one" },
};
#undef AT

static void put_query(struct buf *b, const struct events_flags *f)
{
	buf_printf(b, "/v1/events?after=%llu", (unsigned long long)f->after);
	if (f->box) {
		buf_puts(b, "&sandbox=");
		text_percent_all(b, view_of(f->box));
	}
	if (f->type) {
		buf_puts(b, "&type=");
		text_percent_all(b, view_of(f->type));
	}
}

/* "12  2026-11-15T20:00:00.000Z  sandbox.created  ID  {…}" */
static int print_event(const struct json *v, bool json, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(LINE_BYTES);
	const struct json *id = json_get(v, "id"), *data = json_get(v, "data");
	struct json_out o;

	json_out_init(&o, &b);
	if (json) {
		json_out_value(&o, v);
	} else {
		buf_printf(&b, "%.*s  ", VIEW_ARG(id && id->text.p ? id->text : VIEW("-")));
		show_clean(&b, session_text(v, "at"));
		buf_puts(&b, "  ");
		show_clean(&b, session_text(v, "type"));
		buf_puts(&b, "  ");
		show_clean(&b, session_text(v, "sandbox"));
		if (data && data->type == JSON_OBJECT && data->n) {
			_cleanup_(buf_done) struct buf text = BUF_INIT(LINE_BYTES);

			json_out_init(&o, &text);
			json_out_value(&o, data);
			buf_puts(&b, "  ");
			show_clean(&b, buf_view(&text));
		}
	}
	buf_putc(&b, '\n');
	return b.bad ? err_set(e, ERR_INTERNAL, "out of memory") : show_bytes(STDOUT_FILENO, buf_view(&b), e);
}

static int print_page(struct cmd_ctx *ctx, struct session *s, const struct events_flags *f, struct err *e)
{
	struct events_flags at = *f;

	for (;;) {
		_cleanup_(buf_done) struct buf path = BUF_INIT(8192);
		struct session_call call = { .method = "GET", .timeout_ms = SESSION_CALL_MS };
		const struct json *list, *next;
		uint64_t after = at.after;
		struct json *answer;

		put_query(&path, &at);
		call.path = buf_view(&path);
		if (session_call(s, &call, &answer, e) < 0)
			return -1;
		list = answer ? json_get(answer, "events") : NULL;
		next = answer ? json_get(answer, "next") : NULL;
		if (!list || list->type != JSON_ARRAY || !next || json_to_u64(next, &at.after) < 0)
			return err_set(e, ERR_INTERNAL, "the daemon's answer has no list of events");
		for (size_t i = 0; i < list->n; i++)
			if (print_event(&list->items[i], ctx->json, e) < 0)
				return -1;
		if (list->n == 0 || at.after == after)
			return 0;
	}
}

/* Lines "data: {…}" of server-sent events. */
static int on_lines(struct cmd_ctx *ctx, struct buf *b, struct err *e)
{
	struct view all = buf_view(b);
	size_t used = 0;
	const char *end;

	while (used < all.n && (end = memchr(all.p + used, '\n', all.n - used))) {
		struct view line = { all.p + used, (size_t)(end - all.p) - used };
		struct arena a = ARENA_INIT(LINE_BYTES * 16);
		struct json *v;
		int r = 0;

		used += line.n + 1;
		if (view_starts(line, "data: ")) {
			r = json_parse(&a, view_skip(line, 6), &v, e);
			r = r < 0 ? -1 : print_event(v, ctx->json, e);
		}
		arena_done(&a);
		if (r < 0)
			return -1;
	}
	buf_consume(b, used);
	return 0;
}

static int follow(struct cmd_ctx *ctx, struct session *s, const struct events_flags *f, struct err *e)
{
	_cleanup_(buf_done) struct buf path = BUF_INIT(8192), lines = BUF_INIT(LINE_BYTES * 2);
	struct client_request rq = { .method = "GET",
				     .accept = "text/event-stream",
				     .timeout_ms = SESSION_CALL_MS };
	struct response answer;
	struct view data;
	int r;

	put_query(&path, f);
	rq.path = buf_view(&path);
	if (session_send(s, &rq, &answer, e) < 0)
		return -1;
	while ((r = client_read(&s->client, &data, e)) > 0) {
		if (buf_add(&lines, data) < 0)
			return err_set(e, ERR_TOO_LARGE, "the daemon's answer has a line that is too long");
		if (on_lines(ctx, &lines, e) < 0)
			return -1;
	}
	return r;
}

static int run_events(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
		      struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	const struct events_flags *f = flags;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	return f->follow ? follow(ctx, &s, f, e) : print_page(ctx, &s, f, e);
}

/* ---- stats, top ---- */

static const char *const TITLES[] = { "ID", "NAME", "CPU", "MEMORY", "DISK", "PIDS", "NET_IN", "NET_OUT" };

static uint64_t number(const struct json *j, const char *key)
{
	const struct json *v = j ? json_get(j, key) : NULL;
	uint64_t n = 0;

	return v && json_to_u64(v, &n) == 0 ? n : 0;
}

static struct view of_limit(struct show_table *t, uint64_t used, uint64_t most)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(64);

	show_size(&b, used);
	if (most) {
		buf_puts(&b, " / ");
		show_size(&b, most);
	}
	return show_keep(t, buf_view(&b));
}

/* What was used of the processor since the sample before, as a percentage of one core. */
struct sample {
	char id[24];
	uint64_t cpu_usec, at_us;
};

static struct view cpu_of(struct show_table *t, const struct json *stats, struct sample *last)
{
	uint64_t now = clock_mono_ns() / 1000, used = number(stats, "cpu_usec");
	char text[32];

	if (last && last->at_us)
		snprintf(text, sizeof(text), "%.1f%%",
			 100.0 * (double)(used - MIN(used, last->cpu_usec)) /
				 (double)MAX(now - last->at_us, 1u));
	else
		snprintf(text, sizeof(text), "%.2f s", (double)used / 1e6);
	if (last) {
		last->cpu_usec = used;
		last->at_us = now;
	}
	return show_keep(t, view_of(text));
}

static void add_row(struct show_table *t, const struct json *box, const struct json *s, struct sample *last)
{
	show_table_add(t, (struct view[]){
				  show_cell(t, box, "id"),
				  show_cell(t, box, "name"),
				  cpu_of(t, s, last),
				  of_limit(t, number(s, "memory_bytes"), number(s, "memory_limit_bytes")),
				  of_limit(t, number(s, "disk_bytes"), number(s, "disk_limit_bytes")),
				  of_limit(t, 0, 0),
				  of_limit(t, number(s, "net_rx_bytes"), 0),
				  of_limit(t, number(s, "net_tx_bytes"), 0),
			  });
	char pids[64];
	snprintf(pids, sizeof(pids), "%llu / %llu", (unsigned long long)number(s, "pids"),
		 (unsigned long long)number(s, "pids_limit"));
	show_table_set(t, 5, show_keep(t, view_of(pids)));
}

static int run_stats(struct cmd_ctx *ctx, const void *flags _unused_, size_t n, char **operands,
		     struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	_cleanup_(show_table_done) struct show_table t = { 0 };
	struct json all = { .type = JSON_ARRAY,
			    .items = arena_array(&ctx->arena, n + 1, sizeof(struct json)) };

	if (!all.items)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	show_table_init(&t, TITLES, ELEMS(TITLES));
	for (size_t i = 0; i < n; i++) {
		struct json *box, *stats;

		if (call_with(&s, &(struct cli_call){ "GET", "sandboxes", operands[i] }, &box, e) < 0 ||
		    call_with(&s, &(struct cli_call){ "GET", "sandboxes", operands[i], "/stats" }, &stats,
			      e) < 0)
			return -1;
		if (!box || !stats)
			return err_set(e, ERR_INTERNAL, "the daemon said nothing about it");
		all.items[all.n++] = *stats;
		add_row(&t, box, stats, NULL);
	}
	if (ctx->json)
		return show_json(n == 1 ? &all.items[0] : &all, e);
	return show_table_print(&t, e);
}

struct top_flags {
	uint64_t interval_ms, count;
	const char *sort;
};

static const struct opt TOP_OPTS[] = {
	{ "interval", 'i', OPT_MS, offsetof(struct top_flags, interval_ms), "TIME",
	  "between two looks (default: 2s)" },
	{ "count", 'n', OPT_COUNT, offsetof(struct top_flags, count), "N", "end after so many looks" },
	{ "sort", 's', OPT_TEXT, offsetof(struct top_flags, sort), "COLUMN",
	  "the highest first, by cpu, memory, disk, pids, net_in or net_out (default: in the order of ls)" },
};

#define TOP_MAX 4096

static struct sample *sample_of(struct sample *samples, size_t *n, struct view id)
{
	for (size_t i = 0; i < *n; i++)
		if (view_is(id, samples[i].id))
			return &samples[i];
	if (*n == TOP_MAX || view_to_str(id, samples[*n].id, sizeof(samples[*n].id)) < 0)
		return NULL;
	return &samples[(*n)++];
}

/* {"id", "name", "stats"} of a sandbox, on the line of a look. */
static void put_look(struct json_out *o, const struct json *box, const struct json *stats)
{
	const struct json *name = json_get(box, "name");

	json_out_object(o);
	json_out_kstr(o, "id", session_text(box, "id"));
	if (name) {
		json_out_key(o, "name");
		json_out_value(o, name);
	}
	json_out_key(o, "stats");
	json_out_value(o, stats);
	json_out_end(o, '}');
}

/* ---- in which order ---- */

static const char *const SORTS[][2] = { { "cpu", "cpu_usec" },        { "memory", "memory_bytes" },
					{ "disk", "disk_bytes" },     { "pids", "pids" },
					{ "net_in", "net_rx_bytes" }, { "net_out", "net_tx_bytes" } };

struct looked {
	const struct json *box, *stats;
	struct sample *last;
	double key;
};

static int find_sort(const char *word, const char **ret, struct err *e)
{
	*ret = NULL;
	for (size_t i = 0; word && i < ELEMS(SORTS); i++)
		if (strcmp(word, SORTS[i][0]) == 0)
			*ret = SORTS[i][1];
	if (word && !*ret)
		return err_set(e, ERR_INVALID,
			       "--sort is cpu, memory, disk, pids, net_in or net_out, not \"%.40s\"", word);
	return 0;
}

/* Of the processor it is what was used since the look before, as the column shows it. */
static double key_of(const struct looked *l, const char *field)
{
	uint64_t n = number(l->stats, field), now = clock_mono_ns() / 1000;

	if (strcmp(field, "cpu_usec") != 0 || !l->last || !l->last->at_us)
		return (double)n;
	return (double)(n - MIN(n, l->last->cpu_usec)) / (double)MAX(now - l->last->at_us, 1u);
}

static int by_key(const void *a, const void *b)
{
	const struct looked *x = a, *y = b;

	return x->key < y->key ? 1 : x->key > y->key ? -1 : 0;
}

/* All that run, with what they use. */
static int look_at(struct session *s, struct sample *samples, size_t *n_samples, struct looked **ret,
		   size_t *ret_n, struct err *e)
{
	struct ref_page *pages;
	struct looked *all;
	size_t n, kept = 0;

	if (ref_list(s, "status=running", &pages, &n, e) < 0)
		return -1;
	all = arena_array(s->arena, n + 1, sizeof(*all));
	if (!all)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (; pages; pages = pages->next)
		for (size_t i = 0; i < pages->boxes->n && kept < n; i++) {
			const struct json *box = &pages->boxes->items[i];
			const char *id = arena_str(s->arena, session_text(box, "id"));
			struct err gone = { 0 };
			struct json *stats;

			if (!id ||
			    call_with(s, &(struct cli_call){ "GET", "sandboxes", id, "/stats" }, &stats,
				      &gone) < 0 ||
			    !stats)
				continue; /* it has just ended */
			all[kept++] =
				(struct looked){ box, stats, sample_of(samples, n_samples, view_of(id)), 0 };
		}
	*ret = all;
	*ret_n = kept;
	return 0;
}

static int print_looks(const struct looked *all, size_t n, struct err *e)
{
	_cleanup_(buf_done) struct buf line = BUF_INIT(PAGE_BYTES);
	struct json_out o;

	json_out_init(&o, &line);
	json_out_object(&o);
	json_out_key(&o, "sandboxes");
	json_out_array(&o);
	for (size_t i = 0; i < n; i++)
		put_look(&o, all[i].box, all[i].stats);
	json_out_end(&o, ']');
	json_out_end(&o, '}');
	buf_putc(&line, '\n');
	return line.bad ? err_set(e, ERR_TOO_LARGE, "too many sandboxes")
			: show_bytes(STDOUT_FILENO, buf_view(&line), e);
}

static int look(struct session *s, struct sample *samples, size_t *n_samples, const char *sort, bool as_json,
		struct err *e)
{
	_cleanup_(show_table_done) struct show_table t = { 0 };
	struct looked *all = NULL;
	size_t n = 0;

	if (look_at(s, samples, n_samples, &all, &n, e) < 0)
		return -1;
	for (size_t i = 0; sort && i < n; i++)
		all[i].key = key_of(&all[i], sort);
	if (sort)
		qsort(all, n, sizeof(*all), by_key);
	if (as_json)
		return print_looks(all, n, e);
	show_table_init(&t, TITLES, ELEMS(TITLES));
	for (size_t i = 0; i < n; i++)
		add_row(&t, all[i].box, all[i].stats, all[i].last);
	if (isatty(STDOUT_FILENO) && show_bytes(STDOUT_FILENO, VIEW("\033[H\033[2J"), e) < 0)
		return -1;
	return show_table_print(&t, e);
}

static int run_top(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
		   struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	struct sample *samples = arena_array(&ctx->arena, TOP_MAX, sizeof(*samples));
	const struct top_flags *f = flags;
	struct arena page = ARENA_INIT(PAGE_BYTES);
	const char *sort;
	size_t n_samples = 0;
	int r;

	if (!samples)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (find_sort(f->sort, &sort, e) < 0)
		return -1;
	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	s.arena = &page; /* this may go on for days */
	for (uint64_t i = 0; (r = look(&s, samples, &n_samples, sort, ctx->json, e)) >= 0; i++) {
		if (f->count && i + 1 >= f->count)
			break;
		arena_reset(&page);
		(void)poll(NULL, 0, f->interval_ms ? (int)MIN(f->interval_ms, 3600000u) : 2000);
	}
	arena_done(&page);
	return r;
}

const struct cmd cmd_events = {
	.name = "events",
	.operands = "",
	.summary = "show what has happened to sandboxes",
	.opts = EVENTS_OPTS,
	.n_opts = ELEMS(EVENTS_OPTS),
	.flags_size = sizeof(struct events_flags),
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.run = run_events,
};

const struct cmd cmd_stats = {
	.name = "stats",
	.operands = "SANDBOX…",
	.summary = "show what sandboxes use of their limits",
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = SIZE_MAX,
	.client = true,
	.json = true,
	.run = run_stats,
};

const struct cmd cmd_top = {
	.name = "top",
	.operands = "",
	.summary = "show what all running sandboxes use, again and again",
	.opts = TOP_OPTS,
	.n_opts = ELEMS(TOP_OPTS),
	.help = "With --json each look is one line: {\"sandboxes\": [{\"id\", \"name\", \"stats\"}]}.",
	.flags_size = sizeof(struct top_flags),
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.run = run_top,
};
