/*
 * E2B: translates E2B's network settings into an egress policy. E2B's allow list comes before its deny
 * list; other hosts are allowed if internet access is.
 */
#include "e2b_network.h"

#include <stdlib.h>

#include "host_match.h"
#include "net.h"
#include "poison.h"

#define EVERYTHING   "0.0.0.0/0"
#define EVERYTHING_6 "::/0"

/* Whether something is said there: not null, false, {} or []. */
bool e2b_network_says(const struct json *j)
{
	if (!j || j->type == JSON_NULL || (j->type == JSON_BOOL && !j->boolean))
		return false;
	return (j->type != JSON_OBJECT && j->type != JSON_ARRAY) || j->n > 0;
}

static bool is_everything(struct view v)
{
	return view_is(v, EVERYTHING) || view_is(v, EVERYTHING_6);
}

/* An address or a network, and no name. */
static bool is_net(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] == ':' || v.p[i] == '/')
			return true;
		else if ((v.p[i] < '0' || v.p[i] > '9') && v.p[i] != '.')
			return false;
	return true;
}

static int no_memory(struct err *e)
{
	return err_set(e, ERR_TOO_LARGE, "network is too large");
}

static int take_rule(struct arena *a, enum egress_verdict verdict, struct view target,
		     struct egress_rule *ret, struct err *e)
{
	bool net = is_net(target);

	*ret = (struct egress_rule){ .verdict = verdict };
	if ((net ? egress_net(target, &ret->net, e) : egress_host(a, target, &ret->host, e)) < 0)
		return err_wrap(e, net ? "cidr" : "host");
	return 0;
}

/* ---- rules: secrets that are put into requests ---- */

#define SECRET_BEGIN "${e2b.secrets."

struct transform {
	struct view host;
	struct json_strmap headers;
};

struct transform_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct json_strmap headers;
};

struct rule_body {
	bool unused;
	struct transform_body transform;
};

static const struct json_field transform_fields[] = {
	{ "headers", JSON_F_STRMAP, .offset = offsetof(struct transform_body, headers), .nullable = true },
};
static const struct json_schema transform_schema = { transform_fields, ELEMS(transform_fields) };
static const struct json_field rule_fields[] = {
	{ "transform", JSON_F_OBJECT, .offset = offsetof(struct rule_body, transform),
	  .sub = &transform_schema, .nullable = true },
};
static const struct json_schema rule_schema = { rule_fields, ELEMS(rule_fields) };

/* "prefix${e2b.secrets.NAME}": all that the gate can put there. */
static bool split_value(struct view value, struct view *ret_prefix, struct view *ret_name)
{
	const size_t begin = sizeof(SECRET_BEGIN) - 1;
	const char *at = memmem(value.p, value.n, SECRET_BEGIN, begin);

	if (!at || value.p[value.n - 1] != '}')
		return false;
	*ret_prefix = view_head(value, (size_t)(at - value.p));
	*ret_name = view_skip(value, ret_prefix->n + begin);
	ret_name->n--;
	return ret_name->n && !memchr(ret_name->p, '}', ret_name->n) &&
	       !memchr(ret_name->p, '$', ret_name->n);
}

/* Rules open nothing: where something is closed, allowOut must say that the host is not. */
static bool is_open(const struct e2b_network *n, bool closed, struct view host)
{
	for (size_t i = 0; i < n->allow_out.n; i++)
		if (host_match(n->allow_out.items[i], host))
			return true;
	return !closed && !n->deny_out.n;
}

static int read_transform(struct request *r, const struct json_member *m, struct transform *ret,
			  struct err *e)
{
	struct rule_body b = { 0 };

	if (m->value.type != JSON_ARRAY || m->value.n != 1)
		return err_set(e, ERR_INVALID, "must be an array of one rule");
	if (json_read(&r->arena, &m->value.items[0], &rule_schema, &b, false, e) < 0)
		return -1;
	*ret = (struct transform){ m->key, b.transform.headers };
	if (!view_is(m->key, "*") && m->key.n && !is_net(m->key))
		return 0;
	return err_set(e, ERR_INVALID, "must be for a host by its name");
}

/* The first that fits decides: exact names, then the longest. */
static int by_reach(const void *a, const void *b)
{
	struct view x = ((const struct transform *)a)->host, y = ((const struct transform *)b)->host;
	bool wide_x = view_starts(x, "*"), wide_y = view_starts(y, "*");

	return wide_x != wide_y ? wide_x - wide_y : (x.n < y.n) - (x.n > y.n);
}

