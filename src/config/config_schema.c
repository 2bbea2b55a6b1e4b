/*
 * The table of settings and what walks it: overriding one by its variable's name,
 * and writing all of them. Reading is json_read; what a table cannot say is checked
 * in config.c.
 */
#include "config.h"
#include "config_schema.h"
#include "text.h"
#include "zones.h"

#include "poison.h"

#define PATH_LONGEST 1024
#define SECONDS_MOST UINT64_C(3153600000) /* a hundred years: no arithmetic on times overflows */
#define UID_MOST     (UINT32_MAX - 1)     /* the last value means "none" */

#define FIELDS(array)                                                                                        \
	{                                                                                                    \
		(array), ELEMS(array)                                                                        \
	}
/* Offset of a member within a struct that is itself a member of struct config. */
#define WITHIN(outer, inner) (offsetof(struct config, outer.inner) - offsetof(struct config, outer))

static const struct json_field tls_fields[] = {
	{ "cert", JSON_F_STRING, WITHIN(tls, cert), .max = PATH_LONGEST },
	{ "key", JSON_F_STRING, WITHIN(tls, key), .max = PATH_LONGEST },
};
static const struct json_schema tls = FIELDS(tls_fields);

static const struct json_field defaults_fields[] = {
	{ "image", JSON_F_STRING, WITHIN(defaults, image), .min = 1, .max = 128 },
	{ "user", JSON_F_STRING, WITHIN(defaults, user), .min = 1, .max = 32 },
	{ "workdir", JSON_F_STRING, WITHIN(defaults, workdir), .min = 1, .max = PATH_LONGEST },
	{ "ttl_seconds", JSON_F_U64, WITHIN(defaults, ttl_seconds), .max = SECONDS_MOST },
	{ "limits", JSON_F_OBJECT, WITHIN(defaults, limits), .sub = &box_limits_default_schema,
	  .nullable = true },
	{ "disk_mb", JSON_F_U64, WITHIN(defaults, limits.disk_mb), .max = BOX_LIMITS_DISK_MB_MAX,
	  .has = WITHIN(defaults, limits.has_disk_mb), .nullable = true, .skip = JSON_NULL_EMPTY },
	{ "sudo", JSON_F_BOOL, WITHIN(defaults, sudo) },
	{ "timezone", JSON_F_STRING, WITHIN(defaults, timezone), .max = ZONES_NAME_MAX },
};
static const struct json_schema defaults = FIELDS(defaults_fields);

static const struct json_field budget_fields[] = {
	{ "cpu", JSON_F_DOUBLE, offsetof(struct config_budget, cpu), .fmax = 1048576 },
	{ "memory_mb", JSON_F_U64, offsetof(struct config_budget, memory_mb),
	  .max = BOX_LIMITS_MEMORY_MB_MAX },
};
static const struct json_schema budget = FIELDS(budget_fields);

#define TENANT(f) JSON_F_U64, offsetof(struct config_tenant, f), .max = UINT64_C(1) << 40
static const struct json_field tenant_fields[] = {
	{ "processes", TENANT(processes) },   { "helpers", TENANT(helpers) },
	{ "workspaces", TENANT(workspaces) }, { "snapshots", TENANT(snapshots) },
	{ "templates", TENANT(templates) },   { "webhooks", TENANT(webhooks) },
	{ "secrets", TENANT(secrets) },       { "secrets_kb", TENANT(secrets_kb) },
};
static const struct json_schema tenant = FIELDS(tenant_fields);

static const struct json_field max_fields[] = {
	{ "limits", JSON_F_OBJECT, WITHIN(max, limits), .sub = &box_limits_max_schema, .nullable = true },
	{ "boxes", JSON_F_U64, WITHIN(max, boxes), .min = 1, .max = 1000000 },
	{ "disk_mb", JSON_F_U64, WITHIN(max, limits.disk_mb), .max = BOX_LIMITS_DISK_MB_MAX },
	{ "ttl_seconds", JSON_F_U64, WITHIN(max, ttl_seconds), .max = SECONDS_MOST },
	{ "thrash_seconds", JSON_F_U64, WITHIN(max, thrash_seconds), .max = 86400 },
	{ "build_cache_mb", JSON_F_U64, WITHIN(max, build_cache_mb), .max = 1u << 30 },
	{ "exec_timeout_ms", JSON_F_U64, WITHIN(max, exec_timeout_ms), .min = 1, .max = SECONDS_MOST * 1000 },
	{ "exec_output_bytes", JSON_F_U64, WITHIN(max, exec_output_bytes), .min = 1,
	  .max = UINT64_C(1) << 30 },
	{ "body_bytes", JSON_F_U64, WITHIN(max, body_bytes), .min = 1024, .max = UINT64_C(1) << 30 },
	{ "connections", JSON_F_U64, WITHIN(max, connections), .min = 16, .max = 32768 },
	{ "budget", JSON_F_OBJECT, WITHIN(max, budget), .sub = &budget, .nullable = true },
	{ "tenant", JSON_F_OBJECT, WITHIN(max, tenant), .sub = &tenant, .nullable = true },
};
static const struct json_schema max = FIELDS(max_fields);

