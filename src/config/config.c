/*
 * The defaults, and everything about a configuration that the table of settings
 * (config_schema.c) cannot say: addresses, paths, what belongs together, what must
 * not exceed what. Nothing is applied unless all of it holds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "config.h"
#include "config_schema.h"
#include "egress.h"
#include "feature.h"
#include "num.h"
#include "zones.h"

#include "text.h"
#include "poison.h"

static const struct config DEFAULTS = {
	.listen = VIEW("127.0.0.1:7080"),
	.agentbox = { .session_timeout = 1800 },
	.agents = { .walletconnect = { .relay = VIEW(CONFIG_RELAY) } },
	.sandkasten = { .session_ttl_seconds = 1800, .workspaces = true },
	.data_dir = VIEW("/var/lib/paddock"),
	.admin_group = VIEW(""),
	.run_dir = VIEW("/run/paddock"),
	.log_level = VIEW("info"),
	.tls = { VIEW(""), VIEW("") },
	.defaults = {
		.image = VIEW("machine"),
		.user = VIEW("user"),
		.workdir = VIEW("/workspace"),
		.sudo = true,
		.timezone = VIEW(""),
	},
	.max = {
		.boxes = 4000,
		.thrash_seconds = 20,
		.build_cache_mb = 4096,
		.exec_timeout_ms = 600000,
		.exec_output_bytes = 8 << 20,
		.body_bytes = 4 << 20,
		.connections = 4096,
		.tenant = { .helpers = 16, .workspaces = 1000, .snapshots = 1000, .templates = 200, .webhooks = 16,
			    .secrets = 1000, .secrets_kb = 65536 },
	},
	.uids = { .api = 59000, .hook = 59001, .gate = 59002, .vault = 59003, .ai = 59004, .gauge = 59005, .signer = 59006, .base = 1879048192, .slots = 4000 },
	.data = { VIEW("auto"), 0 },
	.cgroup = { VIEW("paddock") },
	.gate = { VIEW(""), VIEW("") },
	.webhooks = { VIEW("private"), VIEW("") },
	.parts = 8,
	.ports = { VIEW_NONE, VIEW(""), VIEW(""), 600 }, /* the domain: settle_domain */
	.dashboard = { 3600 },
	.egress = { .non_public = VIEW("admin"), .capture = VIEW("auto"), .detect = true },
	.ai = { .ca_file = VIEW(""), .max = { .log_bodies = true } },
};

/* What is being validated, and where it came from. */
struct check {
	struct config *config;
	const struct json *doc;
	bool with_lines;
	struct err *e;
};

/* The value that the document gives for "a.b.c", or NULL. */
static const struct json *given(const struct check *c, const char *path)
{
	const struct json *j = c->doc;
	struct view rest = view_of(path);

	while (j && rest.p) {
		char name[64];

		if (view_to_str(view_split(rest, '.', &rest), name, sizeof(name)) < 0)
			return NULL;
		j = json_get(j, name);
	}
	return j && j->type != JSON_NULL ? j : NULL;
}

static int bad(const struct check *c, const char *path, const char *fmt, ...) _printf_(3, 4);

static int bad(const struct check *c, const char *path, const char *fmt, ...)
{
	const struct json *at = given(c, path);
	char what[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	err_set(c->e, ERR_INVALID, "%s: %s", path, what);
	if (c->with_lines && at && at->line > 0)
		err_wrap(c->e, "line %u", at->line);
	return -1;
}

/* ---- single values ---- */

static bool clean_string(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if ((unsigned char)v.p[i] < 0x20 || v.p[i] == 0x7f)
			return false;
	return true;
}

/* No string of the configuration has a use for control characters, NUL before all. */
static int check_strings(const struct check *c, const struct json_schema *s, const char *prefix,
			 const char *at)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct json_field *f = &s->fields[i];
		char path[64];

		snprintf(path, sizeof(path), "%s%s%s", prefix, *prefix ? "." : "", f->name);
		if (f->kind == JSON_F_STRING && !clean_string(*(const struct view *)(at + f->offset)))
			return bad(c, path, "must not contain control characters");
		if (f->kind == JSON_F_OBJECT && check_strings(c, f->sub, path, at + f->offset) < 0)
			return -1;
	}
	return 0;
}

