/*
 * Policies from JSON: see egress.h. The long form of a rule, lists of the short form,
 * and what belongs together.
 */
#include "egress.h"

#include <stdio.h>

#include "egress_impl.h"

#include "poison.h"

static const char *const verdict_names[] = {
	[EGRESS_NONE] = "none", [EGRESS_DENY] = "deny", [EGRESS_ALLOW] = "allow"
};
static const char *const protocol_names[EGRESS_PROTOCOLS] = {
	[EGRESS_ANY] = "any",
	[EGRESS_TCP] = "tcp",
	[EGRESS_TLS] = "tls",
	[EGRESS_HTTP] = "http",
};
const struct json egress_any_set;

const char *egress_verdict_name(enum egress_verdict v)
{
	return v < ELEMS(verdict_names) ? verdict_names[v] : "none";
}

const char *egress_protocol_name(enum egress_protocol p)
{
	return p < EGRESS_PROTOCOLS ? protocol_names[p] : "any";
}

static int no_memory(struct err *e)
{
	return err_set(e, ERR_TOO_LARGE, "the policy takes more memory than is allowed");
}

/* ---- a rule ---- */

struct rule_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view action, set, host, cidr, protocol;
	struct json_strlist methods, paths;
	const struct json *ports, *inject;
};

#define AT(f) .offset = offsetof(struct rule_body, f)
static const struct json_field rule_fields[] = {
	{ "action", JSON_F_STRING, AT(action), .min = 1, .required = true },
	{ "set", JSON_F_STRING, AT(set), .min = 1, .max = 40 },
	{ "host", JSON_F_STRING, AT(host), .min = 1, .max = EGRESS_TARGET_MAX },
	{ "cidr", JSON_F_STRING, AT(cidr), .min = 1, .max = 64 },
	{ "protocol", JSON_F_STRING, AT(protocol), .min = 1 },
	{ "ports", JSON_F_ANY, AT(ports) },
	{ "inject", JSON_F_ANY, AT(inject) },
	{ "methods", JSON_F_STRLIST, AT(methods), .min = 1, .max = EGRESS_LIST_MAX },
	{ "paths", JSON_F_STRLIST, AT(paths), .min = 1, .max = EGRESS_LIST_MAX },
};
#undef AT
static const struct json_schema rule_schema = { rule_fields, ELEMS(rule_fields) };

static int read_verdict(struct view v, const char *field, enum egress_verdict *ret, struct err *e)
{
	if (!view_is(v, "allow") && !view_is(v, "deny"))
		return err_set(e, ERR_INVALID, "%s: must be allow or deny", field);
	*ret = view_is(v, "allow") ? EGRESS_ALLOW : EGRESS_DENY;
	return 0;
}

static int read_protocol(struct view v, enum egress_protocol *ret, struct err *e)
{
	for (enum egress_protocol p = EGRESS_ANY; p < EGRESS_PROTOCOLS; p++)
		if (view_is(v, protocol_names[p])) {
			*ret = p;
			return 0;
		}
	return err_set(e, ERR_INVALID, "protocol: must be any, tcp, tls or http");
}

static int read_ports(struct arena *a, const struct json *j, struct egress_rule *r, struct err *e)
{
	if (!j)
		return 0;
	if (j->type != JSON_ARRAY || j->n < 1 || j->n > EGRESS_LIST_MAX)
		return err_set(e, ERR_INVALID, "ports: must be an array of 1 to %d ports", EGRESS_LIST_MAX);
	r->ports = arena_array(a, j->n, sizeof(*r->ports));
	if (!r->ports)
		return no_memory(e);
	for (size_t i = 0; i < j->n; i++) {
		const struct json *one = &j->items[i];

		if (one->type != JSON_NUMBER && one->type != JSON_STRING)
			return err_set(e, ERR_INVALID, "ports: item %zu must be a number or a range, not %s",
				       i + 1, json_type_name(one->type));
		if (egress_port_range(one->text, &r->ports[i], e) < 0)
			return err_wrap(e, "ports");
	}
	r->n_ports = j->n;
	return 0;
}

