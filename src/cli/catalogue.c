/*
 * The index of a catalogue: see catalogue.h.
 */
#include "catalogue.h"
#include "config_key.h"

#include "num.h"

#include "poison.h"

#define MAGIC     "paddock-catalogue-1"
#define NAME_MOST 63

/* ---- words ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
	return (c >= 'a' && c <= 'z') || is_digit(c);
}

bool catalogue_is_name(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (!is_lower(v.p[i]) && (v.p[i] != '-' || i == 0))
			return false;
	return v.n > 0 && v.n <= NAME_MOST;
}

bool catalogue_name(struct view from, char ret[64])
{
	size_t n = 0;

	for (size_t i = 0; i < from.n && n < NAME_MOST; i++) {
		char c = from.p[i] >= 'A' && from.p[i] <= 'Z' ? (char)(from.p[i] + 32) : from.p[i];
		if (is_lower(c))
			ret[n++] = c;
		else if (n && ret[n - 1] != '-')
			ret[n++] = '-';
	}
	while (n && ret[n - 1] == '-')
		n--;
	ret[n] = 0;
	return n > 0;
}

/* Takes a number; false: there is none, or a long one. */
static bool take_number(struct view *v, uint32_t *ret)
{
	size_t n = 0;

	while (n < v->n && is_digit(v->p[n]))
		n++;
	if (n == 0 || n > 9 || num_u32(view_head(*v, n), ret) < 0)
		return false;
	*v = view_skip(*v, n);
	return true;
}

/* 1.2.3, 1.2.3-rc.1 */
static bool split_version(struct view v, uint32_t ret[3], struct view *ret_rest)
{
	for (int i = 0; i < 3; i++) {
		if (i && (!v.n || v.p[0] != '.'))
			return false;
		if (i)
			v = view_skip(v, 1);
		if (!take_number(&v, &ret[i]))
			return false;
	}
	for (size_t i = 0; i < v.n; i++)
		if (!is_lower(v.p[i]) && !(v.p[i] >= 'A' && v.p[i] <= 'Z') && !strchr("-+.", v.p[i]))
			return false;
	*ret_rest = v;
	return v.n == 0 || (v.n > 1 && v.n < 48 && (v.p[0] == '-' || v.p[0] == '+'));
}

bool catalogue_is_version(struct view v)
{
	uint32_t numbers[3];
	struct view rest;

	return split_version(v, numbers, &rest);
}

int catalogue_compare(struct view a, struct view b)
{
	uint32_t x[3] = { 0 }, y[3] = { 0 };
	struct view rest_x = VIEW_NONE, rest_y = VIEW_NONE;

	if (!split_version(a, x, &rest_x) || !split_version(b, y, &rest_y))
		return 0;
	for (int i = 0; i < 3; i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	if (!rest_x.n != !rest_y.n) /* a preview comes before its version */
		return rest_x.n ? -1 : 1;
	int r = memcmp(rest_x.p, rest_y.p, MIN(rest_x.n, rest_y.n));
	return r ? r : rest_x.n < rest_y.n ? -1 : rest_x.n > rest_y.n;
}

bool catalogue_hex(struct view text, uint8_t *ret, size_t n)
{
	if (text.n != 2 * n)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];
		int digit = is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
		if (digit < 0)
			return false;
		ret[i / 2] = (uint8_t)(i % 2 ? ret[i / 2] | digit : digit << 4);
	}
	return true;
}

void catalogue_put_hex(struct buf *out, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%02x", p[i]);
}

/* A name beside the index, of an archive. */
static bool is_archive(struct view v)
{
	static const char *const suffixes[] = { ".tar", ".tar.gz", ".tar.zst", ".tar.xz" };

	for (size_t i = 0; i < v.n; i++)
		if (!is_lower(v.p[i]) && !(v.p[i] >= 'A' && v.p[i] <= 'Z') && !strchr("-+._", v.p[i]))
			return false;
	for (size_t i = 0; i < ELEMS(suffixes); i++) {
		size_t n = strlen(suffixes[i]);
		if (v.n > n && v.n <= 160 && v.p[0] != '.' && v.p[0] != '-' &&
		    memcmp(v.p + v.n - n, suffixes[i], n) == 0)
			return true;
	}
	return false;
}