static bool has_dotdot(struct view path)
{
	while (path.p)
		if (view_is(view_split(path, '/', &path), ".."))
			return true;
	return false;
}

static int check_path(const struct check *c, const char *name, struct view path)
{
	if (!view_starts(path, "/"))
		return bad(c, name, "must be an absolute path");
	if (has_dotdot(path))
		return bad(c, name, "must not contain \"..\"");
	return 0;
}

static int check_dir(const struct check *c, const char *name, struct view path)
{
	if (check_path(c, name, path) < 0)
		return -1;
	for (size_t i = 0; i < path.n; i++)
		if (path.p[i] != '/')
			return 0;
	return bad(c, name, "must not be the root directory");
}

/* At least one character, all from `set`, the first not from `not_first`. */
static bool made_of(struct view v, const char *set, const char *not_first)
{
	for (size_t i = 0; i < v.n; i++)
		if (!v.p[i] || !strchr(set, v.p[i]) || (i == 0 && strchr(not_first, v.p[i])))
			return false;
	return v.n > 0;
}

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static int check_names(const struct check *c)
{
	const struct config *cfg = c->config;

	if (!made_of(cfg->defaults.image, LOWER UPPER DIGITS "._-:/@", "._-:/@") ||
	    has_dotdot(cfg->defaults.image))
		return bad(c, "defaults.image", "is not the name of an image");
	if (!made_of(cfg->defaults.user, LOWER DIGITS "_-", DIGITS "-"))
		return bad(c, "defaults.user", "is not a user name (a-z, 0-9, _ and -)");
	if (cfg->defaults.timezone.n && !zones_rule(cfg->defaults.timezone))
		return bad(c, "defaults.timezone", "is not a time zone, such as Europe/Berlin or UTC");
	if (!view_is(cfg->data.backend, "auto") && !view_is(cfg->data.backend, "btrfs") &&
	    !view_is(cfg->data.backend, "copy"))
		return bad(c, "data.backend", "must be auto, btrfs or copy");
	if (cfg->max.limits.disk_mb && cfg->defaults.limits.disk_mb > cfg->max.limits.disk_mb)
		return bad(c, "defaults.disk_mb", "must not be above max.disk_mb");
	if (!made_of(cfg->cgroup.parent, LOWER UPPER DIGITS "._-/", "./") || has_dotdot(cfg->cgroup.parent))
		return bad(c, "cgroup.parent", "must be a relative path without \"..\"");
	if (!view_is(cfg->webhooks.refuse, "none") && !view_is(cfg->webhooks.refuse, "link-local") &&
	    !view_is(cfg->webhooks.refuse, "private"))
		return bad(c, "webhooks.refuse", "must be none, link-local or private");
	if (!view_is(cfg->log_level, "error") && !view_is(cfg->log_level, "warn") &&
	    !view_is(cfg->log_level, "info") && !view_is(cfg->log_level, "debug"))
		return bad(c, "log_level", "must be error, warn, info or debug");
	return 0;
}

int config_listen(struct view listen, struct sockaddr_storage *ret, socklen_t *ret_len)
{
	struct sockaddr_storage ss = { 0 };
	struct sockaddr_in *v4 = (struct sockaddr_in *)&ss;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&ss;
	char host[64];
	size_t colon = listen.n;
	uint32_t port;

	while (colon > 0 && listen.p[colon - 1] != ':')
		colon--;
	if (colon == 0 || num_u32(view_skip(listen, colon), &port) < 0 || port > UINT16_MAX)
		return -EINVAL;
	listen = view_head(listen, colon - 1);
	if (listen.n > 2 && listen.p[0] == '[' && listen.p[listen.n - 1] == ']') {
		listen = (struct view){ listen.p + 1, listen.n - 2 };
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)port);
		if (view_to_str(listen, host, sizeof(host)) < 0 ||
		    inet_pton(AF_INET6, host, &v6->sin6_addr) != 1)
			return -EINVAL;
		*ret_len = sizeof(*v6);
	} else {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		if (view_to_str(listen, host, sizeof(host)) < 0 ||
		    inet_pton(AF_INET, host, &v4->sin_addr) != 1)
			return -EINVAL;
		*ret_len = sizeof(*v4);
	}
	*ret = ss;
	return 0;
}

/* ---- what belongs together ---- */

