/*
 * The secrets of one request: see inject.h.
 */
#include "inject.h"

#include <errno.h>
#include <stdio.h>

#include "text.h"
#include "poison.h"

#define HEADER_VALUE 8192 /* of a secret that goes into a header or the target */

static bool is_printable(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if ((unsigned char)v.p[i] < ' ' || v.p[i] == 0x7f)
			return false;
	return true;
}

static bool trouble(struct inject *j, struct view name, const char *why)
{
	snprintf(j->trouble, sizeof(j->trouble), "paddock: the secret %.*s %s",
		 VIEW_ARG(view_head(name, PLACE_NAME)), why);
	return false;
}

/* ---- values ---- */

void inject_init(struct inject *j, const struct policy_inject *rules, size_t n)
{
	j->n_values = 0;
	j->trouble[0] = 0;
	j->n = n;
	if (n)
		memcpy(j->rules, rules, n * sizeof(*rules));
}

void inject_done(struct inject *j)
{
	for (unsigned i = 0; i < j->n_values; i++)
		buf_done(&j->values[i].value);
	j->n_values = 0;
}

static struct inject_value *value_of(const struct inject *j, struct view name)
{
	for (unsigned i = 0; i < j->n_values; i++)
		if (view_is(name, j->values[i].name))
			return (struct inject_value *)&j->values[i];
	return NULL;
}

void inject_give(struct inject *j, struct view name, struct view value)
{
	struct inject_value *v = value_of(j, name);

	if (v)
		v->there = buf_add(&v->value, value) == 0 && value.n;
}

/* For place_fill: a placeholder is filled when the rule says so and the vault gave it. */
static bool placeholder_value(void *arg, struct view name, struct view *ret)
{
	const struct inject *j = arg;
	const struct inject_value *v = value_of(j, name);

	for (size_t i = 0; v && v->there && i < j->n; i++)
		if (j->rules[i].placeholder && view_is(name, j->rules[i].secret)) {
			*ret = buf_view(&v->value);
			return true;
		}
	return false;
}

bool inject_has_placeholders(const struct inject *j)
{
	for (size_t i = 0; i < j->n; i++)
		if (j->rules[i].placeholder)
			return true;
	return false;
}

/* ---- which secrets ---- */

static bool want(struct inject *j, const char *name)
{
	if (value_of(j, view_of(name)))
		return true;
	if (j->n_values == INJECT_VALUES)
		return false;
	struct inject_value *v = &j->values[j->n_values++];
	*v = (struct inject_value){ .value = { .max = INJECT_VALUE, .secret = true } };
	return view_to_str(view_of(name), v->name, sizeof(v->name)) == 0;
}

/* "Basic" and base64: the placeholder is inside. */
static int unwrap_basic(struct http_header h, struct buf *plain)
{
	if (!view_is(h.name, "authorization") || h.value.n < 6 ||
	    !view_eq_nocase(view_head(h.value, 6), VIEW("basic ")))
		return -ENOENT;
	return text_unbase64(plain, view_trim(view_skip(h.value, 6)));
}

/* Every placeholder of the head must be one of the rule's. */
static bool check_text(struct inject *j, struct view text)
{
	struct place p;

	for (size_t at = 0; place_find(text, at, &p); at = p.at + p.n) {
		bool named = false;
		for (size_t i = 0; i < j->n; i++)
			named = named || (j->rules[i].placeholder && view_is(p.name, j->rules[i].secret));
		char name[PLACE_NAME + 1];
		if (!named || view_to_str(p.name, name, sizeof(name)) < 0 || !want(j, name))
			return trouble(j, p.name, "is not for this host");
	}
	return true;
}

static bool check_head(struct inject *j, const struct inject_head *h)
{
	if (!check_text(j, h->path) || (h->query.p && !check_text(j, h->query)))
		return false;
	for (size_t i = 0; i < h->n_headers; i++) {
		_cleanup_(buf_done) struct buf plain = { .max = INJECT_HEAD, .secret = true };
		if (!check_text(j, h->headers[i].value) ||
		    (unwrap_basic(h->headers[i], &plain) == 0 && !check_text(j, buf_view(&plain))))
			return false;
	}
	return true;
}

bool inject_choose(struct inject *j, const struct inject_head *h, bool body)
{
	if (!check_head(j, h))
		return false;
	for (size_t i = 0; i < j->n; i++)
		if (j->rules[i].secret[0] && (!j->rules[i].placeholder || body) &&
		    !want(j, j->rules[i].secret))
			return trouble(j, view_of(j->rules[i].secret), "is one too many");
	return true;
}

