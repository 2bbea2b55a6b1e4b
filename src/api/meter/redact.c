/*
 * Redaction: see redact.h. At each place every kind is tried; what is found is replaced, and
 * reading goes on behind it. A text is JSON as a rule, and what a model is told is often JSON
 * within JSON: quotes may have backslashes before them.
 */
#include "redact.h"

#include "poison.h"

#define WORD_MAX  1024 /* of what is cut: a longer one is known by its looks */
#define LONG      16   /* a value that is no word, if it has a digit */
#define SURE      32   /* also without */
#define LOOK      256
#define GAP_MAX   12 /* between a word and its value */
#define LABEL_MAX 40 /* of a PEM, between its dashes */

/* ---- letters ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_name(char c)
{
	return is_alnum(c) || c == '_' || c == '-';
}

/* Of base64, of tokens of HTTP. */
static bool is_token(char c)
{
	return is_name(c) || c == '.' || c == '~' || c == '+' || c == '/' || c == '=';
}

/* What ends a value that may be anything. */
static bool is_end(char c)
{
	return (unsigned char)c <= ' ' || c == '"' || c == '\'' || c == '\\' || c == ',' || c == ';' ||
	       c == '&' || c == '<' || c == '`';
}

static size_t run(struct view v, bool (*is)(char c))
{
	size_t n = 0;

	while (n < v.n && is(v.p[n]))
		n++;
	return n;
}

static bool has_digit(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (is_digit(v.p[i]))
			return true;
	return false;
}

/* So many letters of the kind that it is no word of a language: `least` with a digit, or `sure`; 0: less. A
 * look at the first ones says so, as the same letters may be looked at from many places. */
static size_t code(struct view v, bool (*is)(char c), size_t least, size_t sure)
{
	size_t n = run(view_head(v, LOOK), is);

	return n >= sure || (n >= least && has_digit(view_head(v, n))) ? run(v, is) : 0;
}

static bool starts_nocase(struct view v, const char *word)
{
	struct view w = view_of(word);
	return v.n >= w.n && view_eq_nocase(view_head(v, w.n), w);
}

/* ---- kinds: how long a thing of this kind is that begins here, 0: none does. `keep`: so much of it stays
 * ---- */

static size_t known_token(struct view v, size_t *keep)
{
	static const struct {
		const char *prefix;
		size_t least; /* behind it */
	} kinds[] = {
		{ "sk-", 12 },    { "sk_", 12 },   { "rk_", 12 },   { "pk-", 16 },   { "ghp_", 16 },
		{ "gho_", 16 },   { "ghu_", 16 },  { "ghs_", 16 },  { "ghr_", 16 },  { "github_pat_", 16 },
		{ "glpat-", 12 }, { "xoxb-", 12 }, { "xoxp-", 12 }, { "xoxa-", 12 }, { "xapp-", 12 },
		{ "AIza", 20 },   { "AKIA", 12 },  { "ASIA", 12 },  { "hf_", 16 },   { "npm_", 20 },
		{ "eyJ", 20 },
	};

	*keep = 0;
	for (size_t i = 0; i < ELEMS(kinds); i++) {
		if (!view_starts(v, kinds[i].prefix))
			continue;
		struct view rest = view_skip(v, strlen(kinds[i].prefix));
		/* Of these only web tokens have dots: elsewhere one ends a sentence. */
		size_t n = code(rest, kinds[i].prefix[0] == 'e' ? is_token : is_name, kinds[i].least, SURE);
		if (n)
			return v.n - rest.n + n;
	}
	return 0;
}

static size_t scheme(struct view v, size_t *keep)
{
	size_t n = starts_nocase(v, "bearer ") ? 7 : starts_nocase(v, "basic ") ? 6 : 0;
	size_t value = n ? code(view_skip(v, n), is_token, 8, LONG) : 0;

	*keep = n;
	return value ? n + value : 0;
}

