/*
 * Sandkasten's settings in our words: see config_sandkasten.h.
 */
#include "config_sandkasten.h"

#include <stdio.h>

#include "config.h"
#include "config_schema.h"
#include "config_stock.h"
#include "sha256.h"
#include "text.h"

#include "poison.h"

#define PREFIX    "SANDKASTEN_"
#define TEXT_MAX  (1u << 20)
#define KEY_LEAST 16

struct theirs {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view listen, api_key, data_dir, default_image, db_path, playground;
	const struct json *allowed_images;
	uint64_t db_conns, ttl;
	bool has_db_conns;
	struct {
		double cpu;
		uint64_t memory_mb, pids, timeout_ms;
		struct view network, exec_mode, shell;
		bool readonly_root, has_readonly_root;
	} defaults;
	struct {
		bool enabled;
		const struct json *images;
	} pool;
	struct {
		bool enabled, persist;
	} workspace;
	struct {
		struct view seccomp;
	} security;
	struct {
		bool enabled;
	} dashboard;
	struct view log;
};

#define AT(f)    offsetof(struct theirs, f)
#define IN(o, f) (offsetof(struct theirs, o.f) - offsetof(struct theirs, o))
#define SUB(name)                                                                                            \
	{                                                                                                    \
		name##_fields, ELEMS(name##_fields)                                                          \
	}

static const struct json_field defaults_fields[] = {
	{ "cpu_limit", JSON_F_DOUBLE, IN(defaults, cpu), .fmin = 0.01, .fmax = 4096 },
	{ "mem_limit_mb", JSON_F_U64, IN(defaults, memory_mb), .min = 1 },
	{ "pids_limit", JSON_F_U64, IN(defaults, pids), .min = 1 },
	{ "max_exec_timeout_ms", JSON_F_U64, IN(defaults, timeout_ms), .min = 1 },
	{ "network_mode", JSON_F_STRING, IN(defaults, network) },
	{ "readonly_rootfs", JSON_F_BOOL, IN(defaults, readonly_root),
	  .has = IN(defaults, has_readonly_root) },
	{ "exec_mode", JSON_F_STRING, IN(defaults, exec_mode) },
	{ "shell_prefer", JSON_F_STRING, IN(defaults, shell) },
};
static const struct json_schema defaults_schema = SUB(defaults);
static const struct json_field pool_fields[] = {
	{ "enabled", JSON_F_BOOL, IN(pool, enabled) },
	{ "images", JSON_F_ANY, IN(pool, images), .nullable = true },
};
static const struct json_schema pool_schema = SUB(pool);
static const struct json_field workspace_fields[] = {
	{ "enabled", JSON_F_BOOL, IN(workspace, enabled) },
	{ "persist_by_default", JSON_F_BOOL, IN(workspace, persist) },
};
static const struct json_schema workspace_schema = SUB(workspace);
static const struct json_field security_fields[] = {
	{ "seccomp", JSON_F_STRING, IN(security, seccomp) },
};
static const struct json_schema security_schema = SUB(security);
static const struct json_field dashboard_fields[] = {
	{ "enabled", JSON_F_BOOL, IN(dashboard, enabled) },
};
static const struct json_schema dashboard_schema = SUB(dashboard);

static const struct json_field fields[] = {
	{ "listen", JSON_F_STRING, AT(listen), .min = 1, .max = 64 },
	{ "api_key", JSON_F_STRING, AT(api_key) },
	{ "data_dir", JSON_F_STRING, AT(data_dir) },
	{ "default_image", JSON_F_STRING, AT(default_image) },
	{ "allowed_images", JSON_F_ANY, AT(allowed_images), .nullable = true },
	{ "db_path", JSON_F_STRING, AT(db_path) },
	{ "db_max_open_conns", JSON_F_U64, AT(db_conns), .has = AT(has_db_conns) },
	{ "session_ttl_seconds", JSON_F_U64, AT(ttl), .min = 1, .max = 86400 },
	{ "playground_config_path", JSON_F_STRING, AT(playground) },
	{ "log", JSON_F_STRING, AT(log) },
	{ "defaults", JSON_F_OBJECT, AT(defaults), .sub = &defaults_schema, .nullable = true },
	{ "pool", JSON_F_OBJECT, AT(pool), .sub = &pool_schema, .nullable = true },
	{ "workspace", JSON_F_OBJECT, AT(workspace), .sub = &workspace_schema, .nullable = true },
	{ "security", JSON_F_OBJECT, AT(security), .sub = &security_schema, .nullable = true },
	{ "dashboard", JSON_F_OBJECT, AT(dashboard), .sub = &dashboard_schema, .nullable = true },
};
static const struct json_schema schema = { fields, ELEMS(fields) };

