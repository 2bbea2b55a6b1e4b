/*
 * The parser behind opts.h. Long options take their value as "--name value" or
 * "--name=value", short ones as "-n value" or "-nvalue"; letters may stand
 * together ("-it"). Names are never abbreviated, so that a script that works
 * today works after the next option was added.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "nearest.h"
#include "num.h"
#include "opts.h"

#include "poison.h"

struct unit {
	const char *suffix;
	uint64_t factor;
};

static int read_with_unit(struct view v, const struct unit *units, size_t n, uint64_t *ret)
{
	size_t digits = 0;
	uint64_t value;
	int r;

	while (digits < v.n && v.p[digits] >= '0' && v.p[digits] <= '9')
		digits++;
	r = num_u64(view_head(v, digits), &value);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (!view_is(view_skip(v, digits), units[i].suffix))
			continue;
		if (__builtin_mul_overflow(value, units[i].factor, &value))
			return -ERANGE;
		*ret = value;
		return 0;
	}
	return -EINVAL;
}

int opts_read_mib(struct view v, uint64_t *ret)
{
	static const struct unit units[] = {
		{ "", 1 }, { "m", 1 }, { "M", 1 }, { "g", 1024 }, { "G", 1024 }
	};

	return read_with_unit(v, units, ELEMS(units), ret);
}

int opts_read_ms(struct view v, uint64_t *ret)
{
	static const struct unit units[] = {
		{ "", 1000 },       { "ms", 1 },          { "s", 1000 },
		{ "m", 60 * 1000 }, { "h", 3600 * 1000 }, { "d", 24 * 3600 * 1000 },
	};

	return read_with_unit(v, units, ELEMS(units), ret);
}

static int read_cpu(const char *text, double *ret)
{
	char *end;
	double d;

	if (text[0] < '0' || text[0] > '9') /* no sign, space, "inf" or hexadecimal */
		return -EINVAL;
	if (strspn(text, "0123456789.") != strlen(text))
		return -EINVAL;
	d = strtod(text, &end);
	if (*end || !isfinite(d) || d <= 0)
		return -EINVAL;
	*ret = d;
	return 0;
}

static int append(struct arena *a, struct opt_list *l, const char *text, size_t most)
{
	if (!l->items)
		l->items = arena_array(a, most, sizeof(*l->items));
	if (!l->items)
		return -ENOMEM;
	l->items[l->n++] = text;
	return 0;
}

/* "KEY=VALUE", or "KEY" for what our own environment has; a variable that is not set is not passed on. */
static int append_env(struct arena *a, struct opt_list *l, const char *text, size_t most)
{
	const char *value = strchr(text, '=') ? NULL : getenv(text);
	size_t n = strlen(text);
	char *pair;

	if (n == 0 || text[0] == '=')
		return -EINVAL;
	if (strchr(text, '='))
		return append(a, l, text, most);
	if (!value)
		return 0;
	pair = arena_alloc(a, n + strlen(value) + 2);
	if (!pair)
		return -ENOMEM;
	memcpy(pair, text, n);
	pair[n] = '=';
	memcpy(pair + n + 1, value, strlen(value) + 1);
	return append(a, l, pair, most);
}

/* `most`: how often an option can possibly occur. */
static int store(struct arena *a, const struct opt *o, void *flags, const char *text, size_t most)
{
	void *at = (char *)flags + o->offset;

	switch (o->kind) {
	case OPT_FLAG:
		*(bool *)at = true;
		return 0;
	case OPT_TEXT:
		*(const char **)at = text;
		return 0;
	case OPT_LIST:
		return append(a, at, text, most);
	case OPT_PAIRS:
		return strchr(text, '=') > text ? append(a, at, text, most) : -EINVAL;
	case OPT_ENV:
		return append_env(a, at, text, most);
	case OPT_COUNT:
		if (num_u64(view_of(text), at) < 0 || *(uint64_t *)at == 0)
			return -EINVAL;
		return 0;
	case OPT_CPU:
		return read_cpu(text, at);
	case OPT_MIB:
		return opts_read_mib(view_of(text), at) < 0 || *(uint64_t *)at == 0 ? -EINVAL : 0;
	case OPT_MS:
		return opts_read_ms(view_of(text), at) < 0 || *(uint64_t *)at == 0 ? -EINVAL : 0;
	}
	return -EINVAL;
}

static const char *wanted(enum opt_kind k)
{
	switch (k) {
	case OPT_PAIRS:
		return "KEY=VALUE";
	case OPT_ENV:
		return "KEY=VALUE, or KEY";
	case OPT_COUNT:
		return "a whole number from 1";
	case OPT_CPU:
		return "a number of cores such as 0.5 or 2";
	case OPT_MIB:
		return "a size in MiB such as 512, 512m or 2g";
	case OPT_MS:
		return "a time such as 10, 500ms, 10s, 5m, 2h or 1d";
	case OPT_FLAG:
	case OPT_TEXT:
	case OPT_LIST:
		break;
	}
	return "a value";
}

