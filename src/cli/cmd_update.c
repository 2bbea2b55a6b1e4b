/*
 * paddock update: changes of a sandbox that is there. What is not named stays as it is.
 */
#include "call.h"
#include "create.h"

#include "poison.h"

struct update_flags {
	const char *name, *on_end, *ttl;
#define FIELD(kind, name, ...) const char *name;
#include "box_fields.def"
#undef FIELD
	struct opt_list metadata;
	struct box_limits_wish limits;
};

#define AT(member)     offsetof(struct update_flags, member)
#define OPTION_BOOL    "yes|no"
#define OPTION_SECONDS "TIME"
#define OPTION_REST(kind_, at)                                                                               \
	.offset = AT(at), .arg = OPTION_##kind_                                                              \
	}                                                                                                    \
	,
#define OPTION_UPDATE_FLAG(flag, words)                                                                      \
	{                                                                                                    \
		flag, .kind = OPT_TEXT, .help = words, OPTION_REST
#define OPTION_NO_FLAG(kind_, at)
#define OPTS_LIVE(...) __VA_ARGS__,
#define OPTS_FIXED(...)
static const struct opt OPTS[] = {
	{ "name", 'n', OPT_TEXT, AT(name), "NAME", "a new name" },
#define LIMIT(kind, name, member, wire, min, max, standard, most, change, flag, letter, help)                \
	OPTS_##change(CREATE_LIMIT(kind, AT(limits.name), flag, letter, help))
#include "box_limits.def"
#undef LIMIT
	{ "ttl", 0, OPT_TEXT, AT(ttl), "TIME", "end it after this time from now, or never" },
	{ "on-end", 0, OPT_TEXT, AT(on_end), "WHAT", "what its end is: delete, stop or pause" },
#define FIELD(kind, name, json, shown, wire, twin, pool, change, update, flag) OPTION_##update(kind, name)
#include "box_fields.def"
#undef FIELD
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

#define PUT_BOOL    put_choice
#define PUT_SECONDS put_time

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
	if (put_time(&o, "ttl_seconds", f->ttl, e) < 0)
		return -1;
#define PUT(kind, name, json)                                                                                \
	if (PUT_##kind(&o, #json, f->name, e) < 0)                                                           \
		return -1;
#define FIELD(kind, name, json, shown, wire, twin, pool, change, ...)                                        \
	BOX_FIELD_IF_##change(PUT, kind, name, json)
#include "box_fields.def"
#undef FIELD
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