static const struct json_field uids_fields[] = {
	{ "api", JSON_F_U64, WITHIN(uids, api), .min = 1, .max = UID_MOST },
	{ "hook", JSON_F_U64, WITHIN(uids, hook), .min = 1, .max = UID_MOST },
	{ "gate", JSON_F_U64, WITHIN(uids, gate), .min = 1, .max = UID_MOST },
	{ "vault", JSON_F_U64, WITHIN(uids, vault), .min = 1, .max = UID_MOST },
	{ "ai", JSON_F_U64, WITHIN(uids, ai), .min = 1, .max = UID_MOST },
	{ "gauge", JSON_F_U64, WITHIN(uids, gauge), .min = 1, .max = UID_MOST },
	{ "signer", JSON_F_U64, WITHIN(uids, signer), .min = 1, .max = UID_MOST },
	{ "base", JSON_F_U64, WITHIN(uids, base), .min = CONFIG_UID_LEAST, .max = UID_MOST },
	{ "slots", JSON_F_U64, WITHIN(uids, slots), .min = 1, .max = UID_MOST / CONFIG_UID_STRIDE },
};
static const struct json_schema uids = FIELDS(uids_fields);

static const struct json_field data_fields[] = {
	{ "backend", JSON_F_STRING, WITHIN(data, backend), .min = 1, .max = 16 },
	{ "size_mb", JSON_F_U64, WITHIN(data, size_mb), .max = UINT64_C(1) << 30 },
};
static const struct json_schema data = FIELDS(data_fields);

static const struct json_field cgroup_fields[] = {
	{ "parent", JSON_F_STRING, WITHIN(cgroup, parent), .min = 1, .max = 200 },
};
static const struct json_schema cgroup = FIELDS(cgroup_fields);

static const struct json_field webhooks_fields[] = {
	{ "refuse", JSON_F_STRING, WITHIN(webhooks, refuse), .min = 1, .max = 16 },
	{ "ca_file", JSON_F_STRING, WITHIN(webhooks, ca_file), .max = PATH_LONGEST },
};
static const struct json_schema webhooks = FIELDS(webhooks_fields);

static const struct json_field gate_fields[] = {
	{ "dns", JSON_F_STRING, WITHIN(gate, dns), .max = 64 },
	{ "upstream_proxy", JSON_F_STRING, WITHIN(gate, upstream_proxy), .max = 80 },
	{ "proxy_variables", JSON_F_BOOL, WITHIN(gate, proxy_variables) },
	{ "ca_file", JSON_F_STRING, WITHIN(gate, ca_file), .max = PATH_LONGEST },
};
static const struct json_schema gate = FIELDS(gate_fields);

static const struct json_field ports_fields[] = {
	{ "domain", JSON_F_STRING, WITHIN(ports, domain), .max = 200 },
	{ "cert", JSON_F_STRING, WITHIN(ports, cert), .max = PATH_LONGEST },
	{ "key", JSON_F_STRING, WITHIN(ports, key), .max = PATH_LONGEST },
	{ "answer_seconds", JSON_F_U64, WITHIN(ports, answer_seconds), .min = 1, .max = 86400 },
};
static const struct json_schema ports = FIELDS(ports_fields);
static const struct json_field dashboard_fields[] = {
	{ "session_seconds", JSON_F_U64, WITHIN(dashboard, session_seconds), .min = 1, .max = 86400 },
};
static const struct json_schema dashboard = FIELDS(dashboard_fields);
static const struct json_field egress_fields[] = {
	{ "policy", JSON_F_ANY, WITHIN(egress, policy), .nullable = true },
	{ "images", JSON_F_ANY, WITHIN(egress, images), .nullable = true },
	{ "sets", JSON_F_ANY, WITHIN(egress, sets), .nullable = true },
	{ "sources", JSON_F_ANY, WITHIN(egress, sources),
	  .nullable = true }, /* written by config_sets.c, not by people */
	{ "refuse", JSON_F_ANY, WITHIN(egress, refuse), .nullable = true },
	{ "private", JSON_F_STRING, WITHIN(egress, non_public), .min = 1, .max = 16 },
	{ "detect", JSON_F_BOOL, WITHIN(egress, detect) },
	{ "capture", JSON_F_STRING, WITHIN(egress, capture), .min = 1, .max = 16 },
};
static const struct json_schema egress = FIELDS(egress_fields);

