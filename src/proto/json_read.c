/*
 * The JSON reader: one pass over one copy of the text.
 *
 * The text is copied into the arena first and strings are decoded in place (a
 * decoded string is never longer than its source), so that a document lives as
 * long as its arena and no string costs an allocation. Zero bytes follow the
 * copy: the scanner may look at a whole word without asking where the end is, and
 * meets a byte that no token contains.
 *
 * Children are gathered on a scratch stack and moved to an exact array in the
 * arena when their container closes. The scratch stack is held to the arena's
 * maximum, too: a body of many tiny values cannot take more than the caller allowed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "json.h"
#include "json_scan.h"
#include "text.h"

#include "poison.h"

#define SCRATCH_FIRST 64 /* children held on the C stack before the heap is used */
#define SMALL_OBJECT  16 /* members up to which duplicates are sought pair by pair */

struct reader {
	struct arena *arena;
	struct view source; /* as given: errors count lines and columns in it */
	char *begin, *end;  /* the copy */
	char *p;
	uint32_t line;
	unsigned depth;
	struct json_member *scratch;
	size_t n, cap;
	bool heap; /* scratch is malloced */
	struct err *e;
};

static int read_container(struct reader *r, struct json *ret);

/* Reports at `at`, in lines and characters of the source. */
static int fail(struct reader *r, const char *at, const char *what)
{
	size_t offset = (size_t)(at - r->begin), line = 1, column = 1;

	for (size_t i = 0; i < offset; i++) {
		unsigned char c = (unsigned char)r->source.p[i];
		if (c == '\n') {
			line++;
			column = 1;
		} else if ((c & 0xc0) != 0x80) {
			column++;
		}
	}
	return err_set(r->e, ERR_BAD_REQUEST, "line %zu, column %zu: %s", line, column, what);
}

static int fail_memory(struct reader *r)
{
	return err_set(r->e, ERR_TOO_LARGE, "the JSON document takes more memory than is allowed");
}

static int fail_unexpected(struct reader *r, const char *wanted)
{
	char what[96];

	if (r->p == r->end)
		snprintf(what, sizeof(what), "expected %s, found the end of the text", wanted);
	else if (*r->p > ' ' && *r->p < 0x7f)
		snprintf(what, sizeof(what), "expected %s, found '%c'", wanted, *r->p);
	else
		snprintf(what, sizeof(what), "expected %s, found byte 0x%02x", wanted, (unsigned char)*r->p);
	return fail(r, r->p, what);
}

static void skip_space(struct reader *r)
{
	for (;; r->p++) {
		if (*r->p == '\n')
			r->line++;
		else if (*r->p != ' ' && *r->p != '\t' && *r->p != '\r')
			return;
	}
}

/* One more child on the stack; only its index is good for longer than the next push. */
static int push(struct reader *r, size_t *ret_index)
{
	if (r->n == r->cap) {
		size_t cap = r->cap * 2, size = cap * sizeof(*r->scratch);
		struct json_member *grown;

		if (size > r->arena->max)
			return fail_memory(r);
		grown = realloc(r->heap ? r->scratch : NULL, size);
		if (!grown)
			return fail_memory(r);
		if (!r->heap)
			memcpy(grown, r->scratch, r->n * sizeof(*grown));
		r->scratch = grown;
		r->cap = cap;
		r->heap = true;
	}
	*ret_index = r->n++;
	return 0;
}

/* Four hex digits at s, or -1. A short text ends in a zero byte, which is none. */
static int hex4(const char *s)
{
	int v = 0;

	for (int i = 0; i < 4; i++) {
		char c = s[i];
		int digit;

		if (c >= '0' && c <= '9')
			digit = c - '0';
		else if (c >= 'a' && c <= 'f')
			digit = c - 'a' + 10;
		else if (c >= 'A' && c <= 'F')
			digit = c - 'A' + 10;
		else
			return -1;
		v = v << 4 | digit;
	}
	return v;
}

