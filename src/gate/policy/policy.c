/*
 * Rules and their matching: see policy.h.
 */
#include "policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host_match.h"
#include "wire_gen.h"
#include "poison.h"

#define ARENA_MOST (1u << 20)
#define RULES_MOST 1024
#define LIST_MOST  4096

/* ---- names and paths ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool label_ok(struct view l)
{
	if (l.n < 1 || l.n > 63 || l.p[0] == '-' || l.p[l.n - 1] == '-')
		return false;
	for (size_t i = 0; i < l.n; i++)
		if (!is_digit(l.p[i]) && !(l.p[i] >= 'a' && l.p[i] <= 'z') && l.p[i] != '-' && l.p[i] != '_')
			return false;
	return true;
}

/* "1", "0x7f": what inet_aton and its kin take for (a part of) an address. */
static bool is_number(struct view l)
{
	if (l.n >= 2 && l.p[0] == '0' && l.p[1] == 'x')
		return true;
	for (size_t i = 0; i < l.n; i++)
		if (!is_digit(l.p[i]))
			return false;
	return true;
}

int policy_name(struct view name, char dst[256])
{
	struct view rest, label = VIEW_NONE;

	if (name.n && name.p[name.n - 1] == '.')
		name.n--;
	if (name.n < 1 || name.n > 253)
		return -EINVAL;
	for (size_t i = 0; i < name.n; i++)
		dst[i] = name.p[i] >= 'A' && name.p[i] <= 'Z' ? (char)(name.p[i] + 32) : name.p[i];
	dst[name.n] = 0;
	for (rest = (struct view){ dst, name.n }; rest.p;) {
		label = view_split(rest, '.', &rest);
		if (!label_ok(label))
			return -EINVAL;
	}
	return is_number(label) ? -EINVAL : 0;
}

static bool escape_is(struct view v, const char *hex)
{
	return v.n >= 3 && v.p[1] == hex[0] && (v.p[2] | 32) == hex[1];
}

bool policy_path_plain(struct view path)
{
	for (size_t i = 0; i < path.n; i++) {
		struct view at = view_skip(path, i);
		if (at.p[0] == '\\' || at.p[0] == ';')
			return false;
		if (at.p[0] == '%' && (escape_is(at, "2e") || escape_is(at, "2f") || escape_is(at, "5c") ||
				       escape_is(at, "25") || escape_is(at, "00")))
			return false;
		if (at.p[0] != '/')
			continue;
		if (view_starts(at, "//") || view_starts(at, "/./") || view_starts(at, "/../") ||
		    view_is(at, "/.") || view_is(at, "/.."))
			return false;
	}
	return true;
}

static bool path_below(struct view prefix, struct view path)
{
	if (path.n < prefix.n || memcmp(path.p, prefix.p, prefix.n) != 0)
		return false;
	return path.n == prefix.n || prefix.p[prefix.n - 1] == '/' || path.p[prefix.n] == '/';
}

