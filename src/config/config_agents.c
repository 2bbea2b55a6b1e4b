/*
 * The section "agents": images, chains and the URLs of their nodes. The manifests of agents name chains and
 * URLs in the same form, so the two are judged by the same functions.
 */
#include "config.h"

#include "config_key.h"
#include "num.h"
#include "poison.h"

#define URL_MOST 512
#define RPC_MOST 8

static bool all_of(struct view v, const char *extra)
{
	for (size_t i = 0; i < v.n; i++) {
		char c = v.p[i];
		bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
		if (!alnum && (!c || !strchr(extra, c)))
			return false;
	}
	return true;
}

/* The parts behind the scheme. */
static int read_url(struct view url, size_t scheme, bool tls, struct config_url *ret, struct err *e)
{
	struct config_url u = { .text = url, .port = tls ? 443 : 80, .tls = tls };
	struct view rest = view_skip(url, scheme), port = VIEW_NONE;
	uint32_t number;
	size_t n = 0;

	if (url.n > URL_MOST)
		return err_set(e, ERR_INVALID, "must have at most %d bytes", URL_MOST);
	while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?')
		n++;
	u.authority = view_head(rest, n);
	u.target = n < rest.n ? view_skip(rest, n) : VIEW("/");
	if (u.target.p[0] != '/')
		return err_set(e, ERR_INVALID, "must have a path before its query");
	u.host = view_split(u.authority, ':', &port);
	if (port.p) {
		if (num_u32(port, &number) < 0 || number < 1 || number > UINT16_MAX)
			return err_set(e, ERR_INVALID, "has no port between 1 and %d", UINT16_MAX);
		u.port = (uint16_t)number;
	}
	if (!u.host.n || u.host.n > 253 || !all_of(u.host, ".-"))
		return err_set(e, ERR_INVALID, "must name a host, without a user and a password");
	if (!all_of(u.target, "/?-._~!$&'()*+,;=:@%"))
		return err_set(e, ERR_INVALID, "has characters that must be escaped");
	*ret = u;
	return 0;
}

int config_url(struct view url, struct config_url *ret, struct err *e)
{
	bool tls = view_starts(url, "https://");

	if (!tls && !view_starts(url, "http://"))
		return err_set(e, ERR_INVALID, "must begin with https:// or http://");
	return read_url(url, tls ? 8 : 7, tls, ret, e);
}

/* The same for wss://, and for ws:// to this machine alone. */
static int config_ws_url(struct view url, struct config_url *ret, struct err *e)
{
	bool tls = view_starts(url, "wss://");
	struct config_url u;

	if (!tls && !view_starts(url, "ws://"))
		return err_set(e, ERR_INVALID, "must begin with wss:// or ws://");
	if (read_url(url, tls ? 6 : 5, tls, &u, e) < 0)
		return -1;
	if (!tls && !view_is(u.host, "127.0.0.1") && !view_is(u.host, "localhost"))
		return err_set(e, ERR_INVALID, "must begin with wss:// unless it is on this machine");
	*ret = u;
	return 0;
}

struct view config_chain_number(struct view id)
{
	struct view number = view_starts(id, "eip155:") ? view_skip(id, 7) : VIEW_NONE;
	uint64_t n;

	/* CAIP-2 allows 32 digits. The chain ids in use fit 64 bits. */
	return number.p && number.n && number.p[0] != '0' && num_u64(number, &n) >= 0 ? number : VIEW_NONE;
}

/* Of the chains that most people use. A chain that is not here has the symbol that its owner gives it, or
 * none. */
static struct view native_symbol(struct view number)
{
	static const struct {
		const char *chain, *symbol;
	} known[] = { { "1", "ETH" },     { "10", "ETH" },     { "56", "BNB" },      { "100", "xDAI" },
		      { "137", "POL" },   { "1337", "ETH" },   { "8453", "ETH" },    { "31337", "ETH" },
		      { "42161", "ETH" }, { "43114", "AVAX" }, { "11155111", "ETH" } };

	for (size_t i = 0; i < ELEMS(known); i++)
		if (view_is(number, known[i].chain))
			return view_of(known[i].symbol);
	return VIEW_NONE;
}

void config_chain_default(struct view id, struct config_chain *ret)
{
	struct view number = config_chain_number(id);
	bool dev = view_is(number, "31337") || view_is(number, "1337");

	*ret = (struct config_chain){ .id = id,
				      .symbol = native_symbol(number),
				      .confirmations = dev ? 1 : 12,
				      .poll_ms = dev ? 500 : 4000,
				      .stuck_blocks = 20,
				      .lost_s = 600 };
}

