/*
 * Imports an image from an archive: a script in a box of our own unpacks the archive from its stdin,
 * and the keeper then takes the files in /workspace. The digest is that of the archive, computed here
 * as the bytes pass.
 */
#include <errno.h>
#include <stdio.h>

#include "boxes.h"
#include "core_base.h"
#include "create.h"
#include "exec.h"
#include "image_config.h"
#include "images.h"
#include "import.h"
#include "import_script.h"
#include "keeper.h"
#include "log.h"
#include "num.h"
#include "remove.h"
#include "text.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define COMMIT_MS 600000

static void drop_box(struct import *im)
{
	if (im->box)
		remove_unwanted(TAKE_PTR(im->box));
}

static void say_failed(struct import *im)
{
	im->phase = IMPORT_IDLE;
	buf_done(&im->config);
	im->ops->done(im, NULL, &im->failed);
}

static void on_dropped(void *arg, const void *result, const struct err *e)
{
	struct import *im = arg;
	im->job = NULL;
	say_failed(im);
}

/* Told when the box is gone: a failed import leaves nothing behind its answer. */
static void give_up(struct import *im, const struct err *e)
{
	im->failed = *e;
	im->phase = IMPORT_FAILING;
	if (im->box)
		im->job = remove_unwanted_then(TAKE_PTR(im->box), on_dropped, im);
	if (!im->job)
		say_failed(im);
}

static void give_up_sys(struct import *im, int error)
{
	struct err e = { 0 };
	err_sys(&e, ERR_UNAVAILABLE, error, "the keeper cannot be reached");
	give_up(im, &e);
}

/* ---- the last step: the list is asked for anew ---- */

static void on_listed(void *arg, const void *result, const struct err *e)
{
	struct import *im = arg;
	const struct image *i = images_find(im->core, view_of(im->name));
	struct err missing = { 0 };

	im->job = NULL;
	if (!e && !i) {
		err_set(&missing, ERR_INTERNAL, "the image was made and is not there");
		e = &missing;
	}
	if (e) {
		give_up(im, e);
		return;
	}
	im->phase = IMPORT_IDLE;
	buf_done(&im->config);
	im->ops->done(im, i, NULL);
}

/* ---- the commit ---- */

static int on_committed(struct call *c, const struct frame *f, int fd)
{
	struct import *im = CONTAINER(c, struct import, commit);
	struct err e = { 0 };

	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	remove_gone(TAKE_PTR(im->box));
	im->phase = IMPORT_LISTING;
	im->job = images_refresh(im->core, on_listed, im, &e);
	if (!im->job)
		give_up(im, &e);
	return 0;
}

static void on_commit_fail(struct call *c, const struct err *e)
{
	give_up(CONTAINER(c, struct import, commit), e);
}

static const struct call_ops commit_ops = { .on_reply = on_committed, .on_fail = on_commit_fail };

static void commit_when_ready(struct import *im)
{
	uint8_t hash[SHA256_SIZE];
	char digest[8 + 2 * SHA256_SIZE] = "sha256:";

	if (im->phase != IMPORT_UNPACKED || !im->ended)
		return;
	sha256_end(&im->hash, hash);
	text_hex(hash, sizeof(hash), digest + 7);
	struct wire_image_commit msg = { .box = view_of(im->box->id),
					 .name = view_of(im->name),
					 .digest = view_of(digest),
					 .config = im->config.bad ? VIEW_NONE : buf_view(&im->config) };
	im->phase = IMPORT_COMMITTING;
	im->commit.ops = &commit_ops;
	int r = keeper_call(im->core, &im->commit, WIRE_TYPE_IMAGE_COMMIT, COMMIT_MS, &wire_image_commit_msg,
			    &msg);
	if (r < 0)
		give_up_sys(im, r);
	else
		log_info("image %s: %s", im->name, digest);
}

/* ---- tar ---- */

