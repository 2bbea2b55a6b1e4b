/*
 * Long output and files as resources: see mcp_outputs.h.
 */
#include "mcp_outputs.h"

#include <stdlib.h>

#include "file.h"
#include "mcp_tools.h"
#include "rnd.h"
#include "text.h"
#include "poison.h"

#define KEEP_MS    (10u * 60 * 1000)
#define OF_TENANT  16
#define OF_BYTES   (16u * 1024 * 1024) /* of a tenant, or its last one */
#define OUTPUTS    "paddock://outputs/"
#define SANDBOXES  "paddock://sandboxes/"
#define URI_MAX    8192
#define FILE_MAX   (8u * 1024 * 1024)
#define VALUES_MAX 100

static const char *const channels[] = { "stdout", "stderr" };

/* ---- keeping ---- */

static void drop(struct mcp_output *x)
{
	list_del(&x->link);
	outputs_done(&x->kept);
	free(x);
}

void mcp_outputs_prune(struct mcp *m, uint64_t now)
{
	LIST_EACH (it, &m->outputs) {
		struct mcp_output *x = CONTAINER(it, struct mcp_output, link);
		if (x->made_ms + KEEP_MS < now)
			drop(x);
	}
}

void mcp_outputs_free(struct mcp *m)
{
	LIST_EACH (it, &m->outputs)
		drop(CONTAINER(it, struct mcp_output, link));
}

static size_t size_of(const struct output *o)
{
	return buf_len(&o->bytes[0]) + buf_len(&o->bytes[1]);
}

static void make_place(struct mcp *m, const struct tenant *t, size_t bytes)
{
	unsigned n = 0;

	for (struct list *it = m->outputs.prev, *next; it != &m->outputs; it = next) {
		struct mcp_output *x = CONTAINER(it, struct mcp_output, link);
		next = it->prev;
		if (x->tenant != t)
			continue;
		bytes += size_of(&x->kept);
		if (++n >= OF_TENANT || bytes > OF_BYTES)
			drop(x);
	}
}

const struct mcp_output *mcp_outputs_keep(struct mcp *m, const struct actor *a, const char *box,
					  struct output *kept)
{
	struct mcp_output *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	make_place(m, a->tenant, size_of(kept));
	x->tenant = a->tenant;
	x->made_ms = loop_now(m->loop);
	x->kept = *kept;
	*kept = (struct output){ 0 };
	rnd_name(x->id, MCP_OUTPUT_ID);
	if (view_to_str(view_of(box), x->box, sizeof(x->box)) < 0)
		x->box[0] = 0;
	list_append(&m->outputs, &x->link);
	mcp_session_prune(m);
	return x;
}

void mcp_outputs_link(struct mcp_call *c, const struct mcp_output *x, unsigned channel)
{
	struct buf uri = BUF_INIT(256);
	size_t n = buf_len(&x->kept.bytes[channel]);

	buf_printf(&uri, OUTPUTS "%s/%s", x->id, channels[channel]);
	if (n)
		mcp_call_link(c, buf_view(&uri), view_of(channels[channel]), "text/plain", n);
	buf_done(&uri);
}

/* ---- reading ---- */

/* Of the caller's tenant, and of the sandbox of the path where there is one. */
static bool may_read(struct mcp_call *c, const struct mcp_output *x)
{
	struct err e = { 0 };
	const struct box *b;

	if (x->tenant != c->actor.tenant)
		return false;
	if (!c->scope[0])
		return true;
	b = boxes_find(c->core, &c->actor, ACT_BOX_READ, view_of(c->scope), &e);
	return b && view_is(view_of(b->id), x->box);
}

static void not_found(struct mcp_call *c, struct view uri)
{
	struct buf data = BUF_INIT(URI_MAX + 64);
	struct json_out o;

	json_out_init(&o, &data);
	json_out_object(&o);
	json_out_kstr(&o, "uri", view_head(uri, URI_MAX / 8));
	json_out_end(&o, '}');
	mcp_call_error_data(c, c->stream->version >= MCP_2026_07 ? MCP_PARAMS : (enum mcp_error) - 32002, 200,
			    buf_view(&data), "there is no such resource");
	buf_done(&data);
}