/* RFC 9110's token, in capitals as all methods in use are. */
static int check_method(struct view v, struct err *e)
{
	bool ok = v.n >= 1 && v.n <= 20;

	for (size_t i = 0; ok && i < v.n; i++)
		ok = (v.p[i] >= 'A' && v.p[i] <= 'Z') || v.p[i] == '-';
	return ok ? 0 : egress_bad(e, v, "is not a method such as GET");
}

int egress_check_path(struct view v, struct err *e)
{
	bool ok = v.n >= 1 && v.n <= EGRESS_PATH_MAX && v.p[0] == '/';

	for (size_t i = 0; ok && i < v.n; i++)
		ok = v.p[i] > 0x20 && v.p[i] < 0x7f && !strchr("?#*\\", v.p[i]);
	if (!ok)
		return egress_bad(e, v, "is not a path such as /v1, which means what is below it, too");
	/* The gate compares normalised paths: one with these matches nothing. */
	for (struct view rest = view_skip(v, 1), part; rest.p;) {
		part = view_split(rest, '/', &rest);
		if (view_is(part, ".") || view_is(part, "..") || (part.n == 0 && rest.p))
			return egress_bad(e, v, "has an empty or dot segment");
	}
	return 0;
}

static int read_http(const struct rule_body *b, struct egress_rule *r, struct err *e)
{
	for (size_t i = 0; i < b->methods.n; i++)
		if (check_method(b->methods.items[i], e) < 0)
			return err_wrap(e, "methods");
	for (size_t i = 0; i < b->paths.n; i++)
		if (egress_check_path(b->paths.items[i], e) < 0)
			return err_wrap(e, "paths");
	if ((b->methods.n || b->paths.n) && r->protocol == EGRESS_TCP)
		return err_set(e, ERR_INVALID, "%s: only http has such, and the protocol is %s",
			       b->methods.n ? "methods" : "paths", protocol_names[r->protocol]);
	r->methods = b->methods;
	r->paths = b->paths;
	return 0;
}

static int read_rule(struct arena *a, const struct json *j, const struct json *sets, struct egress_rule *ret,
		     struct err *e)
{
	struct egress_rule r = { 0 };
	struct rule_body b = { 0 };
	char name[64];

	if (json_read(a, j, &rule_schema, &b, false, e) < 0 ||
	    read_verdict(b.action, "action", &r.verdict, e) < 0)
		return -1;
	if ((b.set.n > 0) == (b.host.n || b.cidr.n))
		return err_set(e, ERR_INVALID, "a set, or host or cidr or both of these are needed");
	if (b.protocol.n && read_protocol(b.protocol, &r.protocol, e) < 0)
		return -1;
	if (b.set.n && sets != &egress_any_set &&
	    (view_to_str(b.set, name, sizeof(name)) < 0 || !json_get(sets, name))) {
		egress_bad(e, b.set, "is not a set that there is");
		return err_wrap(e, "set");
	}
	if (b.host.n && egress_host(a, b.host, &r.host, e) < 0)
		return err_wrap(e, "host");
	if (b.cidr.n && egress_net(b.cidr, &r.net, e) < 0)
		return err_wrap(e, "cidr");
	r.set = b.set;
	if (read_ports(a, b.ports, &r, e) < 0 || read_http(&b, &r, e) < 0 ||
	    egress_read_inject(a, b.inject, &r, e) < 0)
		return -1;
	*ret = r;
	return 0;
}

/* ---- a policy ---- */

struct policy_body {
	bool unused;
	struct view otherwise, ech;
	const struct json *rules;
	struct json_strlist allow, deny;
	struct egress_limits limits;
};

