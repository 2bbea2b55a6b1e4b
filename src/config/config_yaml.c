/*
 * libyaml events into struct json. libyaml only cuts the text into events; what
 * is allowed, what a scalar means and how deep things nest is decided here.
 *
 * Nodes are gathered on a list first, because a container's size is not known
 * before its end, and then laid out flat as struct json wants them. All memory
 * is the arena's; libyaml's own is freed with its parser and each event.
 */
#include <yaml.h>

#include "config_yaml.h"
#include "num.h"
#include "text.h"

#include "poison.h"

struct entry {
	struct entry *next;
	struct view key; /* of a mapping's member */
	struct json value;
};

struct reader {
	yaml_parser_t parser;
	struct view text;
	struct arena *arena;
	struct err *err;
};

#define FAIL(r, line, ...) fail_at((r)->err, (line), __VA_ARGS__)

_printf_(3, 4) static int fail_at(struct err *e, size_t line, const char *fmt, ...)
{
	char msg[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return err_set(e, ERR_INVALID, "line %zu: %s", line, msg);
}

static int no_memory(struct reader *r)
{
	return err_set(r->err, ERR_TOO_LARGE, "the configuration is too large");
}

static size_t event_line(const yaml_event_t *ev)
{
	return ev->start_mark.line + 1;
}

/* The reader's complaints (bad UTF-8, control characters) have an offset only. */
static size_t line_at(struct view text, size_t offset)
{
	size_t line = 1;

	for (size_t i = 0; i < offset && i < text.n; i++)
		line += text.p[i] == '\n';
	return line;
}

static int parser_failed(struct reader *r)
{
	const yaml_parser_t *p = &r->parser;
	const char *what = p->problem ? p->problem : "cannot be read";

	switch (p->error) {
	case YAML_MEMORY_ERROR:
		return err_set(r->err, ERR_INTERNAL, "out of memory");
	case YAML_READER_ERROR:
		return FAIL(r, line_at(r->text, p->problem_offset), "%s", what);
	case YAML_SCANNER_ERROR:
	case YAML_PARSER_ERROR:
		return FAIL(r, p->problem_mark.line + 1, "%s%s%s", what, p->context ? ", " : "",
			    p->context ? p->context : "");
	case YAML_NO_ERROR:
	case YAML_COMPOSER_ERROR:
	case YAML_WRITER_ERROR:
	case YAML_EMITTER_ERROR:
	default:
		return FAIL(r, p->mark.line + 1, "%s", what);
	}
}

static int next_event(struct reader *r, yaml_event_t *ret)
{
	return yaml_parser_parse(&r->parser, ret) ? 0 : parser_failed(r);
}

/* ---- scalars ---- */

static bool is_one_of(struct view v, const char *a, const char *b, const char *c)
{
	return view_is(v, a) || view_is(v, b) || view_is(v, c);
}

static size_t digits(struct view v, size_t from)
{
	size_t n = 0;

	while (from + n < v.n && v.p[from + n] >= '0' && v.p[from + n] <= '9')
		n++;
	return n;
}

/* The parts of [-+]? [0-9]* (\. [0-9]*)? ([eE] [-+]? [0-9]+)?, if v is that and has a digit. */
struct number {
	bool negative;
	struct view whole, fraction, exponent;
};

static bool split_number(struct view v, struct number *ret)
{
	struct number n = { 0 };
	size_t i = 0;

	if (i < v.n && (v.p[i] == '-' || v.p[i] == '+'))
		n.negative = v.p[i++] == '-';
	n.whole = (struct view){ v.p + i, digits(v, i) };
	i += n.whole.n;
	if (i < v.n && v.p[i] == '.') {
		i++;
		n.fraction = (struct view){ v.p + i, digits(v, i) };
		i += n.fraction.n;
	}
	if (n.whole.n + n.fraction.n == 0)
		return false;
	if (i < v.n && (v.p[i] == 'e' || v.p[i] == 'E')) {
		size_t sign = i + 1 < v.n && (v.p[i + 1] == '-' || v.p[i + 1] == '+');
		size_t exp = digits(v, i + 1 + sign);

		if (exp == 0)
			return false;
		n.exponent = (struct view){ v.p + i + 1, sign + exp };
		i += 1 + sign + exp;
	}
	*ret = n;
	return i == v.n;
}

/* A decimal number, in the spelling that JSON has for it (".5" becomes "0.5"). */
static int set_decimal(struct reader *r, struct json *j, const struct number *n)
{
	struct buf b = BUF_INIT(CONFIG_YAML_MAX);

	if (n->whole.n > 1 && n->whole.p[0] == '0')
		return FAIL(r, j->line, "a number with leading zeros: write it without them, or quote it");
	if (n->negative)
		buf_putc(&b, '-');
	buf_add(&b, n->whole.n ? n->whole : VIEW("0"));
	if (n->fraction.n) {
		buf_putc(&b, '.');
		buf_add(&b, n->fraction);
	}
	if (n->exponent.n) {
		buf_putc(&b, 'e');
		buf_add(&b, n->exponent);
	}
	j->type = JSON_NUMBER;
	j->text = arena_view(r->arena, buf_view(&b));
	buf_done(&b);
	return j->text.p ? 0 : no_memory(r);
}

static bool has_only(struct view v, const char *set)
{
	for (size_t i = 0; i < v.n; i++)
		if (!v.p[i] || !strchr(set, v.p[i]))
			return false;
	return v.n > 0;
}

/* 0o17 and 0x1F, as decimal text. */
static int set_based(struct reader *r, struct json *j, struct view digit_text, unsigned bits)
{
	uint64_t value = 0;
	char text[24];

	for (size_t i = 0; i < digit_text.n; i++) {
		unsigned c = (unsigned char)digit_text.p[i];
		unsigned d = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;

		if (value >> (64 - bits))
			return FAIL(r, j->line, "a number that is too large");
		value = value << bits | d;
	}
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	j->type = JSON_NUMBER;
	j->text = arena_view(r->arena, view_of(text));
	return j->text.p ? 0 : no_memory(r);
}

static int set_string(struct reader *r, struct json *j, struct view v)
{
	if (v.n && memchr(v.p, '\0', v.n))
		return FAIL(r, j->line, "a string with a NUL in it");
	j->type = JSON_STRING;
	j->text = arena_view(r->arena, v);
	return j->text.p ? 0 : no_memory(r);
}

/* The core schema's patterns, in its order. */
static int set_plain(struct reader *r, struct json *j, struct view v)
{
	struct number n;
	struct view unsigned_part = v.n && (v.p[0] == '-' || v.p[0] == '+') ? view_skip(v, 1) : v;

	if (v.n == 0 || view_is(v, "~") || is_one_of(v, "null", "Null", "NULL")) {
		j->type = JSON_NULL;
		return 0;
	}
	if (is_one_of(v, "true", "True", "TRUE") || is_one_of(v, "false", "False", "FALSE")) {
		j->type = JSON_BOOL;
		j->boolean = (v.p[0] | 0x20) == 't';
		return 0;
	}
	if (split_number(v, &n))
		return set_decimal(r, j, &n);
	if (view_starts(v, "0o") && has_only(view_skip(v, 2), "01234567"))
		return set_based(r, j, view_skip(v, 2), 3);
	if (view_starts(v, "0x") && has_only(view_skip(v, 2), "0123456789abcdefABCDEF"))
		return set_based(r, j, view_skip(v, 2), 4);
	if (is_one_of(unsigned_part, ".inf", ".Inf", ".INF") || is_one_of(v, ".nan", ".NaN", ".NAN"))
		return FAIL(r, j->line, "infinities and NaN are not numbers here");
	return set_string(r, j, v);
}

static int read_scalar(struct reader *r, const yaml_event_t *ev, struct json *ret)
{
	struct view v = { (const char *)ev->data.scalar.value, ev->data.scalar.length };

	if (ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		return set_plain(r, ret, v);
	return set_string(r, ret, v);
}

/* ---- containers ---- */

static int read_node(struct reader *r, const yaml_event_t *ev, unsigned depth, struct json *ret);

static int refuse_decoration(struct reader *r, const yaml_event_t *ev, const yaml_char_t *anchor,
			     const yaml_char_t *tag)
{
	if (anchor)
		return FAIL(r, event_line(ev), "anchors (&name) are not allowed");
	if (tag)
		return FAIL(r, event_line(ev), "tags (!name) are not allowed");
	return 0;
}

static int read_sequence(struct reader *r, unsigned depth, struct json *ret)
{
	struct entry *first = NULL, **tail = &first;
	size_t n = 0;

	for (;;) {
		yaml_event_t ev;
		struct entry *item;
		int rc;

		if (next_event(r, &ev) < 0)
			return -1;
		if (ev.type == YAML_SEQUENCE_END_EVENT) {
			yaml_event_delete(&ev);
			break;
		}
		item = arena_alloc(r->arena, sizeof(*item));
		if (!item)
			rc = no_memory(r);
		else if (n == CONFIG_YAML_ENTRIES)
			rc = FAIL(r, event_line(&ev), "a list with more than %d entries",
				  CONFIG_YAML_ENTRIES);
		else
			rc = read_node(r, &ev, depth, &item->value);
		yaml_event_delete(&ev);
		if (rc < 0)
			return -1;
		*tail = item;
		tail = &item->next;
		n++;
	}
	ret->type = JSON_ARRAY;
	ret->n = n;
	ret->items = n ? arena_array(r->arena, n, sizeof(*ret->items)) : NULL;
	if (n && !ret->items)
		return no_memory(r);
	for (size_t i = 0; first; first = first->next)
		ret->items[i++] = first->value;
	return 0;
}

static int read_key(struct reader *r, const yaml_event_t *ev, const struct entry *others, struct view *ret)
{
	struct view v;

	if (ev->type == YAML_ALIAS_EVENT)
		return FAIL(r, event_line(ev), "aliases (*name) are not allowed");
	if (ev->type != YAML_SCALAR_EVENT)
		return FAIL(r, event_line(ev), "a key must be plain text");
	if (refuse_decoration(r, ev, ev->data.scalar.anchor, ev->data.scalar.tag) < 0)
		return -1;
	v = (struct view){ (const char *)ev->data.scalar.value, ev->data.scalar.length };
	if (v.n == 0)
		return FAIL(r, event_line(ev), "an empty key");
	if (memchr(v.p, '\0', v.n))
		return FAIL(r, event_line(ev), "a key with a NUL in it");
	if (view_is(v, "<<") && ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		return FAIL(r, event_line(ev), "merge keys (<<) are not allowed");
	for (; others; others = others->next) {
		if (view_eq(others->key, v)) {
			struct buf q = BUF_INIT(128);

			text_quote(&q, v, 64);
			FAIL(r, event_line(ev), "key %.*s stands here twice, first on line %u",
			     VIEW_ARG(buf_view(&q)), others->value.line);
			buf_done(&q);
			return -1;
		}
	}
	*ret = arena_view(r->arena, v);
	return ret->p ? 0 : no_memory(r);
}

static int read_member(struct reader *r, const yaml_event_t *key, const struct entry *others, unsigned depth,
		       struct entry *ret)
{
	yaml_event_t ev;
	int rc;

	if (read_key(r, key, others, &ret->key) < 0 || next_event(r, &ev) < 0)
		return -1;
	rc = read_node(r, &ev, depth, &ret->value);
	/* A missing value has the mark of what follows it; the key's line is what the user looks for. */
	ret->value.line = (uint32_t)event_line(key);
	yaml_event_delete(&ev);
	return rc;
}

static int read_mapping(struct reader *r, unsigned depth, struct json *ret)
{
	struct entry *first = NULL, **tail = &first;
	size_t n = 0;

	for (;;) {
		yaml_event_t ev;
		struct entry *member;
		int rc;

		if (next_event(r, &ev) < 0)
			return -1;
		if (ev.type == YAML_MAPPING_END_EVENT) {
			yaml_event_delete(&ev);
			break;
		}
		member = arena_alloc(r->arena, sizeof(*member));
		if (!member)
			rc = no_memory(r);
		else if (n == CONFIG_YAML_ENTRIES)
			rc = FAIL(r, event_line(&ev), "more than %d keys", CONFIG_YAML_ENTRIES);
		else
			rc = read_member(r, &ev, first, depth, member);
		yaml_event_delete(&ev);
		if (rc < 0)
			return -1;
		*tail = member;
		tail = &member->next;
		n++;
	}
	ret->type = JSON_OBJECT;
	ret->n = n;
	ret->members = n ? arena_array(r->arena, n, sizeof(*ret->members)) : NULL;
	if (n && !ret->members)
		return no_memory(r);
	for (size_t i = 0; first; first = first->next)
		ret->members[i++] = (struct json_member){ .key = first->key, .value = first->value };
	return 0;
}

/* `ev` stays the caller's. */
static int read_node(struct reader *r, const yaml_event_t *ev, unsigned depth, struct json *ret)
{
	bool container = ev->type == YAML_SEQUENCE_START_EVENT || ev->type == YAML_MAPPING_START_EVENT;

	ret->line = (uint32_t)event_line(ev);
	if (container && depth == JSON_DEPTH)
		return FAIL(r, event_line(ev), "nested deeper than %d levels", JSON_DEPTH);
	switch (ev->type) {
	case YAML_ALIAS_EVENT:
		return FAIL(r, event_line(ev), "aliases (*name) are not allowed");
	case YAML_SCALAR_EVENT:
		if (refuse_decoration(r, ev, ev->data.scalar.anchor, ev->data.scalar.tag) < 0)
			return -1;
		return read_scalar(r, ev, ret);
	case YAML_SEQUENCE_START_EVENT:
		if (refuse_decoration(r, ev, ev->data.sequence_start.anchor, ev->data.sequence_start.tag) < 0)
			return -1;
		return read_sequence(r, depth + 1, ret);
	case YAML_MAPPING_START_EVENT:
		if (refuse_decoration(r, ev, ev->data.mapping_start.anchor, ev->data.mapping_start.tag) < 0)
			return -1;
		return read_mapping(r, depth + 1, ret);
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_START_EVENT:
	case YAML_DOCUMENT_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
	default:
		return FAIL(r, event_line(ev), "unexpected structure");
	}
}

/* ---- the document ---- */

/* Reads the next event and says its type; the event itself is of no interest. */
static int skip_event(struct reader *r, yaml_event_type_t *ret_type, size_t *ret_line)
{
	yaml_event_t ev;

	if (next_event(r, &ev) < 0)
		return -1;
	*ret_type = ev.type;
	*ret_line = event_line(&ev);
	yaml_event_delete(&ev);
	return 0;
}

static int read_document(struct reader *r, struct json *root)
{
	yaml_event_type_t type;
	yaml_event_t ev;
	size_t line;
	int rc;

	*root = (struct json){ .type = JSON_OBJECT, .line = 1 };
	if (skip_event(r, &type, &line) < 0) /* the stream's start */
		return -1;
	if (skip_event(r, &type, &line) < 0)
		return -1;
	if (type == YAML_STREAM_END_EVENT)
		return 0;
	if (next_event(r, &ev) < 0)
		return -1;
	rc = read_node(r, &ev, 0, root);
	yaml_event_delete(&ev);
	if (rc < 0)
		return -1;
	if (skip_event(r, &type, &line) < 0) /* the document's end */
		return -1;
	if (skip_event(r, &type, &line) < 0)
		return -1;
	if (type != YAML_STREAM_END_EVENT)
		return FAIL(r, line, "a second document: one file has one configuration");
	if (root->type == JSON_NULL)
		*root = (struct json){ .type = JSON_OBJECT, .line = 1 };
	return 0;
}

int config_yaml_parse(struct arena *a, struct view text, struct json **ret, struct err *e)
{
	struct reader r = { .text = text, .arena = a, .err = e };
	struct json *root;
	int rc;

	if (text.n > CONFIG_YAML_MAX)
		return err_set(e, ERR_TOO_LARGE, "larger than %u bytes", CONFIG_YAML_MAX);
	root = arena_alloc(a, sizeof(*root));
	if (!root)
		return no_memory(&r);
	if (!yaml_parser_initialize(&r.parser))
		return err_set(e, ERR_INTERNAL, "out of memory");
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING); /* no guessing of UTF-16 */
	/* libyaml asserts that there is an address, even for nothing. */
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text.p ? text.p : ""), text.n);
	rc = read_document(&r, root);
	yaml_parser_delete(&r.parser);
	if (rc < 0)
		return -1;
	*ret = root;
	return 0;
}