bool inject_ready(struct inject *j)
{
	for (size_t i = 0; i < j->n; i++) {
		const struct policy_inject *r = &j->rules[i];
		const struct inject_value *v = value_of(j, view_of(r->secret));
		if (r->placeholder || !r->secret[0])
			continue;
		if (!v || !v->there)
			return trouble(j, view_of(r->secret), "is not there");
		if (buf_len(&v->value) > HEADER_VALUE || (r->header[0] && !is_printable(buf_view(&v->value))))
			return trouble(j, view_of(r->secret), "does not fit into a header");
	}
	for (unsigned i = 0; i < j->n_values; i++)
		if (j->values[i].there && buf_len(&j->values[i].value) < MASK_LEAST)
			return trouble(j, view_of(j->values[i].name), "is too short to be masked");
	return true;
}

int inject_mask(const struct inject *j, struct mask *m)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < j->n_values; i++)
		if (j->values[i].there)
			r = mask_add(m, buf_view(&j->values[i].value));
	return r;
}

/* ---- the request with them ---- */

/* The headers of compression: what comes back could not be looked through. gRPC and Connect have their own.
 * And those of parts: half of a value is not found in either of two answers. */
bool inject_drops(const struct inject *j, struct view name)
{
	static const char *const drop[] = { "host",
					    "connection",
					    "upgrade",
					    "keep-alive",
					    "proxy-connection",
					    "proxy-authorization",
					    "http2-settings",
					    "expect",
					    "accept-encoding",
					    "grpc-accept-encoding",
					    "connect-accept-encoding" };
	static const char *const with_secrets[] = { "range", "if-range", "sec-websocket-extensions" };

	for (size_t i = 0; i < ELEMS(drop); i++)
		if (view_is(name, drop[i]))
			return true;
	for (size_t i = 0; j->n && i < ELEMS(with_secrets); i++)
		if (view_is(name, with_secrets[i]))
			return true;
	for (size_t i = 0; i < j->n; i++)
		if (j->rules[i].header[0] && view_is(name, j->rules[i].header))
			return true;
	return false;
}

bool inject_is_coded(struct http_header h)
{
	static const char *const codings[] = { "content-encoding", "grpc-encoding",
					       "connect-content-encoding" };

	for (size_t i = 0; i < ELEMS(codings); i++)
		if (view_is(h.name, codings[i]))
			return h.value.n && !view_eq_nocase(h.value, VIEW("identity"));
	return false;
}

static int fill(struct inject *j, struct view text, bool percent, struct buf *out)
{
	struct view missing = VIEW("");
	int r = place_fill(text, percent, placeholder_value, j, out, &missing);

	if (r == -ENOENT)
		(void)trouble(j, missing, "is not for this host, or is not there");
	return r;
}

int inject_body(struct inject *j, struct view text, struct buf *out)
{
	return fill(j, text, false, out);
}

int inject_header(struct inject *j, struct http_header h, struct buf *out)
{
	_cleanup_(buf_done) struct buf plain = { .max = INJECT_HEAD, .secret = true },
				       filled = { .max = INJECT_OUT, .secret = true };
	struct place p;
	bool basic = unwrap_basic(h, &plain) == 0 && place_find(buf_view(&plain), 0, &p);
	int r = fill(j, basic ? buf_view(&plain) : h.value, false, &filled);

	if (r < 0)
		return r;
	if (basic) {
		buf_puts(out, "Basic ");
		return text_base64(out, buf_view(&filled));
	}
	if (!is_printable(buf_view(&filled)) && !view_eq(buf_view(&filled), h.value))
		return -EINVAL;
	return buf_add(out, buf_view(&filled));
}

int inject_own(const struct inject *j, size_t i, struct buf *out)
{
	buf_puts(out, j->rules[i].prefix);
	return !j->rules[i].secret[0]
		       ? out->bad
		       : buf_add(out, buf_view(&value_of(j, view_of(j->rules[i].secret))->value));
}

/* With placeholders filled and parameters set: what was there under their names goes. */
int inject_target(struct inject *j, const struct inject_head *h, struct buf *out)
{
	struct view rest = h->query;
	bool first = true;
	int e = fill(j, h->path, true, out);

	while (e == 0 && rest.p) {
		struct view value, pair = view_split(rest, '&', &rest), name = view_split(pair, '=', &value);
		bool replaced = false;
		for (size_t i = 0; i < j->n; i++)
			replaced = replaced || (j->rules[i].query[0] && view_is(name, j->rules[i].query));
		if (replaced)
			continue;
		buf_putc(out, first ? '?' : '&');
		first = false;
		e = fill(j, pair, true, out);
	}
	for (size_t i = 0; e == 0 && i < j->n; i++) {
		if (!j->rules[i].query[0])
			continue;
		buf_printf(out, "%c%s=", first ? '?' : '&', j->rules[i].query);
		first = false;
		text_percent_all(out, buf_view(&value_of(j, view_of(j->rules[i].secret))->value));
	}
	return e < 0 ? e : out->bad;
}