struct said_chain {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view name, symbol, explorer;
	struct json_strlist rpc;
	uint64_t confirmations, poll_ms, stuck_blocks, lost_s, max_fee_gwei;
};

static const struct json_field chain_fields[] = {
	{ "name", JSON_F_STRING, offsetof(struct said_chain, name), .max = 64 },
	{ "rpc", JSON_F_STRLIST, offsetof(struct said_chain, rpc), .min = 1, .max = RPC_MOST,
	  .required = true },
	{ "symbol", JSON_F_STRING, offsetof(struct said_chain, symbol), .min = 1, .max = 12 },
	{ "explorer", JSON_F_STRING, offsetof(struct said_chain, explorer), .min = 1, .max = URL_MOST },
	{ "confirmations", JSON_F_U64, offsetof(struct said_chain, confirmations), .min = 1, .max = 1000 },
	{ "poll_ms", JSON_F_U64, offsetof(struct said_chain, poll_ms), .min = 50, .max = 600000 },
	{ "stuck_blocks", JSON_F_U64, offsetof(struct said_chain, stuck_blocks), .min = 1, .max = 100000 },
	{ "lost_s", JSON_F_U64, offsetof(struct said_chain, lost_s), .min = 1, .max = 604800 },
	{ "max_fee_gwei", JSON_F_U64, offsetof(struct said_chain, max_fee_gwei), .min = 1,
	  .max = 1000000000 },
};
static const struct json_schema chain_schema = { chain_fields, ELEMS(chain_fields) };

/* People follow it from the dashboard. */
static int read_explorer(struct view url, struct view *ret, struct err *e)
{
	struct config_url u;

	if (!url.p)
		return 0;
	if (!view_starts(url, "https://"))
		return err_set(e, ERR_INVALID, "explorer: must begin with https://");
	if (config_url(url, &u, e) < 0)
		return err_wrap(e, "explorer");
	if (memchr(u.target.p, '?', u.target.n))
		return err_set(e, ERR_INVALID, "explorer: must have no query");
	while (url.p[url.n - 1] == '/')
		url.n--;
	*ret = url;
	return 0;
}

static int read_chain(struct arena *a, const struct json_member *from, struct config_chain *ret,
		      bool with_lines, struct err *e)
{
	struct said_chain s = { 0 };

	config_chain_default(from->key, ret);
	if (!config_chain_number(from->key).p)
		return err_set(e, ERR_INVALID, "the name of a chain must be such as \"eip155:1\"");
	s.confirmations = ret->confirmations;
	s.poll_ms = ret->poll_ms;
	s.stuck_blocks = ret->stuck_blocks;
	s.lost_s = ret->lost_s;
	if (json_read(a, &from->value, &chain_schema, &s, with_lines, e) < 0)
		return -1;
	/* It stands beside amounts, where nothing but a name may be. */
	if (s.symbol.p && !all_of(s.symbol, "."))
		return err_set(e, ERR_INVALID, "symbol: must be letters, digits and dots");
	if (s.symbol.p)
		ret->symbol = s.symbol;
	if (read_explorer(s.explorer, &ret->explorer, e) < 0)
		return -1;
	ret->name = s.name;
	ret->confirmations = (uint32_t)s.confirmations;
	ret->poll_ms = (uint32_t)s.poll_ms;
	ret->stuck_blocks = (uint32_t)s.stuck_blocks;
	ret->lost_s = (uint32_t)s.lost_s;
	ret->max_fee_gwei = s.max_fee_gwei;
	ret->rpc = arena_array(a, s.rpc.n, sizeof(*ret->rpc));
	if (!ret->rpc)
		return err_set(e, ERR_TOO_LARGE, "the configuration takes more memory than is allowed");
	for (; ret->n_rpc < s.rpc.n; ret->n_rpc++)
		if (config_url(s.rpc.items[ret->n_rpc], &ret->rpc[ret->n_rpc], e) < 0)
			return err_wrap(e, "rpc[%zu]", ret->n_rpc);
	return 0;
}

static int read_rpcs(const struct json *list, struct err *e)
{
	struct config_url u;

	if (list && list->type != JSON_ARRAY)
		return err_set(e, ERR_INVALID, "agents.rpcs must be an array of URLs, not %s",
			       json_type_name(list->type));
	for (size_t i = 0; list && i < list->n; i++) {
		if (list->items[i].type != JSON_STRING)
			return err_set(e, ERR_INVALID, "agents.rpcs[%zu] must be a URL", i);
		if (config_url(list->items[i].text, &u, e) < 0)
			return err_wrap(e, "agents.rpcs[%zu]", i);
	}
	return 0;
}

