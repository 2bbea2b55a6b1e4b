/*
 * paddock webhook: who is told what happens.
 */
#include "call.h"
#include "create.h"

#include "poison.h"

struct webhook_flags {
	struct opt_list events;
	const char *secret;
};

static const struct opt OPTS[] = {
	{ "event", 'e', OPT_LIST, offsetof(struct webhook_flags, events), "TYPE",
	  "only these, such as sandbox.created; may be repeated (default: all)" },
	{ "secret", 0, OPT_TEXT, offsetof(struct webhook_flags, secret), "TEXT",
	  "what deliveries are signed with (default: one is made and shown once)" },
};

static int run_create(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		      struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(64u << 10);
	const struct webhook_flags *f = flags;
	struct json *answer;
	struct json_out o;

	if (create_check_text(operands[0], "the address", e) < 0 ||
	    create_check_text(f->secret, "--secret", e) < 0)
		return -1;
	json_out_init(&o, &body);
	json_out_object(&o);
	json_out_kz(&o, "url", operands[0]);
	if (f->secret)
		json_out_kz(&o, "secret", f->secret);
	if (f->events.n) {
		json_out_key(&o, "events");
		json_out_array(&o);
		for (size_t i = 0; i < f->events.n; i++) {
			if (create_check_text(f->events.items[i], "--event", e) < 0)
				return -1;
			json_out_str(&o, view_of(f->events.items[i]));
		}
		json_out_end(&o, ']');
	}
	json_out_end(&o, '}');
	if (body.bad)
		return err_set(e, ERR_TOO_LARGE, "too many options for one request");
	if (call_once(ctx, &(struct cli_call){ "POST", "webhooks", .body = buf_view(&body) }, &answer, e) < 0)
		return -1;
	/* The secret is shown this once. */
	return answer ? show_json(answer, e) : err_set(e, ERR_INTERNAL, "the daemon said nothing about it");
}

const struct cmd cmd_webhook_create = {
	.name = "webhook create",
	.operands = "URL",
	.summary = "have events sent to an address, and show the webhook as JSON with its secret, once",
	.opts = OPTS,
	.n_opts = ELEMS(OPTS),
	.flags_size = sizeof(struct webhook_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_create,
};

static const char *const TITLES[] = { "ID", "URL", "TENANT", "DELIVERED", "FAILED", "PENDING", "CREATED" };
static const char *const FIELDS[] = { "id", "url", "tenant", "delivered", "failed", "pending", "created_at" };
static const struct cmd_things THINGS = { "webhooks", false, TITLES, FIELDS, ELEMS(FIELDS) };

const struct cmd cmd_webhook_ls = {
	.name = "webhook ls",
	.operands = "",
	.summary = "list the webhooks",
	CALL_LS(THINGS),
};

const struct cmd cmd_webhook_show = {
	.name = "webhook show",
	.operands = "ID",
	.summary = "show a webhook and its last deliveries as JSON",
	CALL_SHOW(THINGS),
};

const struct cmd cmd_webhook_rm = {
	.name = "webhook rm",
	.operands = "ID…",
	.summary = "remove webhooks",
	CALL_RM(THINGS),
};