/* The escape at r->p (just behind "\u"), appended at `out`; returns the new end or NULL. */
static char *read_unicode(struct reader *r, char *out)
{
	const char *start = r->p - 2;
	int unit = hex4(r->p);
	uint32_t c;

	if (unit < 0) {
		fail(r, start, "\\u needs four hexadecimal digits");
		return NULL;
	}
	r->p += 4;
	c = (uint32_t)unit;
	if (c >= 0xd800 && c <= 0xdfff) {
		int low = r->p[0] == '\\' && r->p[1] == 'u' ? hex4(r->p + 2) : -1;

		if (c >= 0xdc00 || low < 0xdc00 || low > 0xdfff) {
			fail(r, start, "half of a surrogate pair");
			return NULL;
		}
		r->p += 6;
		c = 0x10000 + ((c - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
	}
	if (c == 0) {
		fail(r, start, "\\u0000 is not accepted in strings");
		return NULL;
	}
	if (c < 0x80) {
		*out++ = (char)c;
	} else if (c < 0x800) {
		*out++ = (char)(0xc0 | c >> 6);
		*out++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*out++ = (char)(0xe0 | c >> 12);
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
		*out++ = (char)(0x80 | (c & 0x3f));
	} else {
		*out++ = (char)(0xf0 | c >> 18);
		*out++ = (char)(0x80 | (c >> 12 & 0x3f));
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
		*out++ = (char)(0x80 | (c & 0x3f));
	}
	return out;
}

static char *read_escape(struct reader *r, char *out)
{
	static const char plain[256] = {
		['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
		['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
	};
	unsigned char c = (unsigned char)r->p[1];

	if (c == 'u') {
		r->p += 2;
		return read_unicode(r, out);
	}
	if (!plain[c]) {
		fail(r, r->p, "unknown escape in a string");
		return NULL;
	}
	r->p += 2;
	*out++ = plain[c];
	return out;
}

/* A string whose opening quote is at r->p, decoded in place. */
static int read_string(struct reader *r, struct view *ret)
{
	const char *open = r->p;
	char *start = ++r->p, *out = start;

	for (;;) {
		size_t n = json_scan_plain(r->p);

		if (out != r->p && n > 0)
			memmove(out, r->p, n);
		out += n;
		r->p += n;
		if (*r->p == '"') {
			r->p++;
			*ret = (struct view){ start, (size_t)(out - start) };
			return 0;
		}
		if (*r->p == '\\') {
			out = read_escape(r, out);
			if (!out)
				return -1;
		} else if ((unsigned char)*r->p >= 0x80) {
			n = json_scan_utf8(r->p, (size_t)(r->end - r->p));
			if (n == 0)
				return fail(r, r->p, "invalid UTF-8 in a string");
			memmove(out, r->p, n);
			out += n;
			r->p += n;
		} else if (r->p == r->end) {
			return fail(r, open, "a string without its closing quote");
		} else {
			return fail(r, r->p, "a control character in a string must be escaped");
		}
	}
}

static int read_number(struct reader *r, struct json *ret)
{
	size_t n = json_scan_number(r->p);

	if (n == 0)
		return fail(r, r->p, "a malformed number");
	ret->type = JSON_NUMBER;
	ret->text = (struct view){ r->p, n };
	r->p += n;
	if (*r->p >= '0' && *r->p <= '9')
		return fail(r, r->p - n, "a number with a leading zero");
	return 0;
}

static int read_word(struct reader *r, const char *word, enum json_type type, bool boolean, struct json *ret)
{
	size_t n = strlen(word);

	if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
		return fail_unexpected(r, "a value");
	r->p += n;
	ret->type = type;
	ret->boolean = boolean;
	return 0;
}

/* The value at r->p, which is no space and no bracket. */
static int read_scalar(struct reader *r, struct json *ret)
{
	*ret = (struct json){ .line = r->line };
	switch (*r->p) {
	case '"':
		ret->type = JSON_STRING;
		return read_string(r, &ret->text);
	case 't':
		return read_word(r, "true", JSON_BOOL, true, ret);
	case 'f':
		return read_word(r, "false", JSON_BOOL, false, ret);
	case 'n':
		return read_word(r, "null", JSON_NULL, false, ret);
	case '-':
	case '0' ... '9':
		return read_number(r, ret);
	default:
		return fail_unexpected(r, "a value");
	}
}

/* The value at r->p into the child `index`: a scalar in place, a container by a copy, since
 * its own children move the stack. */
static int read_child(struct reader *r, size_t index)
{
	struct json value = { .line = r->line };

	if (*r->p != '{' && *r->p != '[')
		return read_scalar(r, &r->scratch[index].value);
	if (read_container(r, &value) < 0)
		return -1;
	r->scratch[index].value = value;
	return 0;
}

static int read_array(struct reader *r, struct json *ret)
{
	size_t base = r->n;

	r->p++;
	skip_space(r);
	while (*r->p != ']') {
		size_t index;

		if (push(r, &index) < 0 || read_child(r, index) < 0)
			return -1;
		skip_space(r);
		if (*r->p == ',') {
			r->p++;
			skip_space(r);
			if (*r->p == ']')
				return fail_unexpected(r, "a value");
		} else if (*r->p != ']') {
			return fail_unexpected(r, "',' or ']'");
		}
	}
	r->p++;
	ret->type = JSON_ARRAY;
	ret->n = r->n - base;
	if (ret->n > 0) {
		ret->items = arena_array(r->arena, ret->n, sizeof(*ret->items));
		if (!ret->items)
			return fail_memory(r);
		for (size_t i = 0; i < ret->n; i++)
			ret->items[i] = r->scratch[base + i].value;
	}
	r->n = base;
	return 0;
}

static int compare_keys(const void *a, const void *b)
{
	const struct view *x = &(*(const struct json_member *const *)a)->key;
	const struct view *y = &(*(const struct json_member *const *)b)->key;

	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	return x->n ? memcmp(x->p, y->p, x->n) : 0;
}

static int fail_duplicate(struct reader *r, const struct json_member *again)
{
	struct buf name = BUF_INIT(256);

	text_quote(&name, again->key, 32);
	err_set(r->e, ERR_BAD_REQUEST, "line %u: the key %.*s appears twice in one object", again->value.line,
		VIEW_ARG(buf_view(&name)));
	buf_done(&name);
	return -1;
}

/*
 * Sorting, not hashing, for many members: its cost does not depend on what the
 * sender chose as keys.
 */
static int refuse_duplicates(struct reader *r, const struct json *object)
{
	const struct json_member *m = object->members;

	if (object->n <= SMALL_OBJECT) {
		for (size_t i = 1; i < object->n; i++)
			for (size_t k = 0; k < i; k++)
				if (view_eq(m[i].key, m[k].key))
					return fail_duplicate(r, &m[i]);
		return 0;
	}

	const struct json_member **sorted = malloc(object->n * sizeof(*sorted));
	int rc = 0;

	if (!sorted)
		return fail_memory(r);
	for (size_t i = 0; i < object->n; i++)
		sorted[i] = &m[i];
	qsort(sorted, object->n, sizeof(*sorted), compare_keys);
	for (size_t i = 1; i < object->n && rc == 0; i++)
		if (view_eq(sorted[i - 1]->key, sorted[i]->key))
			rc = fail_duplicate(r, MAX(sorted[i - 1], sorted[i]));
	free(sorted);
	return rc;
}

static int read_member(struct reader *r)
{
	size_t index;

	if (*r->p != '"')
		return fail_unexpected(r, "a key in double quotes");
	if (push(r, &index) < 0 || read_string(r, &r->scratch[index].key) < 0)
		return -1;
	skip_space(r);
	if (*r->p != ':')
		return fail_unexpected(r, "':'");
	r->p++;
	skip_space(r);
	if (read_child(r, index) < 0)
		return -1;
	skip_space(r);
	return 0;
}

static int read_object(struct reader *r, struct json *ret)
{
	size_t base = r->n;

	r->p++;
	skip_space(r);
	while (*r->p != '}') {
		if (read_member(r) < 0)
			return -1;
		if (*r->p == ',') {
			r->p++;
			skip_space(r);
			if (*r->p == '}')
				return fail_unexpected(r, "a key in double quotes");
		} else if (*r->p != '}') {
			return fail_unexpected(r, "',' or '}'");
		}
	}
	r->p++;
	ret->type = JSON_OBJECT;
	ret->n = r->n - base;
	if (ret->n > 0) {
		ret->members = arena_array(r->arena, ret->n, sizeof(*ret->members));
		if (!ret->members)
			return fail_memory(r);
		memcpy(ret->members, r->scratch + base, ret->n * sizeof(*ret->members));
	}
	r->n = base;
	return refuse_duplicates(r, ret);
}

static int read_container(struct reader *r, struct json *ret)
{
	int rc;

	if (r->depth == JSON_DEPTH)
		return fail(r, r->p, "nested too deeply");
	r->depth++;
	rc = *r->p == '{' ? read_object(r, ret) : read_array(r, ret);
	r->depth--;
	return rc;
}

int json_parse(struct arena *a, struct view text, struct json **ret, struct err *e)
{
	struct json_member first[SCRATCH_FIRST];
	struct reader r = {
		.arena = a,
		.source = text,
		.line = 1,
		.scratch = first,
		.cap = ELEMS(first),
		.e = e,
	};
	struct json *root;
	int rc;

	if (text.n > SIZE_MAX - JSON_SCAN_SLACK)
		return fail_memory(&r);
	root = arena_alloc(a, sizeof(*root));
	r.begin = arena_alloc(a, text.n + JSON_SCAN_SLACK); /* zeroed */
	if (!root || !r.begin)
		return fail_memory(&r);
	if (text.n > 0)
		memcpy(r.begin, text.p, text.n);
	r.p = r.begin;
	r.end = r.begin + text.n;

	skip_space(&r);
	root->line = r.line;
	rc = *r.p == '{' || *r.p == '[' ? read_container(&r, root) : read_scalar(&r, root);
	if (rc == 0) {
		skip_space(&r);
		if (r.p != r.end)
			rc = fail_unexpected(&r, "the end of the text");
	}
	if (r.heap)
		free(r.scratch);
	if (rc == 0)
		*ret = root;
	return rc;
}
