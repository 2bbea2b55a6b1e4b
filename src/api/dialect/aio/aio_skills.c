/*
 * /v1/skills and /v1/util/convert_to_markdown: both are scripts in the sandbox (inside/skills.py,
 * markdown.py). A skill that is uploaded is written to a file of the sandbox first.
 */
#include "aio_inside.h"
#include "form.h"
#include "rnd.h"
#include "poison.h"

#define UPLOAD_MAX (64u * 1024 * 1024)
#define FIELD_MAX  4095

/* ---- register ---- */

enum field { FIELD_OTHER, FIELD_PATH, FIELD_NAME };

struct registering {
	struct form form;
	struct aio_inside inside;
	enum field at; /* the part that is being read */
	struct buf fields[3];
	struct view aside, filename;
};

static void release(struct request *r)
{
	struct registering *g = r->own;

	form_done(&g->form);
	aio_inside_cancel(&g->inside);
	for (size_t i = 0; i < ELEMS(g->fields); i++)
		buf_done(&g->fields[i]);
}

static int place(struct form *f, struct file_place *ret, struct err *e)
{
	struct registering *g = CONTAINER(f, struct registering, form);
	struct buf b = BUF_INIT(128);
	char random[17];

	g->at = view_is(f->parser.name, "path")   ? FIELD_PATH
		: view_is(f->parser.name, "name") ? FIELD_NAME
						  : FIELD_OTHER;
	if (!view_is(f->parser.name, "file") || !f->parser.filename.p)
		return 0;
	if (f->n)
		return err_set(e, ERR_INVALID, "there is one file");
	g->filename = form_base_name(f->parser.filename);
	g->filename = g->filename.p ? arena_view(f->r->x->arena, g->filename) : VIEW("");
	rnd_name(random, 16);
	buf_printf(&b, "/tmp/.skill-%s", random);
	g->aside = arena_view(f->r->x->arena, buf_view(&b));
	buf_done(&b);
	*ret = (struct file_place){ .box = view_of(f->r->box), .path = g->aside };
	return 1;
}

static void on_field(struct form *f, struct view data)
{
	struct registering *g = CONTAINER(f, struct registering, form);

	if (g->at != FIELD_OTHER)
		buf_add(&g->fields[g->at], data);
}

static void on_failed(struct form *f, const struct err *e)
{
	if (e->code == ERR_INVALID || e->code == ERR_MEDIA_TYPE)
		aio_unprocessable(f->r, "file", e->msg);
	else
		answer_fail(f->r, e);
}

static void finish(struct form *f)
{
	struct registering *g = CONTAINER(f, struct registering, form);
	const struct buf *path = &g->fields[FIELD_PATH], *name = &g->fields[FIELD_NAME];

	if (!g->aside.p && !buf_len(path)) {
		aio_unprocessable(f->r, "file", "file or path is needed");
		return;
	}
	if (path->bad || name->bad) {
		aio_unprocessable(f->r, path->bad ? "path" : "name", "too long");
		return;
	}
	const struct view words[] = { VIEW("register"), g->aside, g->filename, buf_view(path),
				      buf_view(name) };
	aio_inside_start(&g->inside, f->r, AIO_SCRIPT_SKILLS, words, ELEMS(words));
}

static const struct form_ops form_ops = {
	.place = place, .field = on_field, .fail = on_failed, .finish = finish
};

static void register_skills(struct request *r)
{
	struct registering *g = aio_own(r, sizeof(*g), release);

	if (!g || !aio_may_exec(r))
		return;
	for (size_t i = 0; i < ELEMS(g->fields); i++)
		g->fields[i] = BUF_INIT(FIELD_MAX);
	g->form.most = UPLOAD_MAX;
	form_start(&g->form, r, &form_ops);
}

/* ---- the others ---- */

static void skills(struct request *r, const char *what, struct view word)
{
	const struct view words[] = { view_of(what), word };
	aio_inside_run(r, AIO_SCRIPT_SKILLS, words, word.p ? 2 : 1);
}

static void metadatas(struct request *r)
{
	skills(r, "list", request_query(r, "names"));
}

static void content(struct request *r)
{
	skills(r, "content", r->params[0]);
}

static void remove_one(struct request *r)
{
	skills(r, "delete", r->params[0]);
}

static void remove_all(struct request *r)
{
	skills(r, "clear", VIEW_NONE);
}

/* ---- Markdown ---- */

struct convert_body {
	bool unused; /* a schema puts nothing at offset 0 */
	struct view uri;
};
static const struct json_field convert_fields[] = {
	{ "uri", JSON_F_STRING, .offset = offsetof(struct convert_body, uri), .min = 1, .max = 100000,
	  .required = true },
};
static const struct json_schema convert_schema = { convert_fields, ELEMS(convert_fields), .open = true };

static void convert(struct request *r)
{
	struct convert_body b = { 0 };

	if (aio_read(r, &convert_schema, &b) < 0)
		return;
	if (memchr(b.uri.p, 0, b.uri.n))
		aio_unprocessable(r, "uri", "uri: must not have a NUL");
	else
		aio_inside_run(r, AIO_SCRIPT_MARKDOWN, &b.uri, 1);
}

const struct route aio_skills_routes[] = {
	{ "POST", "/v1/skills/register", register_skills, .body = ROUTE_STREAM, .query = AIO_QUERY },
	{ "GET", "/v1/skills/metadatas", metadatas, .query = AIO_QUERY " names" },
	{ "DELETE", "/v1/skills", remove_all, .query = AIO_QUERY },
	{ "DELETE", "/v1/skills/{name}", remove_one, .query = AIO_QUERY },
	{ "GET", "/v1/skills/{name}/content", content, .query = AIO_QUERY },
	{ "POST", "/v1/util/convert_to_markdown", convert, .body = ROUTE_JSON, .schema = &convert_schema,
	  .query = AIO_QUERY },
	{ 0 },
};