static int check_ports(const struct check *c)
{
	const struct config *cfg = c->config;

	if (cfg->ports.domain.n && !made_of(cfg->ports.domain, LOWER DIGITS ".-", ".-"))
		return bad(c, "ports.domain", "must be a domain name in lower case");
	if (!cfg->ports.cert.n != !cfg->ports.key.n)
		return bad(c, cfg->ports.cert.n ? "ports.cert" : "ports.key",
			   "ports needs both cert and key, or neither of them");
	if (!cfg->ports.cert.n)
		return 0;
	if (!cfg->tls.cert.n || !cfg->ports.domain.n)
		return bad(c, "ports.cert", "needs ports.domain, and tls for the other names");
	return check_path(c, "ports.cert", cfg->ports.cert) < 0 ||
			       check_path(c, "ports.key", cfg->ports.key) < 0
		       ? -1
		       : 0;
}

static int check_places(const struct check *c)
{
	const struct config *cfg = c->config;
	struct sockaddr_storage ss;
	socklen_t len;

	if (config_listen(cfg->listen, &ss, &len) < 0)
		return bad(c, "listen", "must be an address and a port, like 127.0.0.1:7080 or [::1]:7080");
	if (cfg->gate.dns.n && config_listen(cfg->gate.dns, &ss, &len) < 0)
		return bad(c, "gate.dns", "must be an address and a port, like 9.9.9.9:53");
	struct view proxy = cfg->gate.upstream_proxy;
	if (proxy.n && (!view_starts(proxy, "http://") || config_listen(view_skip(proxy, 7), &ss, &len) < 0))
		return bad(c, "gate.upstream_proxy",
			   "must be http:// with an address and a port, like http://10.0.0.1:3128");
	if (check_dir(c, "data_dir", cfg->data_dir) < 0 || check_dir(c, "run_dir", cfg->run_dir) < 0 ||
	    check_path(c, "defaults.workdir", cfg->defaults.workdir) < 0)
		return -1;
	if (view_eq(cfg->data_dir, cfg->run_dir))
		return bad(c, "run_dir", "must not be the data directory");
	if (!cfg->tls.cert.n != !cfg->tls.key.n)
		return bad(c, cfg->tls.cert.n ? "tls.cert" : "tls.key",
			   "tls needs both cert and key, or neither of them");
	if (cfg->tls.cert.n &&
	    (check_path(c, "tls.cert", cfg->tls.cert) < 0 || check_path(c, "tls.key", cfg->tls.key) < 0))
		return -1;
	if (cfg->webhooks.ca_file.n && check_path(c, "webhooks.ca_file", cfg->webhooks.ca_file) < 0)
		return -1;
	return check_ports(c);
}

/* A zero ceiling means what the machine has. */
static int resolve_machine(const struct check *c)
{
	struct box_limits_wish *most = &c->config->max.limits;
	long cores = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES),
	     size = sysconf(_SC_PAGESIZE);

	if (cores < 1 || pages < 1 || size < 1)
		return err_set(c->e, ERR_INTERNAL, "the machine does not tell its cores and memory");
	if (most->cpu == 0)
		most->cpu = (double)cores;
	if (most->memory_mb == 0)
		most->memory_mb = MAX((uint64_t)pages * (uint64_t)size / 4 * 3 >> 20,
				      box_limits_min(BOX_LIMIT_AT_memory_mb));
	return 0;
}

/* A default that nobody set follows a lower ceiling; one that somebody set must fit. */
static int fit_u64(const struct check *c, const char *path, const char *ceiling, uint64_t *value,
		   uint64_t most)
{
	if (*value <= most)
		return 0;
	if (given(c, path))
		return bad(c, path, "must not exceed %s", ceiling);
	*value = most;
	return 0;
}

static int fit_limits(const struct check *c)
{
	for (unsigned i = 0; i < BOX_LIMITS; i++) {
		const char *name = box_limits_rows[i].name;
		char path[64];

		/* 0, what the machine has, has been replaced. */
		snprintf(path, sizeof(path), "max.limits.%s", name);
		if (!box_limits_most_works(i, &c->config->max.limits))
			return bad(c, path, "must be 0 or at least %g", box_limits_rows[i].min);
		snprintf(path, sizeof(path), "defaults.limits.%s", name);
		if (!box_limits_fit(i, &c->config->defaults.limits, &c->config->max.limits, given(c, path)))
			return bad(c, path, "must not exceed max.limits.%s", name);
	}
	return 0;
}