/* ---- reading ---- */

struct said_agent {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view name, version, archive, sha256;
	uint64_t size;
	const struct json *manifest;
};

#define AT(f) .offset = offsetof(struct said_agent, f)
static const struct json_field agent_fields[] = {
	{ "name", JSON_F_STRING, AT(name), .min = 1, .max = NAME_MOST, .required = true },
	{ "version", JSON_F_STRING, AT(version), .min = 1, .max = 64, .required = true },
	{ "archive", JSON_F_STRING, AT(archive), .min = 1, .max = 160, .required = true },
	{ "size", JSON_F_U64, AT(size), .min = 1, .max = CATALOGUE_ARCHIVE_MAX, .required = true },
	{ "sha256", JSON_F_STRING, AT(sha256), .min = 64, .max = 64, .required = true },
	{ "manifest", JSON_F_ANY, AT(manifest), .required = true },
};
#undef AT
static const struct json_schema agent_schema = { agent_fields, ELEMS(agent_fields) };

struct said_index {
	bool unused;
	uint64_t serial, created, expires;
	const struct json *agents;
};

#define AT(f) .offset = offsetof(struct said_index, f)
static const struct json_field index_fields[] = {
	{ "serial", JSON_F_U64, AT(serial), .min = 1, .max = 1ull << 53, .required = true },
	{ "created", JSON_F_U64, AT(created), .max = 1ull << 53, .required = true },
	{ "expires", JSON_F_U64, AT(expires), .max = 1ull << 53, .required = true },
	{ "agents", JSON_F_ANY, AT(agents), .required = true },
};
#undef AT
static const struct json_schema index_schema = { index_fields, ELEMS(index_fields) };

static int read_agent(struct arena *a, const struct json *j, struct catalogue_agent *ret, struct err *e)
{
	struct said_agent s = { 0 };

	if (json_read(a, j, &agent_schema, &s, false, e) < 0)
		return -1;
	*ret = (struct catalogue_agent){ .name = s.name,
					 .version = s.version,
					 .archive = s.archive,
					 .manifest = s.manifest,
					 .size = s.size };
	if (!catalogue_is_name(s.name))
		return err_set(e, ERR_INVALID, "name must be letters of a-z, digits and \"-\"");
	if (!catalogue_is_version(s.version))
		return err_set(e, ERR_INVALID, "version must be three numbers, such as \"1.0.0\"");
	if (!is_archive(s.archive))
		return err_set(e, ERR_INVALID, "archive must be the plain name of a tar archive");
	if (!catalogue_hex(s.sha256, ret->sha256, SHA256_SIZE))
		return err_set(e, ERR_INVALID, "sha256 must be 64 hexadecimal digits");
	if (s.manifest->type != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "manifest must be an object");
	return 0;
}

static int read_agents(struct arena *a, const struct json *list, struct catalogue *c, struct err *e)
{
	if (list->type != JSON_ARRAY || list->n > CATALOGUE_AGENTS_MAX)
		return err_set(e, ERR_INVALID, "agents must be a list of at most %d", CATALOGUE_AGENTS_MAX);
	c->agents = arena_array(a, MAX(list->n, 1u), sizeof(*c->agents));
	if (!c->agents)
		return err_set(e, ERR_TOO_LARGE, "the index takes too much memory");
	for (; c->n < list->n; c->n++) {
		struct catalogue_agent *one = &c->agents[c->n];

		if (read_agent(a, &list->items[c->n], one, e) < 0)
			return err_wrap(e, "agents[%zu]", c->n);
		for (size_t k = 0; k < c->n; k++)
			if (view_eq(one->archive, c->agents[k].archive) ||
			    (view_eq(one->name, c->agents[k].name) &&
			     view_eq(one->version, c->agents[k].version)))
				return err_set(e, ERR_INVALID, "agents[%zu] is there twice", c->n);
	}
	return 0;
}