static int hex_digit(char c)
{
	return is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* The next byte as some server may read it: unescaped, in lower case. */
static int next_byte(struct view *v)
{
	int c = (uint8_t)v->p[0], high = -1, low = -1;

	if (c == '%' && v->n >= 3) {
		high = hex_digit(v->p[1]);
		low = hex_digit(v->p[2]);
	}
	bool escape = high >= 0 && low >= 0;
	*v = view_skip(*v, escape ? 3 : 1);
	c = escape ? high << 4 | low : c;
	return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

/* For rules that deny: "/%61dmin" and "/Admin" are "/admin" to many. */
static bool path_may_be_below(struct view prefix, struct view path)
{
	int last = 0;

	while (prefix.n) {
		last = next_byte(&prefix);
		if (!path.n || next_byte(&path) != last)
			return false;
	}
	return !path.n || last == '/' || path.p[0] == '/';
}

/* ---- reading ---- */

static int copy_views(struct arena *a, const struct view *from, size_t n, struct view **ret)
{
	*ret = arena_array(a, n, sizeof(**ret));
	for (size_t i = 0; *ret && i < n; i++) {
		(*ret)[i] = arena_view(a, from[i]);
		if (!(*ret)[i].p)
			return -ENOMEM;
	}
	return *ret ? 0 : -ENOMEM;
}

static int read_domains(struct policy_rule *r, struct err *e)
{
	for (size_t i = 0; i < r->n_domains; i++) {
		struct view d = r->domains[i];
		char name[256];
		if (view_is(d, "*"))
			continue;
		struct view bare = view_starts(d, "*.") ? view_skip(d, 2) : d;
		if (policy_name(bare, name) < 0 || strlen(name) != bare.n)
			return err_set(e, ERR_INVALID, "rule %.40s: not a domain: %.*s", r->id,
				       (int)MIN(d.n, 64), d.p);
		memcpy((char *)(uintptr_t)bare.p, name, bare.n);
	}
	return 0;
}

static int read_ranges(struct arena *a, const struct wire_gate_rule *m, struct policy_rule *r, struct err *e)
{
	r->cidrs = arena_array(a, m->cidrs.n, sizeof(*r->cidrs));
	r->ports = arena_array(a, m->ports.n, sizeof(*r->ports));
	if (!r->cidrs || !r->ports)
		return err_sys(e, ERR_TOO_LARGE, ENOMEM, "policy");
	for (; r->n_cidrs < m->cidrs.n; r->n_cidrs++) {
		struct view c = m->cidrs.items[r->n_cidrs];
		if (addr_net_parse(c, &r->cidrs[r->n_cidrs]) < 0)
			return err_set(e, ERR_INVALID, "rule %.40s: not an address range: %.*s", r->id,
				       (int)MIN(c.n, 64), c.p);
	}
	for (; r->n_ports < m->ports.n; r->n_ports++) {
		uint32_t first = m->ports.items[r->n_ports].first, last = m->ports.items[r->n_ports].last;
		if (!last)
			last = first;
		if (first < 1 || last < first || last > 65535)
			return err_set(e, ERR_INVALID, "rule %.40s: not a range of ports: %u-%u", r->id,
				       first, last);
		r->ports[r->n_ports].first = (uint16_t)first;
		r->ports[r->n_ports].last = (uint16_t)last;
	}
	return 0;
}

static int read_rule(struct arena *a, const struct wire_gate_rule *m, struct policy_rule *r, struct err *e)
{
	if (view_to_str(m->id, r->id, sizeof(r->id)) < 0)
		return err_set(e, ERR_INVALID, "the id of a rule is too long");
	if (m->action != WIRE_GATE_ACTION_ALLOW && m->action != WIRE_GATE_ACTION_DENY)
		return err_set(e, ERR_INVALID, "rule %.40s: it must allow or deny", r->id);
	if (m->protocol < WIRE_GATE_PROTOCOL_ANY || m->protocol > WIRE_GATE_PROTOCOL_HTTP)
		return err_set(e, ERR_INVALID, "rule %.40s: not a protocol", r->id);
	if (MAX(MAX(m->domains.n, m->cidrs.n), MAX(m->ports.n, MAX(m->methods.n, m->paths.n))) > LIST_MOST)
		return err_set(e, ERR_TOO_LARGE, "rule %.40s: a list is too long", r->id);
	r->allow = m->action == WIRE_GATE_ACTION_ALLOW;
	r->protocol = (uint8_t)m->protocol; /* the same numbers */
	r->looks_inside = m->methods.n || m->paths.n;
	if (r->looks_inside && r->protocol == POLICY_TCP)
		return err_set(e, ERR_INVALID, "rule %.40s: methods and paths are of HTTP", r->id);
	if (copy_views(a, m->domains.items, m->domains.n, &r->domains) < 0 ||
	    copy_views(a, m->methods.items, m->methods.n, &r->methods) < 0 ||
	    copy_views(a, m->paths.items, m->paths.n, &r->paths) < 0)
		return err_sys(e, ERR_TOO_LARGE, ENOMEM, "policy");
	r->n_domains = m->domains.n;
	r->n_methods = m->methods.n;
	r->n_paths = m->paths.n;
	for (size_t i = 0; i < r->n_paths; i++)
		if (!view_starts(r->paths[i], "/") || !policy_path_plain(r->paths[i]))
			return err_set(e, ERR_INVALID,
				       "rule %.40s: a path must begin with / and have no dot segments",
				       r->id);
	return read_domains(r, e) < 0 ? -1 : read_ranges(a, m, r, e);
}

static bool is_token(const char *s)
{
	for (; *s; s++)
		if (!is_digit(*s) && !(*s >= 'a' && *s <= 'z') && *s != '-' && *s != '_')
			return false;
	return true;
}

static int read_inject(struct arena *a, const struct wire_gate_rule *m, struct policy_rule *r, struct err *e)
{
	if (!m->inject.n)
		return 0;
	if (!r->allow || !r->n_domains || m->inject.n > POLICY_INJECTS ||
	    (r->protocol && r->protocol < POLICY_TLS))
		return err_set(e, ERR_INVALID,
			       "rule %.40s: inject is for rules that allow domains, at most %d", r->id,
			       POLICY_INJECTS);
	for (size_t i = 0; i < r->n_domains; i++)
		if (view_is(r->domains[i], "*"))
			return err_set(e, ERR_INVALID, "rule %.40s: inject needs hosts that are named",
				       r->id);
	r->inject = arena_array(a, m->inject.n, sizeof(*r->inject));
	if (!r->inject)
		return err_sys(e, ERR_TOO_LARGE, ENOMEM, "policy");
	for (; r->n_inject < m->inject.n; r->n_inject++) {
		const struct wire_gate_inject *from = &m->inject.items[r->n_inject];
		struct policy_inject *to = &r->inject[r->n_inject];
		if ((!from->secret.n && (!from->header.n || !from->prefix.n)) ||
		    view_to_str(from->secret, to->secret, sizeof(to->secret)) < 0 ||
		    view_to_str(from->header, to->header, sizeof(to->header)) < 0 ||
		    view_to_str(from->prefix, to->prefix, sizeof(to->prefix)) < 0 ||
		    view_to_str(from->query, to->query, sizeof(to->query)) < 0)
			return err_set(e, ERR_INVALID, "rule %.40s: inject: a name is missing or too long",
				       r->id);
		to->placeholder = from->placeholder;
		for (char *p = to->header; *p; p++)
			*p = *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p;
		for (const char *p = to->prefix; *p; p++)
			if (*p < ' ' || *p == 0x7f)
				return err_set(e, ERR_INVALID, "rule %.40s: inject: prefix", r->id);
		bool framing = strcmp(to->header, "host") == 0 || strcmp(to->header, "content-length") == 0 ||
			       strcmp(to->header, "transfer-encoding") == 0 ||
			       strcmp(to->header, "connection") == 0 || strcmp(to->header, "upgrade") == 0;
		struct view q = view_of(to->query);
		for (size_t i = 0; i < q.n; i++)
			framing = framing || q.p[i] <= ' ' || q.p[i] >= 0x7f || strchr("&=#%+?", q.p[i]);
		if ((to->header[0] != 0) + (to->query[0] != 0) + to->placeholder != 1 ||
		    !is_token(to->header) || framing)
			return err_set(e, ERR_INVALID,
				       "rule %.40s: inject: exactly one of header, query and placeholder",
				       r->id);
	}
	return 0;
}

int policy_new(const struct wire_gate_policy *m, struct policy **ret, struct err *e)
{
	struct arena arena = ARENA_INIT(ARENA_MOST), *keep = malloc(sizeof(*keep));
	struct policy *p = arena_alloc(&arena, sizeof(*p));

	if (!keep || !p || m->rules.n > RULES_MOST) {
		err_set(e, ERR_TOO_LARGE, "a policy may have %d rules", RULES_MOST);
		goto fail;
	}
	p->version = m->version;
	p->max_flows = m->max_flows;
	p->connects_per_second = m->connects_per_second;
	p->bytes_per_second = m->bytes_per_second;
	p->max_bytes = m->max_bytes;
	p->token_key = arena_view(&arena, m->token_key);
	p->refuse_ech = m->refuse_ech;
	p->rules = arena_array(&arena, m->rules.n, sizeof(*p->rules));
	if (!p->rules || !p->token_key.p) {
		err_set(e, ERR_TOO_LARGE, "the policy takes too much memory");
		goto fail;
	}
	for (; p->n < m->rules.n; p->n++)
		if (read_rule(&arena, &m->rules.items[p->n], &p->rules[p->n], e) < 0 ||
		    read_inject(&arena, &m->rules.items[p->n], &p->rules[p->n], e) < 0)
			goto fail;
	*keep = arena;
	p->arena = keep;
	*ret = p;
	return 0;
fail:
	arena_done(&arena);
	free(keep);
	return -1;
}

void policy_free(struct policy *p)
{
	if (!p)
		return;
	struct arena *a = p->arena;
	arena_done(a);
	free(a);
}

/* ---- matching ---- */

/* The address is public, or one of the rule's ranges names its kind. */
static bool names_address(const struct policy_rule *r, const struct policy_facts *f)
{
	const struct addr_net *special = addr_special(f->addr);

	if (addr_never(f->addr))
		return false;
	if (!special && !f->own)
		return true;
	for (size_t i = 0; i < r->n_cidrs; i++) {
		if (!addr_net_has(&r->cidrs[i], f->addr))
			continue;
		if (r->cidrs[i].bits == 128 || (special && addr_net_within(&r->cidrs[i], special)))
			return true;
	}
	return false;
}

static bool match_domains(const struct policy_rule *r, const struct policy_facts *f)
{
	for (size_t i = 0; i < r->n_domains; i++)
		if (host_match(r->domains[i], f->name))
			return true;
	return r->n_domains == 0;
}

static bool match_cidrs(const struct policy_rule *r, const struct policy_facts *f)
{
	for (size_t i = 0; f->addr && i < r->n_cidrs; i++)
		if (addr_net_has(&r->cidrs[i], f->addr))
			return true;
	return r->n_cidrs == 0 || !f->addr;
}

static bool match_ports(const struct policy_rule *r, const struct policy_facts *f)
{
	for (size_t i = 0; i < r->n_ports; i++)
		if (f->port >= r->ports[i].first && f->port <= r->ports[i].last)
			return true;
	return r->n_ports == 0 || f->port == 0;
}

static bool match_inside(const struct policy_rule *r, const struct policy_facts *f)
{
	bool method = r->n_methods == 0, path = r->n_paths == 0;

	for (size_t i = 0; i < r->n_methods; i++)
		method = method || (r->allow ? view_eq(r->methods[i], f->method)
					     : view_eq_nocase(r->methods[i], f->method));
	for (size_t i = 0; i < r->n_paths; i++)
		path = path || (r->allow ? path_below(r->paths[i], f->path)
					 : path_may_be_below(r->paths[i], f->path));
	/* A path that two servers may read in two ways is below no prefix that allows, and below each that
	 * denies. */
	if (r->n_paths && !policy_path_plain(f->path))
		path = !r->allow;
	return method && path;
}

/* What is known fits. */
static bool match_known(const struct policy_rule *r, const struct policy_facts *f)
{
	if (!match_domains(r, f) || !match_cidrs(r, f) || !match_ports(r, f))
		return false;
	if (f->proto == 0 || r->protocol == 0 || r->protocol == POLICY_TCP)
		return true;
	if (f->opened && r->protocol == POLICY_TLS)
		return true;
	return r->protocol == f->proto || (r->n_inject && f->proto >= POLICY_TLS); /* HTTP within TLS */
}

static bool match(const struct policy_rule *r, const struct policy_facts *f)
{
	if (!match_known(r, f))
		return false;
	if (!r->looks_inside)
		return true;
	/* Where nobody can look inside, it may be what the rule denies, and is not known to be what it
	 * allows. */
	return f->proto == POLICY_HTTP ? match_inside(r, f) : !r->allow;
}

enum policy_answer policy_decide(const struct policy *p, const struct policy_facts *f,
				 const struct policy_rule **ret_rule)
{
	enum policy_answer no = POLICY_DENY;

	*ret_rule = NULL;
	for (size_t i = 0; i < p->n; i++) {
		const struct policy_rule *r = &p->rules[i];
		if (!match(r, f))
			continue;
		if (r->allow && !names_address(r, f)) {
			no = POLICY_DENY_ADDRESS;
			continue;
		}
		*ret_rule = r;
		return r->allow ? POLICY_ALLOW : POLICY_DENY_RULE;
	}
	return no;
}

/* It is about what is inside of TLS. */
static bool opens(const struct policy_rule *r)
{
	return r->n_inject || (r->looks_inside && r->protocol != POLICY_HTTP);
}

bool policy_intercepts(const struct policy *p, const struct policy_facts *f)
{
	bool decided = false; /* without a look: methods and paths of later rules do not matter */

	for (size_t i = 0; i < p->n && f->name.n; i++) {
		const struct policy_rule *r = &p->rules[i];
		if (!match_domains(r, f) || !match_cidrs(r, f) || !match_ports(r, f))
			continue;
		if (r->n_inject || (opens(r) && !decided))
			return true;
		decided = decided || (!r->looks_inside && r->protocol != POLICY_HTTP &&
				      (!r->allow || names_address(r, f)));
	}
	return false;
}

/* TLS to this address is allowed whatever name it is for. */
static bool any_name(const struct policy *p, const struct policy_facts *f)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct policy_rule *r = &p->rules[i];
		if ((r->looks_inside && r->allow) || r->protocol == POLICY_HTTP || !match_cidrs(r, f) ||
		    !match_ports(r, f))
			continue;
		if (!r->allow)
			return false; /* all names, or some of them, or something of them */
		if (!r->n_domains && names_address(r, f))
			return true;
	}
	return false;
}