/* "skipped N", then the configuration of an image that was made elsewhere. */
static void take_said(struct import *im, struct view said)
{
	struct view config, line = view_split(said, '\n', &config);

	if (!view_starts(line, "skipped ") || num_u64(view_skip(line, 8), &im->skipped) < 0)
		im->skipped = 0;
	buf_done(&im->config);
	if (config.n && image_config_take(config, &im->config) < 0)
		log_warn("image %s: its configuration cannot be read and is left out", im->name);
}

static void on_unpacked(struct exec *x, const struct exec_result *r, const struct err *e)
{
	struct import *im = CONTAINER(x, struct import, exec);
	struct err failed = { 0 };

	if (e) {
		give_up(im, e);
	} else if (r->exit_code != 0) {
		struct view text = view_head(view_trim(r->err), 150);
		while (text.n && (text.p[text.n - 1] == '\n' || text_utf8_prefix(text) != text.n))
			text.n--;
		err_set(&failed, ERR_INVALID, "the archive cannot be unpacked: %.*s", VIEW_ARG(text));
		give_up(im, &failed);
	} else {
		take_said(im, r->out);
		im->phase = IMPORT_UNPACKED;
		commit_when_ready(im);
		/* tar may be satisfied before the archive's last padding has come. */
		if (im->phase == IMPORT_UNPACKED)
			im->ops->on_room(im);
	}
}

static void on_exec_room(struct exec *x)
{
	struct import *im = CONTAINER(x, struct import, exec);
	im->ops->on_room(im);
}

static void on_made(void *arg, const void *result, const struct err *e)
{
	static struct view argv[] = {
		VIEW("/bin/sh"), VIEW("-c"), VIEW_NONE, /* the script */
	};
	struct import *im = arg;
	struct exec_wish w = {
		.argv = { argv, ELEMS(argv) }, .user = VIEW("root"), .cwd = VIEW("/"), .streams = true
	};
	struct err failed = { 0 };

	argv[2] = view_of(import_script);
	im->job = NULL;
	if (e) {
		give_up(im, e);
		return;
	}
	im->box = (struct box *)result;
	im->phase = IMPORT_UNPACKING;
	im->exec.on_room = on_exec_room;
	im->exec.done = on_unpacked;
	if (exec_start_in(im->box, &w, &im->exec, &failed) < 0) {
		give_up(im, &failed);
		return;
	}
	if (im->ended)
		exec_end(&im->exec);
	else
		im->ops->on_room(im);
}

/* ---- operations ---- */

int import_start(struct core *c, const struct actor *a, struct view name, struct import *im, struct err *e)
{
	struct box_wish w = { .user = VIEW("root") };

	if (auth_permit(a, ACT_IMAGE_CHANGE, NULL, e) < 0)
		return -1;
	if (images_check_name(c, name, e) < 0)
		return -1;
	(void)!view_to_str(name, im->name, sizeof(im->name)); /* it fits, by the check */
	im->core = c;
	im->phase = IMPORT_MAKING;
	im->ended = false;
	sha256_init(&im->hash);
	im->job = create_hidden(c, a, &w, on_made, im, e);
	return im->job ? 0 : -1;
}

size_t import_send(struct import *im, struct view data)
{
	size_t n = 0;

	if (im->phase == IMPORT_UNPACKING)
		n = exec_send(&im->exec, data);
	else if (im->phase == IMPORT_UNPACKED)
		n = data.n;
	sha256_add(&im->hash, data.p, n);
	return n;
}

void import_end(struct import *im)
{
	im->ended = true;
	if (im->phase == IMPORT_UNPACKING)
		exec_end(&im->exec);
	else
		commit_when_ready(im);
}

void import_cancel(struct import *im)
{
	if (im->phase == IMPORT_IDLE)
		return;
	/* An abandoned creation removes its box; a commit that is under way is finished. */
	job_abandon(im->job);
	im->job = NULL;
	if (im->phase == IMPORT_COMMITTING)
		mux_cancel(&im->commit);
	exec_cancel(&im->exec);
	buf_done(&im->config);
	drop_box(im);
	im->phase = IMPORT_IDLE;
}
