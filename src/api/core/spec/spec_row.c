/*
 * The columns `spec` and `metadata` of the store: one table, for reading and for writing. Rows of older
 * versions lack members, or have others: what is read must stay readable.
 */
#include <errno.h>

#include "egress.h"
#include "feature.h"
#include "spec_make.h"
#include "poison.h"

struct row {
	struct box_spec s;
	struct view workspace; /* of older rows: the one at SPEC_WORKSPACE_PATH */
	bool workspace_readonly;
};

/* ---- lists ---- */

static int read_secrets(struct arena *a, const struct json *j, const struct json_field *f, void *at,
			struct err *e)
{
	return spec_secrets_read(a, j, true, at, e);
}

static void write_secrets(struct json_out *o, const struct json_field *f, const void *at)
{
	spec_secrets_put(o, at);
}

static bool no_secrets(const struct json_field *f, const void *at)
{
	return ((const struct spec_secrets *)at)->n == 0;
}

static const struct json_codec secrets = { .read = read_secrets,
					   .write = write_secrets,
					   .empty = no_secrets };

static int read_mounts(struct arena *a, const struct json *j, const struct json_field *f, void *at,
		       struct err *e)
{
	return spec_mounts_read(a, j, at, e);
}

static void write_mounts(struct json_out *o, const struct json_field *f, const void *at)
{
	spec_mounts_put(o, at);
}

static bool no_mounts(const struct json_field *f, const void *at)
{
	return ((const struct spec_mount_list *)at)->n == 0;
}

static const struct json_codec mounts = { .read = read_mounts, .write = write_mounts, .empty = no_mounts };

static int read_workspaces(struct arena *a, const struct json *j, const struct json_field *f, void *at,
			   struct err *e)
{
	return spec_workspaces_read(a, j, at, e);
}

static void write_workspaces(struct json_out *o, const struct json_field *f, const void *at)
{
	spec_workspaces_put(o, at);
}

static bool no_workspaces(const struct json_field *f, const void *at)
{
	return ((const struct spec_workspace_list *)at)->n == 0;
}

static const struct json_codec workspaces = { .read = read_workspaces,
					      .write = write_workspaces,
					      .empty = no_workspaces };

static const struct json_field link_fields[] = {
	{ "id", JSON_F_CHARS, offsetof(struct spec_link, id), .size = SPEC_LINK_ID + 1, .required = true },
	{ "to", JSON_F_CHARS, offsetof(struct spec_link, to), .size = SPEC_LINK_ID + 1, .required = true },
	{ "port", JSON_F_U16, offsetof(struct spec_link, port), .required = true },
	{ "listen", JSON_F_U16, offsetof(struct spec_link, listen), .required = true },
};
static const struct json_schema link_schema = { JSON_SCHEMA(link_fields), .open = true,
						.size = sizeof(struct spec_link) };

/* ---- features, policies ---- */

static int read_require(struct arena *a, const struct json *j, const struct json_field *f, void *at,
			struct err *e)
{
	struct json_strlist names = { .n = j->type == JSON_ARRAY ? j->n : 0 };

	names.items = arena_array(a, names.n, sizeof(*names.items));
	if (j->type != JSON_ARRAY || !names.items)
		return err_set(e, ERR_INVALID, "must be an array");
	for (size_t i = 0; i < names.n; i++)
		names.items[i] = j->items[i].text;
	return spec_take_require(&names, at, e);
}

static void write_require(struct json_out *o, const struct json_field *f, const void *at)
{
	spec_put_features(o, *(const uint32_t *)at);
}

static bool no_require(const struct json_field *f, const void *at)
{
	return *(const uint32_t *)at == 0;
}

static const struct json_codec require = { .read = read_require,
					   .write = write_require,
					   .empty = no_require };

/* As text in a string: rows have it so. A stored policy stays valid even if a set that it names was removed.
 */
static int read_policy(struct arena *a, const struct json *j, const struct json_field *f, void *at,
		       struct err *e)
{
	struct egress_policy *p = arena_array(a, 1, sizeof(*p));

	if (!p || j->type != JSON_STRING)
		return err_set(e, ERR_INTERNAL, "must be a string");
	if (j->text.n && egress_parse(a, j->text, &egress_any_set, p, e) < 0)
		return -1;
	*(const struct egress_policy **)at = j->text.n ? p : NULL;
	return 0;
}

static void write_policy(struct json_out *o, const struct json_field *f, const void *at)
{
	struct buf text = BUF_INIT(EGRESS_TEXT_MAX);

	if (egress_write(*(const struct egress_policy *const *)at, &text) < 0)
		o->b->bad = -ENOSPC;
	json_out_str(o, buf_view(&text));
	buf_done(&text);
}

static bool no_policy(const struct json_field *f, const void *at)
{
	return !*(const struct egress_policy *const *)at;
}

static const struct json_codec policy = { .read = read_policy, .write = write_policy, .empty = no_policy };

/* ---- the table ---- */

#define AT(f)            .offset = offsetof(struct row, s.f)
#define COLUMN_CPU(f)    { #f, AT(limits.f), .kind = JSON_F_U32, .required = true },
#define COLUMN_MEMORY(f) { #f, AT(limits.f), .kind = JSON_F_U64, .max = UINT32_MAX, .required = true },
#define COLUMN_COUNT     COLUMN_MEMORY
#define COLUMN_DISK(f)   { #f, AT(limits.f), .kind = JSON_F_U64, .max = UINT32_MAX },

