/*
 * The list of images: see images.h.
 */
#include "image_config.h"
#include "images.h"

#include <errno.h>
#include <stdlib.h>

#include "core_base.h"
#include "fd.h"
#include "keeper.h"
#include "log.h"
#include "sha256.h"
#include "snapshots.h"
#include "text.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define KEEPER_MS   60000
#define COPY_MS     600000 /* where files are copied one by one */
#define LIST_BYTES  (4u * 1024 * 1024)
#define SAID_BYTES  (64u * 1024 * 1024)
#define DIGEST_SIZE 72 /* "sha256:", 64 digits, NUL */

static bool has_name(const struct image *i, struct view name)
{
	for (size_t k = 0; k < i->n_names; k++)
		if (view_eq(i->names[k], name))
			return true;
	return view_eq(i->digest, name);
}

/* NAME or NAME:TAG, and nothing that looks like a digest. */
static bool is_image_name(struct view v)
{
	struct view tag, bare = view_split(v, ':', &tag);
	return v.n <= SPEC_NAME_MAX && spec_is_name(bare) &&
	       (!tag.p || (spec_is_name(tag) && !view_is(bare, "sha256")));
}

const struct image *images_find(const struct core *c, struct view name)
{
	for (size_t i = 0; i < c->images->n; i++)
		if (has_name(&c->images->items[i], name))
			return &c->images->items[i];
	return NULL;
}

int images_resolve(struct core *c, struct view name, struct view *ret_digest, struct err *e)
{
	const struct image *i = images_find(c, name);
	if (!i && !is_image_name(name) && !view_starts(name, "sha256:"))
		return err_set(e, ERR_INVALID, "image must be the name or the digest of an image");
	if (!i)
		return err_set(e, ERR_NOT_FOUND, "image: there is no image %s",
			       log_quoted(view_head(name, 80)));
	*ret_digest = i->digest;
	return 0;
}

int images_each(struct core *c, const struct actor *a, void (*each)(void *arg, const struct image *i),
		void *arg, struct err *e)
{
	if (auth_permit(a, ACT_IMAGE_LIST, NULL, e) < 0)
		return -1;
	for (size_t i = 0; i < c->images->n; i++)
		each(arg, &c->images->items[i]);
	return 0;
}

void images_done(struct core *c)
{
	arena_done(&c->images->arena);
	arena_done(&c->images->said);
	c->images->items = NULL;
	c->images->n = 0;
}

/* ---- from the keeper ---- */

struct image_job {
	struct job job;
	struct core *core;
	struct call call;
	char digest[DIGEST_SIZE];   /* of one that is being made */
	char surveyed[DIGEST_SIZE]; /* the one that is being read */
	size_t next;                /* the first that was not looked at */
};

static struct image_job *new_job(struct core *c, const struct call_ops *ops, job_done *done, void *arg,
				 struct err *e)
{
	struct image_job *j = calloc(1, sizeof(*j));
	if (!j) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "image");
		return NULL;
	}
	j->job = (struct job){ .done = done, .arg = arg };
	j->core = c;
	j->call.ops = ops;
	return j;
}

/* A record that makes no sense is as good as none. */
static void take_record(struct core *c, struct images *all, struct view record, struct image *i)
{
	struct err e = { 0 };

	i->surveyed = true;
	if (config_sets_merge(&all->said, &c->images->standard, record, NULL, "image", &i->sets, &e) < 0)
		log_warn("image %.*s: its sets of hosts are the machine's: %s", VIEW_ARG(i->digest), e.msg);
}

static int copy_image(struct arena *a, const struct wire_image *from, struct image *to)
{
	*to = (struct image){ .digest = arena_view(a, from->digest),
			      .n_names = from->names.n,
			      .created_ms = (int64_t)from->created_ms,
			      .machine = from->machine,
			      .seeded = from->seeded };
	to->names = arena_array(a, from->names.n, sizeof(*to->names));
	if (!to->digest.p || !to->names)
		return -ENOMEM;
	for (size_t i = 0; i < from->names.n; i++) {
		to->names[i] = arena_view(a, from->names.items[i]);
		if (!to->names[i].p)
			return -ENOMEM;
	}
	return 0;
}