static int read_transforms(struct request *r, const struct e2b_network *n, bool closed,
			   struct transform **ret, size_t *ret_n, struct err *e)
{
	const struct json *j = n->rules;

	*ret = NULL;
	*ret_n = 0;
	if (!e2b_network_says(j))
		return 0;
	if (j->type != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "network.rules: must be an object");
	struct transform *all = arena_array(&r->arena, j->n, sizeof(*all));
	if (!all)
		return err_set(e, ERR_TOO_LARGE, "network.rules: there are too many");
	for (size_t i = 0; i < j->n; i++) {
		struct view host = j->members[i].key;
		if (read_transform(r, &j->members[i], &all[i], e) < 0)
			return err_wrap(e, "network.rules[\"%.*s\"]", VIEW_ARG(view_head(host, 100)));
		if (!is_open(n, closed, host))
			return err_set(e, ERR_INVALID,
				       "network.rules[\"%.*s\"]: the host must be in allowOut where "
				       "something is closed",
				       VIEW_ARG(view_head(host, 100)));
	}
	qsort(all, j->n, sizeof(*all), by_reach);
	*ret = all;
	*ret_n = j->n;
	return 0;
}

static int take_transform(struct request *r, const struct transform *t, size_t i_rule,
			  struct egress_rule *ret, struct err *e)
{
	if (take_rule(&r->arena, EGRESS_ALLOW, t->host, ret, e) < 0)
		return err_wrap(e, "rules[%zu]", i_rule);
	ret->inject = arena_array(&r->arena, t->headers.n, sizeof(*ret->inject));
	if (!ret->inject)
		return no_memory(e);
	for (size_t i = 0; i < t->headers.n; i++) {
		struct view prefix, name, value = t->headers.values[i];
		bool plain = !memmem(value.p, value.n, "${e2b.", 6);
		if (!plain && !split_value(value, &prefix, &name))
			return err_set(e, ERR_UNSUPPORTED,
				       "network.rules: a header's value must be text, or text and then one "
				       "${e2b.secrets.NAME}");
		ret->inject[ret->n_inject++] =
			(struct egress_inject){ .secret =
							plain ? VIEW("") : e2b_secrets_name(&r->arena, name),
						.header = t->headers.keys[i],
						.prefix = plain ? value : prefix };
	}
	return egress_check_inject(ret, e) < 0 ? err_wrap(e, "rules[%zu]", i_rule) : 0;
}

static int take_policy(struct request *r, const struct e2b_network *n, bool closed, struct egress_policy *ret,
		       struct err *e)
{
	struct egress_policy p = { .otherwise = closed ? EGRESS_DENY : EGRESS_ALLOW };
	size_t n_deny = closed ? 0 : n->deny_out.n, n_transforms;
	struct transform *transforms;

	if (read_transforms(r, n, closed, &transforms, &n_transforms, e) < 0)
		return -1;
	p.rules = arena_array(&r->arena, n_transforms + n->allow_out.n + n_deny, sizeof(*p.rules));
	if (!p.rules)
		return no_memory(e);
	for (size_t i = 0; i < n_transforms; i++) {
		if (!transforms[i].headers.n)
			continue;
		if (take_transform(r, &transforms[i], p.n_rules, &p.rules[p.n_rules], e) < 0)
			return -1;
		p.n_rules++;
	}
	for (size_t i = 0; i < n->allow_out.n; i++)
		if (take_rule(&r->arena, EGRESS_ALLOW, n->allow_out.items[i], &p.rules[p.n_rules++], e) < 0)
			return err_wrap(e, "rules[%zu]", p.n_rules - 1);
	for (size_t i = 0; i < n_deny; i++)
		if (take_rule(&r->arena, EGRESS_DENY, n->deny_out.items[i], &p.rules[p.n_rules++], e) < 0)
			return err_wrap(e, "rules[%zu]", p.n_rules - 1);
	if (p.n_rules > EGRESS_RULES_MAX)
		return err_set(e, ERR_INVALID, "rules: must have at most %d rules", EGRESS_RULES_MAX);
	*ret = p;
	return 0;
}

int e2b_network_policy(struct request *r, const struct e2b_network *n, const struct egress_policy **ret,
		       struct err *e)
{
	bool closed = n->has_internet && !n->internet;

