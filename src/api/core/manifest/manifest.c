/*
 * Reads assegai.json: see agent.h.
 */
#include "manifest.h"

#include "config.h"
#include "egress.h"
#include "num.h"
#include "text.h"
#include "poison.h"

#define PATH_MAX_HERE 256
#define MEMORY_LEAST  16u
#define MEMORY_MOST   (1024u * 1024)
#define CPU_MOST      256000u /* thousandths */
#define WHOLE_DIGITS  60
#define WEI_DIGITS    18

static const char *const runtimes[] = { [MANIFEST_NODE] = "node", [MANIFEST_PYTHON] = "python" };

static const char *manifest_runtime_name(enum manifest_runtime r)
{
	return r == MANIFEST_NODE || r == MANIFEST_PYTHON ? runtimes[r] : "";
}

/* ---- characters ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool all_digits(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (!is_digit(v.p[i]))
			return false;
	return v.n > 0;
}

static bool all_of(struct view v, const char *extra)
{
	for (size_t i = 0; i < v.n; i++)
		if (!is_alnum(v.p[i]) && (!v.p[i] || !strchr(extra, v.p[i])))
			return false;
	return true;
}

/* Text for people: they see it in a terminal and in a page. */
static bool is_plain(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if ((unsigned char)v.p[i] < ' ' || v.p[i] == 0x7f)
			return false;
	/* C1 controls, and the marks that turn the direction of text around. */
	for (size_t i = 0; i + 1 < v.n; i++) {
		unsigned char a = (unsigned char)v.p[i], b = (unsigned char)v.p[i + 1];
		unsigned char c = i + 2 < v.n ? (unsigned char)v.p[i + 2] : 0;
		if (a == 0xc2 && b < 0xa0)
			return false;
		if (a == 0xe2 && ((b == 0x80 && ((c >= 0xaa && c <= 0xae) || c == 0x8e || c == 0x8f)) ||
				  (b == 0x81 && c >= 0xa6 && c <= 0xa9)))
			return false;
	}
	return text_is_utf8(v);
}

/* ---- values ---- */

/* 1.2.3, 1.2.3-rc.1, 1.2.3+build */
static bool is_version(struct view v)
{
	struct view rest = v, part;

	for (int i = 0; i < 2; i++) {
		part = view_split(rest, '.', &rest);
		if (!rest.p || !all_digits(part) || part.n > 9)
			return false;
	}
	size_t n = 0;
	while (n < rest.n && is_digit(rest.p[n]))
		n++;
	if (n == 0 || n > 9)
		return false;
	rest = view_skip(rest, n);
	return rest.n == 0 || ((rest.p[0] == '-' || rest.p[0] == '+') && rest.n > 1 && all_of(rest, "-+."));
}

static bool ends_with(struct view v, const char *end)
{
	size_t n = strlen(end);
	return v.n > n && memcmp(v.p + v.n - n, end, n) == 0;
}

static int check_entrypoint(const struct manifest *m, struct err *e)
{
	struct view rest = m->entrypoint;

	if (rest.p[0] == '-' || !all_of(rest, "._-/"))
		return err_set(e, ERR_INVALID, "entrypoint must be a path of letters, digits and ._-/");
	while (rest.p) {
		struct view part = view_split(rest, '/', &rest);
		if (!part.n || view_is(part, ".") || view_is(part, ".."))
			return err_set(
				e, ERR_INVALID,
				"entrypoint must be relative to the agent's directory, without \"..\"");
	}
	bool js = ends_with(m->entrypoint, ".js") || ends_with(m->entrypoint, ".mjs") ||
		  ends_with(m->entrypoint, ".cjs");
	if (m->runtime == MANIFEST_NODE && !js)
		return err_set(e, ERR_INVALID, "entrypoint: the runtime node runs .js, .mjs and .cjs files");
	if (m->runtime == MANIFEST_PYTHON && !ends_with(m->entrypoint, ".py"))
		return err_set(e, ERR_INVALID, "entrypoint: the runtime python runs .py files");
	return 0;
}

bool manifest_is_address(struct view v)
{
	if (v.n != 42 || v.p[0] != '0' || v.p[1] != 'x')
		return false;
	for (size_t i = 2; i < v.n; i++)
		if (!is_digit(v.p[i]) && !((v.p[i] | 32) >= 'a' && (v.p[i] | 32) <= 'f'))
			return false;
	return true;
}

