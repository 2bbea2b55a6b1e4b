/*
 * What the files of envd share.
 */
#pragma once

#include "answer.h"
#include "envd.h"
#include "file.h"
#include "rpc.h"

/* NULL and an answer when there is no memory. Zeroed. */
void *envd_own(struct request *c, size_t size, void (*release)(struct request *c));

/* The box of the call; NULL when it is gone meanwhile. */
const struct box *envd_box(const struct request *c);
struct file_place envd_place(const struct request *c, struct view path);

/* {"code": status, "message"} */
void envd_fail_status(struct request *c, int status, const char *message);
extern const struct http_header envd_cors[1];

/* The environment that every process of the box gets beyond what the box was made with: not to be overridden.
 */
#define ENVD_VARS 3
size_t envd_vars(struct core *core, const struct box *b, struct view names[ENVD_VARS],
		 struct view values[ENVD_VARS]);

/* ---- plain paths: envd_info.c, envd_download.c, envd_upload.c, envd_compose.c ---- */
void envd_metrics(struct request *c);
void envd_envs(struct request *c);
void envd_download(struct request *c);
void envd_upload(struct request *c);
void envd_compose(struct request *c);
#define ENVD_COMPOSE_MAX (1024u * 1024) /* of its body */

/* ---- signatures: envd_sign.c ---- */
/* Whether the query's signature opens this path of this box. op: "read", "write". */
int envd_signed(struct http_exchange *x, const struct core *core, const struct box *b, const char *op,
		struct err *e) _must_check_;

/* The same, but for its end. */
bool envd_signature_fits(const struct http_exchange *x, const struct core *core, const struct box *b,
			 const char *op) _must_check_;

/* ---- paths and entries: envd_entry.c ---- */

/* "~" and "~/x" are the home, "." and ".." are taken out; relative stays so. ERR_INVALID */
int envd_path(struct arena *a, struct view raw, struct view *ret, struct err *e) _must_check_;
struct view envd_clean(struct arena *a, struct view path); /* p == NULL: no memory */
struct view envd_base(struct view path);                   /* the last part */
struct envd_entry_info;
struct file_info;
/* A file with its details, under this absolute path. The result lives in the arena. */
struct envd_entry_info *envd_entry(struct arena *a, const struct file_info *info, struct view path);

/* ---- calls: envd_process.c, envd_fs.c ---- */

extern const struct rpc_method envd_process_methods[], envd_fs_methods[];