static void copy_config(struct images *all, const struct wire_image *from, struct image *to)
{
	image_config_read(&all->said, from->config, to);
}

static void copy_record(struct core *c, struct images *all, const struct wire_image *from, struct image *to)
{
	/* The view of this machine says what the machine says. */
	if (from->machine || !c->config->egress.detect)
		to->surveyed = true;
	else if (from->record.n)
		take_record(c, all, from->record, to);
}

static int replace_list(struct core *c, const struct wire_image_list_reply *reply)
{
	struct images fresh = { .standard = c->images->standard,
				.on_gone = c->images->on_gone,
				.arena = ARENA_INIT(LIST_BYTES),
				.said = ARENA_INIT(SAID_BYTES),
				.n = reply->images.n };
	int r = 0;

	fresh.items = arena_array(&fresh.arena, fresh.n, sizeof(*fresh.items));
	if (!fresh.items)
		r = -ENOMEM;
	for (size_t i = 0; r >= 0 && i < fresh.n; i++)
		r = copy_image(&fresh.arena, &reply->images.items[i], &fresh.items[i]);
	if (r < 0) {
		arena_done(&fresh.arena);
		return r;
	}
	for (size_t i = 0; i < fresh.n; i++) {
		copy_config(&fresh, &reply->images.items[i], &fresh.items[i]);
		copy_record(c, &fresh, &reply->images.items[i], &fresh.items[i]);
	}
	images_done(c);
	*c->images = fresh;
	return 0;
}

static void finish(struct image_job *j, const struct err *e)
{
	const struct image *made = !e && j->digest[0] ? images_find(j->core, view_of(j->digest)) : NULL;
	job_finish(&j->job, made, e);
	free(j);
}

/* ---- surveys ---- */

#define SURVEY_MS    30000
#define RECORD_BYTES (64u * 1024)

static void survey_next(struct image_job *j);

static int on_surveyed(struct call *c, const struct frame *f, int fd)
{
	struct image_job *j = CONTAINER(c, struct image_job, call);
	struct image *i = (struct image *)images_find(j->core, view_of(j->surveyed));
	struct arena a = ARENA_INIT(RECORD_BYTES);
	struct wire_surveyed reply;
	int r = mux_reply(c, f, &wire_surveyed_msg, &a, &reply);

	fd_close(fd);
	if (r >= 0 && i && !i->surveyed)
		take_record(j->core, j->core->images, reply.record, i);
	arena_done(&a);
	if (r < 0)
		return r;
	survey_next(j);
	return 0;
}

static void on_survey_fail(struct call *c, const struct err *e)
{
	struct image_job *j = CONTAINER(c, struct image_job, call);

	if (!j->core->stopping)
		log_warn("image %s: its sets of hosts are the machine's: %s", j->surveyed, e->msg);
	survey_next(j);
}

static const struct call_ops survey_ops = { .on_reply = on_surveyed, .on_fail = on_survey_fail };

/* Images that were imported before this was known are read at the first start; then the keeper has it. */
static void survey_next(struct image_job *j)
{
	struct core *c = j->core;

	while (!c->stopping && j->next < c->images->n) {
		const struct image *i = &c->images->items[j->next++];
		struct wire_survey msg = { .image = i->digest };

		if (i->surveyed || view_to_str(i->digest, j->surveyed, sizeof(j->surveyed)) < 0)
			continue;
		j->call.ops = &survey_ops;
		if (keeper_call(c, &j->call, WIRE_TYPE_SURVEY, SURVEY_MS, &wire_survey_msg, &msg) >= 0)
			return;
	}
	finish(j, NULL);
}