static int fit_defaults(const struct check *c)
{
	uint64_t *ttl = &c->config->defaults.ttl_seconds, max_ttl = c->config->max.ttl_seconds;

	if (fit_limits(c) < 0)
		return -1;
	if (max_ttl && *ttl == 0) { /* 0 is "no end": more than any ceiling */
		if (given(c, "defaults.ttl_seconds"))
			return bad(c, "defaults.ttl_seconds", "must not be 0 when max.ttl_seconds is set");
		*ttl = max_ttl;
	}
	return max_ttl ? fit_u64(c, "defaults.ttl_seconds", "max.ttl_seconds", ttl, max_ttl) : 0;
}

/* The ranges of the boxes lie between the machine's users and the last uid, beside the api's. */
static int check_gauge_uid(const struct check *c, uint64_t base, uint64_t end)
{
	uint64_t gauge = c->config->uids.gauge;
	if (gauge >= base && gauge < end)
		return bad(c, given(c, "uids.gauge") ? "uids.gauge" : "uids.base",
			   "uids.gauge must not lie in the range of the boxes");
	if (gauge == c->config->uids.api || gauge == c->config->uids.hook || gauge == c->config->uids.gate ||
	    gauge == c->config->uids.vault || gauge == c->config->uids.ai)
		return bad(c, given(c, "uids.gauge") ? "uids.gauge" : "uids.api",
			   "uids.gauge must be nobody else's");
	return 0;
}

static int check_signer_uid(const struct check *c, uint64_t base, uint64_t end)
{
	const uint64_t others[] = { c->config->uids.api,   c->config->uids.hook, c->config->uids.gate,
				    c->config->uids.vault, c->config->uids.ai,   c->config->uids.gauge };
	const uint64_t signer = c->config->uids.signer;
	if (signer >= base && signer < end)
		return bad(c, given(c, "uids.signer") ? "uids.signer" : "uids.base",
			   "uids.signer must not lie in the range of the sandboxes");
	for (size_t i = 0; i < ELEMS(others); i++)
		if (signer == others[i])
			return bad(c, given(c, "uids.signer") ? "uids.signer" : "uids",
				   "uids.signer must be nobody else's");
	return 0;
}

static int check_uids(const struct check *c)
{
	uint64_t base = c->config->uids.base, end = base + c->config->uids.slots * CONFIG_UID_STRIDE;

	/* The schema bounds both factors: no overflow in 64 bits. */
	if (base < CONFIG_UID_LEAST)
		return bad(c, "uids.base", "must be at least %u", CONFIG_UID_LEAST);
	if (end > UINT32_MAX)
		return bad(c, given(c, "uids.slots") ? "uids.slots" : "uids.base",
			   "base + slots * %u must stay below 2^32 - 1", CONFIG_UID_STRIDE);
	if (c->config->uids.api >= base && c->config->uids.api < end)
		return bad(c, given(c, "uids.api") ? "uids.api" : "uids.base",
			   "uids.api must not lie in the range of the sandboxes");
	if (c->config->uids.gate >= base && c->config->uids.gate < end)
		return bad(c, given(c, "uids.gate") ? "uids.gate" : "uids.base",
			   "uids.gate must not lie in the range of the sandboxes");
	if (c->config->uids.gate == c->config->uids.api || c->config->uids.gate == c->config->uids.hook)
		return bad(c, "uids.gate", "must not be uids.api or uids.hook");
	if (c->config->uids.hook >= base && c->config->uids.hook < end)
		return bad(c, given(c, "uids.hook") ? "uids.hook" : "uids.base",
			   "uids.hook must not lie in the range of the sandboxes");
	if (c->config->uids.hook == c->config->uids.api)
		return bad(c, given(c, "uids.hook") ? "uids.hook" : "uids.api",
			   "uids.hook must not be uids.api");
	if (c->config->uids.vault >= base && c->config->uids.vault < end)
		return bad(c, given(c, "uids.vault") ? "uids.vault" : "uids.base",
			   "uids.vault must not lie in the range of the sandboxes");
	if (c->config->uids.vault == c->config->uids.api || c->config->uids.vault == c->config->uids.hook)
		return bad(c, "uids.vault", "uids.vault must be nobody else's");
	uint64_t ai = c->config->uids.ai;
	if (ai >= base && ai < end)
		return bad(c, given(c, "uids.ai") ? "uids.ai" : "uids.base",
			   "uids.ai must not lie in the range of the sandboxes");
	if (ai == c->config->uids.api || ai == c->config->uids.hook || ai == c->config->uids.gate ||
	    ai == c->config->uids.vault)
		return bad(c, "uids.ai", "must be nobody else's");
	return check_gauge_uid(c, base, end) < 0 ? -1 : check_signer_uid(c, base, end);
}