#define DOLLARS_MOST 1e9
static const struct json_field ai_limits_fields[] = {
	{ "requests_per_minute", JSON_F_U64, offsetof(struct config_ai_limits, requests_per_minute),
	  .max = 1u << 30 },
	{ "tokens_per_minute", JSON_F_U64, offsetof(struct config_ai_limits, tokens_per_minute),
	  .max = UINT64_C(1) << 40 },
	{ "parallel", JSON_F_U64, offsetof(struct config_ai_limits, parallel), .max = 100000 },
	{ "day", JSON_F_DOUBLE, offsetof(struct config_ai_limits, day), .fmax = DOLLARS_MOST },
	{ "week", JSON_F_DOUBLE, offsetof(struct config_ai_limits, week), .fmax = DOLLARS_MOST },
	{ "month", JSON_F_DOUBLE, offsetof(struct config_ai_limits, month), .fmax = DOLLARS_MOST },
	{ "warn", JSON_F_DOUBLE, offsetof(struct config_ai_limits, warn), .fmax = 1 },
	{ "log_bodies", JSON_F_BOOL, offsetof(struct config_ai_limits, log_bodies) },
};
static const struct json_schema ai_limits = FIELDS(ai_limits_fields);

static const struct json_field ai_fields[] = {
	{ "providers", JSON_F_ANY, WITHIN(ai, providers), .nullable = true },
	{ "prices", JSON_F_ANY, WITHIN(ai, prices), .nullable = true },
	{ "unpriced", JSON_F_BOOL, WITHIN(ai, unpriced) },
	{ "ca_file", JSON_F_STRING, WITHIN(ai, ca_file), .max = PATH_LONGEST },
	{ "box", JSON_F_OBJECT, WITHIN(ai, box), .sub = &ai_limits, .nullable = true },
	{ "tenant", JSON_F_OBJECT, WITHIN(ai, tenant), .sub = &ai_limits, .nullable = true },
	{ "max", JSON_F_OBJECT, WITHIN(ai, max), .sub = &ai_limits, .nullable = true },
};
static const struct json_schema ai = FIELDS(ai_fields);

static const struct json_field posture_fields[] = {
	{ "require", JSON_F_ANY, WITHIN(posture, require), .nullable = true },
	{ "without", JSON_F_ANY, WITHIN(posture, without), .nullable = true },
};
static const struct json_schema posture = FIELDS(posture_fields);

static const struct json_field mounts_fields[] = {
	{ "allow", JSON_F_ANY, WITHIN(mounts, allow), .nullable = true },
};
static const struct json_schema mounts = FIELDS(mounts_fields);

static const struct json_field agentbox_fields[] = {
	{ "session_timeout", JSON_F_U64, WITHIN(agentbox, session_timeout), .max = INT32_MAX },
};
static const struct json_schema agentbox = FIELDS(agentbox_fields);

static const struct json_field walletconnect_fields[] = {
	{ "relay", JSON_F_STRING, WITHIN(agents.walletconnect, relay), .min = 1, .max = 255 },
	{ "project_id", JSON_F_STRING, WITHIN(agents.walletconnect, project_id), .max = 64 },
};
static const struct json_schema walletconnect = FIELDS(walletconnect_fields);

static const struct json_field agents_fields[] = {
	{ "node", JSON_F_STRING, WITHIN(agents, node), .max = 255 },
	{ "python", JSON_F_STRING, WITHIN(agents, python), .max = 255 },
	{ "chains", JSON_F_ANY, WITHIN(agents, chains), .nullable = true },
	{ "rpcs", JSON_F_ANY, WITHIN(agents, rpcs), .nullable = true },
	{ "catalogues", JSON_F_ANY, WITHIN(agents, catalogues), .nullable = true },
	{ "walletconnect", JSON_F_OBJECT, WITHIN(agents, walletconnect), .sub = &walletconnect,
	  .nullable = true },
};
static const struct json_schema agents = FIELDS(agents_fields);

