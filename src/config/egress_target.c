/*
 * Hosts, networks, ports and the short form of a rule: see egress.h.
 */
#include <arpa/inet.h>
#include <errno.h>

#include "addr.h"
#include "egress.h"
#include "egress_impl.h"
#include "num.h"
#include "text.h"

#include "poison.h"

#define SHOWN 60

/* Text from outside in a message. */
int egress_bad(struct err *e, struct view v, const char *what)
{
	struct buf b = BUF_INIT(512);

	text_quote(&b, v, SHOWN);
	err_set(e, ERR_INVALID, "%.*s %s", VIEW_ARG(buf_view(&b)), what);
	buf_done(&b);
	return -1;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_label_char(char c)
{
	return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

bool egress_is_set_name(struct view v)
{
	if (v.n < 1 || v.n > 40 || v.p[0] == '-' || v.p[0] == '_')
		return false;
	for (size_t i = 0; i < v.n; i++)
		if (!is_label_char(v.p[i]))
			return false;
	return true;
}

/* ---- hosts ---- */

static bool is_label(struct view v)
{
	if (v.n < 1 || v.n > 63 || v.p[0] == '-' || v.p[v.n - 1] == '-')
		return false;
	for (size_t i = 0; i < v.n; i++)
		if (!is_label_char(v.p[i]))
			return false;
	return true;
}

/* Resolvers take "127.1", "0x7f.1" and "2130706433" for addresses: no name ends like that. */
static bool looks_numeric(struct view label)
{
	size_t digits = 0;

	while (digits < label.n && is_digit(label.p[digits]))
		digits++;
	return digits == label.n || (label.n > 1 && label.p[0] == '0' && label.p[1] == 'x');
}

static bool is_name(struct view v)
{
	struct view label = VIEW_NONE;

	if (v.n < 1 || v.n > EGRESS_HOST_MAX)
		return false;
	while (v.p) {
		label = view_split(v, '.', &v);
		if (!is_label(label))
			return false;
	}
	return !looks_numeric(label);
}

static struct view lower(struct arena *a, struct view v)
{
	char *p = arena_str(a, v);

	for (size_t i = 0; p && i < v.n; i++)
		if (p[i] >= 'A' && p[i] <= 'Z')
			p[i] = (char)(p[i] - 'A' + 'a');
	return (struct view){ p, p ? v.n : 0 };
}

int egress_host(struct arena *a, struct view text, struct view *ret, struct err *e)
{
	struct view v = lower(a, text), name;

	if (!v.p)
		return err_set(e, ERR_TOO_LARGE, "the policy takes more memory than is allowed");
	if (v.n > 1 && v.p[v.n - 1] == '.') /* absolute, as all of them are */
		v.n--;
	name = view_starts(v, "*.") ? view_skip(v, 2) : v;
	if (!view_is(v, "*") && !is_name(name))
		return egress_bad(e, text, "is not a host: a name such as a.example, *.example or *");
	*ret = v;
	return 0;
}

/* ---- networks ---- */

static bool has_host_bits(const uint8_t *addr, size_t size, unsigned prefix)
{
	for (unsigned bit = prefix; bit < size * 8; bit++)
		if (addr[bit / 8] & (0x80u >> bit % 8))
			return true;
	return false;
}

/* IPv4 in the clothes of IPv6 is written as IPv4: one address has one form. */
static bool hides_v4(const uint8_t a[16], unsigned prefix)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff }, nat64[12] = { 0, 0x64, 0xff, 0x9b };

	return prefix >= 16 && ((a[0] == 0x20 && a[1] == 0x02) ||
				(prefix >= 96 && (memcmp(a, mapped, 12) == 0 || memcmp(a, nat64, 12) == 0)));
}