#define AT(f) .offset = offsetof(struct config_catalogue, f)
static const struct json_field catalogue_fields[] = {
	{ "name", JSON_F_STRING, AT(name), .min = 1, .max = 63, .required = true },
	{ "url", JSON_F_STRING, AT(url), .min = 1, .max = URL_MOST },
	{ "path", JSON_F_STRING, AT(path), .min = 1, .max = 1000 },
	{ "key", JSON_F_STRING, AT(key), .min = 1, .max = 128, .required = true },
};
#undef AT
static const struct json_schema catalogue_schema = { catalogue_fields, ELEMS(catalogue_fields) };

static int read_catalogue(struct arena *a, const struct json *from, struct config_catalogue *ret,
			  bool with_lines, struct err *e)
{
	struct config_url u;

	if (json_read(a, from, &catalogue_schema, ret, with_lines, e) < 0)
		return -1;
	if (!all_of(ret->name, "-_."))
		return err_set(e, ERR_INVALID, "name must be letters, digits and -_.");
	if (!ret->url.p == !ret->path.p)
		return err_set(e, ERR_INVALID, "must have either a url or a path");
	if (ret->url.p && (config_url(ret->url, &u, e) < 0 || memchr(u.target.p, '?', u.target.n)))
		return e->code ? err_wrap(e, "url") : err_set(e, ERR_INVALID, "url must have no query");
	if (ret->path.p && ret->path.p[0] != '/')
		return err_set(e, ERR_INVALID, "path must be absolute");
	return config_key(ret->key, e);
}

static int read_catalogues(struct config *c, struct arena *a, bool with_lines, struct err *e)
{
	const struct json *all = c->agents.catalogues;

	if (!all)
		return 0;
	if (all->type != JSON_ARRAY || all->n > CONFIG_CATALOGUES_MOST)
		return err_set(e, ERR_INVALID, "agents.catalogues must be an array of at most %d",
			       CONFIG_CATALOGUES_MOST);
	c->agents.catalogue_list = arena_array(a, MAX(all->n, 1u), sizeof(*c->agents.catalogue_list));
	if (!c->agents.catalogue_list)
		return err_set(e, ERR_TOO_LARGE, "the configuration takes more memory than is allowed");
	for (size_t i = 0; i < all->n; i++) {
		struct config_catalogue *one = &c->agents.catalogue_list[i];

		*one = (struct config_catalogue){ 0 };
		if (read_catalogue(a, &all->items[i], one, with_lines, e) < 0)
			return err_wrap(e, "agents.catalogues[%zu]", i);
		for (size_t k = 0; k < i; k++)
			if (view_eq(one->name, c->agents.catalogue_list[k].name))
				return err_set(e, ERR_INVALID,
					       "agents.catalogues[%zu]: the name is there twice", i);
		c->agents.n_catalogues = i + 1;
	}
	return 0;
}

/* The relay's URL is judged though nobody connects to it without a project's id. */
static int read_walletconnect(struct config *c, struct err *e)
{
	if (!all_of(c->agents.walletconnect.project_id, "-_"))
		return err_set(e, ERR_INVALID,
			       "agents.walletconnect.project_id must have letters, digits, - and _ only");
	if (config_ws_url(c->agents.walletconnect.relay, &c->agents.walletconnect.at, e) < 0)
		return err_wrap(e, "agents.walletconnect.relay");
	return 0;
}

int config_agents_read(struct config *c, struct arena *a, bool with_lines, struct err *e)
{
	const struct json *all = c->agents.chains;

	if (read_rpcs(c->agents.rpcs, e) < 0 || read_catalogues(c, a, with_lines, e) < 0 ||
	    read_walletconnect(c, e) < 0)
		return -1;
	if (!all)
		return 0;
	if (all->type != JSON_OBJECT || all->n > CONFIG_CHAINS_MOST)
		return err_set(e, ERR_INVALID, "agents.chains must be an object of at most %d chains",
			       CONFIG_CHAINS_MOST);
	c->agents.chain_list = arena_array(a, MAX(all->n, 1u), sizeof(*c->agents.chain_list));
	if (!c->agents.chain_list)
		return err_set(e, ERR_TOO_LARGE, "the configuration takes more memory than is allowed");
	for (; c->agents.n_chains < all->n; c->agents.n_chains++)
		if (read_chain(a, &all->members[c->agents.n_chains],
			       &c->agents.chain_list[c->agents.n_chains], with_lines, e) < 0)
			return err_wrap(e, "agents.chains.%.*s",
					(int)MIN(all->members[c->agents.n_chains].key.n, (size_t)48),
					all->members[c->agents.n_chains].key.p);
	return 0;
}