static const struct json_field sandkasten_fields[] = {
	{ "session_ttl_seconds", JSON_F_U64, WITHIN(sandkasten, session_ttl_seconds), .min = 1,
	  .max = 86400 },
	{ "images", JSON_F_ANY, WITHIN(sandkasten, images), .nullable = true },
	{ "workspaces", JSON_F_BOOL, WITHIN(sandkasten, workspaces) },
	{ "readonly_root", JSON_F_BOOL, WITHIN(sandkasten, readonly_root) },
};
static const struct json_schema sandkasten = FIELDS(sandkasten_fields);

/* A section that is named but left empty (null in YAML) counts as absent; a setting does not. */
static const struct json_field config_fields[] = {
	{ "listen", JSON_F_STRING, offsetof(struct config, listen), .min = 1, .max = 64 },
	{ "listeners", JSON_F_ANY, offsetof(struct config, listeners), .nullable = true },
	{ "data_dir", JSON_F_STRING, offsetof(struct config, data_dir), .min = 1, .max = PATH_LONGEST },
	{ "admin_group", JSON_F_STRING, offsetof(struct config, admin_group), .max = 32 },
	{ "run_dir", JSON_F_STRING, offsetof(struct config, run_dir), .min = 1, .max = PATH_LONGEST },
	{ "log_level", JSON_F_STRING, offsetof(struct config, log_level) },
	{ "tls", JSON_F_OBJECT, offsetof(struct config, tls), .sub = &tls, .nullable = true },
	{ "defaults", JSON_F_OBJECT, offsetof(struct config, defaults), .sub = &defaults, .nullable = true },
	{ "max", JSON_F_OBJECT, offsetof(struct config, max), .sub = &max, .nullable = true },
	{ "uids", JSON_F_OBJECT, offsetof(struct config, uids), .sub = &uids, .nullable = true },
	{ "data", JSON_F_OBJECT, offsetof(struct config, data), .sub = &data, .nullable = true },
	{ "cgroup", JSON_F_OBJECT, offsetof(struct config, cgroup), .sub = &cgroup, .nullable = true },
	{ "webhooks", JSON_F_OBJECT, offsetof(struct config, webhooks), .sub = &webhooks, .nullable = true },
	{ "gate", JSON_F_OBJECT, offsetof(struct config, gate), .sub = &gate, .nullable = true },
	{ "ports", JSON_F_OBJECT, offsetof(struct config, ports), .sub = &ports, .nullable = true },
	{ "dashboard", JSON_F_OBJECT, offsetof(struct config, dashboard), .sub = &dashboard,
	  .nullable = true },
	{ "egress", JSON_F_OBJECT, offsetof(struct config, egress), .sub = &egress, .nullable = true },
	{ "ai", JSON_F_OBJECT, offsetof(struct config, ai), .sub = &ai, .nullable = true },
	{ "posture", JSON_F_OBJECT, offsetof(struct config, posture), .sub = &posture, .nullable = true },
	{ "mounts", JSON_F_OBJECT, offsetof(struct config, mounts), .sub = &mounts, .nullable = true },
	{ "parts", JSON_F_U64, offsetof(struct config, parts), .max = CONFIG_PARTS_MOST },
	{ "pool", JSON_F_ANY, offsetof(struct config, pool), .nullable = true },
	{ "keys", JSON_F_ANY, offsetof(struct config, keys), .nullable = true },
	{ "agents", JSON_F_OBJECT, offsetof(struct config, agents), .sub = &agents, .nullable = true },
	{ "agentbox", JSON_F_OBJECT, offsetof(struct config, agentbox), .sub = &agentbox, .nullable = true },
	{ "sandkasten", JSON_F_OBJECT, offsetof(struct config, sandkasten), .sub = &sandkasten,
	  .nullable = true },
	{ "origins", JSON_F_ANY, offsetof(struct config, origins), .nullable = true,
	  .skip = JSON_SKIP_EMPTY }, /* written by config_load.c, not by people */
};
const struct json_schema config_schema = FIELDS(config_fields);

/* ---- overriding ---- */

static int no_memory(struct err *e)
{
	return err_set(e, ERR_TOO_LARGE, "the configuration takes more memory than is allowed");
}

/* Whether `variable` begins with the field's name in capitals; *ret_rest is what follows. */
static bool names_field(const char *variable, const char *field, const char **ret_rest)
{
	for (; *field; field++, variable++) {
		char upper = *field >= 'a' && *field <= 'z' ? (char)(*field - 'a' + 'A') : *field;
		if (*variable != upper)
			return false;
	}
	*ret_rest = variable;
	return true;
}