int egress_net(struct view text, struct egress_net *ret, struct err *e)
{
	struct view bits, addr = view_split(text, '/', &bits);
	struct egress_net n = { 0 };
	uint32_t prefix = 0;
	char host[64];

	if (addr.n > 2 && addr.p[0] == '[' && addr.p[addr.n - 1] == ']')
		addr = (struct view){ addr.p + 1, addr.n - 2 };
	if (view_to_str(addr, host, sizeof(host)) < 0)
		return egress_bad(e, text, "is not a network such as 10.0.0.0/8");
	if (inet_pton(AF_INET, host, n.addr) == 1)
		n.family = 4;
	else if (inet_pton(AF_INET6, host, n.addr) == 1)
		n.family = 6;
	else
		return egress_bad(e, text, "is not a network such as 10.0.0.0/8");
	size_t size = n.family == 4 ? 4 : 16;
	prefix = (uint32_t)size * 8;
	if (bits.p && (num_u32(bits, &prefix) < 0 || prefix > size * 8))
		return egress_bad(e, text, "has a prefix that no network has");
	if (has_host_bits(n.addr, size, prefix))
		return egress_bad(e, text, "has bits behind its prefix");
	if (n.family == 6 && hides_v4(n.addr, prefix))
		return egress_bad(e, text, "is IPv4 within IPv6: name the IPv4 network");
	n.prefix = (uint8_t)prefix;
	*ret = n;
	return 0;
}

int egress_put_net(struct buf *out, const struct egress_net *n)
{
	char text[INET6_ADDRSTRLEN];

	if (!inet_ntop(n->family == 4 ? AF_INET : AF_INET6, n->addr, text, sizeof(text)))
		return -EINVAL;
	return buf_printf(out, "%s/%u", text, n->prefix);
}

static bool is_public(const struct egress_net *n, bool last)
{
	size_t skip = n->family == 4 ? 12 : 0;
	struct addr a = { .b = { [10] = 0xff, 0xff } };

	memcpy(a.b + skip, n->addr, sizeof(a.b) - skip);
	for (size_t bit = n->prefix + skip * 8; last && bit < sizeof(a.b) * 8; bit++)
		a.b[bit / 8] = (uint8_t)(a.b[bit / 8] | 0x80u >> bit % 8);
	return !addr_special(&a);
}

/* Shorter prefixes span much else: they name nothing. */
bool egress_rule_is_private(const struct egress_rule *r)
{
	const struct egress_net *n = &r->net;

	return n->family && n->prefix >= 3 && !is_public(n, false) && !is_public(n, true);
}

/* ---- ports ---- */

int egress_port_range(struct view text, struct egress_ports *ret, struct err *e)
{
	struct view rest, first = view_split(text, '-', &rest);
	uint32_t from = 0, to = 0;

	if (num_u32(first, &from) < 0 || (rest.p && num_u32(rest, &to) < 0))
		return egress_bad(e, text, "is not a port, or a range such as 8000-8100");
	if (!rest.p)
		to = from;
	if (from < 1 || to > UINT16_MAX || from > to)
		return egress_bad(e, text, "is not a port: they are 1 to 65535");
	*ret = (struct egress_ports){ (uint16_t)from, (uint16_t)to };
	return 0;
}

/* ---- the short form ---- */

static int set_port(struct arena *a, struct egress_rule *r, uint16_t port, struct err *e)
{
	r->ports = arena_array(a, 1, sizeof(*r->ports));
	if (!r->ports)
		return err_set(e, ERR_TOO_LARGE, "the policy takes more memory than is allowed");
	r->ports[0] = (struct egress_ports){ port, port };
	r->n_ports = 1;
	return 0;
}