	if (e2b_network_says(n->proxy))
		return err_set(e, ERR_UNSUPPORTED, "network.egressProxy is not supported");
	for (size_t i = 0; i < n->deny_out.n; i++) {
		if (!is_net(n->deny_out.items[i]))
			return err_set(e, ERR_INVALID,
				       "network.denyOut must have addresses and networks only");
		closed = closed || is_everything(n->deny_out.items[i]);
	}
	*ret = NULL;
	if (!closed && !n->allow_out.n && !n->deny_out.n && !e2b_network_says(n->rules))
		return 0;
	struct egress_policy *p = arena_array(&r->arena, 1, sizeof(*p));
	if (!p)
		return no_memory(e);
	*ret = p;
	return take_policy(r, n, closed, p, e);
}

/* ---- showing ---- */

static void put_target(struct json_out *o, const struct egress_rule *rule)
{
	struct buf net = BUF_INIT(128);

	if (rule->host.n)
		json_out_str(o, rule->host);
	else if (egress_put_net(&net, &rule->net) >= 0)
		json_out_str(o, buf_view(&net));
	buf_done(&net);
}

static void put_targets(struct json_out *o, const char *key, const struct egress_policy *p,
			enum egress_verdict v)
{
	json_out_key(o, key);
	json_out_array(o);
	for (size_t i = 0; i < p->n_rules; i++)
		if (p->rules[i].verdict == v && !p->rules[i].set.n && !p->rules[i].n_inject)
			put_target(o, &p->rules[i]);
	if (v == EGRESS_DENY && p->otherwise != EGRESS_ALLOW)
		json_out_str(o, VIEW(EVERYTHING));
	json_out_end(o, ']');
}

static void put_header(struct json_out *o, const struct egress_inject *in)
{
	struct buf value = BUF_INIT(1024);

	if (!in->header.n)
		return;
	buf_add(&value, in->prefix);
	if (in->secret.n) {
		buf_puts(&value, SECRET_BEGIN);
		buf_add(&value, in->secret);
		buf_putc(&value, '}');
	}
	json_out_key_view(o, in->header);
	json_out_str(o, buf_view(&value));
	buf_done(&value);
}

static void put_rules(struct json_out *o, const struct egress_policy *p)
{
	json_out_key(o, "rules");
	json_out_object(o);
	for (size_t i = 0; i < p->n_rules; i++) {
		const struct egress_rule *rule = &p->rules[i];
		if (!rule->n_inject)
			continue;
		json_out_key_view(o, rule->host);
		json_out_array(o);
		json_out_object(o);
		json_out_key(o, "transform");
		json_out_object(o);
		json_out_key(o, "headers");
		json_out_object(o);
		for (size_t k = 0; k < rule->n_inject; k++)
			put_header(o, &rule->inject[k]);
		json_out_end(o, '}');
		json_out_end(o, '}');
		json_out_end(o, '}');
		json_out_end(o, ']');
	}
	json_out_end(o, '}');
}

void e2b_network_put(struct json_out *o, const struct box *b)
{
	enum policy_source from;
	const struct egress_policy *p = policies_of(b, &from);

	json_out_key(o, "network");
	json_out_object(o);
	json_out_kbool(o, "allowPublicTraffic", b->spec.ports_public);
	if (b->spec.mask_host.n)
		json_out_kstr(o, "maskRequestHost", b->spec.mask_host);
	if (p && from == POLICY_BOX) {
		put_targets(o, "allowOut", p, EGRESS_ALLOW);
		put_targets(o, "denyOut", p, EGRESS_DENY);
		if (egress_injects(p))
			put_rules(o, p);
	}
	json_out_end(o, '}');
}

/* ---- replacing ---- */

#define AT(f) .offset = offsetof(struct e2b_network, f), .nullable = true
static const struct json_field fields[] = {
	{ "allowOut", JSON_F_STRLIST, AT(allow_out) },
	{ "denyOut", JSON_F_STRLIST, AT(deny_out) },
	{ "rules", JSON_F_ANY, AT(rules) },
	{ "egressProxy", JSON_F_ANY, AT(proxy) },
	{ "allow_internet_access", JSON_F_BOOL, AT(internet),
	  .has = offsetof(struct e2b_network, has_internet) },
};
#undef AT
static const struct json_schema schema = { fields, ELEMS(fields) };

static void replace(struct request *r)
{
	struct e2b_network n = { 0 };
	const struct egress_policy *policy;
	struct err e = { 0 };

	if (e2b_read(r, &schema, &n) < 0)
		return;
	if (e2b_network_policy(r, &n, &policy, &e) >= 0)
		r->job = policies_put(r->core, &r->actor, r->params[0], policy, true, answer_removed, r, &e);
	if (!r->job)
		answer_fail(r, &e);
}

const struct route e2b_network_routes[] = {
	{ "PUT", "/sandboxes/{id}/network", replace, .body = ROUTE_JSON, .audit = "policy.set" },
	{ 0 },
};
