/*
 * paddock update: changes of a sandbox that is there. What is not named stays as it is.
 */
#include "call.h"
#include "create.h"

#include "poison.h"

struct update_flags {
	const char *name, *on_end, *auto_resume, *ports_public;
	const char *ttl, *idle;
	struct opt_list metadata;
	struct box_limits_wish limits;
};

#define AT(member)     offsetof(struct update_flags, member)
#define OPTS_LIVE(...) __VA_ARGS__,
#define OPTS_FIXED(...)
static const struct opt OPTS[] = {
	{ "name", 'n', OPT_TEXT, AT(name), "NAME", "a new name" },
#define LIMIT(kind, name, member, wire, min, max, standard, most, change, flag, letter, help)                \
	OPTS_##change(CREATE_LIMIT(kind, AT(limits.name), flag, letter, help))
#include "box_limits.def"
#undef LIMIT
	{ "ttl", 0, OPT_TEXT, AT(ttl), "TIME", "end it after this time from now, or never" },
	{ "idle", 0, OPT_TEXT, AT(idle), "TIME", "end it when it was not used for this time, or never" },
	{ "on-end", 0, OPT_TEXT, AT(on_end), "WHAT", "what its end is: delete, stop or pause" },
	{ "auto-resume", 0, OPT_TEXT, AT(auto_resume), "yes|no", "whether the next use resumes it" },
	{ "ports-public", 0, OPT_TEXT, AT(ports_public), "yes|no", "whether its ports need no key" },
	{ "metadata", 0, OPT_PAIRS, AT(metadata), "KEY=VALUE",
	  "the labels, instead of all that there are; may be repeated" },
};
#undef AT

/* "never" is 0. */
static int put_time(struct json_out *o, const char *key, const char *text, struct err *e)
{
	uint64_t ms = 0;

	if (!text)
		return 0;
	if (strcmp(text, "never") != 0 && (opts_read_ms(view_of(text), &ms) < 0 || ms == 0))
		return err_set(e, ERR_INVALID, "\"%.40s\" is not a time, such as 90s, 10m, 2h, or never",
			       text);
	json_out_ku64(o, key, (ms + 999) / 1000);
	return 0;
}

static int put_choice(struct json_out *o, const char *key, const char *text, struct err *e)
{
	if (!text)
		return 0;
	if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
		return err_set(e, ERR_INVALID, "%s must be yes or no, not \"%.40s\"", key, text);
	json_out_kbool(o, key, strcmp(text, "yes") == 0);
	return 0;
}

static int run(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(1u << 20);
	const struct update_flags *f = flags;
	struct json *answer;
	struct json_out o;

	if (create_check_text(f->name, "--name", e) < 0 || create_check_text(f->on_end, "--on-end", e) < 0)
		return -1;
	for (size_t i = 0; i < f->metadata.n; i++)
		if (create_check_text(f->metadata.items[i], "--metadata", e) < 0)
			return -1;
	json_out_init(&o, &body);
	json_out_object(&o);
	if (f->name)
		json_out_kz(&o, "name", f->name);
	if (f->on_end)
		json_out_kz(&o, "on_end", f->on_end);
	create_pairs(&o, "metadata", &f->metadata);
	create_put_limits(&o, &f->limits);
	if (put_time(&o, "ttl_seconds", f->ttl, e) < 0 || put_time(&o, "idle_seconds", f->idle, e) < 0 ||
	    put_choice(&o, "auto_resume", f->auto_resume, e) < 0 ||
	    put_choice(&o, "ports_public", f->ports_public, e) < 0)
		return -1;
	json_out_end(&o, '}');
	if (body.bad)
		return err_set(e, ERR_TOO_LARGE, "too many options for one request");
	if (view_is(buf_view(&body), "{}"))
		return err_set(e, ERR_INVALID,
			       "nothing is to be changed; `paddock help update` lists what can be");
	if (call_once(ctx, &(struct cli_call){ "PATCH", "sandboxes", operands[0], NULL, buf_view(&body) },
		      &answer, e) < 0)
		return -1;
	return ctx->json && answer ? show_json(answer, e) : 0;
}

const struct cmd cmd_update = {
	.name = "update",
	.operands = "SANDBOX",
	.summary = "change the name, limits, labels or lifetime of a sandbox",
	.help = "Limits change at once, also while it runs. A memory limit below what is in use is\n"
		"refused.",
	.opts = OPTS,
	.n_opts = ELEMS(OPTS),
	.flags_size = sizeof(struct update_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.json = true,
	.run = run,
};