struct survey_job {
	struct job job;
	struct call call;
};

static int on_snapshot_surveyed(struct call *c, const struct frame *f, int fd)
{
	struct survey_job *j = CONTAINER(c, struct survey_job, call);
	struct arena a = ARENA_INIT(RECORD_BYTES);
	struct wire_surveyed reply;
	int r = mux_reply(c, f, &wire_surveyed_msg, &a, &reply);

	fd_close(fd);
	if (r >= 0) {
		job_finish(&j->job, &reply.record, NULL);
		free(j);
	}
	arena_done(&a);
	return r < 0 ? r : 0;
}

static void on_snapshot_fail(struct call *c, const struct err *e)
{
	struct survey_job *j = CONTAINER(c, struct survey_job, call);

	job_finish(&j->job, NULL, e);
	free(j);
}

struct job *images_survey(struct core *c, struct view digest, struct view snapshot, job_done *done, void *arg,
			  struct err *e)
{
	static const struct call_ops ops = { .on_reply = on_snapshot_surveyed, .on_fail = on_snapshot_fail };
	const struct wire_survey msg = { .image = digest, .snapshot = snapshot };
	struct survey_job *j = calloc(1, sizeof(*j));

	if (!j) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "survey");
		return NULL;
	}
	*j = (struct survey_job){ .job = { .done = done, .arg = arg }, .call = { .ops = &ops } };
	int r = keeper_call(c, &j->call, WIRE_TYPE_SURVEY, SURVEY_MS, &wire_survey_msg, &msg);
	if (r < 0) {
		err_sys(e, ERR_UNAVAILABLE, r, "the keeper cannot be reached");
		free(j);
		return NULL;
	}
	return &j->job;
}

/* ---- the list ---- */

static int on_list(struct call *c, const struct frame *f, int fd)
{
	struct image_job *j = CONTAINER(c, struct image_job, call);
	struct arena a = ARENA_INIT(LIST_BYTES);
	struct wire_image_list_reply reply;
	int r = mux_reply(c, f, &wire_image_list_reply_msg, &a, &reply);

	if (r >= 0)
		r = replace_list(j->core, &reply);
	arena_done(&a);
	if (r < 0)
		return r;
	j->next = 0;
	survey_next(j);
	return 0;
}

static void on_fail(struct call *c, const struct err *e)
{
	finish(CONTAINER(c, struct image_job, call), e);
}

static const struct call_ops list_ops = { .on_reply = on_list, .on_fail = on_fail };

static int ask_list(struct image_job *j)
{
	struct wire_image_list msg = { 0 };
	j->call.ops = &list_ops;
	return keeper_call(j->core, &j->call, WIRE_TYPE_IMAGE_LIST, KEEPER_MS, &wire_image_list_msg, &msg);
}

struct job *images_refresh(struct core *c, job_done *done, void *arg, struct err *e)
{
	struct image_job *j = new_job(c, &list_ops, done, arg, e);
	int r = j ? ask_list(j) : 0;
	if (r < 0) {
		err_sys(e, ERR_UNAVAILABLE, r, "the keeper cannot be reached");
		free(j);
		j = NULL;
	}
	return j ? &j->job : NULL;
}

/* ---- changing ---- */

static int on_changed(struct call *c, const struct frame *f, int fd)
{
	struct image_job *j = CONTAINER(c, struct image_job, call);
	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	int r = ask_list(j); /* answered when the list is right again */
	if (r < 0) {
		struct err e = { 0 };
		err_sys(&e, ERR_UNAVAILABLE, r, "the keeper cannot be reached");
		finish(j, &e);
	}
	return 0;
}

static const struct call_ops change_ops = { .on_reply = on_changed, .on_fail = on_fail };

