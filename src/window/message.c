/*
 * See message.h.
 */
#include "message.h"

#include "poison.h"

static const char *const NAMES[] = {
	[MESSAGE_NONE] = "",           [MESSAGE_HERE] = "here",       [MESSAGE_AWAY] = "away",
	[MESSAGE_PENDING] = "pending", [MESSAGE_REQUEST] = "request",
};

struct raw {
	bool unused; /* an offset of 0 would mean "none" */
	struct view type;
	struct message m;
};

#define AT(member)   offsetof(struct raw, m.member)
#define TEXT(member) JSON_F_STRING, .offset = AT(member), .max = MESSAGE_MAX
static const struct json_field FIELDS[] = {
	{ "type", JSON_F_STRING, .offset = offsetof(struct raw, type), .required = true, .max = 16 },
	{ "url", TEXT(url) },
	{ "cookie", TEXT(cookie) },
	{ "ca", TEXT(ca) },
	{ "text", TEXT(text) },
	{ "id", TEXT(id) },
	{ "agent", TEXT(agent) },
	{ "chain", TEXT(chain) },
	{ "fresh", JSON_F_BOOL, .offset = AT(fresh) },
	{ "local", JSON_F_BOOL, .offset = AT(local) },
	{ "count", JSON_F_U64, .offset = AT(count), .max = UINT32_MAX },
};
#undef AT
#undef TEXT
static const struct json_schema SCHEMA = { FIELDS, ELEMS(FIELDS) };

static void put_text(struct json_out *o, const char *key, struct view text)
{
	if (text.n)
		json_out_kstr(o, key, text);
}

void message_put(struct buf *out, const struct message *m)
{
	struct json_out o;

	json_out_init(&o, out);
	json_out_object(&o);
	json_out_kz(&o, "type", NAMES[m->type]);
	put_text(&o, "url", m->url);
	put_text(&o, "cookie", m->cookie);
	put_text(&o, "ca", m->ca);
	put_text(&o, "text", m->text);
	put_text(&o, "id", m->id);
	put_text(&o, "agent", m->agent);
	put_text(&o, "chain", m->chain);
	if (m->type == MESSAGE_HERE)
		json_out_kbool(&o, "fresh", m->fresh);
	if (m->type == MESSAGE_AWAY)
		json_out_kbool(&o, "local", m->local);
	if (m->type == MESSAGE_PENDING)
		json_out_ku64(&o, "count", m->count);
	json_out_end(&o, '}');
	buf_putc(out, '\n');
}

int message_read(struct arena *a, struct view line, struct message *ret, struct err *e)
{
	struct raw raw = { 0 };
	struct json *doc = NULL;

	if (json_parse(a, line, &doc, e) < 0 || json_read(a, doc, &SCHEMA, &raw, false, e) < 0)
		return -1;
	for (size_t i = MESSAGE_HERE; i < ELEMS(NAMES); i++)
		if (view_is(raw.type, NAMES[i]))
			raw.m.type = (enum message_type)i;
	if (raw.m.type == MESSAGE_NONE || (raw.m.type == MESSAGE_HERE && !raw.m.url.n))
		return err_set(e, ERR_INVALID, "not a message of paddock-watch");
	*ret = raw.m;
	return 0;
}
