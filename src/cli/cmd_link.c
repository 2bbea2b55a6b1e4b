/*
 * paddock link: a port of one sandbox on the loopback of another. paddock url: where a
 * port of a sandbox is found.
 */
#include <stdio.h>
#include <unistd.h>

#include "call.h"
#include "create.h"
#include "num.h"

#include "poison.h"

static int read_port(const char *text, uint32_t *ret, struct err *e)
{
	if (num_u32(view_of(text), ret) < 0 || *ret < 1 || *ret > UINT16_MAX)
		return err_set(e, ERR_INVALID, "\"%.40s\" is not a port from 1 to 65535", text);
	return 0;
}

/* ---- url ---- */

struct url_flags {
	bool sign;
	uint64_t ttl_ms;
};

static const struct opt URL_OPTS[] = {
	{ "sign", 0, OPT_FLAG, offsetof(struct url_flags, sign), NULL,
	  "a link that works without a key until it expires" },
	{ "ttl", 0, OPT_MS, offsetof(struct url_flags, ttl_ms), "TIME",
	  "how long a signed link works (default: an hour)" },
};

static int run_url(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	const struct url_flags *f = flags;
	struct json *answer;
	uint32_t port;
	char body[96], rest[64];

	if (read_port(operands[1], &port, e) < 0)
		return -1;
	if (f->sign || f->ttl_ms) {
		snprintf(body, sizeof(body), "{\"port\":%u,\"expires_seconds\":%llu}", port,
			 f->ttl_ms ? (unsigned long long)MAX((f->ttl_ms + 999) / 1000, 1u) : 3600ull);
		if (call_once(ctx,
			      &(struct cli_call){ "POST", "sandboxes", operands[0], "/previews",
						  view_of(body) },
			      &answer, e) < 0)
			return -1;
		return call_print(ctx, answer, "url", e);
	}
	snprintf(rest, sizeof(rest), "/ports?port=%u", port);
	if (call_once(ctx, &(struct cli_call){ "GET", "sandboxes", operands[0], rest }, &answer, e) < 0)
		return -1;
	return call_print(ctx, answer, "url", e);
}

const struct cmd cmd_url = {
	.name = "url",
	.operands = "SANDBOX PORT",
	.summary = "print the address of a port of a sandbox",
	.opts = URL_OPTS,
	.n_opts = ELEMS(URL_OPTS),
	.flags_size = sizeof(struct url_flags),
	.lead = OPTS_ANYWHERE,
	.min = 2,
	.max = 2,
	.client = true,
	.json = true,
	.run = run_url,
};

static const char *const PORT_TITLES[] = { "PORT", "PROCESS", "PID", "URL" };
static const char *const PORT_FIELDS[] = { "port", "process", "pid", "url" };
static const struct cmd_things PORTS = { "ports", true, PORT_TITLES, PORT_FIELDS, ELEMS(PORT_FIELDS) };

const struct cmd cmd_ports = {
	.name = "ports",
	.summary = "list the ports that programs of a sandbox listen on",
	CALL_LS_OF(PORTS),
};

/* ---- link ---- */

static int run_create(struct cmd_ctx *ctx, const void *flags _unused_, size_t n, char **operands,
		      struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(4096);
	uint32_t port, listen = 0;
	struct json *answer;
	struct json_out o;

	if (read_port(operands[2], &port, e) < 0 || (n > 3 && read_port(operands[3], &listen, e) < 0) ||
	    create_check_text(operands[0], "a name", e) < 0 ||
	    create_check_text(operands[1], "a name", e) < 0)
		return -1;
	json_out_init(&o, &body);
	json_out_object(&o);
	json_out_kz(&o, "from", operands[0]);
	json_out_kz(&o, "to", operands[1]);
	json_out_ku64(&o, "port", port);
	if (listen)
		json_out_ku64(&o, "listen", listen);
	json_out_end(&o, '}');
	if (call_once(ctx, &(struct cli_call){ "POST", "links", .body = buf_view(&body) }, &answer, e) < 0)
		return -1;
	return call_print(ctx, answer, "id", e);
}

const struct cmd cmd_link_create = {
	.name = "link create",
	.operands = "SANDBOX SANDBOX PORT [LISTEN]",
	.summary = "let the first sandbox reach a port of the second on its own loopback",
	.help = "LISTEN is the port on the first sandbox's loopback; the same one when absent.",
	.lead = OPTS_ANYWHERE,
	.min = 3,
	.max = 4,
	.client = true,
	.json = true,
	.run = run_create,
};

static const char *const TITLES[] = { "ID", "FROM", "LISTEN", "TO", "PORT", "UP" };
static const char *const FIELDS[] = { "id", "from", "listen", "to", "port", "up" };
static const struct cmd_things THINGS = { "links", false, TITLES, FIELDS, ELEMS(FIELDS) };

const struct cmd cmd_link_ls = {
	.name = "link ls",
	.operands = "",
	.summary = "list the links between sandboxes",
	CALL_LS(THINGS),
};

const struct cmd cmd_link_rm = {
	.name = "link rm",
	.operands = "LINK…",
	.summary = "remove links",
	CALL_RM(THINGS),
};
