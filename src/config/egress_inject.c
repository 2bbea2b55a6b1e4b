/*
 * Secrets that a rule puts into requests: `inject` of a rule, see egress.h.
 */
#include "egress.h"

#include <stdio.h>

#include "egress_impl.h"

#include "poison.h"

#define NAME_LONGEST  64
#define VALUE_LONGEST 512

struct inject_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view secret, header, prefix, query, value;
	bool placeholder;
};

#define AT(f) .offset = offsetof(struct inject_body, f)
static const struct json_field fields[] = {
	{ "secret", JSON_F_STRING, AT(secret), .min = 1, .max = NAME_LONGEST, .nullable = true },
	{ "value", JSON_F_STRING, AT(value), .min = 1, .max = VALUE_LONGEST, .nullable = true },
	{ "header", JSON_F_STRING, AT(header), .min = 1, .max = NAME_LONGEST, .nullable = true },
	{ "prefix", JSON_F_STRING, AT(prefix), .max = NAME_LONGEST, .nullable = true },
	{ "query", JSON_F_STRING, AT(query), .min = 1, .max = NAME_LONGEST, .nullable = true },
	{ "placeholder", JSON_F_BOOL, AT(placeholder), .nullable = true },
};
#undef AT
static const struct json_schema schema = { fields, ELEMS(fields) };

static bool made_of(struct view v, const char *more)
{
	for (size_t i = 0; i < v.n; i++) {
		char c = v.p[i];
		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    !strchr(more, c))
			return false;
	}
	return true;
}

static bool printable(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] < ' ' || v.p[i] >= 0x7f)
			return false;
	return true;
}

/* What says how long a request is and where it goes is nobody's to set. */
static bool is_framing(struct view header)
{
	static const char *const names[] = { "host",       "content-length", "transfer-encoding",
					     "connection", "upgrade",        "accept-encoding" };

	for (size_t i = 0; i < ELEMS(names); i++)
		if (view_eq_nocase(header, view_of(names[i])))
			return true;
	return false;
}

/* A header with a value that everybody may know. */
static int check_plain(const struct egress_inject *x, struct err *e)
{
	if (!x->header.n || x->header.n > NAME_LONGEST || !made_of(x->header, "-_") ||
	    is_framing(x->header) || x->query.n || x->placeholder)
		return err_set(e, ERR_INVALID, "value: is for a header that can be set");
	if (!x->prefix.n || x->prefix.n > VALUE_LONGEST || !printable(x->prefix))
		return err_set(e, ERR_INVALID, "value: must be printable, with 1 to %d characters",
			       VALUE_LONGEST);
	return 0;
}

static int check_one(const struct egress_inject *x, struct err *e)
{
	if (!x->secret.n && x->prefix.n)
		return check_plain(x, e);
	if (!x->secret.n || x->secret.n > NAME_LONGEST || !made_of(x->secret, "_.-"))
		return egress_bad(e, x->secret, "is not the name of a secret");
	if ((x->header.n > 0) + (x->query.n > 0) + x->placeholder != 1)
		return err_set(e, ERR_INVALID, "exactly one of header, query and placeholder is needed");
	if (x->header.n > NAME_LONGEST || !made_of(x->header, "-_") || is_framing(x->header))
		return egress_bad(e, x->header, "is not a header that can be set");
	if (x->query.n > NAME_LONGEST || !made_of(x->query, "-_.~[]"))
		return egress_bad(e, x->query, "is not the name of a parameter");
	if (x->prefix.n && (!x->header.n || x->prefix.n > NAME_LONGEST || !printable(x->prefix)))
		return err_set(e, ERR_INVALID, "prefix: is text before the value of a header");
	return 0;
}

int egress_check_inject(const struct egress_rule *r, struct err *e)
{
	if (r->n_inject > EGRESS_LIST_MAX)
		return err_set(e, ERR_INVALID, "inject: must be an array of 1 to %d objects",
			       EGRESS_LIST_MAX);
	if (r->n_inject &&
	    (r->verdict != EGRESS_ALLOW || !r->host.n || view_is(r->host, "*") || r->protocol == EGRESS_TCP))
		return err_set(e, ERR_INVALID, "inject: is for rules that allow a host by its name");
	for (size_t i = 0; i < r->n_inject; i++)
		if (check_one(&r->inject[i], e) < 0)
			return err_wrap(e, "inject[%zu]", i);
	return 0;
}

static int read_one(struct arena *a, const struct json *j, struct egress_inject *ret, struct err *e)
{
	struct inject_body b = { 0 };

	if (json_read(a, j, &schema, &b, false, e) < 0)
		return -1;
	if (!b.secret.n == !b.value.n || (b.value.n && b.prefix.n))
		return err_set(e, ERR_INVALID, "a secret, or the value of a header, is needed");
	*ret = (struct egress_inject){ b.secret, b.header, b.value.n ? b.value : b.prefix, b.query,
				       b.placeholder };
	return 0;
}

int egress_read_inject(struct arena *a, const struct json *j, struct egress_rule *r, struct err *e)
{
	if (!j || j->type == JSON_NULL)
		return 0;
	if (j->type != JSON_ARRAY || j->n < 1 || j->n > EGRESS_LIST_MAX)
		return err_set(e, ERR_INVALID, "inject: must be an array of 1 to %d objects",
			       EGRESS_LIST_MAX);
	r->inject = arena_array(a, j->n, sizeof(*r->inject));
	if (!r->inject)
		return err_set(e, ERR_TOO_LARGE, "the policy takes more memory than is allowed");
	for (; r->n_inject < j->n; r->n_inject++)
		if (read_one(a, &j->items[r->n_inject], &r->inject[r->n_inject], e) < 0)
			return err_wrap(e, "inject[%zu]", r->n_inject);
	return egress_check_inject(r, e);
}

void egress_put_inject(struct json_out *o, const struct egress_rule *r)
{
	if (!r->n_inject)
		return;
	json_out_key(o, "inject");
	json_out_array(o);
	for (size_t i = 0; i < r->n_inject; i++) {
		const struct egress_inject *x = &r->inject[i];
		json_out_object(o);
		if (x->secret.n)
			json_out_kstr(o, "secret", x->secret);
		if (x->header.n)
			json_out_kstr(o, "header", x->header);
		if (x->prefix.n)
			json_out_kstr(o, x->secret.n ? "prefix" : "value", x->prefix);
		if (x->query.n)
			json_out_kstr(o, "query", x->query);
		if (x->placeholder)
			json_out_kbool(o, "placeholder", true);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

static bool same(const struct egress_inject *a, const struct egress_inject *b)
{
	return view_eq(a->secret, b->secret) && view_eq(a->header, b->header) &&
	       view_eq(a->prefix, b->prefix) && view_eq(a->query, b->query) &&
	       a->placeholder == b->placeholder;
}

bool egress_same_inject(const struct egress_rule *a, const struct egress_rule *b)
{
	if (a->n_inject != b->n_inject)
		return false;
	for (size_t i = 0; i < a->n_inject; i++)
		if (!same(&a->inject[i], &b->inject[i]))
			return false;
	return true;
}

bool egress_injects(const struct egress_policy *p)
{
	for (size_t i = 0; i < p->n_rules; i++)
		if (p->rules[i].n_inject)
			return true;
	return false;
}

bool egress_opens(const struct egress_policy *p)
{
	for (size_t i = 0; i < p->n_rules; i++) {
		const struct egress_rule *r = &p->rules[i];
		if (r->n_inject || ((r->methods.n || r->paths.n) && r->protocol != EGRESS_HTTP))
			return true;
	}
	return false;
}