/* pool: {IMAGE: {warm: N}}, whose names no table can know. */
static int read_pools(const struct check *c, struct arena *a)
{
	static const struct json_field fields[] = {
		{ "warm", JSON_F_U64, offsetof(struct config_pool, warm), .max = CONFIG_POOL_MOST,
		  .required = true },
	};
	static const struct json_schema schema = { fields, ELEMS(fields) };
	struct config *cfg = c->config;
	uint64_t total = 0;

	if (!cfg->pool)
		return 0;
	if (cfg->pool->type != JSON_OBJECT)
		return bad(c, "pool", "must be an object of images, not %s", json_type_name(cfg->pool->type));
	if (cfg->pool->n == 0) {
		cfg->pool = NULL; /* as if it were absent */
		return 0;
	}
	cfg->pools = arena_array(a, cfg->pool->n, sizeof(*cfg->pools));
	if (!cfg->pools)
		return err_set(c->e, ERR_TOO_LARGE, "the configuration takes more memory than is allowed");
	for (size_t i = 0; i < cfg->pool->n; i++) {
		const struct json_member *m = &cfg->pool->members[i];
		struct config_pool *p = &cfg->pools[cfg->n_pools];

		p->image = m->key;
		if (!made_of(m->key, LOWER UPPER DIGITS "._-:/@", "._-:/@") || has_dotdot(m->key))
			return bad(c, "pool", "has something that is not the name of an image");
		if (json_read(a, &m->value, &schema, p, c->with_lines, c->e) < 0)
			return err_wrap(c->e, "pool.%.*s", (int)MIN(m->key.n, 64), m->key.p);
		total += p->warm;
		cfg->n_pools++;
	}
	return total <= cfg->max.boxes ? 0 : bad(c, "pool", "has more sandboxes than max.boxes");
}

static bool is_loopback(struct view listen)
{
	return view_starts(listen, "127.") || view_starts(listen, "[::1]:");
}

/* Which dialects there are, paddock-api knows. */
static int read_listeners(const struct check *c, struct arena *a)
{
	static const struct json_field fields[] = {
		{ "address", JSON_F_STRING, offsetof(struct config_listener, address), .min = 1, .max = 64,
		  .required = true },
		{ "dialect", JSON_F_STRING, offsetof(struct config_listener, dialect), .min = 1, .max = 32,
		  .required = true },
		{ "anonymous", JSON_F_BOOL, offsetof(struct config_listener, anonymous) },
		{ "sandbox", JSON_F_STRING, offsetof(struct config_listener, sandbox), .max = 64 },
	};
	static const struct json_schema schema = { fields, ELEMS(fields) };
	struct config *cfg = c->config;
	const struct json *all = cfg->listeners;
	struct sockaddr_storage ss;
	socklen_t len;

	if (!all)
		return 0;
	if (all->type != JSON_ARRAY)
		return bad(c, "listeners", "must be a list, not %s", json_type_name(all->type));
	if (all->n == 0) {
		cfg->listeners = NULL; /* as if it were absent */
		return 0;
	}
	if (all->n > CONFIG_LISTENERS_MOST)
		return bad(c, "listeners", "has more than %d entries", CONFIG_LISTENERS_MOST);
	cfg->listeners_of = arena_array(a, all->n, sizeof(*cfg->listeners_of));
	if (!cfg->listeners_of)
		return err_set(c->e, ERR_TOO_LARGE, "the configuration takes more memory than is allowed");
	for (size_t i = 0; i < all->n; i++) {
		struct config_listener *l = &cfg->listeners_of[cfg->n_listeners++];
		if (json_read(a, &all->items[i], &schema, l, c->with_lines, c->e) < 0)
			return -1; /* it says the line */
		if (config_listen(l->address, &ss, &len) < 0)
			return bad(c, "listeners", "needs an address and a port, like 127.0.0.1:8080");
		if (l->anonymous && !is_loopback(l->address))
			return bad(c, "listeners", "can be anonymous on loopback only");
		if (!made_of(l->dialect, LOWER DIGITS "-", "-"))
			return bad(c, "listeners", "has something that is not the name of a dialect");
	}
	return 0;
}