static void send_bytes(struct mcp_call *c, struct view uri, struct view bytes, const char *mime)
{
	bool text = text_is_utf8(bytes) && !(bytes.n && memchr(bytes.p, 0, bytes.n));
	struct json_out *o = mcp_call_result(c);
	struct buf coded = BUF_INIT(MCP_RESULT_MAX);

	json_out_key(o, "contents");
	json_out_array(o);
	json_out_object(o);
	json_out_kstr(o, "uri", uri);
	json_out_kz(o, "mimeType", mime ? mime : text ? "text/plain" : "application/octet-stream");
	bool later = mcp_stream_content(c->stream, bytes, text);
	if (!text && !later)
		o->b->bad = text_base64(&coded, bytes);
	json_out_kstr(o, text ? "text" : "blob", later ? VIEW("") : text ? bytes : buf_view(&coded));
	c->stream->content_at = buf_len(o->b) - 1; /* between the quotes */
	json_out_end(o, '}');
	json_out_end(o, ']');
	mcp_call_cacheable(c, false);
	buf_done(&coded);
	mcp_call_send(c);
}

static void read_output(struct mcp_call *c, struct view uri, struct view rest)
{
	struct view channel, id = view_split(rest, '/', &channel);

	LIST_EACH (it, &c->mcp->outputs) {
		struct mcp_output *x = CONTAINER(it, struct mcp_output, link);
		if (!view_is(id, x->id) || !may_read(c, x))
			continue;
		for (unsigned i = 0; i < ELEMS(channels); i++)
			if (view_is(channel, channels[i])) {
				send_bytes(c, uri, buf_view(&x->kept.bytes[i]), NULL);
				return;
			}
	}
	not_found(c, uri);
}

/* ---- files ---- */

struct reading {
	struct file_op op;
	struct mcp_call *call;
	struct buf bytes;
	struct output count; /* of them, with the tenant's */
	struct view uri;
};

static void done(struct mcp_call *c)
{
	struct reading *f = c->own;
	buf_done(&f->bytes);
	outputs_done(&f->count);
}

static void cancel(struct mcp_call *c)
{
	struct reading *f = c->own;
	files_cancel(&f->op);
}

static void on_info(struct file_op *op, const struct file_info *info)
{
}

static void on_data(struct file_op *op, struct view data)
{
	struct reading *f = CONTAINER(op, struct reading, op);
	struct err e = { 0 };

	if (buf_add(&f->bytes, data) < 0)
		err_set(&e, ERR_TOO_LARGE, "the file has more than %u bytes", FILE_MAX);
	else if (!outputs_count(&f->count, f->bytes.cap))
		err_set(&e, ERR_QUOTA,
			"the requests, answers and output of this tenant's commands hold too much memory");
	if (!e.code) {
		files_consumed(op, data.n);
		return;
	}
	files_cancel(op);
	f->call->cancel = NULL;
	mcp_call_fail(f->call, &e);
}

static void on_read(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct reading *f = CONTAINER(op, struct reading, op);
	struct mcp_call *c = f->call;

	c->cancel = NULL;
	if (e && e->code == ERR_NOT_FOUND)
		not_found(c, f->uri);
	else if (e)
		mcp_call_fail(c, e);
	else
		send_bytes(c, f->uri, buf_view(&f->bytes), mcp_tools_mime(f->uri, buf_view(&f->bytes)));
}

static const struct file_ops read_ops = { .on_info = on_info, .on_data = on_data, .done = on_read };

/* "NAME/files/PATH": PATH is absolute without its first slash. */
static void read_file(struct mcp_call *c, struct view uri, struct view rest)
{
	struct view path, name = view_split(rest, '/', &path);
	struct buf b = BUF_INIT(URI_MAX);
	struct err e = { 0 };

	if (!view_starts(path, "files/") || text_unpercent(&b, name, false) < 0 || buf_puts(&b, "\n/") < 0 ||
	    text_unpercent(&b, view_skip(path, strlen("files/")), false) < 0) {
		buf_done(&b);
		not_found(c, uri);
		return;
	}
	struct view both = arena_view(&c->stream->arena, buf_view(&b));
	buf_done(&b);
	struct file_place p = { .box = both.p ? view_split(both, '\n', &both) : VIEW_NONE };
	p.path = both;
	struct reading *f = mcp_call_own(c, sizeof(*f));
	if (!f)
		return;
	if (c->scope[0] && !view_is(p.box, c->scope)) {
		not_found(c, uri);
		return;
	}
	f->op.ops = &read_ops;
	f->call = c;
	f->uri = uri;
	f->bytes = BUF_INIT(FILE_MAX);
	outputs_start(&f->count, c->core, c->actor.tenant);
	c->done = done;
	c->cancel = cancel;
	if (files_read(c->core, &c->actor, &p, 0, 0, &f->op, &e) >= 0)
		return;
	c->cancel = NULL;
	if (e.code == ERR_NOT_FOUND)
		not_found(c, uri);
	else
		mcp_call_fail(c, &e);
}