/* Takes ":PORT" off the end of what is not an address by itself. */
static int take_port(struct arena *a, struct view *text, struct egress_rule *r, struct err *e)
{
	size_t colon = text->n;
	bool brackets = text->n && text->p[0] == '[';
	size_t colons = 0;

	for (size_t i = 0; i < text->n; i++)
		colons += text->p[i] == ':';
	while (colon > 0 && text->p[colon - 1] != ':' && text->p[colon - 1] != ']')
		colon--;
	if (colon == 0 || text->p[colon - 1] != ':' || (colons > 1 && !brackets))
		return 0;
	if (set_port(a, r, 0, e) < 0 || egress_port_range(view_skip(*text, colon), r->ports, e) < 0)
		return -1;
	*text = view_head(*text, colon - 1);
	return 0;
}

static int set_path(struct arena *a, struct egress_rule *r, struct view path, struct err *e)
{
	if (path.n > 2 && view_is(view_skip(path, path.n - 2), "/*")) /* as people write it */
		path.n -= 2;
	r->paths.items = arena_array(a, 1, sizeof(*r->paths.items));
	if (!r->paths.items)
		return err_set(e, ERR_TOO_LARGE, "the policy takes more memory than is allowed");
	r->paths.items[0] = path;
	r->paths.n = 1;
	return egress_check_path(path, e);
}

static const struct {
	const char *prefix;
	enum egress_protocol protocol;
	uint16_t port; /* where none is given */
	bool path;
} schemes[] = {
	{ "tcp://", EGRESS_TCP, 0, false },
	{ "tls://", EGRESS_TLS, 0, false },
	{ "http://", EGRESS_HTTP, 80, true },
	{ "https://", EGRESS_TLS, 443, true },
};

/* "https://", and behind the authority a path; *text is what is between them. */
static int take_scheme(struct arena *a, struct view *text, struct egress_rule *r, uint16_t *ret_port,
		       struct err *e)
{
	for (size_t i = 0; i < ELEMS(schemes); i++) {
		if (!view_starts(*text, schemes[i].prefix))
			continue;
		struct view path, all = view_skip(*text, strlen(schemes[i].prefix));
		r->protocol = schemes[i].protocol;
		*ret_port = schemes[i].port;
		*text = all;
		if (!schemes[i].path)
			return 0;
		*text = view_split(all, '/', &path);
		return path.n ? set_path(a, r, (struct view){ path.p - 1, path.n + 1 }, e) : 0;
	}
	return 0;
}

static bool looks_like_net(struct view v)
{
	struct view bits, addr = view_split(v, '/', &bits), label = VIEW_NONE;
	struct view rest = addr;

	if (bits.p || (v.n && v.p[0] == '[') || memchr(v.p, ':', v.n))
		return true;
	while (rest.p)
		label = view_split(rest, '.', &rest);
	return label.n && looks_numeric(label) && addr.n != label.n;
}

int egress_target(struct arena *a, struct view given, const struct json *sets, struct egress_rule *ret,
		  struct err *e)
{
	struct egress_rule r = { 0 };
	struct view text = given;
	uint16_t port = 0;
	char name[64];

	if (given.n < 1 || given.n > EGRESS_TARGET_MAX)
		return err_set(e, ERR_INVALID, "a target must have 1 to %d bytes", EGRESS_TARGET_MAX);
	if (take_scheme(a, &text, &r, &port, e) < 0 || take_port(a, &text, &r, e) < 0 ||
	    (port && !r.n_ports && set_port(a, &r, port, e) < 0))
		return -1;
	if (text.n && looks_like_net(text)) {
		if (egress_net(text, &r.net, e) < 0)
			return -1;
	} else if (!memchr(text.p ? text.p : "", '.', text.n) && !view_is(text, "*")) {
		/* A word is a set. A host without a dot has the long form. */
		if (view_to_str(text, name, sizeof(name)) < 0 || !json_get(sets, name))
			return egress_bad(e, given,
					  "is neither a set that there is nor a host, network or URL");
		if (r.protocol || r.n_ports)
			return egress_bad(e, given, "is a set, which has neither scheme nor port");
		r.set = text;
	} else if (egress_host(a, text, &r.host, e) < 0) {
		return -1;
	}
	*ret = r;
	return 0;
}