static int check_unique(const struct json_strlist *l, const char *field, struct err *e)
{
	for (size_t i = 0; i < l->n; i++)
		for (size_t k = 0; k < i; k++)
			if (view_eq_nocase(l->items[i], l->items[k]))
				return err_set(e, ERR_INVALID, "%s[%zu] is there twice", field, i);
	return 0;
}

/* ---- permissions ---- */

static int check_chains(const struct manifest *m, struct err *e)
{
	const struct json_strlist *l = &m->permissions.chains;
	const struct json_strmap *r = &m->permissions.rpcs;

	for (size_t i = 0; i < l->n; i++)
		if (!config_chain_number(l->items[i]).p)
			return err_set(e, ERR_INVALID,
				       "permissions.chains[%zu] must be a chain such as \"eip155:1\"", i);
	if (check_unique(l, "permissions.chains", e) < 0)
		return -1;
	for (size_t i = 0; i < r->n; i++) {
		struct config_url u;

		if (!manifest_has_chain(m, r->keys[i]))
			return err_set(e, ERR_INVALID,
				       "permissions.rpcs names a chain that permissions.chains does not");
		if (r->values[i].n > MANIFEST_URL_MAX || config_url(r->values[i], &u, e) < 0)
			return err_wrap(e, "permissions.rpcs.%.*s", VIEW_ARG(r->keys[i]));
	}
	return 0;
}

static int check_contracts(const struct manifest *m, struct err *e)
{
	const struct json_strlist *apis = &m->permissions.apis, *l = &m->permissions.contracts;

	for (size_t i = 0; i < apis->n; i++)
		if (!view_is(apis->items[i], "openai") && !view_is(apis->items[i], "anthropic"))
			return err_set(e, ERR_INVALID,
				       "permissions.apis[%zu] must be \"openai\" or \"anthropic\"", i);
	for (size_t i = 0; i < l->n; i++)
		if (!manifest_is_address(l->items[i]))
			return err_set(e, ERR_INVALID,
				       "permissions.contracts[%zu] must be 0x and 40 hexadecimal digits", i);
	return check_unique(apis, "permissions.apis", e) < 0 ? -1
							     : check_unique(l, "permissions.contracts", e);
}

/* Names only: an address, a network or a wildcard would open more than a person can judge. */
static int check_hosts(struct arena *a, const struct manifest *m, struct err *e)
{
	const struct json_strlist *l = &m->permissions.hosts;

	for (size_t i = 0; i < l->n; i++) {
		struct egress_rule r = { 0 };
		if (egress_target(a, l->items[i], NULL, &r, e) < 0)
			return err_wrap(e, "permissions.hosts[%zu]", i);
		if (!r.host.n || r.net.family || r.n_inject || memchr(r.host.p, '*', r.host.n))
			return err_set(e, ERR_INVALID,
				       "permissions.hosts[%zu] must be the name of one host, such as "
				       "\"api.example.org:443\"",
				       i);
	}
	return check_unique(l, "permissions.hosts", e);
}

/* ---- resources ---- */

static int read_memory(struct view v, uint64_t *ret, struct err *e)
{
	static const struct {
		const char *unit;
		uint64_t mb;
	} units[] = { { "MB", 1 }, { "GB", 1024 }, { "MiB", 1 }, { "GiB", 1024 } };
	size_t n = 0;
	uint64_t number = 0;

	while (n < v.n && is_digit(v.p[n]))
		n++;
	for (size_t i = 0; i < ELEMS(units); i++) {
		if (!view_is(view_skip(v, n), units[i].unit) || num_u64(view_head(v, n), &number) < 0)
			continue;
		if (number > MEMORY_MOST || number * units[i].mb < MEMORY_LEAST ||
		    number * units[i].mb > MEMORY_MOST)
			break;
		*ret = number * units[i].mb;
		return 0;
	}
	return err_set(e, ERR_INVALID, "resources.memory must be a size from %uMB, such as \"512MB\"",
		       MEMORY_LEAST);
}