void mcp_outputs_read(struct mcp_call *c)
{
	const struct json *uri = json_get(c->params, "uri");

	if (!uri || uri->type != JSON_STRING)
		mcp_call_error(c, MCP_PARAMS, 400, "uri must be a string");
	else if (view_starts(uri->text, OUTPUTS))
		read_output(c, uri->text, view_skip(uri->text, strlen(OUTPUTS)));
	else if (view_starts(uri->text, SANDBOXES))
		read_file(c, uri->text, view_skip(uri->text, strlen(SANDBOXES)));
	else
		not_found(c, uri->text);
}

/* ---- lists ---- */

static void put_output(struct json_out *o, const struct mcp_output *x, unsigned channel)
{
	struct buf text = BUF_INIT(256);

	json_out_object(o);
	buf_printf(&text, OUTPUTS "%s/%s", x->id, channels[channel]);
	json_out_kstr(o, "uri", buf_view(&text));
	json_out_kz(o, "name", channels[channel]);
	buf_clear(&text);
	buf_printf(&text, "Output of a command in sandbox %s", x->box);
	json_out_kstr(o, "description", buf_view(&text));
	json_out_kz(o, "mimeType", "text/plain");
	json_out_ku64(o, "size", buf_len(&x->kept.bytes[channel]));
	json_out_end(o, '}');
	buf_done(&text);
}

void mcp_outputs_list(struct mcp_call *c)
{
	struct json_out *o = mcp_call_result(c);

	json_out_key(o, "resources");
	json_out_array(o);
	LIST_EACH (it, &c->mcp->outputs) {
		struct mcp_output *x = CONTAINER(it, struct mcp_output, link);
		for (unsigned i = 0; i < ELEMS(channels) && may_read(c, x); i++)
			if (buf_len(&x->kept.bytes[i]))
				put_output(o, x, i);
	}
	json_out_end(o, ']');
	mcp_call_cacheable(c, false);
	mcp_call_send(c);
}

/* The sandboxes whose names begin like what was typed. */
struct completing {
	struct json_out *o;
	struct view typed;
};

static void put_name(void *arg, const struct box *b)
{
	struct completing *k = arg;
	struct view name = b->spec.name.n ? b->spec.name : view_of(b->id);

	if (name.n >= k->typed.n && view_eq(view_head(name, k->typed.n), k->typed))
		json_out_str(k->o, name);
}

void mcp_outputs_complete(struct mcp_call *c)
{
	const struct json *argument = json_get(c->params, "argument"), *name = json_get(argument, "name"),
			  *value = json_get(argument, "value");
	struct box_filter f = { .limit = VALUES_MAX, .newest_first = true };
	char next[BOXES_CURSOR_SIZE] = "";
	struct err e = { 0 };

	if (!json_get(c->params, "ref") || !name || name->type != JSON_STRING || !value ||
	    value->type != JSON_STRING) {
		mcp_call_error(c, MCP_PARAMS, 400, "ref and argument must be objects");
		return;
	}
	struct json_out *o = mcp_call_result(c);
	struct completing k = { o, value->text };
	json_out_key(o, "completion");
	json_out_object(o);
	json_out_key(o, "values");
	json_out_array(o);
	if (view_is(name->text, "sandbox") && !c->scope[0] &&
	    boxes_list(c->core, &c->actor, &f, put_name, &k, next, &e) < 0) {
		mcp_call_fail(c, &e);
		return;
	}
	json_out_end(o, ']');
	json_out_kbool(o, "hasMore", next[0] != 0);
	json_out_end(o, '}');
	mcp_call_send(c);
}
