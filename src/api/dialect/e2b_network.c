/*
 * E2B: what a box may reach, as a policy of ours. What E2B allows comes before what
 * it denies; what neither names is reached where the internet is allowed.
 */
#include "e2b_network.h"

#include "policies.h"
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

static void put_rule(struct json_out *o, const char *action, struct view target)
{
	json_out_object(o);
	json_out_kz(o, "action", action);
	json_out_kstr(o, is_net(target) ? "cidr" : "host", target);
	json_out_end(o, '}');
}

static void put_policy(struct json_out *o, const struct e2b_network *n, bool closed)
{
	json_out_object(o);
	json_out_kz(o, "default", closed ? "deny" : "allow");
	json_out_key(o, "rules");
	json_out_array(o);
	for (size_t i = 0; i < n->allow_out.n; i++)
		put_rule(o, "allow", n->allow_out.items[i]);
	for (size_t i = 0; i < n->deny_out.n && !closed; i++)
		put_rule(o, "deny", n->deny_out.items[i]);
	json_out_end(o, ']');
	json_out_end(o, '}');
}

int e2b_network_policy(struct req *r, const struct e2b_network *n, const struct json **ret, struct err *e)
{
	struct buf text = BUF_INIT(EGRESS_TEXT_MAX);
	bool closed = n->has_internet && !n->internet;
	struct json_out o;
	struct json *doc = NULL;
	int bad = 0;

	if (e2b_network_says(n->rules))
		return err_set(e, ERR_UNSUPPORTED, "network.rules is not supported");
	if (e2b_network_says(n->proxy))
		return err_set(e, ERR_UNSUPPORTED, "network.egressProxy is not supported");
	for (size_t i = 0; i < n->deny_out.n; i++) {
		if (!is_net(n->deny_out.items[i]))
			return err_set(e, ERR_INVALID,
				       "network.denyOut must have addresses and networks only");
		closed = closed || is_everything(n->deny_out.items[i]);
	}
	*ret = NULL;
	if (!closed && !n->allow_out.n && !n->deny_out.n)
		return 0;
	json_out_init(&o, &text);
	put_policy(&o, n, closed);
	if (text.bad)
		bad = err_set(e, ERR_TOO_LARGE, "network is too large");
	else
		bad = json_parse(&r->arena, buf_view(&text), &doc, e);
	buf_done(&text);
	*ret = doc;
	return bad < 0 ? -1 : 0;
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
		if (p->rules[i].verdict == v && !p->rules[i].set.n)
			put_target(o, &p->rules[i]);
	if (v == EGRESS_DENY && p->otherwise != EGRESS_ALLOW)
		json_out_str(o, VIEW(EVERYTHING));
	json_out_end(o, ']');
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

static void replace(struct req *r)
{
	struct e2b_network n = { 0 };
	const struct json *doc;
	struct err e = { 0 };

	if (e2b_read(r, &schema, &n) < 0)
		return;
	if (e2b_network_policy(r, &n, &doc, &e) >= 0)
		r->job = policies_put(r->core, &r->actor, r->params[0], doc, true, e2b_done_204, r, &e);
	if (!r->job)
		rest_fail(r, &e);
}

const struct route e2b_network_routes[] = {
	{ "PUT", "/sandboxes/{id}/network", replace, .body = REST_JSON },
	{ 0 },
};