/* The text of a key is never here. */
static int read_keys(const struct check *c, struct arena *a)
{
	static const struct json_field fields[] = {
		{ "sha256", JSON_F_STRING, offsetof(struct config_key, sha256), .min = 64, .max = 64,
		  .required = true },
		{ "role", JSON_F_STRING, offsetof(struct config_key, role) },
	};
	static const struct json_schema schema = { fields, ELEMS(fields) };
	struct config *cfg = c->config;
	const struct json *all = cfg->keys;
	uint8_t hash[32];

	if (!all)
		return 0;
	if (all->type != JSON_ARRAY || all->n == 0 || all->n > CONFIG_KEYS_MOST)
		return bad(c, "keys", "must be a list of 1 to %d keys", CONFIG_KEYS_MOST);
	cfg->keys_given = arena_array(a, all->n, sizeof(*cfg->keys_given));
	if (!cfg->keys_given)
		return err_set(c->e, ERR_TOO_LARGE, "the configuration takes more memory than is allowed");
	for (size_t i = 0; i < all->n; i++) {
		struct config_key *k = &cfg->keys_given[cfg->n_keys++];
		k->role = VIEW("user");
		if (json_read(a, &all->items[i], &schema, k, c->with_lines, c->e) < 0)
			return -1; /* it says the line */
		if (text_unhex(k->sha256, hash, sizeof(hash)) < 0)
			return bad(c, "keys", "needs 64 hex digits as sha256");
		if (!view_is(k->role, "user") && !view_is(k->role, "admin"))
			return bad(c, "keys", "has a role that is neither user nor admin");
	}
	return 0;
}

static int read_images(const struct check *c)
{
	const struct json *all = c->config->sandkasten.images;

	if (all && all->type != JSON_ARRAY)
		return bad(c, "sandkasten.images", "must be a list, not %s", json_type_name(all->type));
	for (size_t i = 0; all && i < all->n; i++)
		if (all->items[i].type != JSON_STRING)
			return bad(c, "sandkasten.images", "must be a list of names");
	return 0;
}

/* egress: sets first, which the policies name. */
static int read_egress(const struct check *c, struct arena *a)
{
	const struct config *cfg = c->config;
	const struct json *sets = cfg->egress.sets, *images = cfg->egress.images,
			  *refuse = cfg->egress.refuse;
	struct egress_policy p;
	struct egress_rule r;

	if (!view_is(cfg->egress.non_public, "admin") && !view_is(cfg->egress.non_public, "anyone"))
		return bad(c, "egress.private", "must be admin or anyone");
	if (!view_is(cfg->egress.capture, "auto") && !view_is(cfg->egress.capture, "sk_lookup") &&
	    !view_is(cfg->egress.capture, "nft") && !view_is(cfg->egress.capture, "proxy"))
		return bad(c, "egress.capture", "must be auto, sk_lookup, nft or proxy");
	if (egress_check_sets(a, sets, c->e) < 0)
		return err_wrap(c->e, "egress.sets");
	if (cfg->egress.policy && egress_read(a, cfg->egress.policy, sets, &p, c->e) < 0)
		return err_wrap(c->e, "egress.policy");
	if (images && images->type != JSON_OBJECT)
		return bad(c, "egress.images", "must be an object of images, not %s",
			   json_type_name(images->type));
	for (size_t i = 0; images && i < images->n; i++)
		if (egress_read(a, &images->members[i].value, sets, &p, c->e) < 0)
			return err_wrap(c->e, "egress.images.%.*s", (int)MIN(images->members[i].key.n, 64),
					images->members[i].key.p);
	if (refuse && (refuse->type != JSON_ARRAY || refuse->n > EGRESS_RULES_MAX))
		return bad(c, "egress.refuse", "must be an array of at most %d targets", EGRESS_RULES_MAX);
	for (size_t i = 0; refuse && i < refuse->n; i++)
		if (refuse->items[i].type != JSON_STRING)
			return bad(c, "egress.refuse", "must be an array of strings");
		else if (egress_target(a, refuse->items[i].text, sets, &r, c->e) < 0)
			return err_wrap(c->e, "egress.refuse");
	return 0;
}

