/*
 * What the files of the AIO dialect share. The sandbox of a request is r->box, and exists while its handler
 * runs.
 *
 * Every answer of /v1 is an envelope, {success, message, data, hint}. What goes wrong in the sandbox (no such
 * file, a command that cannot be run) is success false with status 200; a body that is not as it must be is
 * 422 with `detail`.
 */
#pragma once

#include "answer.h"
#include "box.h"
#include "dialect.h"

/* Each ends with a NULL method. Paths are as AIO has them: /v1/…. */
extern const struct route aio_context_routes[], aio_ticket_routes[];
extern const struct route aio_browser_routes[], aio_code_routes[], aio_jupyter_routes[], aio_nodejs_routes[];
extern const struct route aio_file_routes[], aio_find_routes[], aio_grep_routes[];
extern const struct route aio_transfer_routes[], aio_editor_routes[], aio_watch_routes[];

extern const struct route aio_mcp_routes[], aio_skills_routes[], aio_observe_routes[], aio_proxy_routes[],
	aio_openapi_routes[], aio_hooks_routes[];
extern const struct route *const aio_tables[]; /* all of them; ends with NULL */
extern const struct route aio_shell_routes[], aio_shell_list_routes[], aio_terminal_routes[],
	aio_bash_routes[], aio_bash_list_routes[], aio_ports_routes[];

/* What every route takes in the query. */
#define AIO_QUERY "api_key ticket"

/* What the dialect keeps, r->state. */
struct aio_state {
	struct core *core;
	struct list edits; /* that can be undone, the newest last: aio_undo.c */
	size_t n_edits, edit_bytes;
	struct list watches;        /* aio_watch.c */
	struct list shells, bashes; /* struct aio_shell, struct aio_bash */
	struct list known;          /* boxes whose shells are all there: aio_shell_adopt.c */
	struct loop_timer prune;    /* of shells whose box is gone */
};
void aio_undo_done(struct aio_state *s);
void aio_watch_done(struct aio_state *s);

/* NULL and an answer when there is no memory. Zeroed. */
void *aio_own(struct request *r, size_t size, void (*release)(struct request *r));
/* The sandbox; NULL: it is gone meanwhile, and the answer is sent. */
const struct box *aio_box(struct request *r);

/* The body against a schema whose unknown fields mean nothing (.open). On failure 422 is sent. */
int aio_read(struct request *r, const struct json_schema *s, void *out) _must_check_;
/* 422 by hand: `field` of the body ("" for the body itself) is wrong. */
void aio_unprocessable(struct request *r, const char *field, const char *message);

/* {"success":true,"message":…,"data": …: the value is written between these. message NULL: the usual one. */
struct json_out *aio_data(struct request *r, const char *message);
struct json_out *aio_data_hint(struct request *r, const char *message, const char *hint);
void aio_send(struct request *r);
/* success false, with a message; data is null. Also what answer_fail says of errors in the sandbox. */
void aio_refuse(struct request *r, const char *fmt, ...) _printf_(2, 3);
/* The same with a status, for routes that answer with bytes: these are none. */
void aio_refuse_bytes(struct request *r, int status, const char *message);
/* The same with FileOperationError as the data. */
void aio_refuse_file(struct request *r, struct view path, const char *operation, const struct err *e);

/* Who asks may run commands in the box; false: the answer is sent. */
bool aio_may_exec(struct request *r);
int aio_authenticate(struct request *r, struct err *e) _must_check_;
struct view aio_name(const struct request *r); /* the sandbox's, as the request has it */
/* A variable of the sandbox; p == NULL: it has none. */
struct view aio_variable(const struct box *b, const char *name);
/* Where relative paths begin: its variable WORKSPACE, or its working directory. */
struct view aio_workspace(const struct box *b);

/* ---- text and time of commands: aio_text.c ---- */

#define AIO_SECONDS_MAX 86400
uint64_t aio_ms(double seconds); /* more than none is at least one */
/* A limit for the core: no more than the configuration has; 0: its own. */
uint64_t aio_limit_ms(const struct core *c, double seconds);
/* At most so many characters: the middle is left out. 0: all of it. */
int aio_cut(struct buf *out, struct view text, size_t chars);
/* Without the beginning of a character at its end, the rest of which is still to come. */
struct view aio_whole(struct view text);
/* A member of an answer; the text lives as long as the request. */
void aio_put_cut(struct request *r, const char *key, struct view text, size_t chars);

/* ---- tickets: aio_ticket.c ---- */

#define AIO_TICKET_SECONDS 30 /* where the sandbox has no TICKET_TTL_SECONDS */
#define AIO_TICKET_SIZE    128
/* Opens one sandbox, for a moment, in a URL. */
void aio_ticket_make(const struct request *r, const struct box *b, char ret[AIO_TICKET_SIZE]);
struct view aio_ticket_box(struct view ticket); /* the id that it says; proves nothing */
/* Whether it opens the box; ret_key: of whoever asked for it, with which it ends. */
bool aio_ticket_fits(struct core *c, const struct box *b, struct view ticket,
		     char ret_key[KEYS_ID_SIZE]) _must_check_;