static int read_cpu(struct view v, uint32_t *ret, struct err *e)
{
	struct view rest, whole = view_split(v, '.', &rest);
	uint32_t n = 0, part = 0;
	bool ok = all_digits(whole) && num_u32(whole, &n) >= 0 && n <= CPU_MOST / 1000 &&
		  (!rest.p || (all_digits(rest) && rest.n <= 3 && num_u32(rest, &part) >= 0));

	for (size_t i = rest.p ? rest.n : 3; i < 3; i++)
		part *= 10;
	n = n * 1000 + part;
	if (!ok || n < 10 || n > CPU_MOST)
		return err_set(e, ERR_INVALID, "resources.cpu must be a number of cores, such as \"0.5\"");
	*ret = n;
	return 0;
}

/* Never a double: "0.1" is exactly a tenth. */
static int check_amount(struct view v, const char *field, struct err *e)
{
	struct view rest, whole = view_split(v, '.', &rest);

	if (!v.p)
		return 0;
	if (!all_digits(whole) || whole.n > WHOLE_DIGITS || (whole.n > 1 && whole.p[0] == '0') ||
	    (rest.p && (!all_digits(rest) || rest.n > WEI_DIGITS)))
		return err_set(e, ERR_INVALID,
			       "spending_limits.%s must be a decimal number with at most %d fraction digits, "
			       "as a string",
			       field, WEI_DIGITS);
	return 0;
}

static int check_limits(const struct manifest_limits *l, struct err *e)
{
	return check_amount(l->per_transaction, "per_transaction", e) < 0 ||
			       check_amount(l->daily, "daily", e) < 0 ||
			       check_amount(l->weekly, "weekly", e) < 0 ||
			       check_amount(l->monthly, "monthly", e) < 0
		       ? -1
		       : 0;
}

/* ---- the whole ---- */

#define AT(f) .offset = offsetof(struct manifest, f)
static const struct json_field permission_fields[] = {
	{ "chains", JSON_F_STRLIST, AT(permissions.chains), .max = MANIFEST_LIST_MAX },
	{ "rpcs", JSON_F_STRMAP, AT(permissions.rpcs), .max = MANIFEST_LIST_MAX },
	{ "apis", JSON_F_STRLIST, AT(permissions.apis), .max = 2 },
	{ "contracts", JSON_F_STRLIST, AT(permissions.contracts), .max = MANIFEST_CONTRACTS },
	{ "hosts", JSON_F_STRLIST, AT(permissions.hosts), .max = MANIFEST_LIST_MAX },
};
static const struct json_schema permissions_schema = { permission_fields, ELEMS(permission_fields) };

static const struct json_field resource_fields[] = {
	{ "memory", JSON_F_STRING, AT(resources.memory), .min = 1, .max = 16 },
	{ "cpu", JSON_F_STRING, AT(resources.cpu), .min = 1, .max = 16 },
};
static const struct json_schema resources_schema = { resource_fields, ELEMS(resource_fields) };

static const struct json_field limit_fields[] = {
	{ "per_transaction", JSON_F_STRING, AT(limits.per_transaction), .min = 1, .max = 80 },
	{ "daily", JSON_F_STRING, AT(limits.daily), .min = 1, .max = 80 },
	{ "weekly", JSON_F_STRING, AT(limits.weekly), .min = 1, .max = 80 },
	{ "monthly", JSON_F_STRING, AT(limits.monthly), .min = 1, .max = 80 },
};
static const struct json_schema limits_schema = { limit_fields, ELEMS(limit_fields) };

static const struct json_field fields[] = {
	{ "name", JSON_F_STRING, AT(name), .min = 1, .max = MANIFEST_NAME_MAX, .required = true },
	{ "version", JSON_F_STRING, AT(version), .min = 1, .max = 64, .required = true },
	{ "description", JSON_F_STRING, AT(description), .max = 500 },
	{ "author", JSON_F_STRING, AT(author), .max = 100 },
	{ "runtime", JSON_F_STRING, AT(runtime_name), .min = 1, .max = 16, .required = true },
	{ "entrypoint", JSON_F_STRING, AT(entrypoint), .min = 1, .max = PATH_MAX_HERE, .required = true },
	{ "permissions", JSON_F_OBJECT, .offset = 0, .sub = &permissions_schema },
	{ "resources", JSON_F_OBJECT, .offset = 0, .sub = &resources_schema },
	{ "spending_limits", JSON_F_OBJECT, .offset = 0, .sub = &limits_schema },
};
#undef AT
static const struct json_schema schema = { fields, ELEMS(fields) };

