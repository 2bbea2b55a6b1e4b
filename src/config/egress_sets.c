/*
 * Writing policies, and replacing the names of sets by their members: see egress.h.
 */
#include "egress.h"
#include "egress_impl.h"

#include "poison.h"

/* ---- writing ---- */

static void put_list(struct json_out *o, const char *key, const struct json_strlist *l)
{
	if (!l->n)
		return;
	json_out_key(o, key);
	json_out_array(o);
	for (size_t i = 0; i < l->n; i++)
		json_out_str(o, l->items[i]);
	json_out_end(o, ']');
}

static void put_ports(struct json_out *o, const struct egress_rule *r)
{
	if (!r->n_ports)
		return;
	json_out_key(o, "ports");
	json_out_array(o);
	for (size_t i = 0; i < r->n_ports; i++) {
		const struct egress_ports *p = &r->ports[i];
		struct buf b = BUF_INIT(32);

		if (p->first == p->last) {
			json_out_u64(o, p->first);
		} else {
			buf_printf(&b, "%u-%u", p->first, p->last);
			json_out_str(o, buf_view(&b));
		}
		buf_done(&b);
	}
	json_out_end(o, ']');
}

void egress_put_rule(struct json_out *o, const struct egress_rule *r)
{
	struct buf net = BUF_INIT(64);

	json_out_object(o);
	json_out_kz(o, "action", egress_verdict_name(r->verdict));
	if (r->set.n)
		json_out_kstr(o, "set", r->set);
	if (r->host.n)
		json_out_kstr(o, "host", r->host);
	if (r->net.family && egress_put_net(&net, &r->net) >= 0)
		json_out_kstr(o, "cidr", buf_view(&net));
	buf_done(&net);
	if (r->protocol)
		json_out_kz(o, "protocol", egress_protocol_name(r->protocol));
	put_ports(o, r);
	put_list(o, "methods", &r->methods);
	put_list(o, "paths", &r->paths);
	egress_put_inject(o, r);
	json_out_end(o, '}');
}

static void put_limits(struct json_out *o, const struct egress_limits *l)
{
	json_out_key(o, "limits");
	json_out_object(o);
	json_out_ku64(o, "connections", l->connections);
	json_out_ku64(o, "connections_per_second", l->connections_per_second);
	json_out_ku64(o, "bytes_per_second", l->bytes_per_second);
	json_out_ku64(o, "bytes", l->bytes);
	json_out_end(o, '}');
}

void egress_put(struct json_out *o, const struct egress_policy *p)
{
	json_out_object(o);
	json_out_kz(o, "default", egress_verdict_name(p->otherwise));
	json_out_key(o, "rules");
	json_out_array(o);
	for (size_t i = 0; i < p->n_rules; i++)
		egress_put_rule(o, &p->rules[i]);
	json_out_end(o, ']');
	put_limits(o, &p->limits);
	if (p->refuse_ech)
		json_out_kz(o, "ech", "refuse");
	json_out_end(o, '}');
}

int egress_write(const struct egress_policy *p, struct buf *out)
{
	struct json_out o;

	json_out_init(&o, out);
	egress_put(&o, p);
	return out->bad;
}

/* ---- comparing ---- */

static bool same_list(const struct json_strlist *a, const struct json_strlist *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!view_eq(a->items[i], b->items[i]))
			return false;
	return true;
}

static bool same_ports(const struct egress_rule *a, const struct egress_rule *b)
{
	if (a->n_ports != b->n_ports)
		return false;
	for (size_t i = 0; i < a->n_ports; i++)
		if (a->ports[i].first != b->ports[i].first || a->ports[i].last != b->ports[i].last)
			return false;
	return true;
}

static bool same_net(const struct egress_net *a, const struct egress_net *b)
{
	return a->family == b->family && a->prefix == b->prefix &&
	       memcmp(a->addr, b->addr, sizeof(a->addr)) == 0;
}

bool egress_rule_eq(const struct egress_rule *a, const struct egress_rule *b)
{
	return view_eq(a->set, b->set) && view_eq(a->host, b->host) && same_net(&a->net, &b->net) &&
	       a->protocol == b->protocol && same_ports(a, b) && same_list(&a->methods, &b->methods) &&
	       same_list(&a->paths, &b->paths) && egress_same_inject(a, b);
}

