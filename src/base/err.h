/*
 * The error of a request path: a code from the one table, an errno where there
 * is one, and a sentence for the user. A value, no heap. `code == ERR_OK` (zero)
 * means that nothing was set.
 */
#pragma once

#include "defs.h"

enum err_code {
	ERR_OK = 0,
#define X(sym, name, http, grpc, connect) ERR_##sym,
#include "err_codes.def"
#undef X
	ERR_CODES
};

struct err {
	enum err_code code;
	int sys; /* a positive errno, or 0 */
	char msg[192];
};

/* `sys` of an ERR_INVALID that PID 1 says of a user that its box has not, as getpwnam(3) does (ESRCH). A
 * dialect may have another answer to that than to what is malformed. */
#define ERR_SYS_NO_USER 3

/* Each returns -1, so that `return err_set(e, …)` reads well. `e` may be NULL. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...) _printf_(3, 4);
/* Takes an errno (positive or negative) and appends its text. */
int err_sys(struct err *e, enum err_code code, int sys, const char *fmt, ...) _printf_(4, 5);
/* Puts "what: " before the message that is there. */
int err_wrap(struct err *e, const char *fmt, ...) _printf_(2, 3);

const char *err_name(enum err_code code);    /* "not_found" */
int err_http(enum err_code code);            /* 404 */
int err_grpc(enum err_code code);            /* 5 */
const char *err_connect(enum err_code code); /* "not_found" */
/* ERR_INTERNAL for a name that is not in the table. */
enum err_code err_from_name(const char *name);