/* The member's value, made (as null) where it is missing; NULL without memory. */
static struct json *member(struct arena *a, struct json *object, const char *name)
{
	struct json_member *grown;

	for (size_t i = 0; i < object->n; i++)
		if (view_is(object->members[i].key, name))
			return &object->members[i].value;
	grown = arena_array(a, object->n + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	if (object->n > 0)
		memcpy(grown, object->members, object->n * sizeof(*grown));
	grown[object->n].key = view_of(name);
	object->members = grown;
	return &object->members[object->n++].value;
}

static int value_from_text(struct arena *a, const struct json_field *f, struct view text, struct json *ret,
			   struct err *e)
{
	struct json j = { .text = arena_view(a, text) }, *any;

	if (!j.text.p)
		return no_memory(e);
	switch (f->kind) {
	case JSON_F_STRING:
	case JSON_F_Z:
	case JSON_F_CHARS:
	case JSON_F_ENUM:
	case JSON_F_TIME_MS:
		if (!text_is_utf8(text))
			return err_set(e, ERR_INVALID, "must be UTF-8 text");
		j.type = JSON_STRING;
		break;
	case JSON_F_U64:
	case JSON_F_U32:
	case JSON_F_U16:
	case JSON_F_I64:
	case JSON_F_I32:
	case JSON_F_DOUBLE:
	case JSON_F_MILLI:
		if (!json_is_number(text))
			return err_set(e, ERR_INVALID, "must be a number");
		j.type = JSON_NUMBER;
		break;
	case JSON_F_BOOL:
		j.type = JSON_BOOL;
		j.boolean = view_is(text, "true") || view_is(text, "1");
		if (!j.boolean && !view_is(text, "false") && !view_is(text, "0"))
			return err_set(e, ERR_INVALID, "must be true or false");
		break;
	case JSON_F_ANY:
	case JSON_F_RAW:
		if (json_parse(a, text, &any, e) < 0)
			return err_wrap(e, "must be JSON");
		j = *any;
		break;
	case JSON_F_OBJECT:
	case JSON_F_STRMAP:
	case JSON_F_STRLIST:
	case JSON_F_BITS:
	case JSON_F_PTR:
	case JSON_F_LIST:
	case JSON_F_ARRAY:
	case JSON_F_CUSTOM:
		return err_set(e, ERR_INVALID, "cannot be set by a variable");
	}
	*ret = j;
	return 0;
}

/* 1: set; 0: the schema has no such name; -1: an error. */
static int override(struct arena *a, const struct json_schema *s, struct json *object, const char *variable,
		    struct view text, struct err *e)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct json_field *f = &s->fields[i];
		const char *rest;
		struct json *at;
		int rc;

		if (!names_field(variable, f->name, &rest))
			continue;
		if (*rest == 0 && f->kind != JSON_F_OBJECT) {
			at = member(a, object, f->name);
			return !at ? no_memory(e) : value_from_text(a, f, text, at, e) < 0 ? -1 : 1;
		}
		if (*rest != '_' || f->kind != JSON_F_OBJECT)
			continue;
		at = member(a, object, f->name);
		if (!at)
			return no_memory(e);
		if (at->type == JSON_NULL)
			at->type = JSON_OBJECT;
		if (at->type != JSON_OBJECT)
			return err_set(e, ERR_INVALID,
				       "the configuration has %s where \"%s\" should be an object",
				       json_type_name(at->type), f->name);
		rc = override(a, f->sub, at, rest + 1, text, e);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int config_schema_override(struct arena *a, const struct json_schema *s, struct json *doc,
			   const char *variable, struct view value, struct err *e)
{
	int rc;

	if (doc->type == JSON_NULL)
		doc->type = JSON_OBJECT;
	if (doc->type != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "the configuration must be an object, not %s",
			       json_type_name(doc->type));
	rc = override(a, s, doc, variable, value, e);
	if (rc == 0)
		return err_set(e, ERR_NOT_FOUND, "no such setting");
	return rc < 0 ? -1 : 0;
}

int config_override(struct arena *a, struct json *doc, const char *variable, struct view value, struct err *e)
{
	if (config_schema_override(a, &config_schema, doc, variable, value, e) >= 0)
		return 0;
	if (e)
		e->code = ERR_INVALID;
	return -1;
}

/* ---- writing ---- */

int config_to_json(const struct config *c, struct buf *out)
{
	struct json_out o;

	json_out_init(&o, out);
	json_write(&o, &config_schema, c);
	return out->bad;
}
