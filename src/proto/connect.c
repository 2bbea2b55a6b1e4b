/*
 * The Connect protocol: see connect.h.
 */
#include "connect.h"

#include <errno.h>

#include "json.h"
#include "num.h"
#include "poison.h"

#define TIMEOUT_DIGITS 10

static const struct {
	const char *name;
	struct connect_type type;
} types[] = {
	{ "application/json", { CONNECT_JSON, false } },
	{ "application/proto", { CONNECT_PROTO, false } },
	{ "application/connect+json", { CONNECT_JSON, true } },
	{ "application/connect+proto", { CONNECT_PROTO, true } },
};

struct connect_type connect_type(struct view content_type)
{
	struct view parameters, name = view_trim(view_split(content_type, ';', &parameters));

	for (size_t i = 0; i < ELEMS(types); i++)
		if (view_eq_nocase(name, view_of(types[i].name)))
			return types[i].type;
	return (struct connect_type){ CONNECT_NONE, false };
}

const char *connect_type_name(struct connect_type t)
{
	for (size_t i = 0; i < ELEMS(types); i++)
		if (types[i].type.codec == t.codec && types[i].type.stream == t.stream)
			return types[i].name;
	return NULL;
}

/* ---- envelopes ---- */

void connect_reader_init(struct connect_reader *r, size_t max)
{
	*r = (struct connect_reader){ .part = BUF_INIT(max) };
}

void connect_reader_done(struct connect_reader *r)
{
	buf_done(&r->part);
}

static int read_head(struct connect_reader *r, struct view *in)
{
	while (r->n_head < CONNECT_HEAD && in->n) {
		r->head[r->n_head++] = (uint8_t)in->p[0];
		*in = view_skip(*in, 1);
	}
	if (r->n_head < CONNECT_HEAD)
		return 0;
	r->want = (uint32_t)r->head[1] << 24 | (uint32_t)r->head[2] << 16 | (uint32_t)r->head[3] << 8 |
		  r->head[4];
	if (r->head[0] == CONNECT_COMPRESSED)
		return -EOPNOTSUPP;
	if (r->head[0] != 0)
		return -EBADMSG;
	return r->want > r->part.max ? -EMSGSIZE : 1;
}

/* The whole of it where it stands, or gathered piece by piece. */
static int read_body(struct connect_reader *r, struct view *in, struct view *ret)
{
	size_t have = buf_len(&r->part), take = MIN(in->n, r->want - have);

	if (have == 0 && take == r->want) {
		*ret = view_head(*in, take);
	} else {
		if (buf_add(&r->part, view_head(*in, take)) < 0)
			return -ENOMEM;
		*ret = buf_view(&r->part);
	}
	*in = view_skip(*in, take);
	return have + take == r->want;
}

int connect_next(struct connect_reader *r, struct view *in, struct view *ret)
{
	if (r->bad)
		return -EBADMSG;
	if (r->given) {
		r->given = false;
		r->n_head = 0;
		buf_clear(&r->part);
	}
	int x = r->n_head == CONNECT_HEAD ? 1 : read_head(r, in);
	if (x > 0)
		x = read_body(r, in, ret);
	r->bad = x < 0;
	r->given = x > 0;
	return x;
}

bool connect_is_between(const struct connect_reader *r)
{
	return !r->bad && (r->n_head == 0 || r->given);
}

void connect_head(uint8_t ret[CONNECT_HEAD], unsigned flags, uint32_t n)
{
	ret[0] = (uint8_t)flags;
	for (int i = 0; i < 4; i++)
		ret[1 + i] = (uint8_t)(n >> (24 - 8 * i));
}

/* ---- errors ---- */

static void put_error(struct json_out *o, const struct err *e)
{
	json_out_object(o);
	json_out_kz(o, "code", err_connect(e->code));
	json_out_kz(o, "message", e->msg);
	json_out_end(o, '}');
}

int connect_put_error(struct buf *out, const struct err *e)
{
	struct json_out o;
	json_out_init(&o, out);
	put_error(&o, e);
	return out->bad;
}

int connect_status(enum err_code code)
{
	static const struct {
		const char *name;
		int status;
	} map[] = {
		{ "canceled", 499 },           { "invalid_argument", 400 },    { "deadline_exceeded", 504 },
		{ "not_found", 404 },          { "already_exists", 409 },      { "permission_denied", 403 },
		{ "resource_exhausted", 429 }, { "failed_precondition", 400 }, { "out_of_range", 400 },
		{ "unimplemented", 501 },      { "unavailable", 503 },         { "unauthenticated", 401 },
	};
	struct view name = view_of(err_connect(code));

	for (size_t i = 0; i < ELEMS(map); i++)
		if (view_is(name, map[i].name))
			return map[i].status;
	return 500;
}

int connect_put_end(struct buf *out, const struct err *e)
{
	struct buf text = BUF_INIT(8192);
	uint8_t head[CONNECT_HEAD];
	struct json_out o;

	json_out_init(&o, &text);
	json_out_object(&o);
	if (e) {
		json_out_key(&o, "error");
		put_error(&o, e);
	}
	json_out_end(&o, '}');
	connect_head(head, CONNECT_END, (uint32_t)buf_len(&text));
	buf_append(out, head, sizeof(head));
	buf_add(out, buf_view(&text));
	buf_done(&text);
	return out->bad;
}

int connect_timeout(struct view header, uint64_t *ret_ms)
{
	return header.n > TIMEOUT_DIGITS || num_u64(header, ret_ms) < 0 ? -EINVAL : 0;
}