int catalogue_parse(struct arena *a, struct view json, int64_t now_ms, struct catalogue *ret, struct err *e)
{
	struct said_index s = { 0 };
	struct catalogue c = { 0 };
	struct json *doc;

	if (json_parse(a, json, &doc, e) < 0 || json_read(a, doc, &index_schema, &s, false, e) < 0)
		return err_wrap(e, "the index");
	if (now_ms > 0 && s.expires <= (uint64_t)now_ms)
		return err_set(
			e, ERR_FORBIDDEN,
			"the index has expired: its owner has to sign a new one (paddock agent index)");
	c.serial = s.serial;
	c.created_ms = s.created;
	c.expires_ms = s.expires;
	sha256_of(json, c.digest);
	if (read_agents(a, s.agents, &c, e) < 0)
		return err_wrap(e, "the index");
	*ret = c;
	return 0;
}

int catalogue_read(struct arena *a, struct view text, const uint8_t key[CATALOGUE_KEY], int64_t now_ms,
		   struct catalogue *ret, struct err *e)
{
	struct view rest, line = view_split(text, '\n', &rest);
	uint8_t signature[CATALOGUE_SIGNATURE];

	if (text.n > CATALOGUE_INDEX_MAX)
		return err_set(e, ERR_TOO_LARGE, "the index has more than %u bytes", CATALOGUE_INDEX_MAX);
	if (config_key_is_weak(key))
		return err_set(e, ERR_INVALID, CONFIG_KEY_WEAK);
	if (!rest.p || !view_starts(line, MAGIC " ") ||
	    !catalogue_hex(view_skip(line, strlen(MAGIC " ")), signature, sizeof(signature)))
		return err_set(e, ERR_INVALID, "this is no index of a catalogue");
	struct buf body = BUF_INIT(CATALOGUE_INDEX_MAX + 64);
	buf_puts(&body, MAGIC "\n");
	buf_add(&body, rest);
	bool fits = !body.bad && catalogue_verify(key, buf_view(&body), signature);
	buf_done(&body);
	if (!fits)
		return err_set(e, ERR_FORBIDDEN, "the signature of the index is not by this catalogue's key");
	return catalogue_parse(a, rest, now_ms, ret, e);
}

int catalogue_put(struct buf *out, const struct catalogue *c)
{
	struct json_out o;

	json_out_init(&o, out);
	json_out_object(&o);
	json_out_ku64(&o, "serial", c->serial);
	json_out_ku64(&o, "created", c->created_ms);
	json_out_ku64(&o, "expires", c->expires_ms);
	json_out_key(&o, "agents");
	json_out_array(&o);
	for (size_t i = 0; i < c->n; i++) {
		const struct catalogue_agent *one = &c->agents[i];
		struct buf hex = BUF_INIT(2 * SHA256_SIZE);

		catalogue_put_hex(&hex, one->sha256, SHA256_SIZE);
		json_out_object(&o);
		json_out_kstr(&o, "name", one->name);
		json_out_kstr(&o, "version", one->version);
		json_out_kstr(&o, "archive", one->archive);
		json_out_ku64(&o, "size", one->size);
		json_out_kstr(&o, "sha256", buf_view(&hex));
		json_out_key(&o, "manifest");
		json_out_value(&o, one->manifest);
		json_out_end(&o, '}');
		buf_done(&hex);
	}
	json_out_end(&o, ']');
	json_out_end(&o, '}');
	return out->bad ? -1 : 0;
}

const struct catalogue_agent *catalogue_find(const struct catalogue *c, struct view name, struct view version)
{
	const struct catalogue_agent *best = NULL;

	for (size_t i = 0; i < c->n; i++) {
		const struct catalogue_agent *one = &c->agents[i];

		if (!view_eq(one->name, name))
			continue;
		if (version.p && view_eq(one->version, version))
			return one;
		if (!version.p && !memchr(one->version.p, '-', one->version.n) &&
		    (!best || catalogue_compare(one->version, best->version) > 0))
			best = one;
	}
	return best;
}