bool config_sandkasten_is(const struct json *doc)
{
	static const char *const own[] = {
		"api_key",           "default_image", "allowed_images", "session_ttl_seconds",   "db_path",
		"db_max_open_conns", "workspace",     "security",       "playground_config_path"
	};
	const struct json *dashboard = json_get(doc, "dashboard"); /* ours has one, too */

	for (size_t i = 0; i < ELEMS(own); i++)
		if (json_get(doc, own[i]))
			return true;
	return dashboard && json_get(dashboard, "enabled");
}

/* ---- the document ---- */

static int put_keys(struct json_out *o, const struct theirs *t, struct buf *notes)
{
	uint8_t hash[SHA256_SIZE];
	char hex[2 * SHA256_SIZE + 1];

	if (!t->api_key.n) {
		buf_puts(notes,
			 "api_key is empty: here every request needs a key; the one in admin.key is one\n");
		return 0;
	}
	if (t->api_key.n < KEY_LEAST)
		buf_puts(notes, "api_key is short, and can be guessed: at least 16 characters are better\n");
	sha256_of(t->api_key, hash);
	text_hex(hash, sizeof(hash), hex);
	json_out_key(o, "keys");
	json_out_array(o);
	json_out_object(o);
	json_out_kz(o, "sha256", hex);
	json_out_kz(o, "role", "user");
	json_out_end(o, '}');
	json_out_end(o, ']');
	return 0;
}

static void put_listener(struct json_out *o, struct view address)
{
	json_out_key(o, "listeners");
	json_out_array(o);
	json_out_object(o);
	json_out_kstr(o, "address", address);
	json_out_kz(o, "dialect", "sandkasten");
	json_out_end(o, '}');
	json_out_end(o, ']');
}

static void put_defaults(struct json_out *o, const struct theirs *t)
{
	json_out_key(o, "defaults");
	json_out_object(o);
	if (t->default_image.n && !config_stock_is(t->default_image))
		json_out_kstr(o, "image", t->default_image);
	json_out_key(o, "limits");
	json_out_object(o);
	json_out_key(o, "cpu");
	json_out_double(o, t->defaults.cpu);
	json_out_ku64(o, "memory_mb", t->defaults.memory_mb);
	json_out_ku64(o, "pids", t->defaults.pids);
	json_out_end(o, '}');
	json_out_end(o, '}');
	json_out_key(o, "max");
	json_out_object(o);
	json_out_ku64(o, "exec_timeout_ms", t->defaults.timeout_ms);
	json_out_end(o, '}');
}

static int put_pool(struct json_out *o, const struct theirs *t, struct err *e)
{
	const struct json *images = t->pool.enabled ? t->pool.images : NULL;
	uint64_t machine = 0, n;

	if (!images)
		return 0;
	if (images->type != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "pool.images must have names and numbers");
	json_out_key(o, "pool");
	json_out_object(o);
	for (size_t i = 0; i < images->n; i++) {
		const struct json_member *m = &images->members[i];
		if (json_to_u64(&m->value, &n) < 0)
			return err_set(e, ERR_INVALID, "pool.images: %.*s needs a number", VIEW_ARG(m->key));
		if (config_stock_is(m->key)) { /* all of them are the default image */
			machine += n;
			continue;
		}
		json_out_key_view(o, m->key);
		json_out_object(o);
		json_out_ku64(o, "warm", n);
		json_out_end(o, '}');
	}
	if (machine) {
		json_out_key(o, "machine");
		json_out_object(o);
		json_out_ku64(o, "warm", machine);
		json_out_end(o, '}');
	}
	json_out_end(o, '}');
	return 0;
}

static int put_network(struct json_out *o, const struct theirs *t, struct err *e)
{
	if (view_is(t->defaults.network, "none"))
		return 0;
	if (!view_is(t->defaults.network, "bridge"))
		return err_set(e, ERR_INVALID,
			       "defaults.network_mode: sessions never share the machine's network; use none "
			       "or bridge");
	json_out_key(o, "egress");
	json_out_object(o);
	json_out_key(o, "policy");
	json_out_object(o);
	json_out_key(o, "allow");
	json_out_array(o);
	json_out_str(o, VIEW("*"));
	json_out_end(o, ']');
	json_out_end(o, '}');
	json_out_end(o, '}');
	return 0;
}

static void put_own(struct json_out *o, const struct theirs *t)
{
	json_out_key(o, "sandkasten");
	json_out_object(o);
	json_out_ku64(o, "session_ttl_seconds", t->ttl);
	json_out_kbool(o, "workspaces", t->workspace.enabled);
	json_out_kbool(o, "readonly_root", t->defaults.has_readonly_root && t->defaults.readonly_root);
	if (t->allowed_images && t->allowed_images->n) {
		json_out_key(o, "images");
		json_out_value(o, t->allowed_images);
	}
	json_out_end(o, '}');
}