static int read_features(const struct check *c, const char *path, const struct json *list, bool leave_out,
			 uint32_t *ret)
{
	if (list && list->type != JSON_ARRAY)
		return bad(c, path, "must be an array of names, not %s", json_type_name(list->type));
	for (size_t i = 0; list && i < list->n; i++) {
		const struct json *one = &list->items[i];
		enum feature f = one->type == JSON_STRING ? feature_named(one->text) : FEATURES;
		if (f == FEATURES)
			return bad(c, path,
				   "has a name that is no feature of the walls: see paddock.yaml(5)");
		if (leave_out && !feature_texts[f].optional)
			return bad(c, path, "%s cannot be left out here", feature_texts[f].name);
		*ret |= FEATURE_BIT(f);
	}
	return 0;
}

static int read_posture(const struct check *c)
{
	struct config *cfg = c->config;

	if (read_features(c, "posture.require", cfg->posture.require, false, &cfg->posture.required) < 0 ||
	    read_features(c, "posture.without", cfg->posture.without, true, &cfg->posture.left_out) < 0)
		return -1;
	if (cfg->posture.required & cfg->posture.left_out)
		return bad(c, "posture.without", "leaves out what posture.require asks for");
	return 0;
}

static int read_mounts(const struct check *c, struct arena *a)
{
	static const struct json_field fields[] = {
		{ "path", JSON_F_STRING, offsetof(struct config_mount, path), .max = 255, .required = true },
		{ "tenants", JSON_F_STRLIST, offsetof(struct config_mount, tenants), .max = 256,
		  .nullable = true },
		{ "writable", JSON_F_BOOL, offsetof(struct config_mount, writable) },
	};
	static const struct json_schema schema = { fields, ELEMS(fields) };
	struct config *cfg = c->config;
	const struct json *list = cfg->mounts.allow;

	if (!list)
		return 0;
	if (list->type != JSON_ARRAY)
		return bad(c, "mounts.allow", "must be an array of objects, not %s",
			   json_type_name(list->type));
	cfg->mount_list = arena_array(a, list->n, sizeof(*cfg->mount_list));
	if (!cfg->mount_list)
		return err_set(c->e, ERR_TOO_LARGE, "the configuration takes more memory than is allowed");
	for (size_t i = 0; i < list->n; i++) {
		struct config_mount *m = &cfg->mount_list[i];

		*m = (struct config_mount){ 0 };
		if (json_read(a, &list->items[i], &schema, m, c->with_lines, c->e) < 0)
			return err_wrap(c->e, "mounts.allow[%zu]", i);
		if (!config_is_path(m->path))
			return bad(c, "mounts.allow",
				   "must have absolute paths of directories, without \"..\", and not \"/\"");
		cfg->n_mounts++;
	}
	return 0;
}

/* ai.providers: the URL's parts, for those who dial. */
static int read_provider_url(const struct check *c, struct config_provider *p)
{
	struct view rest = p->url, port = VIEW_NONE;
	uint32_t number;

	p->tls = view_starts(rest, "https://");
	if (!p->tls && !view_starts(rest, "http://"))
		return bad(c, "ai.providers", "url must begin with https:// or http://");
	rest = view_skip(rest, p->tls ? 8 : 7);
	size_t n = 0;
	while (n < rest.n && rest.p[n] != '/')
		n++;
	p->authority = view_head(rest, n);
	p->path = view_skip(rest, n);
	while (p->path.n && p->path.p[p->path.n - 1] == '/')
		p->path.n--;
	p->port = p->tls ? 443 : 80;
	p->host = view_split(p->authority, ':', &port);
	if (port.p) {
		if (num_u32(port, &number) < 0 || number < 1 || number > UINT16_MAX)
			return bad(c, "ai.providers", "url: the port must be between 1 and %d", UINT16_MAX);
		p->port = (uint16_t)number;
	}
	if (p->host.n > 253 || !made_of(p->host, LOWER UPPER DIGITS ".-", ".-"))
		return bad(c, "ai.providers", "url: the host must be a name or an address of IPv4");
	if (p->path.n && !made_of(p->path, LOWER UPPER DIGITS "/._-", ""))
		return bad(c, "ai.providers", "url: the path has characters that do not belong there");
	return 0;
}

