/*
 * paddock image: the images that boxes start from.
 */
#include <stdio.h>

#include "call.h"
#include "create.h"
#include "source.h"
#include "progress.h"

#include "poison.h"

#define IMPORT_MS (30 * 60 * 1000) /* after the last byte: the daemon unpacks and hashes */

static const char *const TITLES[] = { "NAME", "DIGEST", "CREATED" };
static const char *const FIELDS[] = { "name", "digest", "created_at" };
static_assert(ELEMS(TITLES) == ELEMS(FIELDS) && ELEMS(TITLES) <= SHOW_COLUMNS, "a field for each title");

/* What was left out is said; the rest is as it was asked for. */
static int print_import(struct cmd_ctx *ctx, struct view text, uint64_t sockets, struct err *e)
{
	const struct json *skipped;
	struct json *answer;
	uint64_t n;

	if (json_parse(&ctx->arena, text, &answer, e) < 0)
		return err_wrap(e, "the daemon's answer");
	if (ctx->json)
		return show_json(answer, e);
	skipped = json_get(answer, "skipped");
	if (skipped && json_to_u64(skipped, &n) == 0 && n + sockets)
		fprintf(stderr, "paddock: skipped %llu device nodes, sockets and fifos\n",
			(unsigned long long)(n + sockets));
	return 0;
}

static int run_import(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_, char **operands,
		      struct err *e)
{
	_cleanup_(buf_done) struct buf path = BUF_INIT(8192);
	_cleanup_(buf_done) struct buf answer = BUF_INIT(64u << 10);
	_cleanup_(session_done) struct session s = SESSION_INIT;
	_cleanup_(source_done) struct source source = SOURCE_INIT;
	struct client_request rq = {
		.method = "PUT",
		.content_type = "application/x-tar",
		.streamed = true,
		.at_end = source_check,
		.ctx = &source,
		.timeout_ms = IMPORT_MS,
	};
	struct response r;
	struct progress p;

	buf_puts(&path, "/v1/images/");
	if (session_segment(&path, operands[0], e) < 0 ||
	    session_open(&s, &ctx->session, &ctx->arena, e) < 0 || source_open(&source, operands[1], e) < 0)
		return -1;
	rq.path = buf_view(&path);
	rq.body_fd = source.fd;
	rq.body_size = source.size;
	progress_begin(&p, &s.client, operands[1], source.size > 0 ? (uint64_t)source.size : 0);
	int sent = session_send(&s, &rq, &r, e);
	progress_end(&p, &s.client);
	if (sent < 0)
		return -1;
	if (client_read_all(&s.client, &answer, e) < 0)
		return -1;
	return print_import(ctx, buf_view(&answer), source.sockets, e);
}

static int run_of(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_, char **operands,
		  struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	_cleanup_(buf_done) struct buf body = BUF_INIT(4096);
	struct session_call call = { .method = "POST", .path = VIEW("/v1/images"), .timeout_ms = IMPORT_MS };
	struct json_out o;
	struct json *answer;

	if (create_check_text(operands[0], "the name", e) < 0 ||
	    create_check_text(operands[1], "the snapshot", e) < 0)
		return -1;
	json_out_init(&o, &body);
	json_out_object(&o);
	json_out_kz(&o, "name", operands[0]);
	json_out_kz(&o, "snapshot", operands[1]);
	json_out_end(&o, '}');
	if (body.bad)
		return err_set(e, ERR_TOO_LARGE, "too much for one request");
	call.body = buf_view(&body);
	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	if (session_call(&s, &call, &answer, e) < 0)
		return -1;
	return ctx->json && answer ? show_json(answer, e) : 0;
}

const struct cmd cmd_image_import = {
	.name = "image import",
	.operands = "NAME DIRECTORY|TAR",
	.summary = "make an image of a directory or a tar archive",
	.help = "The archive may be compressed (.gz, .zst, .xz); '-' reads a plain tar from\n"
		"standard input.",
	.lead = OPTS_ANYWHERE,
	.min = 2,
	.max = 2,
	.client = true,
	.json = true,
	.run = run_import,
};

const struct cmd cmd_image_of = {
	.name = "image of",
	.operands = "NAME SNAPSHOT",
	.summary = "make an image of a snapshot",
	.help = "Sandboxes of it begin with the files of the snapshot; the snapshot may be removed then.",
	.lead = OPTS_ANYWHERE,
	.min = 2,
	.max = 2,
	.client = true,
	.json = true,
	.run = run_of,
};

static const struct cmd_things THINGS = { "images", false, TITLES, FIELDS, ELEMS(FIELDS) };

const struct cmd cmd_image_ls = {
	.name = "image ls",
	.operands = "",
	.summary = "list the images",
	CALL_LS(THINGS),
};

const struct cmd cmd_image_rm = {
	.name = "image rm",
	.operands = "NAME…",
	.summary = "remove images",
	CALL_RM(THINGS),
};