bool policy_opens_ech(const struct policy *p, const struct policy_facts *f)
{
	return !p->refuse_ech && f->name.n && (policy_intercepts(p, f) || !any_name(p, f));
}

bool policy_may(const struct policy *p, const struct policy_facts *f)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct policy_rule *r = &p->rules[i];
		if (!match_known(r, f))
			continue;
		if (!r->allow) {
			/* It denies for certain only if nothing that is not known yet could save it. */
			if (!r->protocol && !r->looks_inside && (f->addr || !r->n_cidrs) &&
			    (f->port || !r->n_ports))
				return false;
			continue;
		}
		/* Names are not asked for on behalf of addresses: a question would carry the name out. */
		if ((!f->addr || f->port == 0) && r->n_domains == 0 && r->n_cidrs)
			continue;
		bool seen = f->proto == POLICY_TLS && f->name.n
				    ? opens(r)
				    : r->n_inject || f->proto == POLICY_HTTP || f->proto == 0;
		if (r->looks_inside && !seen)
			continue;
		if (!f->addr || names_address(r, f))
			return true;
	}
	return false;
}

bool policy_opaque(const struct policy *p, const struct policy_facts *f, enum policy_answer *ret,
		   const struct policy_rule **ret_rule)
{
	enum policy_answer no = POLICY_DENY;

	*ret_rule = NULL;
	for (size_t i = 0; i < p->n; i++) {
		const struct policy_rule *r = &p->rules[i];
		if (!match_cidrs(r, f) || !match_ports(r, f))
			continue;
		if (r->allow && !names_address(r, f) && r->n_domains == 0) {
			no = POLICY_DENY_ADDRESS;
			continue;
		}
		bool inside =
			r->protocol > POLICY_TCP || (r->protocol == 0 && r->n_domains) || r->looks_inside;
		if (inside)
			return false;
		if (!match_domains(r, f))
			continue;
		if (r->allow && !names_address(r, f)) {
			no = POLICY_DENY_ADDRESS;
			continue;
		}
		*ret_rule = r;
		*ret = r->allow ? POLICY_ALLOW : POLICY_DENY_RULE;
		return true;
	}
	*ret = no;
	return true;
}