static int read_providers(const struct check *c, struct arena *a)
{
	static const struct json_field fields[] = {
		{ "url", JSON_F_STRING, offsetof(struct config_provider, url), .min = 1, .max = 512 },
		{ "secret", JSON_F_STRING, offsetof(struct config_provider, secret), .min = 1, .max = 64,
		  .required = true },
		{ "endpoints", JSON_F_STRLIST, offsetof(struct config_provider, endpoints), .max = 100 },
		{ "models", JSON_F_STRLIST, offsetof(struct config_provider, models), .max = 1000 },
	};
	static const struct json_schema schema = { fields, ELEMS(fields) };
	struct config *cfg = c->config;
	const struct json *all = cfg->ai.providers;

	if (cfg->ai.ca_file.n && check_path(c, "ai.ca_file", cfg->ai.ca_file) < 0)
		return -1;
	if (cfg->ai.max.warn > 0)
		return bad(c, "ai.max.warn", "belongs to ai.box and ai.tenant");
	if (!all)
		return 0;
	if (all->type != JSON_OBJECT)
		return bad(c, "ai.providers", "must be an object of providers, not %s",
			   json_type_name(all->type));
	cfg->providers = arena_array(a, MAX(all->n, 1u), sizeof(*cfg->providers));
	if (!cfg->providers)
		return err_set(c->e, ERR_TOO_LARGE, "the configuration takes more memory than is allowed");
	for (size_t i = 0; i < all->n; i++) {
		struct config_provider *p = &cfg->providers[cfg->n_providers++];
		p->name = all->members[i].key;
		bool openai = view_is(p->name, "openai");
		if (!openai && !view_is(p->name, "anthropic"))
			return bad(c, "ai.providers", "knows openai and anthropic");
		p->url = openai ? VIEW("https://api.openai.com") : VIEW("https://api.anthropic.com");
		if (json_read(a, &all->members[i].value, &schema, p, c->with_lines, c->e) < 0)
			return err_wrap(c->e, "ai.providers.%.*s", VIEW_ARG(p->name));
		if (read_provider_url(c, p) < 0)
			return -1;
	}
	return 0;
}

/* Browsers look for names below localhost on their own machine, so that pages with absolute URLs work without
 * DNS. Not over TLS: nobody has a certificate for them. An empty domain stays empty. */
static void settle_domain(struct config *cfg)
{
	bool loopback = is_loopback(cfg->listen);

	if (!cfg->ports.domain.p)
		cfg->ports.domain = loopback && !cfg->tls.cert.n ? VIEW("localhost") : VIEW("");
}

int config_from_doc(struct arena *a, const struct json *doc, bool with_lines, struct config *ret,
		    struct err *e)
{
	struct config config = DEFAULTS;
	box_limits_preset(&config.defaults.limits, &config.max.limits);
	const struct check c = { .config = &config, .doc = doc, .with_lines = with_lines, .e = e };

	if (json_read(a, doc, &config_schema, &config, with_lines, e) < 0)
		return -1;
	settle_domain(&config);
	if (check_strings(&c, &config_schema, "", (const char *)&config) < 0 || check_places(&c) < 0 ||
	    check_names(&c) < 0 || resolve_machine(&c) < 0 || fit_defaults(&c) < 0 || check_uids(&c) < 0 ||
	    read_pools(&c, a) < 0 || read_listeners(&c, a) < 0 || read_keys(&c, a) < 0 ||
	    read_images(&c) < 0 || read_mounts(&c, a) < 0 || read_posture(&c) < 0 || read_egress(&c, a) < 0 ||
	    read_providers(&c, a) < 0 || config_agents_read(&config, a, with_lines, e) < 0)
		return -1;
	*ret = config;
	return 0;
}

int config_from_json(struct arena *a, struct view text, struct config *ret, struct err *e)
{
	struct json *doc;

	if (json_parse(a, text, &doc, e) < 0)
		return -1;
	return config_from_doc(a, doc, true, ret, e);
}
