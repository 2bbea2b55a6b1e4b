/*
 * What package managers' configuration says about hosts: see config_sets.h. The files
 * are the administrator's or of an image that anybody made: what cannot be a host is
 * left out, and nothing here takes longer than the text is long.
 */
#include "config_sets.h"
#include "egress.h"

#include "poison.h"

bool config_sets_has(const struct config_hosts *h, struct view host)
{
	for (size_t i = 0; i < h->n; i++)
		if (view_eq_nocase(h->items[i], host))
			return true;
	return false;
}

static struct view until(struct view v, const char *stops)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] == 0 || strchr(stops, v.p[i]))
			return view_head(v, i);
	return v;
}

/* host or host:port of a URL; without a user and a password, which are nobody's business. */
static struct view authority_of(struct view url)
{
	struct view rest = view_starts(url, "https://")  ? view_skip(url, 8)
			   : view_starts(url, "http://") ? view_skip(url, 7)
							 : VIEW_NONE;

	rest = until(rest, "/?#\"'`;,)\\ \t\r\n");
	for (size_t i = rest.n; i > 0; i--)
		if (rest.p[i - 1] == '@')
			return view_skip(rest, i);
	return rest;
}

static void add(struct config_hosts *h, struct view host)
{
	struct egress_rule r;

	if (host.n == 0 || h->n == ELEMS(h->items) || memchr(host.p, '*', host.n) ||
	    config_sets_has(h, host) || egress_target(h->arena, host, NULL, &r, NULL) < 0)
		return;
	struct view copy = arena_view(h->arena, host);
	if (copy.p)
		h->items[h->n++] = copy;
}

void config_sets_url(struct config_hosts *h, struct view url)
{
	add(h, authority_of(url));
}

/* Every URL of a text; how many. */
static size_t add_urls(struct config_hosts *h, struct view text)
{
	size_t n = 0;

	while (text.p && text.n) {
		const char *p = memmem(text.p, text.n, "http", 4);

		if (!p)
			break;
		text = view_skip(text, (size_t)(p - text.p));
		if (authority_of(text).n) {
			config_sets_url(h, text);
			n++;
		}
		text = view_skip(text, 4);
	}
	return n;
}

static struct view next_line(struct view *text)
{
	struct view line = view_split(*text, '\n', text);

	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	return line;
}

static bool is_comment(struct view line)
{
	line = view_trim(line);
	return line.n == 0 || line.p[0] == '#' || line.p[0] == ';';
}

/* ---- pip ---- */

static bool is_key(struct view key, const char *dashed)
{
	struct view want = view_of(dashed);

	if (key.n != want.n)
		return false;
	for (size_t i = 0; i < key.n; i++)
		if ((key.p[i] == '_' ? '-' : key.p[i]) != want.p[i])
			return false;
	return true;
}

bool config_sets_pip(struct config_hosts *h, struct view text)
{
	enum { OTHER, INDEX, EXTRA } within = OTHER;
	bool index = false;

	while (text.p) {
		struct view line = next_line(&text), value;

		if (is_comment(line))
			continue;
		if (line.p[0] == ' ' || line.p[0] == '\t') { /* goes on with the value before */
			value = line;
		} else {
			struct view key =
				view_trim(view_split(line, memchr(line.p, '=', line.n) ? '=' : ':', &value));
			within = is_key(key, "index-url")         ? INDEX
				 : is_key(key, "extra-index-url") ? EXTRA
								  : OTHER;
		}
		if (within != OTHER && value.p && add_urls(h, value) && within == INDEX)
			index = true;
	}
	return index;
}

/* PyPI = PackageIndex("https://…", file_storage_domain="…") */
void config_sets_pip_own(struct config_hosts *h, struct view text)
{
	static const char mark[] = "\nPyPI = PackageIndex(";
	const char *at = text.n ? memmem(text.p, text.n, mark, sizeof(mark) - 1) : NULL;

	if (!at)
		return;
	struct view call = until(view_skip(text, (size_t)(at - text.p) + sizeof(mark) - 1), ")");
	add_urls(h, call);
	struct view domain;
	view_split(call, '=', &domain);
	if (domain.n > 2)
		add(h, until(view_skip(domain, 1), "\"'"));
}

/* ---- npm ---- */

bool config_sets_npm(struct config_hosts *h, struct view text)
{
	bool index = false;

	while (text.p) {
		struct view value, line = next_line(&text), scope, key;

		if (is_comment(line))
			continue;
		key = view_trim(view_split(line, '=', &value));
		if (!value.p)
			continue;
		if (key.n && key.p[0] == '@') {
			view_split(key, ':', &scope);
			if (view_is(scope, "registry"))
				add_urls(h, value);
		} else if (view_is(key, "registry") && add_urls(h, value)) {
			index = true;
		}
	}
	return index;
}

