/*
 * paddock audit ls, verify, export: who did what. The chain of hashes is checked here and not by the daemon,
 * so that neither it nor whoever can write to its files is asked whether they can be trusted.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "audit_chain.h"
#include "call.h"
#include "clock.h"
#include "num.h"
#include "session.h"
#include "text.h"

#include "poison.h"

#define PAGE       500
#define PAGE_BYTES (16u << 20)
#define LINE_BYTES (64u * 1024)
#define KEPT       2000 /* of each chain, by the daemon */
#define CHAINS     8

struct audit_flags {
	const char *sandbox, *tenant, *kind, *actor, *since, *until, *knows;
	uint64_t limit;
};
#define AT(member) offsetof(struct audit_flags, member)
static const struct opt FILTER_OPTS[] = {
	{ "sandbox", 's', OPT_TEXT, AT(sandbox), "SANDBOX",
	  "only what was done to this sandbox, or another object" },
	{ "tenant", 't', OPT_TEXT, AT(tenant), "TENANT", "only what keys of this tenant did" },
	{ "kind", 0, OPT_TEXT, AT(kind), "KIND",
	  "only this action, such as key.create, or all of an area, such as key" },
	{ "actor", 0, OPT_TEXT, AT(actor), "KEY", "only what this key did, by its id" },
	{ "since", 0, OPT_TEXT, AT(since), "TIME", "not before this time, such as 2026-11-19T08:00:00Z" },
	{ "until", 0, OPT_TEXT, AT(until), "TIME", "only before this time" },
	{ "limit", 'n', OPT_COUNT, AT(limit), "N", "at most this many (default: 100)" },
};
static const struct opt VERIFY_OPTS[] = {
	{ "knows", 0, OPT_TEXT, AT(knows), "HASH",
	  "a hash that an earlier check printed: it must still be in the log" },
};
#undef AT

/* ---- pages ---- */

static void add_filter(struct buf *path, const char *name, const char *value)
{
	if (!value)
		return;
	buf_printf(path, "&%s=", name);
	text_percent_all(path, view_of(value));
}

static int get_page(struct session *s, const struct audit_flags *f, const char *cursor, uint64_t limit,
		    struct json **ret, struct err *e)
{
	_cleanup_(buf_done) struct buf path = BUF_INIT(8192);
	struct session_call call = { .method = "GET", .timeout_ms = SESSION_CALL_MS };

	buf_printf(&path, "/v1/audit?limit=%llu", (unsigned long long)limit);
	add_filter(&path, "sandbox", f->sandbox);
	add_filter(&path, "tenant", f->tenant);
	add_filter(&path, "kind", f->kind);
	add_filter(&path, "actor", f->actor);
	add_filter(&path, "since", f->since);
	add_filter(&path, "until", f->until);
	add_filter(&path, "cursor", cursor[0] ? cursor : NULL);
	if (path.bad)
		return err_set(e, ERR_INVALID, "the filters are too long");
	call.path = buf_view(&path);
	if (session_call(s, &call, ret, e) < 0)
		return -1;
	const struct json *list = *ret ? json_get(*ret, "entries") : NULL;
	return list && list->type == JSON_ARRAY
		       ? 0
		       : err_set(e, ERR_INTERNAL, "the daemon's answer has no list of entries");
}

/* Every entry, the newest first, page after page in memory of its own. */
static int each_entry(struct cmd_ctx *ctx, const struct audit_flags *f,
		      int (*each)(void *arg, const struct json *entry, struct err *e), void *arg,
		      struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	struct arena page = ARENA_INIT(PAGE_BYTES);
	struct json *answer;
	char cursor[32] = "";
	int r = session_open(&s, &ctx->session, &ctx->arena, e);

	s.arena = &page;
	while (r >= 0) {
		arena_reset(&page);
		r = get_page(&s, f, cursor, PAGE, &answer, e);
		const struct json *list = r < 0 ? NULL : json_get(answer, "entries");
		for (size_t i = 0; r >= 0 && i < list->n; i++)
			r = each(arg, &list->items[i], e);
		cursor[0] = '\0';
		if (r >= 0)
			(void)!view_to_str(session_text(answer, "next"), cursor, sizeof(cursor));
		if (!cursor[0])
			break;
	}
	arena_done(&page);
	return r;
}

/* ---- ls ---- */

static const char *const TITLES[] = { "AT",      "TENANT", "KEY",  "ACTION", "TARGET",
				      "VERDICT", "VIA",    "FROM", "REQUEST" };