static void note(struct buf *notes, const struct theirs *t)
{
	if (t->db_path.n || t->has_db_conns)
		buf_puts(notes, "db_path and db_max_open_conns have no meaning here: the store is in the "
				"data directory\n");
	if (t->playground.n || t->dashboard.enabled)
		buf_puts(notes, "dashboard and playground_config_path are not honoured: that dashboard is "
				"not part of this\n");
	if (t->workspace.persist)
		buf_puts(notes,
			 "workspace.persist_by_default is not honoured: name a workspace_id to keep files\n");
	if (!view_is(t->defaults.exec_mode, "stateful"))
		buf_puts(notes, "defaults.exec_mode is not honoured: the shell of a session remembers\n");
	if (!view_is(t->defaults.shell, "bash"))
		buf_puts(notes, "defaults.shell_prefer is not honoured: the shell is bash\n");
	if (t->security.seccomp.n)
		buf_puts(notes, "security.seccomp is not honoured: the filter is always on, and stricter\n");
	if (view_is(t->defaults.network, "bridge"))
		buf_puts(notes, "defaults.network_mode bridge reaches public addresses only, each connection "
				"through the gate\n");
	if (t->defaults.readonly_root && t->defaults.has_readonly_root && t->pool.enabled)
		buf_puts(notes, "pool is not used: sandboxes of the pool have a root that can be written\n");
}

static int put_all(struct json_out *o, const struct theirs *t, struct buf *notes, struct err *e)
{
	struct buf path = BUF_INIT(4096);

	json_out_object(o);
	put_listener(o, t->listen);
	if (t->data_dir.n) { /* beside what Sandkasten itself has there */
		buf_add(&path, t->data_dir);
		buf_puts(&path, "/paddock");
		json_out_kstr(o, "data_dir", buf_view(&path));
		buf_done(&path);
	}
	if (t->log.n)
		json_out_kstr(o, "log_level", t->log);
	if (put_keys(o, t, notes) < 0 || put_pool(o, t, e) < 0 || put_network(o, t, e) < 0)
		return -1;
	put_defaults(o, t);
	put_own(o, t);
	json_out_end(o, '}');
	note(notes, t);
	return 0;
}

/* ---- the variables ---- */

/* SANDKASTEN_DEFAULTS_CPU_LIMIT, or without the section's name. 0: it is none. */
static int apply_variable(struct arena *a, struct json *doc, struct view name, struct view value,
			  struct err *e)
{
	static const char *const sections[] = { "",          "DEFAULTS_", "WORKSPACE_",
						"SECURITY_", "POOL_",     "DASHBOARD_" };
	char variable[96];

	for (size_t i = 0; i < ELEMS(sections); i++) {
		struct err why = { 0 };
		int n = snprintf(variable, sizeof(variable), "%s%.*s", sections[i], VIEW_ARG(name));
		if (n < 0 || (size_t)n >= sizeof(variable))
			return 0;
		if (config_schema_override(a, &schema, doc, variable, value, &why) >= 0)
			return 1;
		if (why.code != ERR_NOT_FOUND) {
			*e = why;
			return err_wrap(e, PREFIX "%.*s", VIEW_ARG(name));
		}
	}
	return 0;
}

static int apply_variables(struct arena *a, struct json *doc, char *const *env, struct buf *notes,
			   struct err *e)
{
	for (; env && *env; env++) {
		struct view value, name = view_split(view_of(*env), '=', &value);

		if (!view_starts(name, PREFIX) || !value.p)
			continue;
		int r = apply_variable(a, doc, view_skip(name, strlen(PREFIX)), value, e);
		if (r < 0)
			return -1;
		if (r == 0)
			buf_printf(notes, "%.*s is no setting, and is not honoured\n", VIEW_ARG(name));
	}
	return 0;
}

int config_sandkasten_translate(struct arena *a, struct json *doc, char *const *env, struct json **ret,
				struct buf *notes, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
	struct theirs t = { .listen = VIEW("127.0.0.1:8080"),
			    .ttl = 1800,
			    .defaults = { .cpu = 1,
					  .memory_mb = 512,
					  .pids = 256,
					  .timeout_ms = 120000,
					  .network = VIEW("none"),
					  .exec_mode = VIEW("stateful"),
					  .shell = VIEW("bash") } };
	struct json_out o;

	if (apply_variables(a, doc, env, notes, e) < 0 || json_read(a, doc, &schema, &t, true, e) < 0)
		return -1;
	json_out_init(&o, &text);
	if (put_all(&o, &t, notes, e) < 0)
		return -1;
	if (text.bad || notes->bad)
		return err_set(e, ERR_TOO_LARGE, "the configuration is too large");
	return json_parse(a, buf_view(&text), ret, e);
}