/* To its end, or to the end of everything. */
static size_t pem(struct view v, size_t *keep)
{
	*keep = 0;
	if (!view_starts(v, "-----BEGIN "))
		return 0;
	struct view label = view_head(view_skip(v, 11), LABEL_MAX + 16);
	const char *key = memmem(label.p, label.n, "PRIVATE KEY", 11),
		   *dashes = memmem(label.p, label.n, "-----", 5);
	if (!key || (dashes && dashes < key))
		return 0;
	const char *end = memmem(v.p, v.n, "-----END ", 9);
	if (!end)
		return v.n;
	size_t n = (size_t)(end - v.p) + 9;
	const char *last = memmem(v.p + n, v.n - n, "-----", 5);
	return last && last - (v.p + n) <= LABEL_MAX ? (size_t)(last - v.p) + 5 : n;
}

/* scheme://name:password@ */
static size_t url(struct view v, size_t *keep)
{
	*keep = 0;
	if (!view_starts(v, "://"))
		return 0;
	for (size_t i = 3; i < v.n && i < WORD_MAX; i++) {
		if (v.p[i] == ':' && !*keep)
			*keep = i + 1;
		if (v.p[i] == '@')
			return *keep && i > *keep ? i : 0;
		if (is_end(v.p[i]) || v.p[i] == '/')
			return 0;
	}
	return 0;
}

static bool is_gap(char c)
{
	return c == ' ' || c == '\t' || c == '"' || c == '\'' || c == '\\' || c == ':' || c == '=' ||
	       c == '>' || c == '`' || c == '(';
}

/* Passwords are what follows a sign; of the others only what looks like one, as text speaks of keys and
 * tokens all the time. */
static size_t named(struct view v, size_t *keep)
{
	static const struct {
		const char *word;
		bool password;
	} words[] = { { "key", false },        { "token", false },         { "secret", false },
		      { "credential", false }, { "authorization", false }, { "signature", false },
		      { "password", true },    { "passwd", true },         { "passphrase", true },
		      { "pwd", true } };

	for (size_t i = 0; i < ELEMS(words); i++) {
		if (!starts_nocase(v, words[i].word))
			continue;
		size_t n = strlen(words[i].word), gap = run(view_head(view_skip(v, n), GAP_MAX), is_gap);
		struct view between = view_head(view_skip(v, n), gap);
		bool sign =
			between.n && (memchr(between.p, ':', between.n) || memchr(between.p, '=', between.n));
		struct view rest = view_skip(v, n + gap);
		if (gap && !sign && starts_nocase(rest, "is ")) {
			gap += 3;
			rest = view_skip(rest, 3);
		}
		size_t value = gap ? code(rest, is_token, LONG, SURE) : 0;
		*keep = n + gap;
		if (value || !words[i].password || !sign)
			return value ? *keep + value : 0;
		while (value < rest.n && !is_end(rest.p[value]))
			value++;
		return value >= 4 ? *keep + value : 0;
	}
	return 0;
}

/* ---- all of it ---- */

static size_t find(struct view v, bool begins, size_t *keep)
{
	size_t n = 0;

	if (v.p[0] == '-')
		n = pem(v, keep);
	else if (v.p[0] == ':')
		n = url(v, keep);
	if (!n && begins)
		n = known_token(v, keep);
	if (!n && begins)
		n = scheme(v, keep);
	return n ? n : named(v, keep);
}

/* The last word may go on where nobody sees it. */
static struct view without_last(struct view v)
{
	size_t n = v.n;

	while (n > 0 && v.n - n < WORD_MAX && !is_end(v.p[n - 1]))
		n--;
	return view_head(v, n);
}

int redact(struct view text, bool cut, struct buf *out)
{
	struct view v = cut ? without_last(text) : text;
	char before = 0;

	while (v.n && !out->bad) {
		size_t keep = 0, n = find(v, !is_alnum(before), &keep);
		size_t go = n ? keep : 1;
		buf_add(out, view_head(v, go));
		if (n)
			buf_puts(out, REDACT_MARK);
		before = v.p[(n ? n : 1) - 1];
		v = view_skip(v, n ? n : 1);
	}
	return out->bad;
}