int manifest_read(struct arena *a, const struct json *doc, struct manifest *ret, struct err *e)
{
	struct manifest m = { 0 };

	if (json_read(a, doc, &schema, &m, false, e) < 0)
		return -1;
	if (!is_plain(m.name) || !is_plain(m.description) || !is_plain(m.author))
		return err_set(e, ERR_INVALID,
			       "name, description and author must be text without control characters");
	if (!is_version(m.version))
		return err_set(e, ERR_INVALID, "version must be three numbers, such as \"1.0.0\"");
	m.runtime = view_is(m.runtime_name, "node")     ? MANIFEST_NODE
		    : view_is(m.runtime_name, "python") ? MANIFEST_PYTHON
							: MANIFEST_NO_RUNTIME;
	if (!m.runtime)
		return err_set(e, ERR_INVALID, "runtime must be \"node\" or \"python\"");
	if (check_entrypoint(&m, e) < 0 || check_chains(&m, e) < 0 || check_contracts(&m, e) < 0 ||
	    check_hosts(a, &m, e) < 0 || check_limits(&m.limits, e) < 0)
		return -1;
	if ((m.resources.memory.p && read_memory(m.resources.memory, &m.resources.memory_mb, e) < 0) ||
	    (m.resources.cpu.p && read_cpu(m.resources.cpu, &m.resources.cpu_milli, e) < 0))
		return -1;
	*ret = m;
	return 0;
}

static void put_list(struct json_out *o, const char *key, const struct json_strlist *l)
{
	json_out_key(o, key);
	json_out_array(o);
	for (size_t i = 0; i < l->n; i++)
		json_out_str(o, l->items[i]);
	json_out_end(o, ']');
}

static void put_given(struct json_out *o, const char *key, struct view v)
{
	if (v.p)
		json_out_kstr(o, key, v);
}

void manifest_put(struct json_out *o, const struct manifest *m)
{
	json_out_object(o);
	json_out_kstr(o, "name", m->name);
	json_out_kstr(o, "version", m->version);
	put_given(o, "description", m->description);
	put_given(o, "author", m->author);
	json_out_kz(o, "runtime", manifest_runtime_name(m->runtime));
	json_out_kstr(o, "entrypoint", m->entrypoint);
	json_out_key(o, "permissions");
	json_out_object(o);
	put_list(o, "chains", &m->permissions.chains);
	json_out_kmap(o, "rpcs", &m->permissions.rpcs);
	put_list(o, "apis", &m->permissions.apis);
	put_list(o, "contracts", &m->permissions.contracts);
	put_list(o, "hosts", &m->permissions.hosts);
	json_out_end(o, '}');
	json_out_key(o, "resources");
	json_out_object(o);
	put_given(o, "memory", m->resources.memory);
	put_given(o, "cpu", m->resources.cpu);
	json_out_end(o, '}');
	json_out_key(o, "spending_limits");
	json_out_object(o);
	put_given(o, "per_transaction", m->limits.per_transaction);
	put_given(o, "daily", m->limits.daily);
	put_given(o, "weekly", m->limits.weekly);
	put_given(o, "monthly", m->limits.monthly);
	json_out_end(o, '}');
	json_out_end(o, '}');
}

bool manifest_has_chain(const struct manifest *m, struct view chain)
{
	for (size_t i = 0; i < m->permissions.chains.n; i++)
		if (view_eq(m->permissions.chains.items[i], chain))
			return true;
	return false;
}

bool manifest_has_api(const struct manifest *m, struct view api)
{
	for (size_t i = 0; i < m->permissions.apis.n; i++)
		if (view_eq(m->permissions.apis.items[i], api))
			return true;
	return false;
}

bool manifest_allows_contract(const struct manifest *m, struct view address)
{
	const struct json_strlist *l = &m->permissions.contracts;

	for (size_t i = 0; i < l->n; i++)
		if (view_eq_nocase(l->items[i], address))
			return true;
	return l->n == 0;
}