/* …('registry', { default: 'https://…' */
void config_sets_npm_own(struct config_hosts *h, struct view text)
{
	static const char mark[] = "('registry', {";
	const char *at = text.n ? memmem(text.p, text.n, mark, sizeof(mark) - 1) : NULL;

	if (!at)
		return;
	struct view rest = view_skip(text, (size_t)(at - text.p) + sizeof(mark) - 1);
	struct view line = { NULL, 0 };
	for (int i = 0; i < 4 && rest.p && !line.p; i++) {
		struct view one = view_trim(next_line(&rest));
		if (view_starts(one, "default:"))
			line = one;
	}
	add_urls(h, line);
}

/* ---- apt ---- */

/* mirror://HOST/ is http; mirror+http:// and the like are found as what they are. */
static void add_apt(struct config_hosts *h, struct view line)
{
	static const char mark[] = "mirror://";
	const char *at = memmem(line.p, line.n, mark, sizeof(mark) - 1);

	add_urls(h, line);
	if (at)
		add(h, until(view_skip(line, (size_t)(at - line.p) + sizeof(mark) - 1), "/ \t"));
}

void config_sets_apt_list(struct config_hosts *h, struct view text)
{
	while (text.p) {
		struct view comment, line = view_trim(view_split(next_line(&text), '#', &comment));

		if (view_starts(line, "deb ") || view_starts(line, "deb-src ") || view_starts(line, "deb\t"))
			add_apt(h, line);
	}
}

void config_sets_apt_deb822(struct config_hosts *h, struct view text)
{
	while (text.p) {
		struct config_hosts stanza = { .arena = h->arena };
		bool enabled = true, uris = false;
		struct view line = VIEW_NONE;

		while (text.p && view_trim(line = next_line(&text)).n) {
			struct view value, key;

			if (line.p[0] == '#')
				continue;
			if (line.p[0] != ' ' && line.p[0] != '\t') {
				key = view_split(line, ':', &value);
				uris = view_eq_nocase(key, VIEW("uris"));
				if (view_eq_nocase(key, VIEW("enabled")))
					enabled = !view_eq_nocase(view_trim(value), VIEW("no"));
			}
			if (uris)
				add_apt(&stanza, line);
		}
		for (size_t i = 0; enabled && i < stanza.n; i++)
			add(h, stanza.items[i]);
	}
}

void config_sets_lines(struct config_hosts *h, struct view text)
{
	while (text.p) {
		struct view line = next_line(&text);

		if (!is_comment(line))
			add_urls(h, line);
	}
}

/* Acquire::http::Proxy "http://…"; or the same with braces: whatever is called Proxy and is a URL. Comments
 * are lines that begin with # or //. */
void config_sets_apt_proxy(struct config_hosts *h, struct view text)
{
	static const char word[] = "proxy";

	while (text.p) {
		struct view line = view_trim(next_line(&text)), value;

		if (is_comment(line) || view_starts(line, "//"))
			continue;
		for (struct view rest = line; rest.n > sizeof(word); rest = view_skip(rest, 1)) {
			if (!view_eq_nocase(view_head(rest, sizeof(word) - 1), VIEW("proxy")))
				continue;
			value = view_trim(view_skip(rest, sizeof(word) - 1));
			if (value.n && value.p[0] == '"')
				config_sets_url(h, view_skip(value, 1));
		}
	}
}

/* registry "https://…"; or, of the newer one, npmRegistryServer: "https://…" */
bool config_sets_yarn(struct config_hosts *h, struct view text)
{
	bool index = false;

	while (text.p) {
		struct view line = view_trim(next_line(&text));

		if (view_starts(line, "registry ") || view_starts(line, "npmRegistryServer:"))
			index = add_urls(h, line) || index;
	}
	return index;
}

struct view config_sets_distribution(struct arena *a, struct view text)
{
	while (text.p) {
		struct view line = next_line(&text);
		struct view id = view_starts(line, "ID=") ? view_skip(line, 3) : VIEW_NONE;

		if (id.n > 2 && id.p[0] == '"' && id.p[id.n - 1] == '"')
			id = (struct view){ id.p + 1, id.n - 2 };
		if (egress_is_set_name(id))
			return arena_view(a, id);
	}
	return VIEW_NONE;
}

/* ---- git ---- */

static bool stands_for(struct view url, const struct json *known)
{
	struct view host = authority_of(url);

	for (size_t i = 0; host.n && known && known->type == JSON_ARRAY && i < known->n; i++)
		if (view_eq_nocase(known->items[i].text, host))
			return true;
	return false;
}

void config_sets_git(struct config_hosts *h, struct view text, const struct json *known)
{
	struct view base = VIEW_NONE;

	while (text.p) {
		struct view value, line = view_trim(next_line(&text));

		if (line.n && line.p[0] == '[') {
			struct view quoted;
			view_split(line, '"', &quoted);
			base = view_starts(line, "[url ") && quoted.p ? until(quoted, "\"") : VIEW_NONE;
			continue;
		}
		struct view key = view_trim(view_split(line, '=', &value));
		if (base.n && value.p && view_eq_nocase(key, VIEW("insteadof")) &&
		    stands_for(view_trim(value), known))
			config_sets_url(h, base);
	}
}