static const struct opt *find(const struct opt_table *tables, size_t n_tables, struct view name,
			      void **ret_flags)
{
	for (size_t t = 0; t < n_tables; t++) {
		for (size_t i = 0; i < tables[t].n; i++) {
			const struct opt *o = &tables[t].opts[i];
			bool is_letter =
				name.n == 2 && name.p[0] == '-' && o->letter && name.p[1] == o->letter;
			bool is_name = view_starts(name, "--") && view_is(view_skip(name, 2), o->name);

			if (is_letter || is_name) {
				*ret_flags = tables[t].flags;
				return o;
			}
		}
	}
	return NULL;
}

static int unknown_option(const struct opt_table *tables, size_t n_tables, struct view name, struct err *e)
{
	struct nearest near = NEAREST(view_starts(name, "--") ? view_skip(name, 2) : VIEW_NONE);

	for (size_t t = 0; t < n_tables; t++)
		for (size_t i = 0; i < tables[t].n; i++)
			nearest_try(&near, tables[t].opts[i].name);
	if (view_is(name, "--json"))
		return err_set(e, ERR_INVALID,
			       "there is no --json here: this command says nothing itself that could be "
			       "JSON, or its output is a program's");
	if (near.best)
		return err_set(e, ERR_INVALID, "unknown option %.*s; did you mean --%s?",
			       (int)MIN(name.n, 60u), name.p, near.best);
	return err_set(e, ERR_INVALID, "unknown option %.*s", (int)MIN(name.n, 60u), name.p);
}

static int store_value(struct arena *a, const struct opt *o, void *flags, const char *text, size_t most,
		       struct err *e)
{
	int r = store(a, o, flags, text, most);

	if (r == -ENOMEM)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (r < 0)
		return err_set(e, ERR_INVALID, "--%s wants %s, not \"%.40s\"", o->name, wanted(o->kind),
			       text);
	return 0;
}

/* "-it", "-e KEY=VALUE", "-itu root", "-uroot": each letter but the last is a flag, or takes the rest. */
static int parse_letters(struct arena *a, const struct opt_table *tables, size_t n_tables, size_t argc,
			 char *const *argv, size_t *i, struct err *e)
{
	for (const char *p = argv[*i] + 1; *p; p++) {
		const char name[] = { '-', *p };
		const struct opt *o;
		void *flags;

		o = find(tables, n_tables, (struct view){ name, sizeof(name) }, &flags);
		if (!o)
			return unknown_option(tables, n_tables, (struct view){ name, sizeof(name) }, e);
		if (o->kind == OPT_FLAG) {
			if (store_value(a, o, flags, NULL, argc, e) < 0)
				return -1;
			continue;
		}
		if (p[1])
			return store_value(a, o, flags, p + 1, argc, e);
		if (*i + 1 >= argc)
			return err_set(e, ERR_INVALID, "-%c wants %s", *p, wanted(o->kind));
		return store_value(a, o, flags, argv[++*i], argc, e);
	}
	return 0;
}

/* Reads the option at argv[*i] and its value; leaves *i at the last that it used. */
static int parse_one(struct arena *a, const struct opt_table *tables, size_t n_tables, size_t argc,
		     char *const *argv, size_t *i, struct err *e)
{
	struct view value = VIEW_NONE, name = view_of(argv[*i]);
	const struct opt *o;
	const char *text;
	void *flags;

	if (!view_starts(name, "--"))
		return parse_letters(a, tables, n_tables, argc, argv, i, e);
	name = view_split(name, '=', &value);
	o = find(tables, n_tables, name, &flags);
	if (!o)
		return unknown_option(tables, n_tables, name, e);
	text = value.p;
	if (o->kind == OPT_FLAG && text)
		return err_set(e, ERR_INVALID, "--%s takes no value", o->name);
	if (o->kind != OPT_FLAG && !text) {
		if (*i + 1 >= argc)
			return err_set(e, ERR_INVALID, "--%s wants %s", o->name, wanted(o->kind));
		text = argv[++*i];
	}
	return store_value(a, o, flags, text, argc, e);
}

int opts_parse(struct arena *a, const struct opt_table *tables, size_t n_tables, size_t lead, size_t argc,
	       char *const *argv, char ***ret_operands, size_t *ret_n, struct err *e)
{
	char **operands = arena_array(a, argc + 1, sizeof(*operands));
	size_t n = 0, i;

	if (!operands)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (i = 0; i < argc; i++) {
		bool is_option = argv[i][0] == '-' && argv[i][1];

		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (is_option) {
			if (parse_one(a, tables, n_tables, argc, argv, &i, e) < 0)
				return -1;
			continue;
		}
		if (n == lead)
			break;
		operands[n++] = argv[i];
	}
	while (i < argc)
		operands[n++] = argv[i++];
	*ret_operands = operands;
	*ret_n = n;
	return 0;
}

void opts_help(FILE *f, const struct opt *opts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct opt *o = &opts[i];
		char left[64];

		snprintf(left, sizeof(left), "%c%c%s --%s%s%s", o->letter ? '-' : ' ',
			 o->letter ? o->letter : ' ', o->letter ? "," : " ", o->name, o->arg ? " " : "",
			 o->arg ? o->arg : "");
		fprintf(f, "  %-26s %s\n", left, o->help);
	}
}
