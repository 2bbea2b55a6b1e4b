/*
 * Setting and mapping errors. See err.h.
 */
#include "err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "poison.h"

static const struct {
	const char *name;
	int http, grpc;
	const char *connect;
} table[ERR_CODES] = {
	[ERR_OK] = { "ok", 200, 0, "ok" },
#define X(sym, n, h, g, c) [ERR_##sym] = { n, h, g, c },
#include "err_codes.def"
#undef X
};

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	if (!e)
		return -1;
	va_list ap;
	va_start(ap, fmt);
	e->code = code;
	e->sys = 0;
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	return -1;
}

int err_sys(struct err *e, enum err_code code, int sys, const char *fmt, ...)
{
	if (!e)
		return -1;
	va_list ap;
	va_start(ap, fmt);
	e->code = code;
	e->sys = sys < 0 ? -sys : sys;
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	size_t n = strlen(e->msg);
	snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", strerror(e->sys));
	return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	if (!e)
		return -1;
	char what[sizeof(e->msg)], old[sizeof(e->msg)];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	memcpy(old, e->msg, sizeof(old));
	/* Cut from the end when it does not fit: what it was doing comes first. */
	size_t n = strlen(what);
	memcpy(e->msg, what, n + 1);
	size_t room = sizeof(e->msg) - n;
	snprintf(e->msg + n, room, ": %.*s", room > 3 ? (int)room - 3 : 0, old);
	return -1;
}

const char *err_name(enum err_code code)
{
	return code < ERR_CODES ? table[code].name : "internal";
}

int err_http(enum err_code code)
{
	return code < ERR_CODES ? table[code].http : 500;
}

int err_grpc(enum err_code code)
{
	return code < ERR_CODES ? table[code].grpc : 13;
}

const char *err_connect(enum err_code code)
{
	return code < ERR_CODES ? table[code].connect : "internal";
}

enum err_code err_from_name(const char *name)
{
	for (enum err_code c = ERR_OK + 1; c < ERR_CODES; c++)
		if (strcmp(table[c].name, name) == 0)
			return c;
	return ERR_INTERNAL;
}