#define MOST  (UINT64_C(1) << 50)
#define AT(f) .offset = offsetof(struct egress_limits, f), .nullable = true
static const struct json_field limits_fields[] = {
	{ "connections", JSON_F_U64, AT(connections), .max = 1000000 },
	{ "connections_per_second", JSON_F_U64, AT(connections_per_second), .max = 1000000 },
	{ "bytes_per_second", JSON_F_U64, AT(bytes_per_second), .max = MOST },
	{ "bytes", JSON_F_U64, AT(bytes), .max = MOST },
};
#undef AT
static const struct json_schema limits_schema = { limits_fields, ELEMS(limits_fields) };

#define AT(f) .offset = offsetof(struct policy_body, f), .nullable = true
static const struct json_field policy_fields[] = {
	{ "default", JSON_F_STRING, AT(otherwise), .min = 1 },
	{ "rules", JSON_F_ANY, AT(rules) },
	{ "allow", JSON_F_STRLIST, AT(allow), .max = EGRESS_RULES_MAX },
	{ "deny", JSON_F_STRLIST, AT(deny), .max = EGRESS_RULES_MAX },
	{ "limits", JSON_F_OBJECT, AT(limits), .sub = &limits_schema },
	{ "ech", JSON_F_STRING, AT(ech), .min = 1 },
};
#undef AT
static const struct json_schema policy_schema = { policy_fields, ELEMS(policy_fields) };

static int add_targets(struct arena *a, const struct json_strlist *list, enum egress_verdict v,
		       const struct json *sets, struct egress_policy *p, struct err *e)
{
	for (size_t i = 0; i < list->n; i++) {
		struct egress_rule *r = &p->rules[p->n_rules];

		if (egress_target(a, list->items[i], sets, r, e) < 0)
			return err_wrap(e, "%s", verdict_names[v]);
		r->verdict = v;
		p->n_rules++;
	}
	return 0;
}

int egress_read(struct arena *a, const struct json *doc, const struct json *sets, struct egress_policy *ret,
		struct err *e)
{
	struct egress_policy p = { .otherwise = EGRESS_DENY };
	struct policy_body b = { 0 };

	if (json_read(a, doc, &policy_schema, &b, false, e) < 0 ||
	    (b.otherwise.n && read_verdict(b.otherwise, "default", &p.otherwise, e) < 0))
		return -1;
	if (b.ech.n && !view_is(b.ech, "intercept") && !view_is(b.ech, "refuse"))
		return err_set(e, ERR_INVALID, "ech: must be intercept or refuse");
	p.refuse_ech = view_is(b.ech, "refuse");
	if (b.rules && b.rules->type != JSON_ARRAY)
		return err_set(e, ERR_INVALID, "rules: must be an array of rules, not %s",
			       json_type_name(b.rules->type));
	size_t n = (b.rules ? b.rules->n : 0) + b.allow.n + b.deny.n;
	if (n > EGRESS_RULES_MAX)
		return err_set(e, ERR_INVALID, "rules: must have at most %d rules", EGRESS_RULES_MAX);
	p.rules = arena_array(a, n, sizeof(*p.rules));
	if (!p.rules)
		return no_memory(e);
	for (size_t i = 0; b.rules && i < b.rules->n; i++, p.n_rules++)
		if (read_rule(a, &b.rules->items[i], sets, &p.rules[i], e) < 0)
			return err_wrap(e, "rules[%zu]", i);
	/* What is denied by name is denied, whatever is allowed beside it. */
	if (add_targets(a, &b.deny, EGRESS_DENY, sets, &p, e) < 0 ||
	    add_targets(a, &b.allow, EGRESS_ALLOW, sets, &p, e) < 0)
		return -1;
	p.limits = b.limits;
	*ret = p;
	return 0;
}

int egress_parse(struct arena *a, struct view text, const struct json *sets, struct egress_policy *ret,
		 struct err *e)
{
	struct json *doc;

	return json_parse(a, text, &doc, e) < 0 ? -1 : egress_read(a, doc, sets, ret, e);
}