static const char *const FIELDS[] = { "at",      "tenant", "key",  "action",    "target",
				      "verdict", "via",    "from", "request_id" };

static int run_ls(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
		  struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	const struct audit_flags *f = flags;
	struct json *answer;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0 ||
	    get_page(&s, f, "", f->limit ? f->limit : 100, &answer, e) < 0)
		return -1;
	if (ctx->json)
		return show_json(json_get(answer, "entries"), e);
	return show_list(answer, "entries", TITLES, FIELDS, ELEMS(FIELDS), e);
}

/* ---- export ---- */

static int print_entry(void *arg _unused_, const struct json *entry, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(LINE_BYTES);
	struct json_out o;

	json_out_init(&o, &b);
	json_out_value(&o, entry);
	buf_putc(&b, '\n');
	return b.bad ? err_set(e, ERR_TOO_LARGE, "an entry is too large")
		     : show_bytes(STDOUT_FILENO, buf_view(&b), e);
}

static int run_export(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
		      struct err *e)
{
	return each_entry(ctx, flags, print_entry, NULL, e);
}

/* ---- verify ---- */

struct chain {
	char name[32];
	uint64_t newest, oldest; /* numbers */
	uint8_t head[32];        /* the newest's hash */
	uint8_t wanted[32];      /* what the entry before the last one must have */
};

struct check {
	struct chain chains[CHAINS];
	size_t n;
	uint64_t unchained; /* of older versions */
	struct view knows;
	bool known;
};

static struct view text_of(const struct json *entry, const char *key)
{
	const struct json *v = json_get(entry, key);

	return v && (v->type == JSON_STRING || v->type == JSON_NUMBER) ? v->text : VIEW("");
}

static int read_fact(const struct json *j, struct audit_fact *f, uint8_t before[32], uint8_t hash[32])
{
	*f = (struct audit_fact){ .chain = text_of(j, "chain"),
				  .tenant = text_of(j, "tenant_id"),
				  .role = text_of(j, "role"),
				  .key = text_of(j, "key"),
				  .via = text_of(j, "via"),
				  .from = text_of(j, "from"),
				  .request = text_of(j, "request_id"),
				  .action = text_of(j, "action"),
				  .target = text_of(j, "target"),
				  .detail = text_of(j, "detail"),
				  .verdict = text_of(j, "verdict"),
				  .code = text_of(j, "code") };
	return num_u64(text_of(j, "id"), &f->id) < 0 || num_u64(text_of(j, "number"), &f->number) < 0 ||
			       clock_from_rfc3339(text_of(j, "at"), &f->at_ms) < 0 ||
			       text_unhex(text_of(j, "previous"), before, 32) < 0 ||
			       text_unhex(text_of(j, "hash"), hash, 32) < 0
		       ? -EINVAL
		       : 0;
}

static struct chain *chain_of(struct check *c, struct view name)
{
	for (size_t i = 0; i < c->n; i++)
		if (view_is(name, c->chains[i].name))
			return &c->chains[i];
	if (c->n == CHAINS || view_to_str(name, c->chains[c->n].name, sizeof(c->chains[0].name)) < 0)
		return NULL;
	return &c->chains[c->n++];
}

/* They come with the newest first. */
static int check_entry(void *arg, const struct json *entry, struct err *e)
{
	uint8_t before[32], said[32], right[32];
	struct check *c = arg;
	struct audit_fact f;

	if (!json_get(entry, "chain")) {
		c->unchained++;
		return 0;
	}
	struct chain *h = read_fact(entry, &f, before, said) < 0 ? NULL : chain_of(c, f.chain);
	if (!h)
		return err_set(e, ERR_STATE, "entry %.*s cannot be read", VIEW_ARG(text_of(entry, "id")));
	audit_chain_hash(&f, before, right);
	if (memcmp(right, said, sizeof(said)) != 0)
		return err_set(e, ERR_STATE, "entry %llu was changed: its hash is not that of its content",
			       (unsigned long long)f.id);
	if (h->newest && (f.number + 1 != h->oldest || memcmp(said, h->wanted, sizeof(said)) != 0))
		return err_set(e, ERR_STATE, "the chain %s is broken between its entries %llu and %llu",
			       h->name, (unsigned long long)f.number, (unsigned long long)h->oldest);
	if (!h->newest) {
		h->newest = f.number;
		memcpy(h->head, said, sizeof(said));
	}
	h->oldest = f.number;
	memcpy(h->wanted, before, sizeof(before));
	c->known |= view_eq(c->knows, text_of(entry, "hash"));
	return 0;
}