static const struct json_field fields[] = {
#define FIELD(kind, name, ...) { #name, AT(name), BOX_FIELD_KEPT_##kind },
#include "box_fields.def"
#undef FIELD
#define LIMIT(kind, name, member, ...) COLUMN_##kind(member)
#include "box_limits.def"
#undef LIMIT
	{ "env", AT(env), .kind = JSON_F_STRMAP },
	{ "ttl_seconds", AT(ttl_seconds), .kind = JSON_F_U64, .max = INT32_MAX },
	{ "on_end", AT(on_end), .kind = JSON_F_ENUM, .names = spec_on_end_names, .n_names = SPEC_ENDS },
	{ "require", AT(require), .kind = JSON_F_CUSTOM, .codec = &require, .skip = JSON_SKIP_EMPTY },
	{ "snapshot", AT(snapshot), .kind = JSON_F_STRING },
	{ "origin", AT(origin), .kind = JSON_F_STRING },
	{ "workspaces", AT(workspaces), .kind = JSON_F_CUSTOM, .codec = &workspaces,
	  .skip = JSON_SKIP_EMPTY },
	{ "secrets", AT(secrets), .kind = JSON_F_CUSTOM, .codec = &secrets, .skip = JSON_SKIP_EMPTY },
	{ "mounts", AT(mounts), .kind = JSON_F_CUSTOM, .codec = &mounts, .skip = JSON_SKIP_EMPTY },
	{ "farewell", AT(farewell), .kind = JSON_F_BOOL, .skip = JSON_SKIP_EMPTY },
	{ "links", AT(links), .kind = JSON_F_ARRAY, .count = offsetof(struct row, s.n_links),
	  .max = SPEC_LINKS_MAX, .sub = &link_schema, .nullable = true },
	{ "egress", AT(egress), .kind = JSON_F_CUSTOM, .codec = &policy, .skip = JSON_SKIP_EMPTY },
	{ "ai", AT(ai), .kind = JSON_F_STRING, .skip = JSON_SKIP_EMPTY },
	{ "ai_token", AT(ai_token), .kind = JSON_F_U64, .skip = JSON_SKIP_EMPTY },
	{ "ai_token_ends_ms", AT(ai_token_ends_ms), .kind = JSON_F_I64, .imax = INT64_MAX,
	  .skip = JSON_SKIP_EMPTY },
	/* of older rows */
	{ "workspace", .offset = offsetof(struct row, workspace), .kind = JSON_F_STRING, .write_only = true },
	{ "workspace_readonly", .offset = offsetof(struct row, workspace_readonly), .kind = JSON_F_BOOL,
	  .write_only = true },
};
#undef AT
static const struct json_schema schema = { JSON_SCHEMA(fields) };

int spec_to_json(const struct box_spec *s, struct buf *out)
{
	struct json_out o;

	static_assert(offsetof(struct row, s) == 0, "a spec is written as a row");
	json_out_init(&o, out);
	json_write(&o, &schema, s);
	return out->bad;
}

int spec_metadata_to_json(const struct box_spec *s, struct buf *out)
{
	struct json_out o;

	json_out_init(&o, out);
	json_out_object(&o);
	for (size_t i = 0; i < s->metadata.n; i++) {
		json_out_key_view(&o, s->metadata.keys[i]);
		json_out_str(&o, s->metadata.values[i]);
	}
	json_out_end(&o, '}');
	return out->bad;
}

static int read_metadata(struct arena *a, struct view text, struct json_strmap *ret, struct err *e)
{
	struct json *j;

	if (json_parse(a, text, &j, e) < 0)
		return -1;
	if (j->type != JSON_OBJECT)
		return err_set(e, ERR_INTERNAL, "the metadata are not an object");
	ret->keys = arena_array(a, j->n, sizeof(*ret->keys));
	ret->values = arena_array(a, j->n, sizeof(*ret->values));
	if (!ret->keys || !ret->values)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "metadata");
	for (ret->n = 0; ret->n < j->n; ret->n++) {
		const struct json_member *m = &j->members[ret->n];
		if (m->value.type != JSON_STRING)
			return err_set(e, ERR_INTERNAL, "the metadata hold something that is not a string");
		ret->keys[ret->n] = m->key;
		ret->values[ret->n] = m->value.text;
	}
	return 0;
}

int spec_from_json(struct arena *a, struct view spec, struct view metadata, struct box_spec *ret,
		   struct err *e)
{
	struct row r = { 0 };
	struct json *doc;

	if (json_parse(a, spec, &doc, e) < 0 || json_read(a, doc, &schema, &r, false, e) < 0 ||
	    read_metadata(a, metadata, &r.s.metadata, e) < 0)
		return -1;
	if (r.workspace.n) {
		const struct spec_workspace old = { r.workspace, VIEW(SPEC_WORKSPACE_PATH),
						    r.workspace_readonly };
		if (spec_workspaces_load(a, &old, &r.s.workspaces, e) < 0)
			return -1;
	}
	*ret = r.s;
	return 0;
}