static int check_unused(const struct core *c, const struct image *i, struct view name, struct err *e)
{
	if (i->machine)
		return err_set(e, ERR_STATE, "the image of this machine cannot be removed");
	if (i->n_names > 1 && !view_eq(i->digest, name))
		return 0; /* it only loses a name */
	LIST_EACH (it, &c->boxes->all) {
		const struct box *b = BOX_OF(it, order);
		if (view_eq(b->spec.digest, i->digest))
			return err_set(e, ERR_STATE, "the image is in use by sandboxes");
	}
	if (snapshots_use_image(c, i->digest))
		return err_set(e, ERR_STATE, "the image is in use by snapshots");
	return 0;
}

struct job *images_remove(struct core *c, const struct actor *a, struct view name, job_done *done, void *arg,
			  struct err *e)
{
	struct wire_image_remove msg = { .image = name };

	if (auth_permit(a, ACT_IMAGE_CHANGE, NULL, e) < 0)
		return NULL;
	const struct image *i = images_find(c, name);
	if (!i) {
		err_set(e, ERR_NOT_FOUND, "no such image");
		return NULL;
	}
	if (check_unused(c, i, name, e) < 0)
		return NULL;
	if (i->n_names <= 1 || view_eq(i->digest, name))
		c->images->on_gone(c, i->digest);
	struct image_job *j = new_job(c, &change_ops, done, arg, e);
	if (!j)
		return NULL;
	int r = keeper_call(c, &j->call, WIRE_TYPE_IMAGE_REMOVE, KEEPER_MS, &wire_image_remove_msg, &msg);
	if (r < 0) {
		err_sys(e, ERR_UNAVAILABLE, r, "the keeper cannot be reached");
		free(j);
		return NULL;
	}
	log_info("image %s removed by %s", log_quoted(name), a->key);
	return &j->job;
}

/* ---- of a snapshot ---- */

int images_check_name(struct core *c, struct view name, struct err *e)
{
	const struct image *old = images_find(c, name);

	if (!is_image_name(name))
		return err_set(e, ERR_INVALID,
			       "an image's name is NAME or NAME:TAG, of [A-Za-z0-9._-] with at most %d "
			       "characters, and each "
			       "begins with a letter or digit",
			       SPEC_NAME_MAX);
	if (old && old->machine)
		return err_set(e, ERR_CONFLICT, "\"%.*s\" is the image of this machine", VIEW_ARG(name));
	return 0;
}

/* A snapshot does not change, so what names it names its content. */
static void digest_of(const struct snapshot *s, char ret[DIGEST_SIZE])
{
	static const char kind[] = "paddock snapshot ";
	uint8_t sum[SHA256_SIZE];
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, kind, strlen(kind));
	sha256_add(&h, s->id, strlen(s->id));
	sha256_end(&h, sum);
	memcpy(ret, "sha256:", 7);
	text_hex(sum, sizeof(sum), ret + 7);
}

struct job *images_of_snapshot(struct core *c, const struct actor *a, struct view name, struct view snapshot,
			       job_done *done, void *arg, struct err *e)
{
	if (auth_permit(a, ACT_IMAGE_CHANGE, NULL, e) < 0 || images_check_name(c, name, e) < 0)
		return NULL;
	const struct snapshot *s = snapshots_find(c, a, ACT_SNAPSHOT_READ, snapshot, e);
	struct image_job *j = s ? new_job(c, &change_ops, done, arg, e) : NULL;
	if (!j)
		return NULL;
	digest_of(s, j->digest);
	struct wire_image_commit msg = { .name = name,
					 .digest = view_of(j->digest),
					 .snapshot = view_of(s->id),
					 .base = view_of(s->digest) };
	int r = keeper_call(c, &j->call, WIRE_TYPE_IMAGE_COMMIT, COPY_MS, &wire_image_commit_msg, &msg);
	if (r < 0) {
		err_sys(e, ERR_UNAVAILABLE, r, "the keeper cannot be reached");
		free(j);
		return NULL;
	}
	log_info("image %s made of snapshot %s by %s", log_quoted(name), s->id, a->key);
	return &j->job;
}
