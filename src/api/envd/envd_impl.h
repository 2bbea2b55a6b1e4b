/*
 * What the files of the envd dialect share. A call is one request, from its head
 * to envd_done; every answer that ends it (envd_reply…, rpc_reply, rpc_fail,
 * rpc_end) calls that.
 */
#pragma once

#include "arena.h"
#include "box.h"
#include "connect.h"
#include "core.h"
#include "envd.h"
#include "file.h"
#include "http.h"
#include "json.h"
#include "list.h"
#include "who.h"

#define ENVD_ANSWER_MAX (256u * 1024 * 1024)

struct envd {
	struct core *core;
	struct list calls;
	void (*on_idle)(void *arg);
	void *idle_arg;
};

struct rpc_method;

struct envd_call {
	struct envd *envd;
	struct core *core;
	struct http_exchange *x;
	struct list link;
	struct actor actor;
	char box[BOX_ID + 1];
	struct view user; /* whose rights count; empty: the box's */
	struct arena arena;
	struct buf body;
	void (*release)(struct envd_call *c); /* cancels and gives back; also after a good end */
	void *own;                            /* freed after that */

	/* ---- of rpc.c ---- */
	const struct rpc_method *method;
	struct connect_type type;
	struct connect_reader reader;
	struct loop_timer deadline, ping;
	uint64_t timeout_ms, ping_ms; /* 0: none */
	const void *ping_msg;
	bool begun, full; /* the answer has begun; the client does not keep up */
	bool last, busy;  /* the body is complete; a message of it is being dealt with */
	void (*on_writable)(struct envd_call *c);
};

/* NULL and an answer when there is no memory. Zeroed. */
void *envd_own(struct envd_call *c, size_t size, void (*release)(struct envd_call *c));
void envd_done(struct envd_call *c);

/* The box of the call; NULL when it is gone meanwhile. */
const struct box *envd_box(const struct envd_call *c);
struct file_place envd_place(const struct envd_call *c, struct view path);

/* Plain answers: JSON, and {"code": status, "message"} */
void envd_reply_json(struct envd_call *c, int status, struct buf *json); /* takes the buffer's bytes */
void envd_fail(struct envd_call *c, const struct err *e);
void envd_fail_status(struct envd_call *c, int status, const char *message);
/* What a guest said, as this dialect's clients expect it. */
void envd_translate(const struct err *said, struct err *ret);
extern const struct http_header envd_cors[1];

/* The environment that every process of the box gets beyond what the box was made with: not to be overridden.
 */
#define ENVD_VARS 3
size_t envd_vars(const struct envd_call *c, const struct box *b, struct view names[ENVD_VARS],
		 struct view values[ENVD_VARS]);

/* ---- plain paths: envd_info.c, envd_download.c, envd_upload.c, envd_compose.c ---- */
void envd_metrics(struct envd_call *c);
void envd_envs(struct envd_call *c);
void envd_download(struct envd_call *c);
void envd_upload(struct envd_call *c);
void envd_compose(struct envd_call *c);

/* ---- signatures: envd_sign.c ---- */
/* Whether the query's signature opens this path of this box. op: "read", "write". */
int envd_signed(struct http_exchange *x, const struct core *core, const struct box *b, const char *op,
		struct err *e) _must_check_;

/* ---- paths and entries: envd_entry.c ---- */

/* "~" and "~/x" are the home, "." and ".." are taken out; relative stays so. ERR_INVALID */
int envd_path(struct arena *a, struct view raw, struct view *ret, struct err *e) _must_check_;
struct view envd_clean(struct arena *a, struct view path); /* p == NULL: no memory */
struct view envd_base(struct view path);                   /* the last part */
struct envd_entry_info;
struct file_info;
/* A file with its details, under this absolute path. The result lives in the arena. */
struct envd_entry_info *envd_entry(struct arena *a, const struct file_info *info, struct view path);

/* ---- calls: rpc.c ---- */

enum rpc_kind { RPC_UNARY, RPC_SERVER, RPC_CLIENT }; /* which side streams */

struct pb_msg;
struct rpc_method {
	const char *path;
	enum rpc_kind kind;
	const struct pb_msg *request, *reply;
	void (*handle)(struct envd_call *c,
		       const void *request); /* CLIENT: for each message; then rpc_go_on */
	void (*end)(struct envd_call *c);    /* CLIENT: there are no more */
};
extern const struct rpc_method envd_process_methods[], envd_fs_methods[]; /* end with a NULL path */

/* Whether the path is one of a method, which then has the call. */
bool rpc_take(struct envd_call *c);
void rpc_reply(struct envd_call *c, const void *msg);
void rpc_fail(struct envd_call *c, const struct err *e);
void rpc_begin(struct envd_call *c, const void *ping_msg);
void rpc_send(struct envd_call *c, const void *msg); /* c->full: stop until on_writable */
void rpc_end(struct envd_call *c);
void rpc_go_on(struct envd_call *c);
void rpc_release(struct envd_call *c);
/* The daemon goes down: a stream ends itself. */
void rpc_drain(struct envd_call *c);