bool egress_asks_names(const struct egress_policy *p)
{
	for (size_t i = 0; i < p->n_rules; i++)
		if (p->rules[i].host.n || p->rules[i].set.n)
			return true;
	return false;
}

/* ---- sets ---- */

int egress_check_sets(struct arena *a, const struct json *sets, struct err *e)
{
	struct egress_rule r;

	if (!sets)
		return 0;
	if (sets->type != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "must be an object of lists, not %s",
			       json_type_name(sets->type));
	if (sets->n > EGRESS_SETS_MAX)
		return err_set(e, ERR_INVALID, "must have at most %d sets", EGRESS_SETS_MAX);
	for (size_t i = 0; i < sets->n; i++) {
		const struct json_member *m = &sets->members[i];

		if (!egress_is_set_name(m->key))
			return egress_bad(e, m->key, "is not the name of a set (a-z, 0-9, _ and -)");
		if (m->value.type != JSON_ARRAY || m->value.n > EGRESS_RULES_MAX)
			return egress_bad(e, m->key, "must be a list of at most 256 targets");
		for (size_t k = 0; k < m->value.n; k++) {
			const struct json *t = &m->value.items[k];

			if (t->type != JSON_STRING)
				return egress_bad(e, m->key, "must be a list of strings");
			if (egress_target(a, t->text, NULL, &r, e) < 0)
				return err_wrap(e, "%.*s", VIEW_ARG(m->key));
		}
	}
	return 0;
}

static const struct json *find_set(const struct json *sets, struct view name)
{
	for (size_t i = 0; sets && sets->type == JSON_OBJECT && i < sets->n; i++)
		if (view_eq(sets->members[i].key, name))
			return &sets->members[i].value;
	return NULL;
}

/* What the rule says of ports, protocol and requests holds beside what the member says of itself. */
static int add_member(struct arena *a, const struct egress_rule *rule, struct view target,
		      struct egress_policy *to, struct err *e)
{
	struct egress_rule m;

	if (egress_target(a, target, NULL, &m, e) < 0)
		return -1;
	m.verdict = rule->verdict;
	if (rule->n_ports && !m.n_ports) {
		m.ports = rule->ports;
		m.n_ports = rule->n_ports;
	}
	if (rule->protocol)
		m.protocol = rule->protocol;
	if (rule->paths.n)
		m.paths = rule->paths;
	m.methods = rule->methods;
	to->rules[to->n_rules++] = m;
	return 0;
}

int egress_flatten(struct arena *a, const struct egress_policy *p, const struct json *sets,
		   struct egress_policy *ret, struct err *e)
{
	struct egress_policy flat = { .otherwise = p->otherwise,
				      .limits = p->limits,
				      .refuse_ech = p->refuse_ech };
	size_t n = 0;

	for (size_t i = 0; i < p->n_rules; i++) {
		const struct json *set = p->rules[i].set.n ? find_set(sets, p->rules[i].set) : NULL;
		n += p->rules[i].set.n ? (set ? set->n : 0) : 1;
	}
	if (n > EGRESS_FLAT_MAX)
		return err_set(e, ERR_TOO_LARGE,
			       "the policy has %zu rules with its sets expanded, and at most %d are allowed",
			       n, EGRESS_FLAT_MAX);
	flat.rules = arena_array(a, n, sizeof(*flat.rules));
	if (!flat.rules)
		return err_set(e, ERR_TOO_LARGE, "the policy takes more memory than is allowed");
	for (size_t i = 0; i < p->n_rules; i++) {
		const struct egress_rule *r = &p->rules[i];
		const struct json *set = r->set.n ? find_set(sets, r->set) : NULL;

		if (!r->set.n)
			flat.rules[flat.n_rules++] = *r;
		for (size_t k = 0; set && k < set->n; k++)
			if (add_member(a, r, set->items[k].text, &flat, e) < 0)
				return err_wrap(e, "set %.*s", VIEW_ARG(r->set));
	}
	*ret = flat;
	return 0;
}