/* The first entry follows zeros; the daemon removes the oldest ones only beyond what it keeps. */
static int check_ends(const struct check *c, struct err *e)
{
	static const uint8_t zeros[32];

	for (size_t i = 0; i < c->n; i++) {
		const struct chain *h = &c->chains[i];
		if (h->oldest == 1 && memcmp(h->wanted, zeros, sizeof(zeros)) != 0)
			return err_set(e, ERR_STATE, "the chain %s does not begin with its first entry",
				       h->name);
		if (h->oldest > 1 && h->newest - h->oldest + 1 < KEPT)
			return err_set(e, ERR_STATE,
				       "the chain %s begins with entry %llu: older ones are missing", h->name,
				       (unsigned long long)h->oldest);
	}
	if (c->knows.n && !c->known)
		return err_set(e, ERR_STATE, "no entry has the hash %.*s", VIEW_ARG(c->knows));
	return 0;
}

static int check_file(struct check *c, const char *path, struct err *e)
{
	struct arena line = ARENA_INIT(PAGE_BYTES);
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t cap = 0;
	ssize_t n;
	int r = f ? 0 : err_sys(e, ERR_INVALID, errno, "%.100s", path);

	while (r >= 0 && (n = getline(&text, &cap, f)) > 0) {
		struct json *entry;
		arena_reset(&line);
		r = json_parse(&line, (struct view){ text, (size_t)n }, &entry, e);
		r = r < 0 ? -1 : check_entry(c, entry, e);
	}
	free(text);
	if (f)
		(void)fclose(f);
	arena_done(&line);
	return r;
}

static int print_heads(const struct cmd_ctx *ctx, const struct check *c, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(LINE_BYTES);
	struct json_out o;
	char hex[65];

	json_out_init(&o, &b);
	if (ctx->json)
		json_out_array(&o);
	for (size_t i = 0; i < c->n; i++) {
		const struct chain *h = &c->chains[i];
		text_hex(h->head, sizeof(h->head), hex);
		if (!ctx->json) {
			buf_printf(&b, "%s: entries %llu to %llu, newest hash %s\n", h->name,
				   (unsigned long long)h->oldest, (unsigned long long)h->newest, hex);
			continue;
		}
		json_out_object(&o);
		json_out_kz(&o, "chain", h->name);
		json_out_ku64(&o, "oldest", h->oldest);
		json_out_ku64(&o, "newest", h->newest);
		json_out_kz(&o, "hash", hex);
		json_out_end(&o, '}');
	}
	if (ctx->json)
		json_out_end(&o, ']');
	if (ctx->json)
		buf_putc(&b, '\n');
	else if (c->unchained)
		buf_printf(&b, "%llu entries of an older version are in no chain\n",
			   (unsigned long long)c->unchained);
	return show_bytes(STDOUT_FILENO, buf_view(&b), e);
}

static int run_verify(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e)
{
	const struct audit_flags *f = flags;
	struct check c = { .knows = f->knows ? view_of(f->knows) : VIEW("") };

	if ((n ? check_file(&c, operands[0], e) : each_entry(ctx, f, check_entry, &c, e)) < 0 ||
	    check_ends(&c, e) < 0)
		return -1;
	return print_heads(ctx, &c, e);
}

/* ---- the commands ---- */

#define FILTERED                                                                                             \
	.opts = FILTER_OPTS, .flags_size = sizeof(struct audit_flags), .lead = OPTS_ANYWHERE, .client = true

const struct cmd cmd_audit_ls = {
	.name = "audit ls",
	.operands = "",
	.summary = "list who did what, the newest first",
	FILTERED,
	.n_opts = ELEMS(FILTER_OPTS),
	.json = true,
	.run = run_ls,
};

const struct cmd cmd_audit_export = {
	.name = "audit export",
	.operands = "",
	.summary = "print the audit log as lines of JSON, the newest first",
	FILTERED,
	.n_opts = ELEMS(FILTER_OPTS) - 1, /* all of them */
	.run = run_export,
};

const struct cmd cmd_audit_verify = {
	.name = "audit verify",
	.operands = "[FILE]",
	.summary = "check that the audit log, or an export of it, is complete and unchanged",
	.help = "Needs an administrator's key: others see only a part of the chain.\n"
		"An export that was made with filters cannot be checked.\n",
	.opts = VERIFY_OPTS,
	.n_opts = ELEMS(VERIFY_OPTS),
	.flags_size = sizeof(struct audit_flags),
	.lead = OPTS_ANYWHERE,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_verify,
};
